"""Trouble while a query of a session is planned: the query runs, or ends, as without pruning, and nothing is left."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time

import pytest
from pyspark.sql import SparkSession

from connectors.pipeline.pruned_query import PrunedQuery
from connectors.session import session_pruning
from connectors.session.session_pruning import records
from connectors.spark.jvm import optimized_plan, session_over
from pruning import PruningOptions, Reason, ReasonCode, disable, history
from tests.leftovers import running
from tests.queries.star import BY_JOB, FILES
from tests.session.conftest import ROWS

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ONE_FORMAT = pytest.mark.parametrize("star", ["delta"], indirect=True)
# Deterministic, and runs longer than any test waits.
ENDLESS = "AND NOT exists(sequence(d.day, 500), x -> exists(sequence(d.day, 500), y -> x + y < d.day))"


def building() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith(("build of", "end of"))]


@ONE_FORMAT
@pytest.mark.parametrize("returned", ["other columns", "no plan"])
def test_what_is_no_plan_of_the_query_is_not_taken(spark, query, enabled, monkeypatch, caplog, returned):
    inner = session_pruning.prune_plan
    other = optimized_plan(spark.range(3)) if returned == "other columns" else "a text"
    monkeypatch.setattr(session_pruning, "prune_plan", lambda *given: (other, inner(*given)[1]))
    enabled()
    with caplog.at_level(logging.WARNING, logger="scanprune"):
        assert ROWS == len(spark.sql(query).collect())
    assert 1 == len(caplog.records)
    assert () == history(spark)[0].tables
    assert "PrunedPlanError" in history(spark)[0].verdict


@ONE_FORMAT
def test_an_interrupt_while_a_build_runs_ends_the_query(spark, query, enabled):
    enabled(BY_JOB)
    before = running(spark)
    tracker, main = spark.sparkContext.statusTracker(), threading.get_ident()
    assert main == threading.main_thread().ident

    def interrupt() -> None:
        while not tracker.getActiveJobsIds():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=interrupt, daemon=True)
    sender.start()
    with pytest.raises(KeyboardInterrupt):
        spark.sql(f"{query} {ENDLESS}").collect()
    sender.join()

    # No job, stage or build for a second, between which and the next one there might be a moment. Broadcasts of an
    # interrupted query stay without pruning, too.
    quiet, deadline = 0, time.monotonic() + 60
    while quiet < 10 and time.monotonic() < deadline:
        quiet = quiet + 1 if running(spark) == before else 0
        time.sleep(0.1)
    assert before == running(spark)
    # The session goes on.
    assert ROWS == spark.sql(query).count()


@ONE_FORMAT
def test_a_query_whose_job_group_is_cancelled_during_a_build_ends(spark, query, enabled, assert_no_leftovers):
    enabled(BY_JOB)
    context, has_ended = spark.sparkContext, threading.Event()

    def cancel() -> None:
        while not has_ended.wait(0.05):
            if building():
                context.cancelJobGroup("mine")

    other = threading.Thread(target=cancel, daemon=True)
    other.start()
    context.setJobGroup("mine", "a query")
    try:
        with pytest.raises(Exception, match=r"Job \d+ cancelled part of cancelled job group mine"):
            spark.sql(f"{query} {ENDLESS}").collect()
        assert "BUILD_CANCELLED" in {each.code.name for each in records(spark)[0].reasons}
        has_ended.set()
        other.join()
        assert ROWS == spark.sql(query).count()
    finally:
        has_ended.set()
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)
    assert_no_leftovers()


@ONE_FORMAT
def test_a_query_equal_to_a_cancelled_one_runs(spark, query, enabled, monkeypatch):
    enabled()
    inner = session_pruning.prune_plan
    cancelled = [Reason(ReasonCode.BUILD_CANCELLED, "sales", "[SPARK_JOB_CANCELLED] mine")]

    def once(session: SparkSession, plan: object, options: PruningOptions, *others: object) -> object:
        if cancelled:
            return None, PrunedQuery.untouched(cancelled.pop(), options)
        return inner(session, plan, options, *others)

    monkeypatch.setattr(session_pruning, "prune_plan", once)
    with pytest.raises(Exception, match="mine"):
        spark.sql(query).collect()
    assert ROWS == len(spark.sql(query).collect())
    assert [2] == [each.planned.files_kept for each in history(spark)[0].tables]


@ONE_FORMAT
def test_a_cloned_session_is_pruned_by_its_own_confs(spark, query, enabled, planned):
    enabled(None)
    clone = session_over(spark, spark._jsparkSession.cloneSession())
    clone.conf.set("spark.pruning.always", "true")
    assert ROWS == clone.sql(query).count()
    assert 1 == planned()
    (table,) = history(spark)[0].tables
    assert (2, 2, FILES) == (table.measured.files_read, table.planned.files_kept, table.planned.files_total)
    assert ROWS == spark.sql(query).count()
    assert () == history(spark)[0].tables
    disable(spark)
    assert ROWS == clone.sql(query).count()
    assert 2 == planned()
