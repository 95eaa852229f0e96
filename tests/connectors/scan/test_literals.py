"""SQL literals of encoded values: Spark reads each as the same value."""

from __future__ import annotations

import datetime as dt
import itertools
import re
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.arrow_values import coded
from connectors.scan.literals import in_list_sql, literal_sql, points_sql, ranges_sql
from pruning.values import encoding as code
from pruning.values.domain import Domain
from pruning.values.encoding import GREATEST, LEAST, float_codes
from pruning.values.ranges import RangeSet
from pruning.values.types import ValueType
from sample_data.confs import conf

EPOCH = dt.date(1970, 1, 1).toordinal()
SHORT, LONG = ValueType("decimal", 18, 4), ValueType("decimal", 38, 10)
# Failure catalogue 95, 97: the first and the last day and timestamp of Spark; 66: both zeros; 125: the extreme
# integers.
VALUES = {
    "tinyint": [-128, -1, 0, 127],
    "smallint": [-32768, 32767],
    "int": [-(1 << 31), (1 << 31) - 1],
    "bigint": [LEAST, LEAST + 1, -1, 0, GREATEST],
    "boolean": [0, 1],
    "date": [1 - EPOCH, -141_428, -1, 0, 2_932_896],
    "timestamp": [-62_135_596_800_000_000, -1, 0, 1, 253_402_300_799_999_999],
    "timestamp_ntz": [-62_135_596_800_000_000, -1, 0, 1, 253_402_300_799_999_999],
}
TEXTS = [b"", b"a", "é😀".encode(), b"'; DROP TABLE x; --", b"\\n\n\0", b"\xff\xfe", b"x" * 5000]


@pytest.mark.spark
@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns", "Asia/Kathmandu"])
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_literals_round_trip_through_spark(spark, zone, ansi):
    constants = [(ValueType(name), value) for name, values in VALUES.items() for value in values]
    constants += [
        (type_, code.encode(type_, [n])[0])
        for type_ in (SHORT, LONG)
        for n in (0, -1, Decimal((0, (9,) * type_.precision, -type_.scale)))
    ]
    constants += [(ValueType(name), text) for name in ("string", "binary") for text in TEXTS]
    with conf(spark, {"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": ansi}):
        frame = spark.sql("SELECT " + ", ".join(f"{literal_sql(*each)} AS c{at}" for at, each in enumerate(constants)))
        types = [field.dataType.simpleString() for field in frame.schema.fields]
        table = frame.toArrow()
    assert types == [str(type_) for type_, _ in constants]
    assert [coded(table.column(at), type_).codes[0] for at, (type_, _) in enumerate(constants)] == [
        v for _, v in constants
    ]


@pytest.mark.spark
def test_float_literals_round_trip_through_spark(spark):
    numbers = [0.1, -1e308, 5e-324, float("inf"), float("-inf"), 1 / 3, 2.0**-149]
    doubles = [literal_sql(ValueType("double"), int(each)) for each in float_codes(np.array(numbers))]
    assert numbers == list(spark.sql(f"SELECT {', '.join(doubles)}").first())
    singles = np.array([0.1, -3e38, 1e-45, np.inf, -np.inf, 1 / 3], np.float32).astype(np.float64)
    texts = [literal_sql(ValueType("float"), int(each)) for each in float_codes(singles)]
    assert singles.tolist() == list(spark.sql(f"SELECT {', '.join(texts)}").first())


# Failure catalogue 63: a bound that single precision cannot represent is moved outward, never inward.
@given(number=st.floats(allow_nan=False, allow_infinity=False))
def test_bounds_between_two_floats_move_outward(number):
    (value,) = float_codes(np.array([number]))
    low, high = (
        float(literal_sql(ValueType("float"), int(value), is_low=is_low).split("'")[1].replace("Infinity", "inf"))
        for is_low in (True, False)
    )
    assert low <= number <= high
    assert low == np.float32(low)
    assert high == np.float32(high)


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        (Domain.none(ValueType("int")), "false"),
        (Domain.all(ValueType("int")), "`k` IS NOT NULL"),
        (Domain.all(ValueType("string")), "`k` IS NOT NULL"),
        (Domain.all(LONG), "`k` IS NOT NULL"),
        (Domain.of(ValueType("string"), ""), "(`k` <= CAST(X'' AS STRING))"),
        (Domain.of(ValueType("bigint"), LEAST), f"(`k` <= CAST('{LEAST}' AS bigint))"),
        (Domain.of(ValueType("bigint"), GREATEST), f"(`k` >= {GREATEST}L)"),
        (Domain.of(ValueType("boolean"), *[True]), "`k` = true"),
        (Domain.between(ValueType("string"), None, "b"), "(`k` <= CAST(X'62' AS STRING))"),
        (Domain.between(ValueType("string"), "b", None), "(`k` >= CAST(X'62' AS STRING))"),
        (Domain.between(ValueType("bigint"), None, 5), "(`k` <= 5L)"),
        (Domain.between(ValueType("int"), 5, None), "(`k` >= 5)"),
        (Domain.of(ValueType("double"), 0.0), "(`k` >= CAST('-0.0' AS double) AND `k` <= CAST('0.0' AS double))"),
        (Domain.of(ValueType("int"), 1, 2, 7), "((`k` >= 1 AND `k` <= 2) OR (`k` >= 7 AND `k` <= 7))"),
    ],
    ids=str,
)
def test_ranges_use_the_fewest_comparisons(domain, expected):
    assert expected == ranges_sql("`k`", domain.ranges)


