"""DuckDB as the oracle for star joins: plain tables, no optimiser, one thread, no code shared with pruning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from benchmarks.demo.star_join import Dimension, StarJoin
from pruning.errors import EnvironmentProblem
from sample_data.rows import Rows

if TYPE_CHECKING:
    import duckdb


class Oracle:
    """An oracle for star joins, over tables that were read whole, without any filter."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def rows(self, join: StarJoin) -> Rows:
        """The rows of a join."""
        return Rows(self._connection.execute(_unbraced(join.sql)).fetchall())

    def keys(self, dimension: Dimension) -> list[tuple[int, ...]]:
        """The keys of one dimension, without keys that have a NULL, which `=` never matches."""
        rows = self._connection.execute(_unbraced(dimension.keys_sql)).fetchall()
        return [row for row in rows if None not in row]


@contextmanager
def oracle(sources: Mapping[str, Path], joins: Sequence[StarJoin]) -> Iterator[Oracle]:
    """An oracle over the Parquet files of `sources`, restricted to tables and columns that the joins mention."""
    try:
        from sample_data.plain_duckdb import load_file, plain_duckdb  # noqa: PLC0415 - an optional dependency
    except ImportError as error:
        msg = "Checking answers needs the package 'duckdb': run `pip install 'scanprune[demo]'`"
        raise EnvironmentProblem(msg) from error
    with plain_duckdb() as connection:
        for table, path in sources.items():
            columns = {name for name in pq.read_schema(path).names if any(join.mentions(name) for join in joins)}
            if columns:
                load_file(connection, table, path, columns)
        yield Oracle(connection)


def _unbraced(sql: str) -> str:
    return sql.replace("{", "").replace("}", "")
