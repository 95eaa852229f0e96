"""A `ScanPlan` as a DataFrame: kept files, pushed ranges, and row filters.

Row filters test by literals, bitmaps, bloom filters or semi joins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from connectors.base import Table
from connectors.columns import Column, quoted
from connectors.scan.literals import (
    disjunction_sql,
    hidden_sql,
    in_list_sql,
    points_sql,
    ranges_sql,
    tuple_ranges_sql,
)
from connectors.spark.jvm import JavaFile, column_of_java, has_jvm, instance, jvm_session
from connectors.spark.scan_text import with_scan_text
from pruning.errors import UnsupportedSessionError
from pruning.keys.bitmap import Bitmap
from pruning.keys.xxhash64 import SPARK_SEED
from pruning.limits import Limits
from pruning.scan.disjunction import PushedDisjunction
from pruning.scan.pushdown import PushedPredicate
from pruning.scan.scan_plan import FilterDecision, JointPredicate, RowFilter, ScanPlan
from pruning.scan.tuple_pushdown import PushedTupleRanges
from pruning.values.types import ValueType

_KEY = "__scanprune_key_"
_LITERAL = frozenset({RowFilter.RANGES, RowFilter.IN_LIST})
# Bytes of the keys of a semi join that go to every executor; more are shuffled to the rows.
_BROADCAST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class RowKeys:
    """The input of one row filter: its columns, and its keys as a frame, a bloom filter or a bitmap.

    `frame` has one column for each key column, in order; None if no semi join is possible. `bloom` is Spark's binary
    form over the SQL texts `bloom_columns`. `bitmap` holds the codes of the keys of a single column.
    """

    columns: tuple[Column, ...]
    frame: DataFrame | None = None
    broadcast: bool = False
    bloom: bytes | None = None
    bloom_columns: tuple[str, ...] = ()
    bitmap: Bitmap | None = None


def pruned_frame(  # noqa: PLR0913, PLR0917 - a table, and what its rows are tested by
    table: Table,
    plan: ScanPlan,
    columns: Mapping[str, Column],
    keys: Sequence[RowKeys],
    projected: Sequence[str] | None,
    limits: Limits,
    text: str = "",
) -> DataFrame:
    """The pinned table with the files, predicates and row filters of the plan; only `projected` columns if given.

    Spark shows `text` where it shows the plan of the scan.
    """
    kept = plan.files.kept
    # A constant FALSE makes Spark drop the scan; naming no file would still list and open the table.
    df = table.read(kept if plan.acts else None) if kept.any() else table.read(None).where("false")
    df = with_scan_text(df, text)
    tested = list(zip(plan.decisions, keys, strict=True))
    predicates = [
        predicate
        for predicate in plan.predicates
        if not any(_implies(decision, predicate) for decision in plan.decisions)
    ]
    conditions = [_pushed(columns[predicate.column], predicate) for predicate in predicates]
    conditions += [_pushed_together(columns, predicate) for predicate in plan.joint_predicates]
    conditions += [
        _literal_test(decision, each.columns[0], limits)
        for decision, each in tested
        if decision.test in _LITERAL and not any(_replaces(each, decision) for each in predicates)
    ]
    if conditions:
        # One call, since each `where` analyses the whole plan again.
        df = df.where(" AND ".join(f"({each})" for each in conditions))
    for decision, row_keys in tested:
        df = _tested(df, decision, row_keys)
    return df if projected is None else df.select(*(F.expr(each) for each in projected))


def _pushed(column: Column, predicate: PushedPredicate) -> str:
    found = ranges_sql(column.sql, predicate.ranges)
    return f"({found} OR {column.sql} IS NULL)" if predicate.null else found


def _pushed_together(columns: Mapping[str, Column], predicate: JointPredicate) -> str:
    match predicate:
        case PushedTupleRanges():
            return tuple_ranges_sql([columns[name].sql for name in predicate.columns], predicate)
        case PushedDisjunction():
            return disjunction_sql([(columns[name].sql, ranges) for name, ranges in predicate.operands])


def semi_joined(df: DataFrame, row_keys: RowKeys) -> DataFrame:
    """The rows of `df` that equal a key in every column by Spark's `=`."""
    if row_keys.frame is None:
        msg = f"Cannot semi join on {', '.join(each.name for each in row_keys.columns)}: found no keys"
        raise ValueError(msg)
    names = _free_names(df, len(row_keys.columns))
    frame = row_keys.frame.toDF(*names)
    frame = F.broadcast(frame) if row_keys.broadcast else frame
    pairs = [F.expr(f"{column.sql} = {quoted(name)}") for column, name in zip(row_keys.columns, names, strict=True)]
    return df.join(frame, on=pairs, how="left_semi")


def _free_names(df: DataFrame, count: int) -> list[str]:
    """Names that no column has, upper or lower case."""
    taken, prefix = {name.lower() for name in df.columns}, _KEY
    while any(name.startswith(prefix) for name in taken):
        prefix += "_"
    return [f"{prefix}{index}" for index in range(count)]


