"""The pytest plugin of all test folders: the one Spark session, a DuckDB to compare with, tiers, and how laws run.

`conftest.py` at the root loads it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING

import duckdb
import hypothesis
import pytest

from connectors.spark.java_check import java_problem
from sample_data import confs
from sample_data.plain_duckdb import plain_duckdb
from sample_data.rows import Rows, difference
from tests import tiers
from tests.queries.star import star_tables
from tests.three_ways import ThreeWays, three_ways
from tests.two_ways import WAYS, Interruptions, PrunedFrames, pruned_frames

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sample_data.object_store.store import ObjectStore

hypothesis.settings.register_profile("ci", derandomize=True, deadline=None)
hypothesis.settings.register_profile("fuzz", max_examples=20_000, deadline=None)
# Any failure kills a mutant, and a smaller example of it takes time.
hypothesis.settings.register_profile(
    "mutants", derandomize=True, deadline=None, phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate]
)
hypothesis.settings.load_profile("ci")

# A small heap with the serial collector on few cores takes a tenth of the time off. Java's second compiler costs more
# than it gains in short queries: a quarter of the time. Environment variables also reach the Spark of each process that
# a test starts, where startup takes nearly all of the time.
_JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
os.environ["SPARK_SUBMIT_OPTS"] = f"{_JAVA_OPTIONS} {os.environ.get('SPARK_SUBMIT_OPTS', '')}"
# The launcher is another Java process, which builds the command line of Spark's.
os.environ["SPARK_LAUNCHER_OPTS"] = f"{_JAVA_OPTIONS} {os.environ.get('SPARK_LAUNCHER_OPTS', '')}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of the test tiers."""
    tiers.add_options(parser)


def pytest_report_header(config: pytest.Config) -> str:
    """The tier that runs, and the options that repeat it."""
    return tiers.header(config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks tests that use `spark`, skips them where Spark cannot start, selects a tier, and orders files.

    Files with slow tests come first, so that parallel workers end at about the same time.
    """
    problem = java_problem()
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if "spark" in fixtures:
            item.add_marker(pytest.mark.spark)
        if "store" in fixtures:
            item.add_marker(pytest.mark.full)
        if problem is not None and item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.skip(reason=problem))
    tiers.deselect(config, items)
    long = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in long)


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """The rows that only one side of `==` has."""
    match op, left, right:
        case ("==", Rows(form=form), Rows() | list()) | ("==", list(), Rows(form=form)):
            return [f"{len(left)} rows == {len(right)} rows", difference({"left": left, "right": right}, form)]
        case _:
            return None


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session that all tests share: a test leaves its confs, catalog and cache unchanged."""
    from connectors.spark.session import spark_session  # noqa: PLC0415  tests without Spark start in seconds

    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": tmp_path_factory.mktemp("warehouse").as_uri(),
        # The default allocates 32 MiB for a hash table of a few rows, and garbage collection takes the time.
        "spark.buffer.pageSize": "1m",
        # Delta computes the state of a new table by a query with a shuffle: one partition takes a fifth less time than
        # two.
        "spark.databricks.delta.snapshotPartitions": "1",
        # Delta runs a VACUUM with this many tasks; the default is 10,000.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
        # Task metrics count every byte that a scan reads only without vectored IO.
        "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",
    }
    if request.config.getoption("--tier") == tiers.Tier.QUICK.value:
        # Compiling generated code takes half of the time where tables have a hundred rows.
        settings |= {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    with (tmp_path_factory.getbasetemp().parent / "spark.lock").open("w") as lock:
        # Parallel test processes share the folder where the first session start puts its jars.
        fcntl.flock(lock, fcntl.LOCK_EX)
        session = spark_session("scanprune tests", conf=settings)
    yield session
    session.stop()


@pytest.fixture
def conf(spark: SparkSession) -> Iterator[Callable[[str, str], None]]:
    """Sets confs of the session for one test."""
    with ExitStack() as former:
        yield lambda name, value: former.enter_context(confs.conf(spark, {name: value}))


@pytest.fixture
def bridge_calls(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], int]:
    """The number of py4j calls that an action makes to the JVM, without those of garbage collection."""
    client = spark.sparkContext._gateway._gateway_client
    send, count = client.send_command, [0]

    def counting(command: str, *arguments: object, **named: object) -> object:
        # The py4j command that releases an object of the JVM.
        count[0] += not command.startswith("m\n")
        return send(command, *arguments, **named)

    def calls(action: Callable[[], object]) -> int:
        before = count[0]
        action()
        return count[0] - before

    monkeypatch.setattr(client, "send_command", counting)
    return calls


@pytest.fixture(scope="session")
def ways(spark: SparkSession) -> Iterator[ThreeWays]:
    """Tables registered by name, which all tests share, and queries over them answered in three ways."""
    with three_ways(spark) as found:
        yield found


@pytest.fixture(params=WAYS)
def pruned_frame(request: pytest.FixtureRequest) -> Iterator[PrunedFrames]:
    """A function that prunes a DataFrame by `prune()`, and by an enabled session that plans it."""
    with pruned_frames(request.param) as found:
        yield found


@pytest.fixture
def pruned_before(pruned_frame: PrunedFrames, monkeypatch: pytest.MonkeyPatch) -> Iterator[Interruptions]:
    """A function that prunes a DataFrame, and lets something happen before the rows are read."""
    made = Interruptions(pruned_frame, monkeypatch)
    yield made
    assert not made.to_come, "the session planned no query"


@pytest.fixture(scope="session")
def stars(ways: ThreeWays, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """A function that gives the prefix of the views of the star schema in a format; no test changes its tables."""

    @cache
    def stored(format_: str) -> str:
        folder = tmp_path_factory.mktemp(f"star_{format_}")
        for name, df in star_tables(ways.spark).items():
            ways.stored(f"{format_}_{name}", df, str(folder / name), format_)
        return f"{format_}_"

    return stored


@pytest.fixture
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB to compare results with."""
    with plain_duckdb() as connection:
        yield connection


@pytest.fixture(scope="session")
def store() -> Iterator[ObjectStore]:
    """An object store that tests share, each with its own key prefix; skips where the server is not built."""
    from sample_data.object_store.gateway import gateway_problem  # noqa: PLC0415  most tests need none
    from sample_data.object_store.store import object_store  # noqa: PLC0415  most tests need none

    if problem := gateway_problem():
        pytest.skip(problem)
    with object_store() as found:
        yield found
