"""Codes as Spark SQL text: literals in the column's own type, ranges as a search among them.

Every literal folds to a constant before file skipping evaluates it. Dates and timestamps are written as numbers of days
and microseconds, since the conversion of Python objects depends on the process's time zone. Text is written as hex.

A key reaches storage as `>=` and `<=`. For `=` and `IN`, the reader of Parquet files would also believe their bloom
filters, at which a stock join never looks, so these are used only where there is none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pruning.limits import LIMITS
from pruning.scan.tuple_pushdown import PushedTupleRanges
from pruning.values import encoding as code
from pruning.values.coercion import DAY_MICROS
from pruning.values.encoding import GREATEST, LEAST, Codes
from pruning.values.ranges import RangeSet
from pruning.values.types import ValueType

_INTEGER_SUFFIX = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}
# The default of `spark.sql.parquet.pushdown.inFilterThreshold`: of a longer list, Parquet files see the span.
_LISTED_APART = 10
# The greatest number of days or microseconds before 1970 of which Spark makes a literal for a data source.
_PLANNED_MOMENTS = {"date": 2_100_000_000, "timestamp": 9_000_000_000_000_000_000}
_NUMBERS_OF_MOMENTS = {
    "date": ("unix_date", ValueType("int")),
    "timestamp": ("unix_micros", ValueType("bigint")),
}
# Ranges that are compared one after the other; more by halves.
_IN_A_ROW = 4


def ranges_sql(column: str, ranges: RangeSet) -> str:
    """A predicate that is TRUE exactly where `column` (SQL text) lies in `ranges`; NULL where it is NULL.

    Many ranges become a binary search, so that a row is compared with few of them. Storage skips as much as with an OR
    of all ranges: bounds that reach a range also reach the halves that hold it.

    >>> print(ranges_sql("`k`", RangeSet.of_codes(ValueType("int"), code.encode(ValueType("int"), [1, 2, 7]))))
    ((`k` >= 1 AND `k` <= 2) OR (`k` >= 7 AND `k` <= 7))
    """
    if ranges.is_none:
        return "false"
    seen = _planned(ranges)
    found = _search(column, seen, 0, len(seen))
    if seen is ranges:
        return found
    # No data source sees the numbers of moments.
    function, type_ = _NUMBERS_OF_MOMENTS[ranges.type.name]
    numbers = RangeSet(type_, ranges.lows, ranges.highs)
    return f"({found} AND {_search(f'{function}({column})', numbers, 0, len(numbers))})"


def _planned(ranges: RangeSet) -> RangeSet:
    """The ranges with open ends in place of moments that Spark cannot plan a scan by; themselves if there is none.

    Spark moves literals of dates and timestamps to the Julian calendar for its data sources, which overflows near the
    least of all.
    """
    most = _PLANNED_MOMENTS.get(ranges.type.name)
    if most is None or not isinstance(ranges.lows, np.ndarray) or not isinstance(ranges.highs, np.ndarray):
        return ranges
    # Ranges ascend, so that of the least moments is the first.
    first, last = int(ranges.lows[0]), int(ranges.highs[0])
    if -most <= first or (first == LEAST and -most <= last):
        return ranges
    lows = np.where(ranges.lows < -most, LEAST, ranges.lows)
    return RangeSet.of_ranges(ranges.type, lows, np.maximum(ranges.highs, -most))


def tuple_ranges_sql(columns: Sequence[str], predicate: PushedTupleRanges) -> str:
    """A predicate that is TRUE exactly where two columns together lie in a range of a push, in lexicographic order.

    `IS NOT NULL` is written separately, since storage cannot derive it from an OR.
    """
    first, second = columns
    ranges = zip(*predicate.lows, *predicate.highs, strict=True)
    either = " OR ".join(_tuple_range_sql(first, second, predicate.types, *map(int, each)) for each in ranges)
    return f"{first} IS NOT NULL AND {second} IS NOT NULL AND ({either})"


def disjunction_sql(operands: Sequence[tuple[str, RangeSet]]) -> str:
    """A predicate that is TRUE exactly where one of several columns (SQL texts) lies in its ranges."""
    return " OR ".join(ranges_sql(column, ranges) for column, ranges in operands)


def _tuple_range_sql(  # noqa: PLR0913, PLR0917 - two columns, and two ends of two codes
    first: str, second: str, types: tuple[ValueType, ValueType], low: int, low2: int, high: int, high2: int
) -> str:
    begin, begin2 = literal_sql(types[0], low), literal_sql(types[1], low2)
    end, end2 = literal_sql(types[0], high), literal_sql(types[1], high2)
    if low == high:
        return f"({first} >= {begin} AND {first} <= {end} AND {second} >= {begin2} AND {second} <= {end2})"
    from_below = f"({first} > {begin} OR ({first} >= {begin} AND {second} >= {begin2}))"
    return f"({from_below} AND ({first} < {end} OR ({first} <= {end} AND {second} <= {end2})))"


def hidden_sql(predicate: str) -> str:
    """A predicate that is FALSE in place of NULL, which no reader of files takes."""
    return f"coalesce({predicate}, false)"


def points_sql(column: str, ranges: RangeSet, most: int = LIMITS.max_ranges, *, is_listed: bool = False) -> str:
    """A predicate that is TRUE exactly where `column` lies in `ranges`, whose values can be listed.

    Storage sees few ranges one by one, at most `most`, and of more their span; each value as well if `is_listed`.
    """
    is_few = len(ranges) <= min(most, _LISTED_APART)
    is_listed = is_listed and _planned(ranges) is ranges
    seen = ranges_sql(column, ranges if is_few else ranges.span())
    if is_few and not is_listed:
        return seen
    listed = in_list_sql(column, ranges.type, ranges.points())
    return f"{seen} AND {listed if is_listed else hidden_sql(listed)}"


def in_list_sql(column: str, type_: ValueType, points: Codes) -> str:
    """A predicate that is TRUE exactly where `column` is one of `points`."""
    return f"{column} IN ({', '.join(literal_sql(type_, points[index]) for index in range(len(points)))})"


def literal_sql(type_: ValueType, value: int | bytes, *, is_low: bool = True) -> str:
    """One code as a constant of exactly its type; a range end that a float cannot represent is rounded outward."""
    match type_.name:
        case "tinyint" | "smallint" | "int" | "bigint":
            return _integer_sql(type_, int(value))
        case "boolean":
            return "true" if value else "false"
        case "decimal":
            return f"CAST('{code.decimal_of(type_, value):f}' AS {type_})"
        case "date":
            return f"date_from_unix_date({int(value)})"
        case "timestamp":
            return f"timestamp_micros({_integer_sql(ValueType('bigint'), int(value))})"
        case "timestamp_ntz":
            return _local_timestamp_sql(int(value))
        case "float" | "double":
            return _float_sql(type_, int(value), is_low=is_low)
        case "string":
            return f"CAST({_hex_sql(bytes(value))} AS STRING)"
        case "binary":
            return _hex_sql(bytes(value))
        case _:
            msg = f"Cannot write a {type_} constant in SQL: no form is defined"
            raise ValueError(msg)


def _range_sql(column: str, ranges: RangeSet, index: int) -> str:
    low, high = ranges.lows[index], ranges.highs[index]
    if low == high and ranges.type.name == "boolean":
        # Parquet files have no bloom filters of booleans, and their reader takes no other comparison of them.
        return f"{column} = {literal_sql(ranges.type, low)}"
    ends = []
    if not _is_least(low):
        ends.append(f"{column} >= {literal_sql(ranges.type, low, is_low=True)}")
    is_open = ranges.unbounded and index == len(ranges) - 1
    if not is_open and not (isinstance(high, np.integer | int) and int(high) == GREATEST):
        ends.append(f"{column} <= {literal_sql(ranges.type, high, is_low=False)}")
    return f"({' AND '.join(ends)})" if ends else f"{column} IS NOT NULL"


def _is_least(low: int | bytes) -> bool:
    """True if no value of the type lies below, so that a comparison with it is needless."""
    return low == b"" if isinstance(low, bytes) else int(low) == LEAST


def _search(column: str, ranges: RangeSet, first: int, end: int) -> str:
    """The ranges from `first` up to `end` as a balanced tree: a chain would overflow Spark's recursive traversals."""
    if end - first == 1:
        return _range_sql(column, ranges, first)
    middle = (first + end) // 2
    below, above = (_search(column, ranges, *part) for part in ((first, middle), (middle, end)))
    if end - first <= _IN_A_ROW:
        return f"({below} OR {above})"
    least = literal_sql(ranges.type, ranges.lows[middle], is_low=True)
    return f"(({column} < {least} AND {below}) OR ({column} >= {least} AND {above}))"


