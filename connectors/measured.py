"""What an action really read through one scan, from Spark's own SQL status store (classic sessions only)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pruning.prune_report import Measured

_ATTRIBUTE = re.compile(r"#(\d+)")
_VECTORED_CONF = "parquet.hadoop.vectored.io.enabled"
_VECTORED_NOTE = (
    "Spark's counter misses vectored reads: set spark.hadoop.parquet.hadoop.vectored.io.enabled=false to count bytes"
)
_SHARED_NOTE = "the scan shares its tasks with others, whose bytes are not told apart"


@dataclass(frozen=True, slots=True)
class ScanIdentity:
    """What tells the scan of one DataFrame from every other: the ids of its relation's attributes."""

    attributes: frozenset[str]
    after_execution: int


def identity_of(df: DataFrame) -> ScanIdentity:
    """The identity of the table that `df` reads; executions up to here are not its actions."""
    leaves = df._jdf.queryExecution().analyzed().collectLeaves()  # noqa: SLF001 - PySpark shows no plan otherwise
    outputs = [leaves.apply(index).output().mkString(" ") for index in range(leaves.size())]
    attributes = {match for output in outputs for match in _ATTRIBUTE.findall(output)}
    store = _store(df.sparkSession)
    executions = store.executionsList()
    last = max((executions.apply(index).executionId() for index in range(executions.size())), default=-1)
    return ScanIdentity(frozenset(attributes), int(last))


def latest(spark: SparkSession, identity: ScanIdentity) -> tuple[Measured | None, int]:
    """The last finished action that read the scan, and how many did; sums over its scans where it has several."""
    _jvm_context(spark).listenerBus().waitUntilEmpty()
    found: list[tuple[Any, list[_Scan]]] = []
    for execution in _executions_after(spark, identity.after_execution):
        scans = list(_scans(spark, execution.executionId(), identity.attributes))
        if scans and execution.completionTime().isDefined():
            found.append((execution, scans))
    if not found:
        return None, 0
    return _measured(spark, *found[-1]), len(found)


@dataclass(frozen=True, slots=True)
class _Scan:
    files: int
    rows: int
    vectorised: bool


def _jvm_context(spark: SparkSession) -> Any:
    return spark.sparkContext._jsc.sc()  # noqa: SLF001 - PySpark wraps no status store


def _store(spark: SparkSession) -> Any:
    return spark._jsparkSession.sharedState().statusStore()  # noqa: SLF001


def _executions_after(spark: SparkSession, last: int) -> Iterator[Any]:
    executions = _store(spark).executionsList()
    for index in range(executions.size()):
        execution = executions.apply(index)
        if execution.executionId() > last:
            yield execution


def _scans(spark: SparkSession, execution_id: int, attributes: frozenset[str]) -> Iterator[_Scan]:
    store = _store(spark)
    nodes, values = store.planGraph(execution_id).allNodes(), store.executionMetrics(execution_id)
    for index in range(nodes.size()):
        node = nodes.apply(index)
        description = str(node.desc())
        if description.startswith("FileScan") and attributes & set(_ATTRIBUTE.findall(description)):
            metrics = _metrics(node, values)
            files, rows = metrics.get("number of files read"), metrics.get("number of output rows")
            # A scan whose tasks never ran (a reused or skipped stage) has no metrics.
            if files is not None:
                yield _Scan(_number(files), _number(rows or "0"), "Batched: true" in description)


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
    size, note = _bytes_scanned(spark, execution, sum(scan.rows for scan in scans))
    return Measured(
        action=str(execution.description()),
        files_read=sum(scan.files for scan in scans),
        rows_scanned=sum(scan.rows for scan in scans),
        bytes_scanned=size,
        bytes_note=note,
        vectorised=all(scan.vectorised for scan in scans),
        seconds=(execution.completionTime().get().getTime() - execution.submissionTime()) / 1000,
    )


def _bytes_scanned(spark: SparkSession, execution: Any, rows: int) -> tuple[int | None, str]:
    """Input bytes of the stages that took in just the scan's rows; a stage of several scans takes in more."""
    hadoop = _jvm_context(spark).hadoopConfiguration()
    if hadoop.get(_VECTORED_CONF, "true") != "false":
        return None, _VECTORED_NOTE
    status, stages = _jvm_context(spark).statusStore(), execution.stages().iterator()
    read = []
    while stages.hasNext():
        stage = status.lastStageAttempt(int(stages.next()))
        if stage.inputBytes() > 0:
            read.append((int(stage.inputBytes()), int(stage.inputRecords())))
    if len(read) == 1 or sum(records for _, records in read) == rows:
        return sum(size for size, _ in read), ""
    matching = [size for size, records in read if records == rows]
    return (matching[0], "") if len(matching) == 1 and rows else (None, _SHARED_NOTE)
