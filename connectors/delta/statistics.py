"""Add-file actions of a Delta log as one Arrow table, and its columns as `ColumnStatistics`.

Spark parses the statistics, JSON text in each action, against just the columns asked for. Dates and timestamps
are parsed as text and cast: the JSON reader's own parser depends on session settings.

Where a deletion vector marks rows of a file, the protocol has `numRecords` count them, and some writers do not;
`nullCount` may count them or not. If `tightBounds` is false, the protocol lets it be any number, but for 0 and
`numRecords`, which mean no NULL and nothing but NULL; a writer that sets it keeps to this. Each proof from counts holds
in all of these cases:

| proof | from | with a vector |
|---|---|---|
| every row is NULL | `nullCount == numRecords`, and no bounds | if `tightBounds` is false |
| no row is NULL | `nullCount == 0` | the same |
| so many rows have a value | `numRecords - nullCount` | if `nullCount == 0`, less the vector's `cardinality` |
| a row is left | `numRecords > 0` | if `numRecords > cardinality` |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  its usual name
from pyspark.sql.types import DataType, LongType, StringType, StructType

from connectors.arrow_values import coded
from connectors.delta.bounds import NO_FLAW, Flaws, StoredBounds
from pruning.scan.statistics import UNKNOWN, ColumnStatistics
from pruning.values.byte_strings import IntArray
from pruning.values.ranges import BoolArray
from pruning.values.types import ValueType

_ANY_NUMBER = int(np.iinfo(np.int64).max)
_BROKEN = "_broken"
# In the log this text may mean NULL or the text itself.
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
# Digits without a backslash, whose meaning in a text depends on a conf.
_HAS_ZONE = "(Z|[+-][0-9]{2}:?[0-9]{2}(:?[0-9]{2})?)$"
# Types as which statistics of these types are parsed; other types are parsed as themselves.
_AS_TEXT = ("date", "timestamp", "timestamp_ntz", "string")
# Logs keep no bounds of binaries, and a writer that does has no agreed form for them.
_WITHOUT_BOUNDS = ("binary",)


@dataclass(frozen=True, slots=True)
class LogColumn:
    """A leaf column as the log names it: `path` holds physical names from the top."""

    name: str
    path: tuple[str, ...]
    type: ValueType
    spark_type: DataType
    stored: StoredBounds
    is_partition: bool


def listing(actions: DataFrame, columns: Sequence[LogColumn]) -> DataFrame:
    """One row per file: path, vector, deleted, size, modified, rows, wide, broken, and `l0 h0 n0 l1 ...` of `columns`.

    For a partition column `l` is its value and `n` tells whether it is NULL. Columns are selected by SQL texts, since
    each `Column` would take several calls to the JVM.
    """
    add = F.col("add")
    partitions = [
        add["partitionValues"].getItem(column.path[0]).alias(f"v{index}")
        for index, column in enumerate(columns)
        if column.is_partition
    ]
    parsed = actions.where("add IS NOT NULL").select(
        "add.path",
        F.expr("add.deletionVector.pathOrInlineDv AS vector"),
        F.expr("add.deletionVector.cardinality AS deleted"),
        "add.size",
        F.expr("add.modificationTime AS modified"),
        _parsed(add["stats"], columns).alias("stats"),
        *partitions,
    )
    named = [selected for index, column in enumerate(columns) for selected in _selected(index, column)]
    others = [(at, side) for at, each in enumerate(columns) if not _has_text(each) for side in _sides(each)]
    if others:
        parsed = parsed.select("*", *(_by_column(side, columns[at]).alias(f"{side}{at}") for at, side in others))
    return parsed.selectExpr(
        *("path", "vector", "deleted", "size", "modified"),
        "stats.numRecords AS rows",
        "stats.tightBounds = 'false' AS wide",
        f"stats.{_BROKEN} IS NOT NULL AS broken",
        *named,
    )


def row_counts(table: pa.Table) -> IntArray:
    """Rows per file of a `listing`. A count of zero may stand for none taken, and an empty file costs little."""
    rows = _counts(table["rows"])
    return np.where(rows > 0, rows, UNKNOWN)


def deleted_counts(table: pa.Table) -> IntArray:
    """The most rows of each file of a `listing` that its deletion vector marks."""
    counts = _counts(table["deleted"])
    return np.where(has_vector(table), np.where(counts > 0, counts, _ANY_NUMBER), 0)


def has_vector(table: pa.Table) -> BoolArray:
    """An array: True for files of a `listing` of which a deletion vector marks rows."""
    return np.asarray(table["vector"].is_valid().to_numpy(), bool)


def column_statistics(table: pa.Table, index: int, column: LogColumn) -> ColumnStatistics:
    """The statistics of the column at `index` of a `listing`, sound whatever was stored."""
    rows = row_counts(table)
    if column.is_partition:
        return _of_partition(table[f"l{index}"], table[f"n{index}"], column.type, rows)
    nulls, null_count = _counts(table[f"n{index}"]), _null_counts(table, index)
    if column.type.name in _WITHOUT_BOUNDS:
        unknown = ColumnStatistics.unknown(column.type, 1).take(np.zeros(len(rows), np.int64))
        return replace(unknown, null_count=null_count)
    lows, highs = table[f"l{index}"].combine_chunks(), table[f"h{index}"].combine_chunks()
    bounds = column.stored.sound(lows, highs)
    # Delta skips a file only if it has all of these, so incomplete statistics count as unknown.
    is_whole = _present(lows) & _present(highs) & (nulls != UNKNOWN) & (rows != UNKNOWN)
    # Writers differ in whether a NULL parent counts for its fields.
    is_vague = (nulls == 0) & (len(column.path) > 1)
    # A column of only NULL has no bounds.
    is_vague |= (nulls == rows) & (_present(lows) | _present(highs))
    return ColumnStatistics(
        column.type,
        bounds.lows,
        bounds.highs,
        has_low=bounds.has_low & is_whole,
        has_high=bounds.has_high & is_whole,
        null_count=np.where(is_vague, UNKNOWN, null_count),
        # A writer that copies Parquet's bounds excludes NaN from them.
        may_have_nan=np.full(len(rows), column.type.is_float),
    )


def flaws_of(table: pa.Table, index: int, column: LogColumn) -> Flaws:
    """The flaws of the bounds of the column at `index` of a `listing`."""
    if column.is_partition:
        return NO_FLAW
    rows = row_counts(table)
    nulls = _counts(table[f"n{index}"])
    miscounted = bool((has_vector(table) & ~_is_wide(table) & (rows != UNKNOWN) & (nulls >= rows)).any())
    if column.type.name in _WITHOUT_BOUNDS:
        return replace(NO_FLAW, miscounted=miscounted)
    return Flaws.of(table[f"l{index}"], table[f"h{index}"], column.type, miscounted=miscounted)


def _of_partition(
    values: pa.ChunkedArray, is_null: pa.ChunkedArray, type_: ValueType, rows: IntArray
) -> ColumnStatistics:
    """Exact values; `is_null` is itself NULL where the reader's choice between NULL and a value is open."""
    value = coded(values, type_)
    null = _flags(is_null, unknown=False)
    present = ~_flags(is_null, unknown=True) & (value.valid | value.nan)
    null_count = np.where(null, rows, np.where(present, 0, UNKNOWN))
    return ColumnStatistics(
        type_,
        value.codes,
        value.codes,
        has_low=value.valid,
        has_high=value.valid,
        null_count=null_count,
        may_have_nan=~value.valid & type_.is_float,
        is_partition=True,
    )


