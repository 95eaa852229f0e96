"""Rows, files and bytes that an action read through one scan, from Spark's SQL status store (classic sessions only).

Bytes of a scan are known only if the stages of an execution separate them from the bytes of other scans.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from connectors.measure.status_store import (
    ScanIdentity,
    StageRead,
    dropped_events,
    finished_executions,
    sql_store,
    stage_reads,
)
from connectors.spark.jvm import jvm_context
from pruning.limits import LIMITS, Limits
from pruning.results.prune_report import Measured

_FILE_SCANS = ("FileScan", "BatchScan")
_DROPPED = "LocalTableScan <empty>"
_CACHED = "InMemoryTableScan"
# Spark's default description of an action; a line of the user's own Python is more useful.
_CALL_SITE = re.compile(r"^(\w+) at (?!.*\.py:)\S+:\d+$")
_FILES, _ROWS, _TIME = "number of files read", "number of output rows", "scan time"
# The units in which Spark writes a duration, in seconds; a total stands before the least and the greatest of all tasks.
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"([\d.,]+) (ms|s|m|h)\b")


def latest(spark: SparkSession, identity: ScanIdentity, limits: Limits = LIMITS) -> tuple[Measured | None, int]:
    """The metrics of the last finished action that read the scan, summed over its scans, and the number of actions.

    If the scan reads nothing, an action is any execution in which Spark dropped a scan: files, rows and bytes are zero
    for each of them.
    """
    found: list[tuple[Any, list[FileScan]]] = []
    executions = finished_executions(spark, identity.after_execution, limits, only=identity.execution)
    for at, execution in enumerate(executions):
        scans = _scans(spark, execution, executions[at + 1 :], identity)
        if any(scan.is_own for scan in scans):
            found.append((execution, scans))
    return (_measured(spark, *found[0]), len(found)) if found else (None, 0)


def _scans(spark: SparkSession, execution: Any, earlier: Sequence[Any], identity: ScanIdentity) -> list[FileScan]:
    """Every file scan of an execution, those of the identity among them; `earlier` executions, latest first."""
    graph = sql_store(spark).planGraph(execution.executionId())
    nodes = graph.allNodes()
    described = [(str(node.desc()), node) for node in (nodes.apply(index) for index in range(nodes.size()))]
    counts = [text for text, _ in described if identity.is_count(text)] if identity.is_alone(spark) else []
    cached = _below_caches(graph, [int(node.id()) for text, node in described if text.startswith(_CACHED)])
    found: dict[tuple[int, ...], FileScan] = {}
    dropped = []
    for description, node in described:
        if identity.reads_nothing and description.startswith(_DROPPED):
            dropped.append(FileScan(0, 0, vectorised=True, is_own=True))
        if description.startswith(_FILE_SCANS):
            is_own = identity.is_in(description) or [description] == counts
            counters = _counters(node)
            is_cached = int(node.id()) in cached
            scan = _scan(description, counters, [execution, *earlier], is_own=is_own, is_cached=is_cached)
            # A cached plan occurs in the graph once for each use, with the same counters.
            found[tuple(counters.values())] = scan
    return [*found.values(), *dropped]


def _below_caches(graph: Any, caches: Iterable[int]) -> set[int]:
    """The ids of the nodes whose rows the nodes `caches` keep."""
    found, above = set[int](), set(caches)
    if not above:
        return found
    edges = graph.edges()
    pairs = [(int(each.fromId()), int(each.toId())) for each in (edges.apply(at) for at in range(edges.size()))]
    while above:
        above = {child for child, parent in pairs if parent in above} - found
        found |= above
    return found


def _scan(
    description: str, counters: dict[str, int], executions: Sequence[Any], *, is_own: bool, is_cached: bool
) -> FileScan:
    """The counts of one scan in the first of `executions`."""
    files, rows = (_value(executions[0], counters.get(name)) for name in (_FILES, _ROWS))
    is_vectorised = "Batched: true" in description
    if not description.startswith("FileScan"):
        return FileScan(files or 1, rows or 0, is_vectorised, is_own)
    if not files and not rows and is_cached:
        return FileScan(0, 0, vectorised=True, is_own=is_own)
    seconds = _duration(executions[0], counters.get(_TIME))
    if not files and rows:
        # Spark counts the files of a plan when it first lists them, and later runs of the same plan read them again.
        files = next(filter(None, (_value(each, counters[_FILES]) for each in executions[1:])), None)
    return FileScan(files, rows or 0, is_vectorised, is_own, seconds)


def _counters(node: Any) -> dict[str, int]:
    """The ids of a node's metrics by name."""
    metrics = node.metrics()
    each = (metrics.apply(index) for index in range(metrics.size()))
    return {str(metric.name()): int(metric.accumulatorId()) for metric in each}


def _value(execution: Any, counter: int | None) -> int | None:
    """The value of a counter in a finished execution; None if Spark has recorded none."""
    text = _text(execution, counter)
    return None if text is None else int("".join(filter(str.isdigit, text)) or "0")