def _integer_sql(type_: ValueType, value: int) -> str:
    # The least number of a type has no literal: its absolute value does not fit.
    return f"{value}{_INTEGER_SUFFIX[type_.name]}" if value >= 0 else f"CAST('{value}' AS {type_})"


def _local_timestamp_sql(micros: int) -> str:
    days, rest = divmod(micros, DAY_MICROS)
    seconds = f"CAST('{rest // 1_000_000}.{rest % 1_000_000:06d}' AS DECIMAL(18,6))"
    return f"(TIMESTAMP_NTZ '1970-01-01 00:00:00' + make_dt_interval({days}, 0, 0, {seconds}))"


def _float_sql(type_: ValueType, value: int, *, is_low: bool) -> str:
    number = float(code.float_values(np.array([value]))[0])
    if type_.name == "float":
        with np.errstate(over="ignore"):
            single = np.float32(number)
        if is_low and float(single) > number:
            single = np.nextafter(single, np.float32(-np.inf))
        elif not is_low and float(single) < number:
            single = np.nextafter(single, np.float32(np.inf))
        number = float(single)
    # Some readers distinguish -0.0 from 0.0, so a low end becomes -0.0 and a high end 0.0.
    text = ("-0.0" if is_low else "0.0") if number == 0 else repr(number).replace("inf", "Infinity")
    return f"CAST('{text}' AS {type_})"


def _hex_sql(value: bytes) -> str:
    return f"X'{value.hex()}'"
