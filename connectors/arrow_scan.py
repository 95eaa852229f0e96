"""A pruned scan made by pyarrow in Spark's Python workers: keys first, all else only of row groups with survivors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from connectors.arrow_counts import ScanCounter
from connectors.arrow_parts import chunk_bytes, dealt, file_part
from connectors.arrow_reader import ArrowReader, FilePart, KeyTest, ReadColumn
from connectors.arrow_types import arrow_type
from connectors.base import Table
from connectors.columns import Column
from connectors.decide import Decided
from connectors.task_ids import task_ids
from pruning.domain import Domain
from pruning.intervals import BoolArray
from pruning.reasons import Reason, ReasonCode
from pruning.row_set import RowSet
from pruning.skipping import prune

Task: TypeAlias = "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]"


@dataclass(frozen=True, slots=True, eq=False)
class ArrowScan:
    """The scan as a DataFrame, and what its tasks count."""

    df: DataFrame
    counter: ScanCounter


def arrow_scan(
    spark: SparkSession, table: Table, decided: Decided, domains: Mapping[str, Domain], columns: Sequence[Column]
) -> ArrowScan | Reason:
    """The rows of `columns`, all top-level, whose values lie in the domains of their columns; in no order.

    A `Reason` where Spark's own reader has to read them.
    """
    types = {column.path[0]: column.spark_type for column in columns}
    reads = [(name, arrow_type(type_)) for name, type_ in types.items()]
    refused = next((name for name, type_ in reads if type_ is None), None) or _nested(columns, domains)
    if refused is not None:
        return Reason(ReasonCode.NOT_READ_BY_ARROW, refused, "nested, or of another type than those read here")
    groups = _row_groups(decided, domains)
    if groups is None:
        return Reason(ReasonCode.NO_ROW_GROUPS_READ, table.name)
    tasks = _tasks(spark, table, groups, columns, types)
    if isinstance(tasks, Reason):
        return tasks
    names = list(types)
    tests = [
        KeyTest(names.index(column.path[0]), domain.type, RowSet.of(domain))
        for column, domain in ((_named(columns, name), each) for name, each in domains.items())
    ]
    read_columns = [ReadColumn(name, type_) for name, type_ in reads if type_ is not None]
    schema = StructType([StructField(name, type_) for name, type_ in types.items()])
    counter = ScanCounter.of(spark)
    rows = _expected_rows(decided, groups)
    ids = task_ids(spark, len(tasks), rows)
    return ArrowScan(ids.mapInArrow(_task(tasks, read_columns, tests, counter), schema), counter)


def _expected_rows(decided: Decided, groups: Mapping[int, Sequence[int]]) -> int:
    """How many rows may pass: of those scanned the share that each filter is expected to let through."""
    if decided.row_groups is None or decided.row_groups.parents is None:
        return 0
    scanned = decided.row_groups.rows[np.isin(decided.row_groups.parents, list(groups))].sum()
    return int(scanned * prod(each.ratio for each in decided.plan.decisions))


def _row_groups(decided: Decided, domains: Mapping[str, Domain]) -> dict[int, list[int]] | None:
    """The row groups by file that may hold a row in all domains; None where footers were not read."""
    groups = decided.row_groups
    if groups is None or groups.parents is None:
        return None
    file_kept = prune(decided.files, domains).kept
    kept: BoolArray = prune(groups, domains).kept & file_kept[groups.parents]
    found: dict[int, list[int]] = {}
    first = np.searchsorted(groups.parents, groups.parents)
    for at in np.flatnonzero(kept).tolist():
        found.setdefault(int(groups.parents[at]), []).append(at - int(first[at]))
    return found


def _tasks(
    spark: SparkSession,
    table: Table,
    groups: Mapping[int, Sequence[int]],
    columns: Sequence[Column],
    types: Mapping[str, DataType],
) -> list[list[FilePart]] | Reason:
    files = table.stored(np.array(list(groups), np.int64), columns)
    if isinstance(files, Reason):
        return files
    parts: list[FilePart] = []
    for file, wanted in zip(files, groups.values(), strict=True):
        part = file_part(file, wanted, types)
        if isinstance(part, Reason):
            return part
        parts.append(part)
    sizes = [chunk_bytes(file, wanted) for file, wanted in zip(files, groups.values(), strict=True)]
    return dealt(parts, sizes, spark.sparkContext.defaultParallelism)


def _nested(columns: Sequence[Column], domains: Mapping[str, Domain]) -> str | None:
    known = {column.name for column in columns}
    return next((name for name in domains if name not in known), None)


def _named(columns: Sequence[Column], name: str) -> Column:
    return next(column for column in columns if column.name == name)


def _task(
    tasks: Sequence[Sequence[FilePart]],
    columns: Sequence[ReadColumn],
    tests: Sequence[KeyTest],
    counter: ScanCounter,
) -> Task:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = ArrowReader(columns, tests)
        try:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    for part in tasks[number]:
                        yield from reader.read(part)
        finally:
            counter.add(reader.counts)

    return run
