"""What an action really read through one scan, from Spark's own SQL status store (classic sessions only)."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from pruning.prune_report import Measured

_ATTRIBUTE = re.compile(r"#(\d+)")
# The listing of a read that keeps only some files, by enough of its digest; Spark cuts long descriptions short.
_LISTING = re.compile(r"\.scanprune-[0-9a-f]{16}")
_WITHOUT_COLUMNS = re.compile(r"FileScan \w+ [^\[\]]*\[\] ")
_FILE_SCANS = ("FileScan", "BatchScan")
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

    - `reads_nothing`: the plan keeps no file, so Spark drops the scan, and no attribute of it is left to find
    - `listing`: a name that only scans of the same kept files have, by which to find one that needs no column, such
      as a plain count; empty where there is none, since a scan of another DataFrame may look just the same
    """

    attributes: frozenset[str]
    after_execution: int
    reads_nothing: bool
    listing: str = ""


def identity_of(df: DataFrame, *, reads_nothing: bool = False) -> ScanIdentity:
    """The identity of the table that `df` reads; executions up to here are not its actions."""
    found = _without_semi_joins(df._jdf.queryExecution().analyzed()).collectLeaves()  # noqa: SLF001 - no other door
    leaves = [found.apply(index) for index in range(found.size())]
    attributes = {match for leaf in leaves for match in _ATTRIBUTE.findall(leaf.output().mkString(" "))}
    listing = _listing(leaves[0]) if len(leaves) == 1 else ""
    return ScanIdentity(frozenset(attributes), last_execution(df.sparkSession), reads_nothing, listing)


def latest(spark: SparkSession, identity: ScanIdentity) -> tuple[Measured | None, int]:
    """The last finished action that read the scan, and how many did; sums over its scans where it has several.

    Of a scan that reads nothing, an action is any execution in which Spark dropped a scan: files, rows and bytes are
    zero whichever of these it was.
    """
    found: list[tuple[Any, list[_Scan]]] = []
    for execution in finished_executions(spark, identity.after_execution):
        scans = _scans(spark, execution.executionId(), identity)
        if any(scan.is_own for scan in scans):
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
    """One file scan of an execution; of no files where its tasks never ran."""

    files: int
    rows: int
    vectorised: bool
    is_own: bool


def _without_semi_joins(plan: Any) -> Any:
    """The part of a plan below the semi joins at its top, whose other sides read keys."""
    node = plan
    # A name may be that of a view, whose joins are its own.
    while node.nodeName() != "SubqueryAlias" and node.children().size():
        if node.children().size() > 1 and not (node.nodeName() == "Join" and str(node.joinType()) == "LeftSemi"):
            return node
        node = node.children().head()
    return node


def _listing(leaf: Any) -> str:
    """The name of the listing of a relation that keeps only some files."""
    if leaf.getClass().getSimpleName() != "LogicalRelation":
        return ""
    relation = leaf.relation()
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        return ""
    match = _LISTING.search(relation.location().rootPaths().mkString(" "))
    return match[0] if match else ""


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
    with suppress(Py4JJavaError):
        # A listener of the user's own may be slower than Spark's patience: what is there by then still counts.
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


def stage_input(spark: SparkSession, stage: int) -> tuple[int, int] | None:
    """Input bytes and records of the tasks of a stage; None where it never ran, or so long ago that Spark forgot it."""
    try:
        attempt = _jvm_context(spark).statusStore().lastStageAttempt(stage)
    except Py4JJavaError:
        return None
    return int(attempt.inputBytes()), int(attempt.inputRecords())


def _runs(spark: SparkSession, execution: Any) -> bool:
    """True where a job of the execution runs; the record's own word for it is as late as its end."""
    jobs, tracker = execution.jobs().keysIterator(), spark.sparkContext.statusTracker()
    active = set(tracker.getActiveJobsIds())
    while jobs.hasNext():
        if int(jobs.next()) in active:
            return True
    return False


