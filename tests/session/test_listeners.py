"""A `QueryExecutionListener` is told of the user's queries, and only of these: of no build, and no read of a log."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql.functions import col, udf

from connectors.jobs import runner
from connectors.spark.jvm import JavaFile, instance, jvm_context, jvm_session
from connectors.spark.own_queries import own_query
from pruning import explain, report
from pruning.reasons import ReasonCode
from sample_data.rows import Rows
from tests.costs import ALWAYS
from tests.in_session import kept
from tests.queries.star import BY_JOB, OPTIONS, ROWS_PER_DAY
from tests.session.merging import INSERT, UPSERT
from tests.session.streams import stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

# Rows that are too many to come to the driver, so that a job collects keys, or the rows are stored.
MANY = {"joined_rows": 1, "joined_long_rows": 1}
QUERY = "SELECT s.*, month FROM {star}sales s JOIN {star}days d ON s.day = d.day WHERE month = 2"
RAISING = f"{QUERY} AND if(d.day = 61, raise_error('mine'), true)"
# Delta's own actions, over its log and over lists of files.
OF_DELTA = "collect", "head", "rdd", "toLocalIterator"
NO_TABLES = "LogicalRDD", "ExternalRDD", "LocalRelation"


class Heard:
    """A listener of the session, and of its clones."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark, self._listener = spark, instance(spark, JavaFile("tests", "HeardQueries"))
        self._manager = jvm_session(spark).listenerManager()
        self._manager.register(self._listener)

    def __call__(self) -> list[tuple[str, ...]]:
        """The actions since the last call: name, end, leaves of the analysed plan, leaves of the optimised plan.

        Without what Delta does for itself, as in stock Spark: the number of these actions differs.
        """
        jvm_context(self._spark).listenerBus().waitUntilEmpty()
        found = [tuple(each.split("\t")) for each in str(self._listener.text()).splitlines()]
        self._listener.clear()
        return [each for each in found if not _is_of_delta(*each)]

    def actions(self) -> list[tuple[str, ...]]:
        """The names and ends of the actions since the last call."""
        return [each[:2] for each in self()]

    def end(self) -> None:
        self._manager.unregister(self._listener)


def _is_of_delta(action: str, _: str, leaves: str, __: str) -> bool:
    return action.startswith("Cache Delta ") or (action in OF_DELTA and leaves in NO_TABLES)


@pytest.fixture
def heard(spark) -> Iterator[Heard]:
    found = Heard(spark)
    found()
    yield found
    found.end()


# Builds on the driver, by a job for their rows, and by jobs for their keys, in the driver or in Python workers.
BUILDS = {
    "driver": OPTIONS,
    "rows": BY_JOB,
    "keys": BY_JOB.with_limits(**MANY),
    "python": BY_JOB.with_limits(**MANY, driver_rows=0),
}


@pytest.mark.parametrize("build", BUILDS)
def test_no_listener_is_told_of_a_build(spark, star, heard, pruned_frame, build):
    query = QUERY.format(star=star)
    heard()
    rows = Rows(spark.sql(query).collect())
    ((*stock, optimized),) = heard()
    assert (["collectToPython", "ok", "sales days"], "sales days") == (stock, optimized)
    result = pruned_frame(spark.sql(query), options=BUILDS[build])
    assert rows == Rows(result.collect())
    ((*told, optimized),) = heard()
    is_in_memory = build in {"driver", "rows"}
    assert ("sales LocalRelation" if is_in_memory else "sales days") == optimized
    # The plan of `prune()` is a query of its own: the pruned one, before it is optimised again.
    in_plan = "sales days" if pruned_frame.is_session else optimized
    assert [*stock[:2], in_plan] == told
    assert [("sales", 2)] == kept(report(result))


@pytest.mark.parametrize("build", ["rows", "keys", "python"])
def test_no_listener_is_told_of_a_failed_build(spark, star, heard, pruned_frame, build):
    df = spark.sql(RAISING.format(star=star))
    heard()
    with pytest.raises(SparkRuntimeException, match="mine"):
        df.collect()
    assert [("collectToPython", "failed")] == heard.actions()
    result = pruned_frame(df, options=BUILDS[build])
    # A session builds when the query runs, a DataFrame when it is pruned.
    assert [] == heard.actions()
    with pytest.raises(SparkRuntimeException, match="mine"):
        result.collect()
    assert [("collectToPython", "failed")] == heard.actions()
    assert ReasonCode.BUILD_RAISED in {each.code for each in explain(result).reasons}


