"""The star schema of the tests of queries, in a session that prunes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from connectors.session import session_pruning
from pruning import PruningOptions, disable, enable
from tests.queries import conftest as of_queries
from tests.queries.star import OPTIONS

MONTH = "SELECT s.* FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 2"
ROWS = 750


star = of_queries.star


@pytest.fixture
def query(star) -> str:
    """A query whose dimension leaves two of eight files of the fact."""
    return MONTH.format(sales=f"{star}sales", days=f"{star}days")


@pytest.fixture
def enabled(spark: SparkSession) -> Iterator[Callable[..., SparkSession]]:
    """Enables pruning of the session until the end of the test."""

    def run(options: PruningOptions | None = OPTIONS) -> SparkSession:
        enable(spark, options=options)
        return spark

    yield run
    disable(spark)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """The number of queries that sessions have handed over since the test began."""
    made, inner = [0], session_pruning.prune_plan

    def counting(*arguments: object, **keywords: object) -> object:
        made[0] += 1
        return inner(*arguments, **keywords)

    monkeypatch.setattr(session_pruning, "prune_plan", counting)
    return lambda: made[0]