def _duration(execution: Any, counter: int | None) -> float | None:
    """The seconds of a metric of time, summed over tasks; None if the node has none. Spark records no zeros."""
    if counter is None or execution.metricValues() is None:
        return None
    found = _DURATION.search(_text(execution, counter) or "")
    return 0.0 if found is None else float(found[1].replace(",", "")) * _UNITS[found[2]]


def _text(execution: Any, counter: int | None) -> str | None:
    metrics = execution.metricValues()
    value = None if counter is None or metrics is None else metrics.get(counter)
    return str(value.get()) if value is not None and value.isDefined() else None


def _measured(spark: SparkSession, execution: Any, scans: Sequence[FileScan]) -> Measured:
    own = [scan for scan in scans if scan.is_own]
    stages = stage_reads(spark, execution)
    is_final = execution.metricValues() is not None and not (has_gaps(scans, stages) and dropped_events(spark))
    are_rows_known = is_final and not lacks_rows(own, scans, stages)
    if are_rows_known:
        own = [scan.settled() for scan in own]
    counts = [scan.files for scan in own if scan.files is not None]
    files = sum(counts) if is_final and len(counts) == len(own) else None
    rows = sum(scan.rows for scan in own) if are_rows_known else None
    times = [scan.seconds for scan in own if scan.seconds is not None]
    size, note = _bytes(spark, scans, stages, are_rows_known=are_rows_known) if files != 0 else (0, "")
    return Measured(
        action=_action(str(execution.description())),
        files_read=files,
        rows_scanned=rows,
        bytes_scanned=size,
        bytes_note=note,
        vectorised=all(scan.vectorised for scan in own),
        seconds=_seconds(execution),
        scan_seconds=sum(times) if are_rows_known and len(times) == len(own) else None,
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
_LOST_NOTE = "Spark has not recorded the metrics of every stage of the action"


@dataclass(frozen=True, slots=True)
class FileScan:
    """One file scan of an execution, with no files if its tasks never ran, None if Spark recorded no number."""

    files: int | None
    rows: int
    vectorised: bool
    is_own: bool
    seconds: float | None = None

    @property
    def is_empty(self) -> bool:
        """True if the scan may have run, and no rows are recorded."""
        return self.files != 0 and not self.rows

    def settled(self) -> FileScan:
        """The scan if it is known that nothing is missing: without files and rows, its tasks never ran."""
        return FileScan(0, 0, vectorised=True, is_own=self.is_own) if self.is_empty and self.files is None else self


def has_gaps(scans: Sequence[FileScan], stages: Sequence[StageRead | None]) -> bool:
    """True if rows of a scan or the end of a task are missing, for which dropped events may be the cause."""
    return any(scan.is_empty for scan in scans) or any(each is None or not each.is_complete for each in stages)


def lacks_rows(wanted: Sequence[FileScan], scans: Sequence[FileScan], stages: Sequence[StageRead | None]) -> bool:
    """True if Spark may have lost metrics of a stage in which one of the `wanted` among all `scans` read rows.

    Spark's SQL listener forgets a stage that starts while the metrics of another execution are cleaned up: it tells the
    stage's metrics from stale ones by the stages of the running executions, to which it adds the stage a moment later.
    The records that each stage read are counted by another listener, so they show rows that no scan accounts for.

    >>> found, lost = (FileScan(1, rows, vectorised=True, is_own=True) for rows in (10, 0))
    >>> first, second = (StageRead(90, 10, frozenset(rdds)) for rdds in ("ab", "cd"))
    >>> lacks_rows([found], [found], [first]), lacks_rows([lost], [lost], [first])
    (False, True)
    >>> lacks_rows([found], [found, lost], [first, second])
    False

    Metrics of a scan that ran twice, as below a sort, are the sum of both stages, of which one may be lost:

    >>> lacks_rows([found], [found], [first, first])
    True
    """
    read = [each for each in stages if each is not None]
    uncounted = sum(each.records for each in read) - sum(scan.rows for scan in scans)
    if any(scan.is_empty for scan in wanted):
        # A task of another stage may have counted zero rows of the scan.
        return uncounted > 0 or None in stages
    # The rows of a lost stage are all uncounted, and a stage that ran the same scan has RDDs of the lost one.
    lost = [at for at, each in enumerate(read) if 0 < each.records <= uncounted]
    return any(read[at].rdds & each.rdds for at in lost for other, each in enumerate(read) if other != at)


def counts_bytes(spark: SparkSession) -> bool:
    """True if Spark's counter of input bytes is complete, which vectored reads prevent."""
    return bool(jvm_context(spark).hadoopConfiguration().get(_VECTORED_CONF, "true") == "false")


def _bytes(
    spark: SparkSession, scans: Sequence[FileScan], stages: Sequence[StageRead | None], *, are_rows_known: bool
) -> tuple[int | None, str]:
    """Input bytes of the stages that read exactly the rows of the own scans; else None with the reason."""
    if not counts_bytes(spark):
        return None, _VECTORED_NOTE
    if not are_rows_known or lacks_rows(scans, scans, stages):
        return None, _LOST_NOTE
    read = [(each.bytes, each.records) for each in stages if each is not None and each.bytes > 0]
    ran = [scan for scan in map(FileScan.settled, scans) if scan.files != 0]
    size = _own_bytes(read, ran, is_whole=None not in stages)
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