def _scans(spark: SparkSession, execution_id: int, identity: ScanIdentity) -> list[_Scan]:
    """Every file scan of an execution, those of the identity among them."""
    store = _store(spark)
    nodes, values = store.planGraph(execution_id).allNodes(), store.executionMetrics(execution_id)
    described = [(str(node.desc()), node) for node in (nodes.apply(index) for index in range(nodes.size()))]
    counts = [text for text, _ in described if _counts_rows(text, identity)]
    found: dict[tuple[int, ...], _Scan] = {}
    dropped = []
    for description, node in described:
        if identity.reads_nothing and description.startswith(_DROPPED):
            dropped.append(_Scan(0, 0, vectorised=True, is_own=True))
        if description.startswith(_FILE_SCANS):
            is_own = bool(identity.attributes & set(_ATTRIBUTE.findall(description))) or [description] == counts
            # A cached plan stands in the graph once for each use, with the same counters.
            found[_counters(node)] = _scan(description, _metrics(node, values), is_own=is_own)
    return [*found.values(), *dropped]


def _counts_rows(description: str, identity: ScanIdentity) -> bool:
    """True for a scan of the identity's files that reads no column of them, of which no attribute is left."""
    is_bare = _WITHOUT_COLUMNS.match(description) and not _ATTRIBUTE.search(description)
    return bool(is_bare and identity.listing and identity.listing in description)


def _scan(description: str, metrics: dict[str, str], *, is_own: bool) -> _Scan:
    files, rows = metrics.get("number of files read"), metrics.get("number of output rows")
    if not files and description.startswith("FileScan"):
        # A scan whose tasks never ran (its rows were cached, or its stage was reused or skipped) has no metrics.
        return _Scan(0, 0, vectorised=True, is_own=is_own)
    return _Scan(_number(files or "1"), _number(rows or "0"), "Batched: true" in description, is_own)


def _counters(node: Any) -> tuple[int, ...]:
    metrics = node.metrics()
    return tuple(int(metrics.apply(index).accumulatorId()) for index in range(metrics.size()))


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


def _measured(spark: SparkSession, execution: Any, scans: Sequence[_Scan]) -> Measured:
    own = [scan for scan in scans if scan.is_own]
    files, rows = sum(scan.files for scan in own), sum(scan.rows for scan in own)
    size, note = _bytes_scanned(spark, execution, scans) if files else (0, "")
    return Measured(
        action=_action(str(execution.description())),
        files_read=files,
        rows_scanned=rows,
        bytes_scanned=size,
        bytes_note=note,
        vectorised=all(scan.vectorised for scan in own),
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


def _bytes_scanned(spark: SparkSession, execution: Any, scans: Sequence[_Scan]) -> tuple[int | None, str]:
    """Input bytes of the stages that took in just the own scans' rows; a stage of several scans takes in more."""
    hadoop = _jvm_context(spark).hadoopConfiguration()
    if hadoop.get(_VECTORED_CONF, "true") != "false":
        return None, _VECTORED_NOTE
    stages, inputs = execution.stages().iterator(), []
    while stages.hasNext():
        inputs.append(stage_input(spark, int(stages.next())))
    read = [each for each in inputs if each is not None and each[0] > 0]
    size = _own_bytes(read, [scan for scan in scans if scan.files], is_whole=None not in inputs)
    return size, "" if size is not None else _SHARED_NOTE


def _own_bytes(read: Sequence[tuple[int, int]], scans: Sequence[_Scan], *, is_whole: bool) -> int | None:
    """The bytes of the own scans among stages of so many bytes and records; None where they are not told apart.

    A scan that found no row still read footers, so rows alone do not tell that a stage is of one scan: where there
    are others, each scan must have a stage of its own rows.

    >>> own, other = _Scan(1, 10, vectorised=True, is_own=True), _Scan(1, 0, vectorised=True, is_own=False)
    >>> _own_bytes([(70, 4), (30, 6)], [own], is_whole=True)
    100
    >>> _own_bytes([(70, 10), (9, 0)], [own, other], is_whole=True)
    70
    >>> print(_own_bytes([(79, 10)], [own, other], is_whole=True))
    None
    """
    own = Counter(scan.rows for scan in scans if scan.is_own)
    # Of a stage that is not known, it is certain only by the rows that it was none of the scan's.
    if not is_whole and 0 in own:
        return None
    records = Counter(count for _, count in read)
    if all(scan.is_own for scan in scans) and sum(count for _, count in read) == sum(own.elements()):
        return sum(size for size, _ in read)
    every = Counter(scan.rows for scan in scans)
    if not every <= records or any(records[rows] != count for rows, count in own.items()):
        return None
    return sum(size for size, rows in read if rows in own)
