"""What an action really read through one scan, from Spark's own SQL status store (classic sessions only)."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pruning.prune_report import Measured

_ATTRIBUTE = re.compile(r"#(\d+)")
_DROPPED = "LocalTableScan <empty>"
# What Spark calls an action that nobody described; only a line of the user's own Python says anything.
_CALL_SITE = re.compile(r"^(\w+) at (?!.*\.py:)\S+:\d+$")
_SECONDS_TO_SETTLE = 5.0
_SECONDS_BETWEEN_LOOKS = 0.01
_VECTORED_CONF = "parquet.hadoop.vectored.io.enabled"
_VECTORED_NOTE = (
    "Spark's counter misses vectored reads: set spark.hadoop.parquet.hadoop.vectored.io.enabled=false to count bytes"
)
_SHARED_NOTE = "the scan shares its tasks with others, whose bytes are not told apart"


@dataclass(frozen=True, slots=True)
class ScanIdentity:
    """What tells the scan of one DataFrame from every other: the ids of its relation's attributes.

    `reads_nothing`: the plan keeps no file, so Spark drops the scan, and no attribute of it is left to find.
    """

    attributes: frozenset[str]
    after_execution: int
    reads_nothing: bool


def identity_of(df: DataFrame, *, reads_nothing: bool = False) -> ScanIdentity:
    """The identity of the table that `df` reads; executions up to here are not its actions."""
    leaves = df._jdf.queryExecution().analyzed().collectLeaves()  # noqa: SLF001 - PySpark shows no plan otherwise
    outputs = [leaves.apply(index).output().mkString(" ") for index in range(leaves.size())]
    attributes = {match for output in outputs for match in _ATTRIBUTE.findall(output)}
    return ScanIdentity(frozenset(attributes), last_execution(df.sparkSession), reads_nothing)


def latest(spark: SparkSession, identity: ScanIdentity) -> tuple[Measured | None, int]:
    """The last finished action that read the scan, and how many did; sums over its scans where it has several.

    Of a scan that reads nothing, an action is any execution in which Spark dropped a scan: files, rows and bytes are
    zero whichever of these it was.
    """
    found: list[tuple[Any, list[_Scan]]] = []
    for execution in finished_executions(spark, identity.after_execution):
        scans = list(_scans(spark, execution.executionId(), identity))
        if scans:
            found.append((execution, scans))
    return (_measured(spark, *found[0]), len(found)) if found else (None, 0)


def reads(df: DataFrame, identity: ScanIdentity) -> bool:
    """True where the plan of `df`, as its last execution changed it, still reads the scan."""
    plan = df._jdf.queryExecution().executedPlan()  # noqa: SLF001 - PySpark shows no plan otherwise
    if plan.nodeName() == "AdaptiveSparkPlan":
        plan = plan.executedPlan()
    lines = [line for line in str(plan).splitlines() if "FileScan" in line]
    return any(identity.attributes & set(_ATTRIBUTE.findall(line)) for line in lines)


@dataclass(frozen=True, slots=True)
class _Scan:
    files: int
    rows: int
    vectorised: bool


_NOT_RUN = _Scan(0, 0, vectorised=True)


def _jvm_context(spark: SparkSession) -> Any:
    return spark.sparkContext._jsc.sc()  # noqa: SLF001 - PySpark wraps no status store


def _store(spark: SparkSession) -> Any:
    return spark._jsparkSession.sharedState().statusStore()  # noqa: SLF001


def _executions_from_last(spark: SparkSession) -> Iterator[Any]:
    executions = _store(spark).executionsList()
    return (executions.apply(index) for index in range(executions.size() - 1, -1, -1))


def finished_executions(spark: SparkSession, after: int) -> list[Any]:
    """Spark's records of the executions behind the one called `after` that have ended, latest first.

    Spark writes the end of an execution from a thread of its own, which may come after the action has returned.
    """
    _jvm_context(spark).listenerBus().waitUntilEmpty()
    deadline = time.monotonic() + _SECONDS_TO_SETTLE
    while True:
        executions = list(takewhile(lambda each: each.executionId() > after, _executions_from_last(spark)))
        open_ = [each for each in executions if not each.completionTime().isDefined()]
        if all(_runs(spark, each) for each in open_) or time.monotonic() > deadline:
            return [each for each in executions if each.completionTime().isDefined()]
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def last_execution(spark: SparkSession) -> int:
    """The id of the latest execution of the session, -1 before the first."""
    return next((int(each.executionId()) for each in _executions_from_last(spark)), -1)


def stage_input(spark: SparkSession, stage: int) -> tuple[int, int]:
    """Input bytes and records of the tasks of a stage."""
    attempt = _jvm_context(spark).statusStore().lastStageAttempt(stage)
    return int(attempt.inputBytes()), int(attempt.inputRecords())


def _runs(spark: SparkSession, execution: Any) -> bool:
    """True where a job of the execution runs; the record's own word for it is as late as its end."""
    jobs, tracker = execution.jobs().keysIterator(), spark.sparkContext.statusTracker()
    active = set(tracker.getActiveJobsIds())
    while jobs.hasNext():
        if int(jobs.next()) in active:
            return True
    return False


