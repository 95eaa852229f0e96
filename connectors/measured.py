"""What an action really read through one scan, from Spark's own SQL status store (classic sessions only)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from connectors.arrow_counts import ScanCounter
from connectors.scan_bytes import FileScan, bytes_scanned
from connectors.scan_identity import ScanIdentity
from connectors.status_store import finished_executions, sql_store, stage_work
from pruning.prune_report import Measured

_FILE_SCANS = ("FileScan", "BatchScan")
_DROPPED = "LocalTableScan <empty>"
# What Spark calls an action that nobody described; only a line of the user's own Python says anything.
_CALL_SITE = re.compile(r"^(\w+) at (?!.*\.py:)\S+:\d+$")
_FILES, _ROWS = "number of files read", "number of output rows"


def latest(spark: SparkSession, identity: ScanIdentity) -> tuple[Measured | None, int]:
    """The last finished action that read the scan, and how many did; sums over its scans where it has several.

    Of a scan that reads nothing, an action is any execution in which Spark dropped a scan: files, rows and bytes are
    zero whichever of these it was.
    """
    found: list[tuple[Any, list[FileScan]]] = []
    executions = finished_executions(spark, identity.after_execution)
    for at, execution in enumerate(executions):
        scans = _scans(spark, execution, executions[at + 1 :], identity)
        if any(scan.is_own for scan in scans):
            found.append((execution, scans))
    return (_measured(spark, *found[0]), len(found)) if found else (None, 0)


def latest_by_arrow(spark: SparkSession, counter: ScanCounter, after: int) -> tuple[Measured | None, int]:
    """The same of a scan whose tasks count for themselves, from actions that read it to its end."""
    counts = counter.by_execution(partial(stage_work, spark))
    found = [each for each in finished_executions(spark, after) if int(each.executionId()) in counts]
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
            # A cached plan stands in the graph once for each use, with the same counters.
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
    """What an execution added to a metric; empty where nothing."""
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
    r"""What a person would call the action.

    >>> _action("count at NativeMethodAccessorImpl.java:0\n"), _action("toPandas at report.py:7"), _action("")
    ('count', 'toPandas at report.py:7', 'an action without a name')
    """
    first = next(iter(description.strip().splitlines()), "an action without a name")
    site = _CALL_SITE.match(first)
    return site[1] if site else first
