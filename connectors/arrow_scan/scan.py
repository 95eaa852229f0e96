"""A pruned scan by pyarrow in Spark's Python workers: key columns first, others only in row groups with a match."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from pyspark.sql.types import StructType

from connectors.arrow_scan.counters import ScanCounter
from connectors.arrow_scan.files import FilePart
from connectors.arrow_scan.partition import arrow_type, chunk_bytes, dealt, elsewhere, file_part
from connectors.arrow_scan.preflight import check_stores
from connectors.arrow_scan.reader import ArrowReader, KeyTest, ReadColumn
from connectors.arrow_scan.s3 import S3Access
from connectors.arrow_scan.workers import most_bytes, refused_before, too_large, workers_of
from connectors.base import Table
from connectors.columns import Column
from connectors.parquet.row_groups import FileLayout, ParquetBacked, parquet_backed
from connectors.scan.capabilities import reader_refusal
from connectors.scan.decision import ScanDecision, StaticPruning
from connectors.spark.jvm import JavaFile, frame_of, has_jvm, instance, jvm_broadcast, query_execution
from pruning.keys.membership import MembershipTest
from pruning.limits import LIMITS, Limits
from pruning.options import ARROW, PruningOptions
from pruning.reasons import Reason, ReasonCode
from pruning.scan.key_scan import OwnConditions, plan_key_scan
from pruning.scan.reader_cost import ReaderChoice, Sample
from pruning.scan.scan_plan import ScanPlan
from pruning.scan.skipping import column_domains
from pruning.scan.statistics import Containers
from pruning.values.byte_strings import IntArray
from pruning.values.domain import Domain

Task: TypeAlias = "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]"

_REBASE_CONF = "spark.sql.parquet.datetimeRebaseModeInRead"


@dataclass(frozen=True, slots=True, eq=False)
class ArrowScan:
    """The scan as a DataFrame, its plan, and the counter of its tasks, which is None if it reads nothing."""

    df: DataFrame
    plan: ScanPlan
    counter: ScanCounter | None


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """The parts that the tasks of a scan read, by their numbers."""

    tasks: Sequence[Sequence[FilePart]]
    columns: Sequence[ReadColumn]
    tests: Sequence[KeyTest]
    limits: Limits


def arrow_scan(  # noqa: PLR0913, PLR0917 - a table, its keys, and how to read it
    spark: SparkSession,
    table: Table,
    decided: ScanDecision,
    columns: Sequence[Column],
    options: PruningOptions,
    static: StaticPruning | None = None,
    weighed: Callable[[Sample], ReaderChoice] | None = None,
) -> ArrowScan | Reason:
    """The rows of `columns`, all top-level, whose values lie in the domains of the filters; in no order.

    Containers that `static` excludes are not read: conditions above the scan drop all their rows. `weighed` chooses the
    reader by a sample of rows.

    A `Reason` if Spark's own reader has to read the table.
    """
    if not has_jvm(spark):
        return Reason(ReasonCode.NO_JVM, table.name)
    backed = parquet_backed(table)
    if backed is None:
        return Reason(ReasonCode.NOT_READ_BY_ARROW, table.name, f"a table of {table.connector.name!r}")
    groups = decided.row_groups
    if groups is None or groups.parents is None:
        return Reason(ReasonCode.NO_ROW_GROUPS_READ, table.name)
    if (remote := elsewhere(decided.files, decided.plan.files.kept)) is not None:
        return remote
    domains = column_domains([each.filter for each in decided.plan.decisions])
    reads = _read_columns(columns, domains)
    if isinstance(reads, Reason):
        return reads
    whole = table.read(None)
    compared = (*decided.columns, *(() if static is None else static.columns))
    refusal = refused_before(spark) or reader_refusal(spark, table, whole, compared)
    if refusal is not None:
        return refusal
    plan = plan_key_scan(decided.files, groups, decided.plan, _own(table, groups.parents, static))
    if not plan.files.kept_count:
        return ArrowScan(whole.where("false"), plan, None)
    limits = options.limits
    tasks = _tasks(spark, backed, plan, groups, columns, limits)
    if isinstance(tasks, Reason):
        return tasks
    places = {column.name: at for at, column in enumerate(columns)}
    tests = [KeyTest(places[name], domain.type, MembershipTest.of(domain, limits)) for name, domain in domains.items()]
    work = Work(tasks, reads, tests, limits)
    reached = _reached(spark, table, work, weighed)
    if isinstance(reached, Reason):
        return reached
    stores, choice = reached
    plan = plan if choice is None else replace(plan, choice=choice)
    if (problem := _problem(spark, backed, plan, groups, columns, tests, options)) is not None:
        return problem
    counter = ScanCounter.of(spark, len(tasks), limits.counted_executions)
    like = whole.select(*(F.expr(column.sql) for column in columns))
    schema = StructType([table.schema[column.path[0]] for column in columns])
    payload = TaskPayload.of(spark, work, limits.task_payload_bytes)
    ids = task_ids(spark, len(tasks), like)
    rows = ids.mapInArrow(_task(payload, stores, counter), schema)
    if table.version is None:
        # The empty branch makes Spark refuse to overwrite the files that are read.
        rows = rows.unionAll(like.where("false"))
    return ArrowScan(rows, plan, counter)


def _own(table: Table, parents: IntArray, static: StaticPruning | None) -> OwnConditions | None:
    if static is None:
        return None
    left = static.row_groups(table, np.unique(parents))
    return OwnConditions(static.files, left) if len(left) == len(parents) else None


def _read_columns(columns: Sequence[Column], domains: Mapping[str, Domain]) -> list[ReadColumn] | Reason:
    found: list[ReadColumn] = []
    for column in columns:
        type_ = arrow_type(column.spark_type)
        if type_ is None:
            return Reason(ReasonCode.NOT_READ_BY_ARROW, column.name, column.spark_type.simpleString())
        if column.refusal is not None and column.refusal.code is ReasonCode.CHAR_PADDED:
            return column.refusal
        found.append(ReadColumn(column.path[0], type_))
    nested = next((name for name in domains if name not in {column.name for column in columns}), None)
    return found if nested is None else Reason(ReasonCode.NOT_READ_BY_ARROW, nested, "a field of a struct")


def _tasks(  # noqa: PLR0913, PLR0917 - what a scan reads, and who
    spark: SparkSession,
    table: ParquetBacked,
    plan: ScanPlan,
    groups: Containers,
    columns: Sequence[Column],
    limits: Limits,
) -> list[list[FilePart]] | Reason:
    files = np.flatnonzero(plan.files.kept)
    stored = table.stored(files, columns)
    if isinstance(stored, Reason):
        return stored
    types = {column.path[0]: column.spark_type for column in columns}
    as_written = str(spark.conf.get(_REBASE_CONF)).upper() == "CORRECTED"
    parts: list[FilePart] = []
    sizes: list[IntArray] = []
    for own, file in zip(_by_file(groups, files), stored, strict=True):
        wanted = _wanted(plan, groups, own, file)
        part = wanted if isinstance(wanted, Reason) else file_part(file, wanted, types, others_are_gregorian=as_written)
        if isinstance(part, Reason):
            return part
        parts.append(part)
        sizes.append(chunk_bytes(file, part.row_groups))
    return dealt(parts, sizes, spark.sparkContext.defaultParallelism, limits)


def _by_file(groups: Containers, files: IntArray) -> list[IntArray]:
    """The places of the row groups of each of these files, found by one sort whatever their number."""
    assert groups.parents is not None  # noqa: S101
    order = np.argsort(groups.parents, kind="stable")
    ends = np.searchsorted(groups.parents[order], np.stack([files, files + 1], axis=1)).tolist()
    return [order[begin:end] for begin, end in ends]


def _wanted(plan: ScanPlan, groups: Containers, own: IntArray, file: FileLayout) -> list[int] | Reason:
    """The numbers of the row groups of one file that are read, of those at the places `own`."""
    assert plan.row_groups is not None  # noqa: S101
    if not np.array_equal(groups.rows[own], file.footer.rows):
        # The file has changed, so the numbers would mean other row groups than those that were examined.
        return Reason(ReasonCode.NO_ROW_GROUPS_READ, file.uri)
    found: list[int] = np.flatnonzero(plan.row_groups.kept[own]).tolist()
    return found


def _reached(
    spark: SparkSession, table: Table, work: Work, weighed: Callable[[Sample], ReaderChoice] | None
) -> tuple[Mapping[str, S3Access], ReaderChoice | None] | Reason:
    """The access to the buckets of the files, and the choice of the reader by a sample; a `Reason` against pyarrow."""
    trial = check_stores(
        spark, work.tasks, work.columns, work.tests, is_sampled=weighed is not None, limits=work.limits
    )
    if isinstance(trial, Reason):
        return trial
    if weighed is None or trial.sample is None:
        return trial.stores, None
    choice = weighed(trial.sample)
    if choice.scan != ARROW:
        return Reason(ReasonCode.NOT_READ_BY_ARROW, table.name, str(trial.sample))
    return trial.stores, choice


def _problem(  # noqa: PLR0913, PLR0917 - what a scan reads, and who
    spark: SparkSession,
    table: ParquetBacked,
    plan: ScanPlan,
    groups: Containers,
    columns: Sequence[Column],
    tests: Sequence[KeyTest],
    options: PruningOptions,
) -> Reason | None:
    """The reason why workers cannot run the scan, or may have too little memory for it."""
    workers = workers_of(spark, options.build_timeout_seconds, options.limits)
    if isinstance(workers, Reason) or workers.room is None:
        return workers if isinstance(workers, Reason) else None
    files = np.flatnonzero(plan.files.kept)
    stored = table.stored(files, columns)
    if isinstance(stored, Reason):
        return stored
    places = zip(_by_file(groups, files), stored, strict=True)
    read = [(file, _wanted(plan, groups, own, file)) for own, file in places]
    found = [(file, numbers) for file, numbers in read if not isinstance(numbers, Reason)]
    return too_large(most_bytes(found, [each.rows for each in tests], options.limits), workers)


def _task(published: TaskPayload[Work], stores: Mapping[str, S3Access], counter: ScanCounter) -> Task:
    # The keys of stores go with the function, from memory to memory as Spark sends them for its own scans: what is
    # published may lie in a file.
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        work = published.value
        reader, done = ArrowReader(work.columns, work.tests, stores, work.limits), set[int]()
        try:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    for part in work.tasks[number]:
                        yield from reader.read(part)
                    done.add(number)
        finally:
            counter.add(reader.counts, frozenset(done))

    return run


_IDS = JavaFile("connectors.arrow_scan", "TaskIds")


def task_ids(spark: SparkSession, count: int, like: DataFrame) -> DataFrame:
    """The numbers from 0 to `count` - 1, each in a partition of its own, with the statistics of `like`'s plan.

    Spark estimates a map over this relation by its `sizeInBytes`, and would otherwise broadcast the scan as if it were
    as small as the numbers are.
    """
    ids = spark.range(0, count, 1, count)
    execution, wanted = (query_execution(each) for each in (ids, like))
    plan = instance(spark, _IDS, execution).plan(wanted.analyzed(), "scanprune_task")
    return frame_of(spark, plan)


T = TypeVar("T")

# Spark releases a broadcast once no plan refers to it, but not the file on the driver that Python wrote it to.
_FILE = JavaFile("connectors.arrow_scan", "BroadcastFile")


@dataclass(frozen=True, slots=True)
class TaskPayload(Generic[T]):
    """A value for tasks, sent with their function while it is small, else as a broadcast.

    Tasks may read the value as long as a plan that refers to it exists.
    """

    _held: T | Broadcast[T]

    @staticmethod
    def of(spark: SparkSession, value: T, most_bytes: int = LIMITS.task_payload_bytes) -> TaskPayload[T]:
        """The payload of `value` as it is at this moment, in a classic session; a broadcast beyond `most_bytes`."""
        if len(pickle.dumps(value, pickle.HIGHEST_PROTOCOL)) <= most_bytes:
            return TaskPayload(value)
        held = spark.sparkContext.broadcast(value)
        path, broadcast = jvm_broadcast(held)
        instance(spark, _FILE, path).endsWith(broadcast)
        return TaskPayload(held)

    @property
    def value(self) -> T:
        """The value; a broadcast one is held once by each worker for all tasks that it runs."""
        return self._held.value if isinstance(self._held, Broadcast) else self._held
