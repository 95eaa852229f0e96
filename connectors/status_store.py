"""Spark's own record of executions and stages (classic sessions only)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import takewhile
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

_SECONDS_TO_SETTLE = 5.0
_SECONDS_BETWEEN_LOOKS = 0.01


def jvm_context(spark: SparkSession) -> Any:
    """The Java `SparkContext`."""
    return spark.sparkContext._jsc.sc()  # noqa: SLF001 - PySpark wraps no status store


def sql_store(spark: SparkSession) -> Any:
    """Spark's store of executions, their plans and metrics."""
    return spark._jsparkSession.sharedState().statusStore()  # noqa: SLF001


def _executions_from_last(spark: SparkSession) -> Iterator[Any]:
    executions = sql_store(spark).executionsList()
    return (executions.apply(index) for index in range(executions.size() - 1, -1, -1))


def finished_executions(spark: SparkSession, after: int) -> list[Any]:
    """Spark's records of the executions behind the one called `after` that have ended well, latest first.

    Spark writes the end of an execution from a thread of its own, which may come after the action has returned.
    """
    with suppress(Py4JJavaError):
        # A listener of the user's own may be slower than Spark's patience: what is there by then still counts.
        jvm_context(spark).listenerBus().waitUntilEmpty()
    deadline = time.monotonic() + _SECONDS_TO_SETTLE
    while True:
        executions = list(takewhile(lambda each: each.executionId() > after, _executions_from_last(spark)))
        open_ = [each for each in executions if not each.completionTime().isDefined()]
        if all(_runs(spark, each) for each in open_) or time.monotonic() > deadline:
            return [each for each in executions if each.completionTime().isDefined() and not _failed(each)]
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def last_execution(spark: SparkSession) -> int:
    """The id of the latest execution of the session, -1 before the first."""
    return next((int(each.executionId()) for each in _executions_from_last(spark)), -1)


def stages_of(executions: Iterable[Any]) -> set[int]:
    """The stages of executions; one is listed under its execution and under the one that this is a part of."""
    return {stage for each in executions for stage in _stages(each)}


def stage_attempt(spark: SparkSession, stage: int) -> Any:
    """Spark's record of a stage as it last ran; None where it never did, or so long ago that Spark forgot it."""
    try:
        return jvm_context(spark).statusStore().lastStageAttempt(stage)
    except Py4JJavaError:
        return None


def stage_work(spark: SparkSession, stage: int) -> str:
    """What a stage runs: the same where Spark runs it again under another number, since its outputs were lost.

    Of a stage that Spark forgot it is another one's in no case.
    """
    attempt = stage_attempt(spark, stage)
    return f"stage {stage}" if attempt is None else str(attempt.rddIds().mkString(","))


def stage_input(spark: SparkSession, stage: int) -> tuple[int, int] | None:
    """Input bytes and records of the tasks of a stage; None as `stage_attempt()` says."""
    attempt = stage_attempt(spark, stage)
    return None if attempt is None else (int(attempt.inputBytes()), int(attempt.inputRecords()))


def _stages(execution: Any) -> Iterator[int]:
    stages = execution.stages().iterator()
    while stages.hasNext():
        yield int(stages.next())


def _failed(execution: Any) -> bool:
    error = execution.errorMessage()
    return bool(error.isDefined() and str(error.get()))


def _runs(spark: SparkSession, execution: Any) -> bool:
    """True where a job of the execution runs; the record's own word for it is as late as its end."""
    jobs, tracker = execution.jobs().keysIterator(), spark.sparkContext.statusTracker()
    active = set(tracker.getActiveJobsIds())
    while jobs.hasNext():
        if int(jobs.next()) in active:
            return True
    return False
