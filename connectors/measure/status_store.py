"""Spark's status store of executions and stages, and the identity of a scan in it (classic sessions only)."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from connectors.spark.jvm import JavaFile, analyzed_plan, instance, jvm_context, jvm_session, physical_plan
from connectors.spark.session_state import state_of
from pruning.limits import LIMITS, Limits

# Seconds after which a report looks again for the end of an action.
_POLL_SECONDS = 0.01
_MILLISECONDS = 1000


def sql_store(spark: SparkSession) -> Any:
    """Spark's store of executions, their plans and metrics."""
    return jvm_session(spark).sharedState().statusStore()


def _executions_from_last(spark: SparkSession) -> Iterator[Any]:
    executions = sql_store(spark).executionsList()
    return (executions.apply(index) for index in range(executions.size() - 1, -1, -1))


def finished_executions(
    spark: SparkSession, after: int, limits: Limits = LIMITS, *, only: int | None = None
) -> list[Any]:
    """Spark's records of the successful executions with an id above `after`, latest first; of `only` one if given.

    Spark writes the end of an execution in a thread of its own, which may happen after the action has returned, and the
    metrics in another thread after the end. An execution whose metrics are not written in time has `metricValues` None.
    """
    with suppress(Py4JJavaError):
        # A slow listener of the user may exceed Spark's timeout: the records written by then still count.
        jvm_context(spark).listenerBus().waitUntilEmpty()
    deadline = time.monotonic() + limits.report_wait_seconds
    while True:
        if only is None:
            executions = list(takewhile(lambda each: each.executionId() > after, _executions_from_last(spark)))
        else:
            one = sql_store(spark).execution(only)
            executions = [one.get()] if one.isDefined() else []
        if all(_is_written(each) or _runs(spark, each) for each in executions) or time.monotonic() > deadline:
            return [each for each in executions if each.completionTime().isDefined() and not _failed(each)]
        time.sleep(_POLL_SECONDS)


def execution_seconds(spark: SparkSession, execution: int) -> float | None:
    """Seconds that an execution took; None if it failed, still runs, or if Spark has dropped its record."""
    found = sql_store(spark).execution(execution)
    if not found.isDefined() or not (record := found.get()).completionTime().isDefined() or _failed(record):
        return None
    return (int(record.completionTime().get().getTime()) - int(record.submissionTime())) / _MILLISECONDS


def last_execution(spark: SparkSession) -> int:
    """The id of the latest execution of the session, -1 before the first."""
    return next((int(each.executionId()) for each in _executions_from_last(spark)), -1)


def stages_of(executions: Iterable[Any]) -> set[int]:
    """The stages of executions; a stage of a nested execution is also listed under the outer one."""
    return {stage for each in executions for stage in _stages(each)}


def stage_attempt(spark: SparkSession, stage: int) -> Any:
    """Spark's record of the last attempt of a stage; None if it never ran, or if Spark has dropped the record."""
    try:
        return jvm_context(spark).statusStore().lastStageAttempt(stage)
    except Py4JJavaError:
        return None


def stage_input(spark: SparkSession, stage: int) -> tuple[int, int] | None:
    """Input bytes and records of the tasks of a stage; None if Spark has no record of it."""
    attempt = stage_attempt(spark, stage)
    return None if attempt is None else (int(attempt.inputBytes()), int(attempt.inputRecords()))


@dataclass(frozen=True, slots=True)
class StageRead:
    """Input of the tasks of a stage, and the ids of the RDDs that the tasks computed.

    `is_complete` is False if Spark has no record of the end of a task.
    """

    bytes: int
    records: int
    rdds: frozenset[str] = frozenset()
    is_complete: bool = True


def stage_reads(spark: SparkSession, execution: Any) -> list[StageRead | None]:
    """The input of each stage of an execution that ran tasks; None for a stage of which Spark has no record."""
    attempts = [stage_attempt(spark, stage) for stage in _stages(execution)]
    return [None if each is None else _stage_read(each) for each in attempts if each is None or _ran(each)]


def _ran(attempt: Any) -> bool:
    # Spark lists a stage whose shuffle output already exists as skipped.
    return str(attempt.status()) != "SKIPPED"


