from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from sample_data.plain_duckdb import plain_duckdb
from tests.oracle.lakes import Lake, Layout, write
from tests.oracle.oracle import Oracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Made = Callable[..., Lake]


@pytest.fixture(scope="session")
def oracle(spark: SparkSession) -> Iterator[Oracle]:
    """The checks that compare pruned reads with Spark's unpruned result and with DuckDB's."""
    with plain_duckdb() as connection:
        yield Oracle(spark, connection)


@pytest.fixture(scope="session")
def shared_lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Tables that no test changes, written once: `shared_lake(name, format, make_rows, layout)`."""
    made: dict[tuple[str, str], Lake] = {}

    def lake(name: str, format_: str, rows: Callable[[], pa.Table], layout: Layout = Layout(), **more: object) -> Lake:  # noqa: B008
        if (name, format_) not in made:
            folder = tmp_path_factory.mktemp(name) / format_
            written = write(spark, folder, format_, rows(), layout, **more)
            made[name, format_] = replace(written, shared_as=name)
        return made[name, format_]

    return lake