def _scans(spark: SparkSession, execution_id: int, identity: ScanIdentity) -> Iterator[_Scan]:
    store = _store(spark)
    nodes, values = store.planGraph(execution_id).allNodes(), store.executionMetrics(execution_id)
    for index in range(nodes.size()):
        node = nodes.apply(index)
        description = str(node.desc())
        if identity.reads_nothing and description.startswith(_DROPPED):
            yield _NOT_RUN
        if description.startswith("FileScan") and identity.attributes & set(_ATTRIBUTE.findall(description)):
            metrics = _metrics(node, values)
            files, rows = metrics.get("number of files read"), metrics.get("number of output rows")
            # A scan whose tasks never ran (its rows were cached, or its stage was reused or skipped) has no metrics.
            yield _Scan(_number(files), _number(rows or "0"), "Batched: true" in description) if files else _NOT_RUN


def _metrics(node: Any, values: Any) -> dict[str, str]:
    metrics = node.metrics()
    found = {}
    for index in range(metrics.size()):
        value = values.get(metrics.apply(index).accumulatorId())
        if value.isDefined():
            found[str(metrics.apply(index).name())] = str(value.get())
    return found


def _number(text: str) -> int:
    return int("".join(char for char in text if char.isdigit()) or "0")


def _measured(spark: SparkSession, execution: Any, scans: list[_Scan]) -> Measured:
    files, rows = sum(scan.files for scan in scans), sum(scan.rows for scan in scans)
    size, note = _bytes_scanned(spark, execution, files, rows)
    return Measured(
        action=_action(str(execution.description())),
        files_read=files,
        rows_scanned=rows,
        bytes_scanned=size,
        bytes_note=note,
        vectorised=all(scan.vectorised for scan in scans),
        seconds=(execution.completionTime().get().getTime() - execution.submissionTime()) / 1000,
    )


def _action(description: str) -> str:
    r"""What a person would call the action.

    >>> _action("count at NativeMethodAccessorImpl.java:0\n"), _action("toPandas at report.py:7"), _action("")
    ('count', 'toPandas at report.py:7', 'an action without a name')
    """
    first = next(iter(description.strip().splitlines()), "an action without a name")
    site = _CALL_SITE.match(first)
    return site[1] if site else first


def _bytes_scanned(spark: SparkSession, execution: Any, files: int, rows: int) -> tuple[int | None, str]:
    """Input bytes of the stages that took in just the scan's rows; a stage of several scans takes in more."""
    if not files:
        return 0, ""
    hadoop = _jvm_context(spark).hadoopConfiguration()
    if hadoop.get(_VECTORED_CONF, "true") != "false":
        return None, _VECTORED_NOTE
    stages, inputs = execution.stages().iterator(), []
    while stages.hasNext():
        inputs.append(stage_input(spark, int(stages.next())))
    read = [(size, records) for size, records in inputs if size > 0]
    if len(read) == 1 or sum(records for _, records in read) == rows:
        return sum(size for size, _ in read), ""
    matching = [size for size, records in read if records == rows]
    return (matching[0], "") if len(matching) == 1 and rows else (None, _SHARED_NOTE)