def _stage_read(attempt: Any) -> StageRead:
    return StageRead(
        int(attempt.inputBytes()),
        int(attempt.inputRecords()),
        frozenset(str(attempt.rddIds().mkString(",")).split(",")),
        int(attempt.numCompleteTasks()) >= int(attempt.numTasks()),
    )


def dropped_events(spark: SparkSession) -> bool:
    """True if Spark has dropped events of this application because its status listeners were too slow."""
    registry = jvm_context(spark).listenerBus().metrics().metricRegistry()
    return bool(registry.counter("queue.appStatus.numDroppedEvents").getCount())


def _stages(execution: Any) -> Iterator[int]:
    stages = execution.stages().iterator()
    while stages.hasNext():
        yield int(stages.next())


def _is_written(execution: Any) -> bool:
    return execution.completionTime().isDefined() and execution.metricValues() is not None


def _failed(execution: Any) -> bool:
    error = execution.errorMessage()
    return bool(error.isDefined() and str(error.get()))


def _runs(spark: SparkSession, execution: Any) -> bool:
    """True if a job of the execution is running; the execution's own status may be out of date."""
    jobs, tracker = execution.jobs().keysIterator(), spark.sparkContext.statusTracker()
    active = set(tracker.getActiveJobsIds())
    while jobs.hasNext():
        if int(jobs.next()) in active:
            return True
    return False


_ATTRIBUTE = re.compile(r"#(\d+)")
# The listing of a read, by a prefix of its digest, since Spark truncates long descriptions.
_LISTING = re.compile(r"\.scanprune-[0-9a-f]{16}")
_WITHOUT_COLUMNS = re.compile(r"FileScan \w+ [^\[\]]*\[\] ")


class Listings(Counter[str]):
    """The number of scans of a session that read each listing, by the path that names the listing."""


@dataclass(frozen=True, slots=True)
class ScanIdentity:
    """The identity of one DataFrame's scan within a session: the ids of its relation's attributes.

    - `execution`: the only execution that is an action of the scan; any if None
    - `reads_nothing`: the plan keeps no file, so Spark drops the scan with all of its attributes
    - `listing`: a name that only scans of the same kept files have, which identifies a scan without columns, such as a
      plain count, unless several reads of the session keep the same files; empty if there is none
    """

    attributes: frozenset[str]
    after_execution: int
    reads_nothing: bool
    listing: str = ""
    execution: int | None = None

    def is_in(self, description: str) -> bool:
        """True if a scan, by its description in a plan, reads a column of this scan."""
        return not self.attributes.isdisjoint(_ATTRIBUTE.findall(description))

    def is_count(self, description: str) -> bool:
        """True if a scan, by its description in a plan, reads the files of this scan without any column."""
        is_bare = _WITHOUT_COLUMNS.match(description) and not _ATTRIBUTE.search(description)
        return bool(is_bare and self.listing and self.listing in description)

    def is_alone(self, spark: SparkSession) -> bool:
        """True where no other read of the session keeps the same files."""
        return state_of(spark).slot(Listings)[self.listing] == 1


_LEAVES = JavaFile("connectors.measure", "ScanLeaves")


def identity_of(df: DataFrame, *, reads_nothing: bool = False) -> ScanIdentity:
    """The identity of the table that `df` reads; executions up to here are not its actions."""
    spark = df.sparkSession
    text = str(instance(spark, _LEAVES, jvm_session(spark), analyzed_plan(df)).text())
    last, columns, roots = text.split("\n", 2)
    match = _LISTING.search(roots)
    listing = match[0] if match else ""
    state_of(spark).slot(Listings)[listing] += 1
    return ScanIdentity(frozenset(columns.split()), int(last), reads_nothing, listing)


def reads(df: DataFrame, identity: ScanIdentity) -> bool:
    """True where the plan of `df`, as its last execution changed it, still reads the scan."""
    plan = physical_plan(df)
    if plan.nodeName() == "AdaptiveSparkPlan":
        plan = plan.executedPlan()
    lines = [line for line in str(plan).splitlines() if "FileScan" in line]
    return any(identity.is_in(line) for line in lines)
