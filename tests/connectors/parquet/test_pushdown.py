"""Predicates by which Spark's Parquet reader skips row groups, and proof that no pushed one skips too many."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors.parquet.pushdown import ReaderLimits, fewer_digits, takes_predicate, within_digits
from connectors.parquet.schema import Annotation, LeafType
from connectors.scan.literals import ranges_sql
from pruning import PruningOptions, explain, pruned_read, report
from pruning.reasons import ReasonCode
from pruning.values.domain import Domain
from pruning.values.ranges import RangeSet
from pruning.values.types import ValueType
from tests.connectors.parquet_files import column, read, written
from tests.oracle.oracle import reason_codes

NONE, STRING, DATE = Annotation(), Annotation("STRING"), Annotation("DATE")
MICROS = Annotation("TIMESTAMP", unit="microseconds", is_utc=True)
LOCAL, NANOS = Annotation("TIMESTAMP", unit="microseconds"), Annotation("TIMESTAMP", unit="nanoseconds", is_utc=True)
MONEY = Annotation("DECIMAL", precision=9, scale=2)

LEAVES = [
    ("tinyint", "INT32", Annotation("INT", 8), True),
    ("int", "INT32", NONE, True),
    ("int", "INT32", Annotation("INT", 32), True),
    ("int", "INT32", Annotation("INT", 16, is_signed=False), False),
    ("int", "INT64", NONE, False),
    ("bigint", "INT32", NONE, True),
    ("bigint", "INT64", Annotation("INT", 64), True),
    ("bigint", "INT32", Annotation("INT", 32, is_signed=False), False),
    ("bigint", "INT64", NANOS, False),
    ("float", "FLOAT", NONE, True),
    ("double", "DOUBLE", NONE, True),
    ("double", "FLOAT", NONE, False),
    ("double", "INT32", NONE, False),
    ("boolean", "BOOLEAN", NONE, True),
    ("decimal(9,2)", "INT32", MONEY, True),
    ("decimal(12,2)", "INT64", MONEY, True),
    ("decimal(12,2)", "FIXED_LEN_BYTE_ARRAY", MONEY, True),
    ("decimal(9,2)", "BYTE_ARRAY", MONEY, False),
    ("decimal(12,4)", "INT32", MONEY, False),
    ("decimal(12,2)", "INT32", NONE, False),
    ("decimal(20,0)", "INT64", Annotation("INT", 64, is_signed=False), False),
    ("string", "BYTE_ARRAY", STRING, True),
    ("string", "BYTE_ARRAY", NONE, False),
    ("string", "BYTE_ARRAY", Annotation("TEXT"), False),
    ("binary", "BYTE_ARRAY", NONE, True),
    ("binary", "BYTE_ARRAY", STRING, False),
    ("binary", "FIXED_LEN_BYTE_ARRAY", NONE, False),
    ("date", "INT32", DATE, True),
    ("timestamp", "INT64", MICROS, True),
    ("timestamp", "INT64", LOCAL, False),
    ("timestamp", "INT96", NONE, False),
    ("timestamp_ntz", "INT64", LOCAL, False),
]


@pytest.mark.parametrize(("type_", "physical", "annotation", "expected"), LEAVES)
def test_reader_takes_predicates_on_matching_leaf_types(type_, physical, annotation, expected):
    assert expected is takes_predicate(LeafType(physical, 0, annotation), ValueType.parse(type_))


@pytest.mark.parametrize(("type_", "expected"), [("decimal(9,2)", None), ("decimal(12,2)", 9), ("decimal(12,4)", None)])
def test_fewer_digits_of_files_are_reported(type_, expected):
    assert expected == fewer_digits(LeafType("INT32", 0, MONEY), ValueType.parse(type_))


# Failure catalogue 81: bounds that the file's numbers cannot represent. A wide column has byte codes.
@pytest.mark.parametrize("type_", ["decimal(6,0)", "decimal(30,0)"])
@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([-99, 3, 99], "(k = -99 OR (k = 3 OR k = 99))"),
        ([3, 100], "(k = 3 OR (k >= 99))"),
        ([3, 90, 5000, 70_000], "(k = 3 OR (k = 90 OR (k >= 99)))"),
        ([-100, -5, 7], "((k <= -99) OR (k = -5 OR k = 7))"),
        ([-5000, 5000], "((k <= -99) OR (k >= 99))"),
        ([], "false"),
    ],
)
def test_bounds_beyond_the_digits_of_the_file_are_opened(type_, keys, expected):
    ranges = Domain.of(ValueType.parse(type_), *keys).ranges
    found = within_digits(ranges, 2)
    assert found.contains_all(ranges)
    text = ranges_sql("k", found).replace("CAST('", "").replace(f"' AS {type_})", "")
    assert expected == re.sub(r"\(k >= (\S+) AND k <= \1\)", r"k = \1", text)


def test_reader_limits_are_united():
    limits = ReaderLimits(frozenset({"a"}), {"k": 9}).union(ReaderLimits(frozenset({"b"}), {"k": 7, "j": 3}))
    assert ReaderLimits(frozenset({"a", "b"}), {"k": 7, "j": 3}) == limits
    assert limits.storage_safe_ranges("a", RangeSet.none(ValueType("int"))).is_none
    assert limits.storage_safe_ranges("b", Domain.of(ValueType("int"), 1).ranges).is_all
    assert (
        limits.storage_safe_ranges("other", Domain.of(ValueType("int"), 1).ranges)
        == Domain.of(ValueType("int"), 1).ranges
    )


def test_footers_give_the_fewest_digits(tmp_path):
    files = [
        written(tmp_path / str(digits), pa.table({"x": pa.array([1, 2], pa.decimal128(digits, 2))}))
        for digits in (12, 7, 9)
    ]
    assert ReaderLimits(digits={"x": 7}) == read(files, column("decimal(12,2)")).limits
    assert ReaderLimits() == read(files[:1], column("decimal(12,2)")).limits
    assert ReaderLimits() == read(files[1:], column("decimal(12,4)")).limits


def test_bounds_are_known_without_reader_pushdown(tmp_path):
    file = written(tmp_path / "x", pa.table({"x": pa.array([1, 2, 3, 4], pa.uint32())}))
    groups = read(file, column("bigint")).containers
    assert ["{[1, 2]}", "{[3, 4]}"] == [str(groups[at].domains["x"]) for at in range(2)]
    assert ["all", "all"] == [str(groups.seen_by_reader()[at].domains["x"]) for at in range(2)]


@pytest.fixture
def catalog(spark) -> Iterator[list[str]]:
    names: list[str] = []
    yield names
    for name in names:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


def table_of(spark, catalog, folder: Path, type_: str, *arrays: pa.Array, **options) -> str:
    """A Parquet table of the catalog with a column `k` of `type_`; each array is a file with row groups of two rows."""
    folder.mkdir()
    for at, array in enumerate(arrays):
        rows = pa.table({"id": range(at * 100, at * 100 + len(array)), "k": array})
        pq.write_table(rows, folder / f"{at}.parquet", row_group_size=2, **options)
    catalog.append(f"reader_filters_{folder.name}")
    spark.sql(f"CREATE TABLE {catalog[-1]} (id BIGINT, k {type_}) USING parquet LOCATION '{folder.as_uri()}'")
    return catalog[-1]


def ids_of(rows) -> list[int]:
    return sorted(row.id for row in rows)


def check(spark, source: str, keys: list, expected: tuple[int, int]) -> set[ReasonCode]:
    """Reads by `keys`, checks the rows against Spark's semijoin and the counts against the plan; returns the
    reason codes.
    """
    type_ = spark.table(source).schema["k"].dataType
    literals = ", ".join(f"CAST('{key}' AS {type_.simpleString()})" for key in keys)
    probe = f"SELECT * FROM {source} LEFT SEMI JOIN (SELECT explode(array({literals})) AS key) ON k = key"
    wanted = ids_of(spark.sql(probe).collect())
    for exact in (False, True):
        df = pruned_read(spark, source, keys={"k": keys}, exact=exact)
        found = ids_of(df.collect())
        assert set(wanted) <= set(found)
        assert not exact or wanted == found
        (plan,) = explain(df).tables
        measured = report(df).measured
        assert expected == (plan.files_kept, plan.row_groups_kept)
        assert (plan.files_kept, plan.rows_kept) == (measured.files_read, measured.rows_scanned)
    return reason_codes(plan)


TYPED = {
    "uint32 under bigint": ("bigint", pa.uint32(), False),
    "int under bigint": ("bigint", pa.int32(), True),
    "bigint": ("bigint", pa.int64(), True),
    "uint16 under int": ("int", pa.uint16(), False),
    "float under double": ("double", pa.float32(), False),
    "int under double": ("double", pa.int32(), False),
    "another scale": ("decimal(12,4)", pa.decimal128(9, 2), False),
    "fewer digits": ("decimal(12,2)", pa.decimal128(9, 2), True),
    "decimal": ("decimal(9,2)", pa.decimal128(9, 2), True),
    "int under decimal": ("decimal(12,2)", pa.int32(), False),
    "local time under timestamp": ("timestamp", pa.timestamp("us"), False),
}


# Failure catalogue 75, 81, 83: a column without reader pushdown is read whole, but only in listed files.
@pytest.mark.spark
@pytest.mark.parametrize(("type_", "arrow", "is_seen"), TYPED.values(), ids=TYPED.keys())
def test_row_groups_are_skipped_iff_the_reader_takes_predicates(spark, catalog, tmp_path, type_, arrow, is_seen):
    arrays = [pa.array(values, pa.int32()).cast(pa.int64()) for values in ([1, 2, 5, 6], [11, 12, 15, 16])]
    arrays = [each.cast(arrow) if not pa.types.is_decimal(arrow) else as_decimals(each, arrow) for each in arrays]
    source = table_of(spark, catalog, tmp_path / "typed", type_, *arrays)
    key = dt.datetime(1970, 1, 1, microsecond=5, tzinfo=dt.UTC) if type_ == "timestamp" else 5
    codes = check(spark, source, [key], (1, 1) if is_seen else (1, 2))
    assert is_seen is (ReasonCode.NO_READER_FILTER not in codes)


def as_decimals(numbers: pa.Array, type_: pa.DataType) -> pa.Array:
    return pa.array([Decimal(each) for each in numbers.to_pylist()], type_)


# Failure catalogue 81: Spark checks only the scale of a literal, and truncates it to the width of the file's numbers.
@pytest.mark.spark
@pytest.mark.parametrize("is_integer", [True, False], ids=["integers", "fixed length"])
@pytest.mark.parametrize("type_", ["decimal(12,2)", "decimal(22,2)"])
def test_keys_with_more_digits_than_the_file_lose_no_row(spark, catalog, tmp_path, type_, is_integer):
    arrays = [as_decimals(pa.array(values), pa.decimal128(9, 2)) for values in ([1, 2, 5, 6], [11, 12, 15, 16])]
    source = table_of(spark, catalog, tmp_path / "digits", type_, *arrays, store_decimal_as_integer=is_integer)
    # Truncated to 32 bits, these keys would be 0.01 and 700.00.
    near, far = (Decimal(2**32 + at) / 100 for at in (1, 70_000))
    check(spark, source, [Decimal(5), Decimal(15), near], (2, 2))
    check(spark, source, [-far, Decimal(1), Decimal(11)], (2, 2))
    check(spark, source, [near, far], (0, 0))


# Failure catalogue 81, 133: in a Delta table, the log and the footers give the digits of older files.
@pytest.mark.spark
@pytest.mark.parametrize("most_footers", [0, 100])
def test_keys_with_more_digits_than_old_files_lose_no_row(spark, tmp_path, most_footers):
    source = f"delta.`{tmp_path / 't'}`"
    spark.sql(
        f"CREATE TABLE {source} (id BIGINT, k DECIMAL(9,2)) USING delta "
        "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    )
    spark.sql(f"INSERT INTO {source} SELECT /*+ COALESCE(1) */ id, CAST(id AS DECIMAL(9,2)) FROM range(1, 10)")
    spark.sql(f"ALTER TABLE {source} ALTER COLUMN k TYPE DECIMAL(12,2)")
    huge = Decimal(2**32 + 1) / 100
    spark.sql(f"INSERT INTO {source} VALUES (10, {huge}), (11, 123456789.01)")
    for exact in (False, True):
        options = PruningOptions().with_limits(max_footers=most_footers)
        df = pruned_read(spark, tmp_path / "t", keys={"k": [Decimal(7), huge]}, exact=exact, options=options)
        assert {7, 10} <= set(found := ids_of(df.collect()))
        assert not exact or found == [7, 10]