def test_many_ranges_nest_logarithmically():
    type_ = ValueType("int")
    sql = ranges_sql("`k`", Domain.of(type_, *range(0, 2000, 2)).ranges)
    depths = list(itertools.accumulate({"(": 1, ")": -1}.get(each, 0) for each in sql))
    assert 19 == max(depths)
    assert 999 == sql.count(" OR ")


def test_many_ranges_are_split_in_halves():
    found = ranges_sql("k", Domain.of(ValueType("int"), 1, 3, 5, 7, 9).ranges)
    points = re.sub(r"\(k >= (\d+) AND k <= \1\)", r"k = \1", found)
    assert "((k < 5 AND (k = 1 OR k = 3)) OR (k >= 5 AND (k = 5 OR (k = 7 OR k = 9))))" == points


# The conditions that split the ranges must not skip containers that the ranges reach, for any bounds.
@given(
    keys=st.sets(st.integers(0, 60), min_size=1, max_size=30),
    ends=st.tuples(st.integers(-3, 63), st.integers(-3, 63)),
)
def test_split_ranges_skip_as_plain_ranges(keys, ends):
    ranges = Domain.of(ValueType("int"), *keys).ranges
    text = ranges_sql("k", ranges).replace(" AND ", " and ").replace(" OR ", " or ")
    assert [number in keys for number in range(-3, 64)] == [bool(eval(text, {"k": k})) for k in range(-3, 64)]  # noqa: S307
    bounds = {"low": min(ends), "high": max(ends)}
    reached = re.sub(r"k (>=?) ", r"high \1 ", re.sub(r"k (<=?) ", r"low \1 ", text))
    expected = any(each.lows[0] <= bounds["high"] and each.highs[0] >= bounds["low"] for each in _each(ranges))
    assert expected is bool(eval(reached, bounds))  # noqa: S307


def _each(ranges):
    return [RangeSet.of_ranges(ranges.type, ranges.lows[[at]], ranges.highs[[at]]) for at in range(len(ranges))]


def test_in_list_has_each_point():
    type_ = ValueType("string")
    points = RangeSet.of_codes(type_, code.encode(type_, ["b", "a"])).points()
    assert "`k` IN (CAST(X'61' AS STRING), CAST(X'62' AS STRING))" == in_list_sql("`k`", type_, points)


# A list of Spark's default length is told apart by storage, which sees only the span of a longer one.
def test_storage_sees_points_as_ranges():
    few, many = (Domain.of(ValueType("int"), *range(0, 2 * count, 2)).ranges for count in (10, 11))
    assert ranges_sql("k", few) == points_sql("k", few)
    assert points_sql("k", few, 9).startswith("(k >= 0 AND k <= 18) AND coalesce(")
    listed = in_list_sql("k", many.type, many.points())
    assert f"(k >= 0 AND k <= 20) AND coalesce({listed}, false)" == points_sql("k", many)


# Where no file has a bloom filter, storage sees each value as well, to look for it in its dictionaries.
@pytest.mark.parametrize("count", [1, 10, 11])
def test_storage_sees_listed_points_one_by_one(count):
    ranges = Domain.of(ValueType("int"), *range(0, 2 * count, 2)).ranges
    seen = ranges_sql("k", ranges if count <= 10 else ranges.span())
    expected = f"{seen} AND {in_list_sql('k', ranges.type, ranges.points())}"
    assert expected == points_sql("k", ranges, is_listed=True)


# Parquet's reader believes the bloom filters of a file for `=` and IN, at which a stock join does not look.
@given(keys=st.sets(st.integers(0, 60), min_size=1, max_size=30))
def test_no_equality_reaches_storage(keys):
    ranges = Domain.of(ValueType("int"), *keys).ranges
    seen = re.sub(r"coalesce\(.*\)$", "", points_sql("k", ranges)) + ranges_sql("k", ranges)
    assert not re.search(r" = |IN \(", seen)
