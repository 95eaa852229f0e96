"""`history()`: queries with and without anything to prune, in the order in which the session planned them."""

from __future__ import annotations

import gc
import time

import pytest
from py4j.protocol import Py4JError

from connectors.pipeline.pruned_query import PrunedQuery
from connectors.session import session_pruning
from connectors.session.session_history import _WITH_PLANS, SessionHistory
from connectors.session.session_pruning import records
from connectors.spark.plan_reader import SparkPlan
from pruning import PruningOptions, disable, history
from pruning.limits import LIMITS
from pruning.reasons import Reason, ReasonCode
from pruning.results.query_origin import QueryOrigin
from pruning.results.verdict import NOTHING_TO_PRUNE
from tests.queries.star import FILES, OPTIONS
from tests.session.conftest import ROWS

RECORD = PrunedQuery.untouched(Reason(ReasonCode.COMPUTED, "k"), PruningOptions())


PLAIN = QueryOrigin()


def executions(found: SessionHistory) -> list[tuple[int | None, bool]]:
    return [(each.origin.execution_id, each.record is not None) for each in found.latest()]


def test_queries_without_a_record_stand_where_they_began():
    found = SessionHistory(10)
    found.add(QueryOrigin(1), RECORD)
    found.add_plain([PLAIN] * 2)
    found.add(QueryOrigin(4), RECORD)
    assert [(4, True), (None, False), (None, False), (1, True)] == executions(found)
    assert 2 == len(found.records())


def test_the_oldest_are_forgotten():
    found = SessionHistory(3)
    found.add(QueryOrigin(1), RECORD)
    found.add_plain([PLAIN] * 5)
    assert [None] * 3 == [execution for execution, _ in executions(found)]
    found.add(QueryOrigin(9), RECORD)
    assert [(9, True), (None, False), (None, False)] == executions(found)
    assert [(9, True)] == executions(found.resized(1))


@pytest.fixture
def verdicts(spark):
    """The verdicts of the queries since the test began, newest first."""
    session_pruning._state(spark).queries = SessionHistory(LIMITS.history_queries)
    return lambda: [each.verdict.split(":")[0] for each in history(spark)]


@pytest.mark.spark
def test_plain_queries_are_told_of(spark, star, query, enabled, verdicts):
    enabled()
    text = f"SELECT sum(amount) FROM {star}sales WHERE day > 30"
    spark.sql(text).collect()
    spark.sql(query).collect()
    spark.sql(text).explain()
    spark.sql(text).inputFiles()
    spark.sql("SELECT 1").collect()
    spark.sql("SHOW TABLES").collect()
    spark.range(10).collect()
    spark.sql(text).cache().unpersist()
    spark.sql(text).collect()
    nothing = NOTHING_TO_PRUNE.split(":", maxsplit=1)[0]
    assert [nothing, nothing, f"read 2 of {FILES} files", nothing] == [each.split(" (")[0] for each in verdicts()]
    spark.conf.set("spark.pruning.auto", "false")
    try:
        spark.sql(text).collect()
    finally:
        spark.conf.unset("spark.pruning.auto")
    assert 4 == len(verdicts())
    spark.sql(text).collect()
    disable(spark)
    assert 5 == len(verdicts())
    spark.sql(text).collect()
    assert 5 == len(verdicts())


@pytest.mark.spark
@pytest.mark.full
@pytest.mark.parametrize("star", ["delta"], indirect=True)
def test_few_records_keep_rows_that_lie_in_a_plan(spark, star, enabled):
    def stored() -> set[int]:
        # The RDDs themselves would stay as long as Python held them.
        found = spark.sparkContext._jsc.sc().getRDDStorageInfo()
        return {int(each.id()) for each in found if "localCheckpoint" in str(each.callSite())}

    queries, checkpoints = 12, set[int]()
    enabled()
    for at in range(queries):
        before = stored()
        days = spark.table(f"{star}days").where(f"month = {at % 6}").localCheckpoint()
        checkpoints |= stored() - before
        spark.table(f"{star}sales").join(days, "day").collect()
        del days
    assert queries <= len(history(spark))

    def left(most: int) -> int:
        until = time.monotonic() + 150
        while len(checkpoints & stored()) > most and time.monotonic() < until:
            gc.collect()
            spark._jvm.System.gc()
            time.sleep(0.2)
        return len(checkpoints & stored())

    assert queries == len(checkpoints)
    assert left(_WITH_PLANS) <= _WITH_PLANS
    assert [True] * queries == [bool(each.verdict) for each in history(spark)[:queries]]
    disable(spark)
    assert 0 == left(0)


@pytest.mark.spark
@pytest.mark.parametrize("star", ["delta"], indirect=True)
def test_records_keep_no_rows_of_builds(spark, query, enabled, monkeypatch):
    given, replaced = [], SparkPlan.replaced

    def noted(plan: SparkPlan, *arguments: object) -> object:
        found = replaced(plan, *arguments)
        given.append(dict(plan._given))
        return found

    monkeypatch.setattr(SparkPlan, "replaced", noted)
    enabled()
    assert ROWS == spark.sql(query).count()
    plan = records(spark)[0].answer.__self__.plan
    names = [str(each.nodeName()) for each in given[-1].values()]
    assert "LocalRelation" in names
    assert {} == plan._given
    with pytest.raises(Py4JError):
        plan._java.replaced(0, plan.root.id, str(next(iter(given[-1]))), "")
    (told, *_) = history(spark)
    assert [(2, FILES)] == [(each.planned.files_kept, each.planned.files_total) for each in told.tables]
    assert told.builds


@pytest.mark.spark
@pytest.mark.parametrize("star", ["delta"], indirect=True)
def test_the_log_of_a_table_is_not_told_of(spark, star, enabled, verdicts, tmp_path):
    enabled(OPTIONS)
    spark.table(f"{star}sales").where("day < 5").write.format("delta").save(str(tmp_path / "copy"))
    assert 1 == len(verdicts())
    spark.sql(f"SELECT count(*) FROM delta.`{tmp_path / 'copy'}` WHERE amount > 3").collect()
    assert 2 == len(verdicts())
