"""The pytest plugin of all test folders: the one Spark session, a DuckDB to compare with, tiers, and how laws run.

`conftest.py` at the root loads it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import duckdb
import hypothesis
import pytest

from connectors.spark.java_check import java_problem
from sample_data import confs
from sample_data.plain_duckdb import plain_duckdb
from sample_data.rows import Rows, difference
from tests import tiers
from tests.three_ways import ThreeWays, three_ways

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

# Small heaps on few cores: a tenth of the time less than with Java's default. No query runs so often that Java's second
# compiler gains what it costs: a quarter of the time less without it. By the environment these also reach the Spark of
# each process that a test starts, where next to all time is the start.
_JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
os.environ["SPARK_SUBMIT_OPTS"] = f"{_JAVA_OPTIONS} {os.environ.get('SPARK_SUBMIT_OPTS', '')}"
# Java runs once more to put together the command of the other one.
os.environ["SPARK_LAUNCHER_OPTS"] = f"{_JAVA_OPTIONS} {os.environ.get('SPARK_LAUNCHER_OPTS', '')}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options that name a tier of tests."""
    tiers.add_options(parser)


def pytest_report_header(config: pytest.Config) -> str:
    """The tier that runs, and how to run it again."""
    return tiers.header(config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks tests that ask for `spark`, skips them where Spark cannot start, takes a tier, and orders files.

    Those with tests that take long come first: processes that are dealt out files end at about the same time.
    """
    problem = java_problem()
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
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
    """The session that all tests share: leave its confs, catalog and cache as they were found."""
    from connectors.spark.session import spark_session  # noqa: PLC0415  tests without Spark start in seconds

    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": tmp_path_factory.mktemp("warehouse").as_uri(),
        # By default a hash table of a few rows takes 32 MiB, and Java's time goes into collecting these.
        "spark.buffer.pageSize": "1m",
        # A table that was just written has its state made by a query with a shuffle: a fifth less than with two parts.
        "spark.databricks.delta.snapshotPartitions": "1",
        # Ten thousand by default, which Delta takes for the number of tasks of a VACUUM.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
        # Task metrics count every byte read only without vectored IO.
        "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",
    }
    if request.config.getoption("--tier") == tiers.Tier.QUICK.value:
        # Java compiles more code than it runs where tables have a hundred rows: half of the time without.
        settings |= {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    with (tmp_path_factory.getbasetemp().parent / "spark.lock").open("w") as lock:
        # Processes of one test run share the folder that jars are fetched to on the first start.
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
    """How many calls over the bridge to the JVM something makes; what the collection of garbage sends is left out."""
    client = spark.sparkContext._gateway._gateway_client
    send, count = client.send_command, [0]

    def counted(command: str, *arguments: object, **named: object) -> object:
        # The command by which py4j lets an object of the JVM go.
        count[0] += not command.startswith("m\n")
        return send(command, *arguments, **named)

    def calls(action: Callable[[], object]) -> int:
        before = count[0]
        action()
        return count[0] - before

    monkeypatch.setattr(client, "send_command", counted)
    return calls


@pytest.fixture(scope="module")
def ways(spark: SparkSession) -> Iterator[ThreeWays]:
    """Knows tables by name, and answers queries over them in three ways."""
    with three_ways(spark) as found:
        yield found


@pytest.fixture
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB to compare with."""
    with plain_duckdb() as connection:
        yield connection


@pytest.fixture(scope="session")
def store() -> Iterator[ObjectStore]:
    """An object store that tests share, each under keys of its own; skips where its server was not built."""
    from sample_data.object_store.gateway import gateway_problem  # noqa: PLC0415  most tests need none
    from sample_data.object_store.store import object_store  # noqa: PLC0415  the same

    if problem := gateway_problem():
        pytest.skip(problem)
    with object_store() as found:
        yield found