def days_by_function(spark: SparkSession, seconds: float = 0) -> DataFrame:
    """Two days, perhaps others in each run, so that the query joins the rows of the build."""
    same = udf(lambda day: time.sleep(seconds) or day, "int").asNondeterministic()
    return spark.range(3, 14, 10).repartition(1).select(same(col("id")).alias("day"))


def test_no_listener_is_told_of_stored_rows(spark, star, heard, pruned_frame):
    df = spark.table(f"{star}sales").join(days_by_function(spark), "day")
    heard()
    assert 2 * ROWS_PER_DAY == len(df.collect())
    stock = heard.actions()
    result = pruned_frame(df, options=ALWAYS.with_limits(**MANY))
    assert 2 * ROWS_PER_DAY == len(result.collect())
    ((*told, _, optimized),) = heard()
    assert stock == [tuple(told)] == [("collectToPython", "ok")]
    assert "sales LogicalRDD" == optimized
    assert [("sales", 1)] == kept(report(result))


def test_no_listener_is_told_of_a_build_that_takes_too_long(spark, star, heard, pruned_frame):
    df = spark.table(f"{star}sales").join(days_by_function(spark, seconds=0.6), "day")
    heard()
    result = pruned_frame(df, options=replace(ALWAYS, build_timeout_seconds=0.5))
    assert 2 * ROWS_PER_DAY == len(result.collect())
    assert [("collectToPython", "ok")] == heard.actions()
    assert ReasonCode.BUILD_TIMED_OUT in {each.code for each in explain(result).reasons}


@pytest.mark.parametrize("star", ["delta"], indirect=True)
@pytest.mark.parametrize("command", [UPSERT, INSERT], ids=["upsert", "insert"])
def test_a_listener_is_told_of_the_commands_of_delta_alone(spark, heard, both, arrived, targets, command):
    told = list[list[tuple[str, ...]]]()

    def run(target: str) -> None:
        heard()
        spark.sql(command.format(target=target, source=arrived))
        told.append(heard.actions())

    options = BY_JOB.with_limits(**MANY)
    stock, found = both.run(run, options)
    assert stock == found
    assert [2] == targets.kept()
    assert ("command", "ok") == told[0][-1]
    assert told[0] == told[1]


@pytest.mark.parametrize("star", ["delta"], indirect=True)
def test_a_listener_is_told_of_the_micro_batches_of_a_stream_alone(spark, star, heard, batches, streams):
    """Rows of the pruned table are looked for before each of them."""
    static = spark.table(f"{star}sales")

    def told(name: str) -> list[str]:
        heard()
        rows, _ = streams.ran(name, stream(spark, batches["delta"]).join(static, "day"))
        assert 4 * ROWS_PER_DAY == len(rows)
        return [action for action, *_ in heard()]

    stock = told("stock")
    streams.enabled(BY_JOB)
    assert stock == told("pruned")
    assert [1, 2] == streams.kept()


@pytest.mark.usefixtures("heard")
def test_the_user_interrupts_a_build_of_which_no_listener_is_told(spark):
    def interrupt() -> None:
        tracker = spark.sparkContext.statusTracker()
        while not (ended.is_set() or tracker.getActiveJobsIds()):
            time.sleep(0.05)
        while not ended.wait(0.2):
            spark.interruptAll()

    endless = spark.sql("SELECT * FROM range(1000000) a JOIN range(1000000) b ON a.id + b.id < 0")
    ended, before = threading.Event(), spark.sparkContext.getJobTags()
    other = threading.Thread(target=interrupt, daemon=True)
    other.start()
    reason = runner.run(spark, own_query(endless).collect, timeout=60, description="days")
    ended.set()
    other.join()
    assert ReasonCode.BUILD_CANCELLED is reason.code
    assert before == spark.sparkContext.getJobTags()


def test_a_session_without_listeners_is_not_cloned(spark):
    df = spark.range(3)
    assert str(jvm_session(spark).sessionUUID()) == str(own_query(df)._jdf.sparkSession().sessionUUID())
