"""Rows, files and bytes that an action read through one scan, from Spark's SQL status store (classic sessions only).

Bytes of a scan are known only if the stages of an execution separate them from the bytes of other scans.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from connectors.arrow_scan.counters import ScanCounter
from connectors.measure.status_store import (
    ScanIdentity,
    finished_executions,
    sql_store,
    stage_input,
    stage_work,
    stages_of,
)
from connectors.spark.jvm import jvm_context
from pruning.limits import LIMITS, Limits
from pruning.results.prune_report import Measured

_FILE_SCANS = ("FileScan", "BatchScan")
_DROPPED = "LocalTableScan <empty>"
# Spark's default description of an action; a line of the user's own Python is more useful.
_CALL_SITE = re.compile(r"^(\w+) at (?!.*\.py:)\S+:\d+$")
_FILES, _ROWS = "number of files read", "number of output rows"


def latest(spark: SparkSession, identity: ScanIdentity, limits: Limits = LIMITS) -> tuple[Measured | None, int]:
    """The metrics of the last finished action that read the scan, summed over its scans, and the number of actions.

    If the scan reads nothing, an action is any execution in which Spark dropped a scan: files, rows and bytes are zero
    for each of them.
    """
    found: list[tuple[Any, list[FileScan]]] = []
    executions = finished_executions(spark, identity.after_execution, limits)
    for at, execution in enumerate(executions):
        scans = _scans(spark, execution, executions[at + 1 :], identity)
        if any(scan.is_own for scan in scans):
            found.append((execution, scans))
    return (_measured(spark, *found[0]), len(found)) if found else (None, 0)


def latest_by_arrow(
    spark: SparkSession, counter: ScanCounter, after: int, limits: Limits = LIMITS
) -> tuple[Measured | None, int]:
    """The result of `latest` for a scan by pyarrow, whose tasks count, from actions that read the whole scan."""
    counts = counter.by_execution(partial(stage_work, spark))
    found = [each for each in finished_executions(spark, after, limits) if int(each.executionId()) in counts]
    if not found:
        return None, 0
    last, read = found[0], counts[int(found[0].executionId())]
    measured = Measured(
        action=_action(str(last.description())),
        files_read=len(read.files),
        rows_scanned=read.rows,
        bytes_scanned=read.bytes,
        bytes_note="",
        vectorised=True,
        seconds=_seconds(last),
        row_groups_read=read.row_groups,
    )
    return measured, len(found)


def _scans(spark: SparkSession, execution: Any, earlier: Sequence[Any], identity: ScanIdentity) -> list[FileScan]:
    """Every file scan of an execution, those of the identity among them; `earlier` executions, latest first."""
    store = sql_store(spark)
    nodes = store.planGraph(execution.executionId()).allNodes()
    described = [(str(node.desc()), node) for node in (nodes.apply(index) for index in range(nodes.size()))]
    counts = [text for text, _ in described if identity.is_count(text)] if identity.is_alone(spark) else []
    found: dict[tuple[int, ...], FileScan] = {}
    dropped = []
    for description, node in described:
        if identity.reads_nothing and description.startswith(_DROPPED):
            dropped.append(FileScan(0, 0, vectorised=True, is_own=True))
        if description.startswith(_FILE_SCANS):
            is_own = identity.is_in(description) or [description] == counts
            counters = _counters(node)
            # A cached plan occurs in the graph once for each use, with the same counters.
            found[tuple(counters.values())] = _scan(store, description, counters, [execution, *earlier], is_own=is_own)
    return [*found.values(), *dropped]


def _scan(
    store: Any, description: str, counters: dict[str, int], executions: Sequence[Any], *, is_own: bool
) -> FileScan:
    """The counts of one scan in the first of `executions`."""
    files, rows = (_value(store, executions[0], counters.get(name)) for name in (_FILES, _ROWS))
    if not files and _number(rows) and description.startswith("FileScan"):
        # Spark counts the files of a plan when it first lists them, and later runs of the same plan read them again.
        counted = (_value(store, each, counters[_FILES]) for each in executions[1:])
        files = next(filter(None, counted), "")
    if not files and description.startswith("FileScan"):
        # A scan whose tasks never ran (its rows were cached, or its stage was reused or skipped) has no metrics.
        return FileScan(0, 0, vectorised=True, is_own=is_own)
    return FileScan(_number(files or "1"), _number(rows), "Batched: true" in description, is_own)


def _counters(node: Any) -> dict[str, int]:
    """The ids of a node's metrics by name."""
    metrics = node.metrics()
    each = (metrics.apply(index) for index in range(metrics.size()))
    return {str(metric.name()): int(metric.accumulatorId()) for metric in each}