def _present(bounds: pa.Array) -> BoolArray:
    return np.asarray(bounds.is_valid().to_numpy(zero_copy_only=False), bool)


def _null_counts(table: pa.Table, index: int) -> IntArray:
    """The NULLs of each file in the column at `index`; unknown if there are more than rows, or no known number of rows.

    For a file with deleted rows only 0, and as many as rows if the table above allows it, are known.
    """
    nulls, rows = _counts(table[f"n{index}"]), row_counts(table)
    is_fixed = ~has_vector(table) | (nulls == 0) | ((nulls == rows) & _is_wide(table))
    return np.where(is_fixed & (nulls <= rows), nulls, UNKNOWN)


def _is_wide(table: pa.Table) -> BoolArray:
    return _flags(table["wide"], unknown=False)


def _counts(column: pa.ChunkedArray) -> IntArray:
    counts = column.fill_null(UNKNOWN).combine_chunks().to_numpy(zero_copy_only=False)
    return np.maximum(np.asarray(counts, np.int64), UNKNOWN)


def _flags(column: pa.ChunkedArray, *, unknown: bool) -> BoolArray:
    return np.asarray(column.fill_null(unknown).combine_chunks().to_numpy(zero_copy_only=False), bool)


def _parsed(text: SparkColumn, columns: Sequence[LogColumn]) -> SparkColumn:
    stored = [column for column in columns if not column.is_partition]
    bounded = [column for column in stored if column.type.name not in _WITHOUT_BOUNDS]
    bounds = _nested([(column.path, _json_type(column)) for column in bounded])
    nulls = _nested([(column.path, LongType()) for column in stored])
    schema = StructType().add("numRecords", LongType()).add("tightBounds", StringType()).add(_BROKEN, StringType())
    for name, tree in (("minValues", bounds), ("maxValues", bounds), ("nullCount", nulls)):
        if tree.fields:
            schema = schema.add(name, tree)
    return F.from_json(text, schema, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BROKEN})


