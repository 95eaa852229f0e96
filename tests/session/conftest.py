"""The star schema of the tests of queries, in a session that prunes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.session import session_pruning
from pruning import PruningOptions, disable, enable
from tests import leftovers
from tests.queries import conftest as of_queries
from tests.queries.star import OPTIONS
from tests.session.merging import ARRIVED, Both, Targets
from tests.session.streams import FIRST, SECOND, Streams, add

MONTH = "SELECT s.* FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 2"
ROWS = 750


star = of_queries.star
assert_no_leftovers = leftovers.assert_no_leftovers


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


@pytest.fixture(scope="module")
def batches(spark, tmp_path_factory) -> dict[str, str]:
    """Folders of two files, each the days of a micro-batch, by format."""
    folders = {}
    for format_ in ("delta", "parquet", "json"):
        folders[format_] = str(tmp_path_factory.mktemp("arrived") / format_)
        for days in (FIRST, SECOND):
            add(spark, folders[format_], days, format_)
    return folders


@pytest.fixture
def streams(spark, tmp_path, enabled) -> Iterator[Streams]:
    yield Streams(spark, tmp_path, enabled)
    disable(spark)
    assert [] == spark.streams.active
    deadline, tracker = time.monotonic() + 30, spark.sparkContext.statusTracker()
    while tracker.getActiveJobsIds() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [] == list(tracker.getActiveJobsIds())
    assert [] == [each.name for each in threading.enumerate() if each.name.startswith("build of")]


@pytest.fixture
def targets(spark: SparkSession) -> Targets:
    """The reports of the target of commands that run from now on."""
    return Targets(spark)


@pytest.fixture
def both(spark: SparkSession, star: str, enabled: Callable[..., SparkSession], tmp_path: Path) -> Both:
    """Runs a command on two copies of a table, the second time pruned."""
    return Both(spark, star, enabled, tmp_path)


@pytest.fixture
def arrived(spark: SparkSession, star: str, tmp_path: Path) -> str:
    """The source as a stored table, which Delta does not store once more."""
    spark.sql(ARRIVED.format(sales=f"{star}sales")).coalesce(1).write.format("delta").save(str(tmp_path / "arrived"))
    return f"SELECT * FROM delta.`{tmp_path / 'arrived'}`"