def _value(store: Any, execution: Any, counter: int | None) -> str:
    """The text of a metric's value in an execution; empty if there is none."""
    if counter is None:
        return ""
    value = store.executionMetrics(execution.executionId()).get(counter)
    return str(value.get()) if value.isDefined() else ""


def _number(text: str) -> int:
    return int("".join(char for char in text if char.isdigit()) or "0")


def _measured(spark: SparkSession, execution: Any, scans: Sequence[FileScan]) -> Measured:
    own = [scan for scan in scans if scan.is_own]
    files, rows = sum(scan.files for scan in own), sum(scan.rows for scan in own)
    size, note = bytes_scanned(spark, execution, scans) if files else (0, "")
    return Measured(
        action=_action(str(execution.description())),
        files_read=files,
        rows_scanned=rows,
        bytes_scanned=size,
        bytes_note=note,
        vectorised=all(scan.vectorised for scan in own),
        seconds=_seconds(execution),
    )


def _seconds(execution: Any) -> float:
    return float(execution.completionTime().get().getTime() - execution.submissionTime()) / 1000


def _action(description: str) -> str:
    r"""The public name of an action.

    >>> _action("count at NativeMethodAccessorImpl.java:0\n"), _action("toPandas at report.py:7"), _action("")
    ('count', 'toPandas at report.py:7', 'an action without a name')
    """
    first = next(iter(description.strip().splitlines()), "an action without a name")
    site = _CALL_SITE.match(first)
    return site[1] if site else first


_VECTORED_CONF = "parquet.hadoop.vectored.io.enabled"
_VECTORED_NOTE = (
    "Spark's counter misses vectored reads: set spark.hadoop.parquet.hadoop.vectored.io.enabled=false to count bytes"
)
_SHARED_NOTE = "the scan shares its tasks with others, whose bytes are not told apart"


@dataclass(frozen=True, slots=True)
class FileScan:
    """One file scan of an execution, with no files if its tasks never ran."""

    files: int
    rows: int
    vectorised: bool
    is_own: bool


def counts_bytes(spark: SparkSession) -> bool:
    """True if Spark's counter of input bytes is complete, which vectored reads prevent."""
    return bool(jvm_context(spark).hadoopConfiguration().get(_VECTORED_CONF, "true") == "false")


def bytes_scanned(spark: SparkSession, execution: Any, scans: Sequence[FileScan]) -> tuple[int | None, str]:
    """Input bytes of the stages that read exactly the rows of the own scans; else None with the reason."""
    if not counts_bytes(spark):
        return None, _VECTORED_NOTE
    inputs = [stage_input(spark, stage) for stage in stages_of([execution])]
    read = [each for each in inputs if each is not None and each[0] > 0]
    size = _own_bytes(read, [scan for scan in scans if scan.files], is_whole=None not in inputs)
    return size, "" if size is not None else _SHARED_NOTE


def _own_bytes(read: Sequence[tuple[int, int]], scans: Sequence[FileScan], *, is_whole: bool) -> int | None:
    """The bytes of the own scans, from the bytes and records of all stages; None if they cannot be separated.

    A scan that found no row still read footers, so the number of rows alone does not prove that a stage has only one
    scan: if there are other scans, each scan must match a stage by its number of rows.

    >>> own, other = FileScan(1, 10, vectorised=True, is_own=True), FileScan(1, 0, vectorised=True, is_own=False)
    >>> _own_bytes([(70, 4), (30, 6)], [own], is_whole=True)
    100
    >>> _own_bytes([(70, 10), (9, 0)], [own, other], is_whole=True)
    70
    >>> print(_own_bytes([(79, 10)], [own, other], is_whole=True))
    None
    """
    own = Counter(scan.rows for scan in scans if scan.is_own)
    # An unknown stage may belong to an own scan that found no rows.
    if not is_whole and 0 in own:
        return None
    records = Counter(count for _, count in read)
    if all(scan.is_own for scan in scans) and sum(count for _, count in read) == sum(own.elements()):
        return sum(size for size, _ in read)
    every = Counter(scan.rows for scan in scans)
    if not every <= records or any(records[rows] != count for rows, count in own.items()):
        return None
    return sum(size for size, rows in read if rows in own)