def _nested(leaves: Iterable[tuple[tuple[str, ...], DataType]]) -> StructType:
    """The schema of nested structs with these leaves."""
    tops: dict[str, list[tuple[tuple[str, ...], DataType]]] = {}
    for path, type_ in leaves:
        tops.setdefault(path[0], []).append((path[1:], type_))
    tree = StructType()
    for name, below in tops.items():
        tree = tree.add(name, _nested(below) if below[0][0] else below[0][1])
    return tree


def _json_type(column: LogColumn) -> DataType:
    return StringType() if column.type.name in _AS_TEXT else column.spark_type


def _selected(index: int, column: LogColumn) -> tuple[str, ...]:
    if column.is_partition:
        return _partition_value(index, column)
    nulls = f"{_leaf('nullCount', index, column)} AS n{index}"
    if column.type.name in _WITHOUT_BOUNDS:
        return (nulls,)
    low, high = (_typed(_leaf(side, index, column), column) for side in ("minValues", "maxValues"))
    return f"{low} AS l{index}", f"{high} AS h{index}", nulls


def _leaf(side: str, index: int, column: LogColumn) -> str:
    """The SQL text of a statistic.

    Names in backticks may be taken for regular expressions.
    """
    return f"stats.{side}" + "".join(f"['{part}']" for part in column.path) if _has_text(column) else f"{side}{index}"


def _has_text(column: LogColumn) -> bool:
    """False where a text may stand for another name: it has a quote, an escape or a variable."""
    return column.is_partition or not any({"'", "$", "\\"} & {*part} for part in column.path)


def _sides(column: LogColumn) -> tuple[str, ...]:
    return ("nullCount",) if column.type.name in _WITHOUT_BOUNDS else ("minValues", "maxValues", "nullCount")


def _by_column(side: str, column: LogColumn) -> SparkColumn:
    leaf = F.col("stats").getField(side)
    for part in column.path:
        leaf = leaf.getField(part)
    return leaf


def _typed(stored: str, column: LogColumn) -> str:
    """The parsed value in the column's own type, NULL if it is not certainly the stored value."""
    match column.type.name:
        case "date" | "timestamp_ntz":
            return _try_cast(stored, column)
        case "timestamp":
            # A text without a zone would be read in the session's zone, not in the writer's.
            return f"CASE WHEN {stored} RLIKE '{_HAS_ZONE}' THEN {_try_cast(stored, column)} END"
        case _:
            return stored


def _try_cast(text: str, column: LogColumn) -> str:
    # The meaning of TIMESTAMP depends on a conf.
    type_ = "timestamp_ltz" if column.type.name == "timestamp" else column.spark_type.simpleString()
    return f"try_cast({text} AS {type_})"


def _partition_value(index: int, column: LogColumn) -> tuple[str, ...]:
    text = f"v{index}"
    if column.type.name == "string":
        # The protocol reads an empty string as NULL, Spark reads it as it is.
        value = text
    else:
        text = f"nullif({text}, '')"
        value = _try_cast(_typed(text, column), column)
    is_null = f"CASE WHEN {text} IS NULL OR {text} NOT IN ('', '{_HIVE_NULL}') THEN {text} IS NULL END"
    return f"CASE WHEN {text} != '{_HIVE_NULL}' THEN {value} END AS l{index}", f"{is_null} AS n{index}"
