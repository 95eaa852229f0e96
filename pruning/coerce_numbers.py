"""Keys that are exact numbers (integers, decimals) -> the values of another such type that Spark's `=` matches.

Spark compares them exactly, in a decimal wide enough for both.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from pruning import codes as code
from pruning.byte_strings import ByteStrings
from pruning.codes import Codes, float_codes
from pruning.ranges import RangeSet
from pruning.value_type import INTEGER_BITS, Physical, ValueType

# The column's values that can equal a key, and whether each of them does.
Matches: TypeAlias = tuple[RangeSet, bool]

# Spark's decimal for each integer type, when one meets a decimal.
_INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
# Python's integers are made so many at a time, so that memory stays with the arrays.
BLOCK = 1 << 16


def common_decimal_digits(source: ValueType, column: ValueType) -> int:
    """Digits of the decimal that holds every value of two exact number types."""
    whole = max(_digits(each) - each.scale for each in (source, column))
    return whole + max(source.scale, column.scale)


def representable(type_: ValueType) -> RangeSet:
    """The values that a column of the type can hold, without open ends where the type has ends."""
    if type_.is_exact_number:
        return _range(type_, *_limits(type_))
    if type_.is_float:
        ends = float_codes(np.array([-np.inf, np.inf]))
        return RangeSet(type_, ends[:1], ends[1:])
    return RangeSet.all(type_)


def number_to_number(keys: RangeSet, column: ValueType) -> Matches:
    """Exact numbers against exact numbers: scaled, and dropped where the column cannot hold them."""
    source, shift = keys.type, column.scale - keys.type.scale
    inside = keys.intersect(_shared(source, column))
    if shift == 0 and source.physical is column.physical:
        return RangeSet(column, inside.lows, inside.highs), True
    lows = _rescaled(inside.lows, source, column, up=True)
    highs = _rescaled(inside.highs, source, column, up=False)
    # Where the column is finer it holds values between two neighbours of a range.
    return RangeSet.of_ranges(column, lows, highs), shift <= 0 or inside.is_points


def _digits(type_: ValueType) -> int:
    return type_.precision or _INTEGER_DIGITS[type_.name]


def _limits(type_: ValueType) -> tuple[int, int]:
    """Least and greatest unscaled number of an exact number type."""
    if type_.is_integer:
        half = 1 << (INTEGER_BITS[type_.name] - 1)
        return -half, half - 1
    return 1 - 10**type_.precision, 10**type_.precision - 1


def _range(type_: ValueType, low: int, high: int) -> RangeSet:
    """The one range between two unscaled numbers."""
    return RangeSet(type_, codes_of_unscaled(type_, [low]), codes_of_unscaled(type_, [high]))


def _shared(source: ValueType, column: ValueType) -> RangeSet:
    """The values of `source` within the limits of both types."""
    shift = source.scale - column.scale
    least, greatest = _limits(column)
    low, high = _times_power(least, shift, up=True), _times_power(greatest, shift, up=False)
    least, greatest = _limits(source)
    return _range(source, max(low, least), min(high, greatest))


def _rescaled(ends: Codes, source: ValueType, column: ValueType, *, up: bool) -> Codes:
    """Codes of `source` as codes of `column`, rounded up or down where that has fewer digits after the point."""
    shift = column.scale - source.scale
    if isinstance(ends, ByteStrings) or column.physical is Physical.BYTES:
        return _rescaled_in_blocks(ends, source, column, up=up)
    if shift >= 0:
        return np.asarray(ends * 10**shift)
    # Ceiling division without negating the least int64.
    return np.asarray(ends // 10**-shift + (ends % 10**-shift != 0 if up else 0))


def _rescaled_in_blocks(ends: Codes, source: ValueType, column: ValueType, *, up: bool) -> Codes:
    """Wide decimals go through Python's integers, a block at a time so that no object outlives its block."""
    shift = column.scale - source.scale
    parts: list[Codes] = []
    for begin in range(0, len(ends), BLOCK):
        block = ends.take(np.arange(begin, min(begin + BLOCK, len(ends))))
        unscaled = (code.unscaled_of(source, block[index]) for index in range(len(block)))
        parts.append(codes_of_unscaled(column, [_times_power(value, shift, up=up) for value in unscaled]))
    return code.concat(column, parts)


def _times_power(value: int, shift: int, *, up: bool) -> int:
    if shift >= 0:
        return int(value * 10**shift)
    return int(-(-value // 10**-shift) if up else value // 10**-shift)


def codes_of_unscaled(type_: ValueType, unscaled: list[int]) -> Codes:
    """Codes of unscaled numbers that the type can hold."""
    if type_.physical is Physical.INT64:
        return np.array(unscaled, np.int64)
    return ByteStrings.of(code.long_decimal_code(value) for value in unscaled)