def keys_frame(spark: SparkSession, types: Sequence[ValueType], arrays: Sequence[pa.Array]) -> tuple[DataFrame, bool]:
    """A DataFrame of key columns held on the driver, and True if it is small enough for a broadcast."""
    names = [f"{_KEY}{index}" for index in range(len(arrays))]
    table = pa.Table.from_arrays(list(arrays), names=names)
    # Without a schema, local timestamps would go through the session's time zone.
    schema = ", ".join(f"{name} {type_}" for name, type_ in zip(names, types, strict=True))
    return spark.createDataFrame(table, schema), table.nbytes <= _BROADCAST_BYTES


def _tested(df: DataFrame, decision: FilterDecision, row_keys: RowKeys) -> DataFrame:
    match decision.test:
        case RowFilter.NONE | RowFilter.RANGES | RowFilter.IN_LIST:
            return df
        case RowFilter.BLOOM:
            # There is no bloom filter if one of the largest size would pass nearly everything.
            bloom = row_keys.bloom
            return df if bloom is None else df.where(might_contain_column(df, row_keys.bloom_columns, bloom))
        case RowFilter.BITMAP if row_keys.bitmap is not None:
            return df.where(in_bitmap_column(df, row_keys.columns[0], row_keys.bitmap))
        case RowFilter.SEMI_JOIN if row_keys.frame is not None:
            return semi_joined(df, row_keys)
        case test:
            msg = f"Cannot test rows by {test.value}: found no keys"
            raise ValueError(msg)


def _implies(decision: FilterDecision, predicate: PushedPredicate) -> bool:
    """True if a row filter's own ranges, pushed to storage, skip at least as much as the wider ranges of a push."""
    asked = decision.test is RowFilter.RANGES and decision.is_pushed and decision.filter.columns == (predicate.column,)
    return asked and predicate.ranges.contains_all(decision.filter.domains[predicate.column].ranges)


def _replaces(predicate: PushedPredicate, decision: FilterDecision) -> bool:
    """True if pushed ranges pass no row that a hidden row filter by literals drops, as where gaps are few."""
    domain = None if decision.is_pushed else decision.filter.domains.get(predicate.column)
    return domain is not None and not predicate.null and domain.ranges.contains_all(predicate.ranges)


def _literal_test(decision: FilterDecision, column: Column, limits: Limits) -> str:
    (domain,) = decision.filter.domains.values()
    match decision.test, decision.is_pushed:
        case RowFilter.IN_LIST, True:
            return points_sql(column.sql, domain.ranges, limits.max_ranges, is_listed=decision.is_listed)
        case RowFilter.IN_LIST, False:
            return hidden_sql(in_list_sql(column.sql, domain.type, domain.ranges.points()))
        case _, is_pushed:
            text = ranges_sql(column.sql, domain.ranges)
            return text if is_pushed else hidden_sql(text)


_BLOOM = JavaFile("connectors.scan", "BloomTest")


def might_contain_column(df: DataFrame, columns: Sequence[str], bloom_bytes: bytes) -> SparkColumn:
    """A condition: True for rows of `df` whose SQL expressions `columns` hash to an item of the filter; never NULL.

    `bloom_bytes` is `BloomFilter.to_bytes()` of Spark's `xxhash64` of keys in the very types of the expressions: a
    filter of ints loses every bigint. NULL is hashed too, so a row with a NULL key is dropped unless keys held one.
    Raises `UnsupportedSessionError` on Spark Connect, whose protocol has no such expression.
    """
    spark = _with_jvm(df, "a bloom filter")
    test = instance(spark, _BLOOM, jvm_session(spark), bloom_bytes, "\n".join(columns), SPARK_SEED)
    return column_of_java(test.column())


_BITMAP = JavaFile("connectors.scan", "BitmapTest")


def in_bitmap_column(df: DataFrame, column: Column, bitmap: Bitmap) -> SparkColumn:
    """A condition: True for rows of `df` whose value in a column of whole numbers or dates has a bit; else not True.

    Bigints that are a multiple of 2 ** 38 apart are the same to it. NULL has no bit. Raises `UnsupportedSessionError`
    on Spark Connect, whose protocol has no such literal.
    """
    spark = _with_jvm(df, "a bitmap")
    # Java's shift takes an int or a bigint.
    is_small = str(column.type) in {"tinyint", "smallint"}
    text = f"CAST({column.sql} AS INT)" if is_small else column.sql
    return column_of_java(instance(spark, _BITMAP, text, str(column.type), bitmap.words, str(bitmap.first)).column())


def _with_jvm(df: DataFrame, test: str) -> SparkSession:
    if not has_jvm(df.sparkSession):
        raise UnsupportedSessionError(
            f"Cannot test rows by {test} on Spark Connect: found no JVM plan, use a classic session"
        )
    return df.sparkSession
