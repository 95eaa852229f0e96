"""Coercion of numeric keys: from integers, decimals and floats to the column values that Spark's `=` matches with them.

- Exact numbers (integers, decimals): Spark compares them exactly, in a decimal wide enough for both.
- An exact number and a float: Spark rounds the exact number to double, or, without ANSI mode, an integer beside a
  single-precision float to single precision. The result covers both roundings.

Ends of ranges on a float column have single precision, because literals of the column's type have.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pruning.values import encoding as code
from pruning.values.byte_strings import ByteStrings, IntArray
from pruning.values.encoding import GREATEST, LEAST, Codes, float_codes, float_values
from pruning.values.ranges import RangeSet
from pruning.values.types import INTEGER_BITS, Physical, ValueType

# The values of the column that can equal a key; True if each of them equals one.
Matches: TypeAlias = tuple[RangeSet, bool]

# Spark's decimal for each integer type, when one meets a decimal.
_INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
# Python integers exist for one block at a time, so that their memory stays small beside the arrays.
BLOCK = 1 << 16


def common_decimal_digits(key_type: ValueType, column: ValueType) -> int:
    """Digits of the decimal that holds every value of two exact number types."""
    whole = max(_digits(each) - each.scale for each in (key_type, column))
    return whole + max(key_type.scale, column.scale)


def representable(type_: ValueType) -> RangeSet:
    """Every value of a type; its ranges are closed if the type has a least and a greatest value."""
    if type_.is_exact_number:
        return _range(type_, *_limits(type_))
    if type_.is_float:
        ends = float_codes(np.array([-np.inf, np.inf]))
        return RangeSet(type_, ends[:1], ends[1:])
    return RangeSet.all(type_)


def number_to_number(keys: RangeSet, column: ValueType) -> Matches:
    """Exact keys for an exact column: scaled, without the keys that the column cannot hold."""
    key_type, shift = keys.type, column.scale - keys.type.scale
    inside = keys.intersect(_shared(key_type, column))
    if shift == 0 and key_type.physical is column.physical:
        return RangeSet(column, inside.lows, inside.highs), True
    lows = _rescaled(inside.lows, key_type, column, up=True)
    highs = _rescaled(inside.highs, key_type, column, up=False)
    # A column with more digits holds values between two neighbours of a range.
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
    """The range between two unscaled numbers."""
    return RangeSet(type_, codes_of_unscaled(type_, [low]), codes_of_unscaled(type_, [high]))


def _shared(key_type: ValueType, column: ValueType) -> RangeSet:
    """The values of `key_type` within the limits of both types."""
    shift = key_type.scale - column.scale
    least, greatest = _limits(column)
    low, high = _times_power(least, shift, up=True), _times_power(greatest, shift, up=False)
    least, greatest = _limits(key_type)
    return _range(key_type, max(low, least), min(high, greatest))


def _rescaled(ends: Codes, key_type: ValueType, column: ValueType, *, up: bool) -> Codes:
    """Codes of `key_type` as codes of `column`, rounded up or down if `column` has fewer digits after the point."""
    shift = column.scale - key_type.scale
    if isinstance(ends, ByteStrings) or column.physical is Physical.BYTES:
        return _rescaled_in_blocks(ends, key_type, column, up=up)
    if shift >= 0:
        return np.asarray(ends * 10**shift)
    # Ceiling division without negating the least int64.
    return np.asarray(ends // 10**-shift + (ends % 10**-shift != 0 if up else 0))


def _rescaled_in_blocks(ends: Codes, key_type: ValueType, column: ValueType, *, up: bool) -> Codes:
    """Wide decimals, rescaled as Python integers, one block at a time."""
    shift = column.scale - key_type.scale
    parts: list[Codes] = []
    for begin in range(0, len(ends), BLOCK):
        block = ends.take(np.arange(begin, min(begin + BLOCK, len(ends))))
        unscaled = (code.unscaled_of(key_type, block[index]) for index in range(len(block)))
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


Doubles: TypeAlias = npt.NDArray[np.float64]

# Unscaled numbers with so many digits, and powers of ten up to there, are exact doubles.
_EXACT_DOUBLE_DIGITS = 15
_BEYOND_LONG = 2.0**63
_BEYOND_DECIMAL = 1e39


def number_to_float(keys: RangeSet, column: ValueType) -> Matches:
    """Exact keys for a float column: Spark rounds the key."""
    roundings = [_as_doubles]
    if column.name == "float" and keys.type.is_integer:
        roundings.append(_as_singles)
    lows = [rounded(keys.lows, keys.type) for rounded in roundings]
    highs = [rounded(keys.highs, keys.type) for rounded in roundings]
    found = _floats_between(np.concatenate(lows), np.concatenate(highs), column)
    return found, keys.is_points and np.array_equal(lows[0], lows[-1])


def float_to_number(keys: RangeSet, column: ValueType) -> Matches:
    """Float keys for an exact column: Spark rounds the column's value, so values between neighbours may match."""
    precision = np.float32 if keys.type.name == "float" else np.float64
    with np.errstate(over="ignore"):
        lows, highs = (float_values(np.asarray(end)).astype(precision) for end in (keys.lows, keys.highs))
        below, above = np.nextafter(lows, precision(-np.inf)), np.nextafter(highs, precision(np.inf))
    if not column.is_integer:
        ends = [_as_decimals(below, column, up=True), _as_decimals(above, column, up=False)]
        return RangeSet.of_ranges(column, *ends).intersect(representable(column)), False
    # Every integer below this limit is an exact float, so none is rounded.
    limit = 2.0 ** (np.finfo(precision).nmant + 1)
    unrounded = np.maximum(np.abs(lows), np.abs(highs)) < limit
    first = np.ceil(np.where(unrounded, lows, below).astype(np.float64))
    last = np.floor(np.where(unrounded, highs, above).astype(np.float64))
    reached = (first < _BEYOND_LONG) & (last >= -_BEYOND_LONG)
    found = RangeSet.of_ranges(column, _saturated(first[reached]), _saturated(last[reached]))
    return found.intersect(representable(column)), keys.is_points and bool(unrounded[reached].all())


def float_to_float(keys: RangeSet, column: ValueType) -> Matches:
    """Float keys for a float column: a double that no single-precision value equals matches no value of a float."""
    if column.name == "double":
        return RangeSet(column, keys.lows, keys.highs), keys.is_points
    lows, highs = (float_values(np.asarray(end)) for end in (keys.lows, keys.highs))
    return _floats_between(lows, highs, column), True


def _floats_between(lows: Doubles, highs: Doubles, column: ValueType) -> RangeSet:
    """The column's floats within ranges of doubles: ends that are no value of the column move inward."""
    if column.name == "float":
        lows, highs = _to_single(lows, up=True), _to_single(highs, up=False)
    return RangeSet.of_ranges(column, float_codes(lows), float_codes(highs))


def _to_single(ends: Doubles, *, up: bool) -> Doubles:
    with np.errstate(over="ignore"):
        singles = ends.astype(np.float32)
        inward = np.nextafter(singles, np.float32(np.inf if up else -np.inf))
    is_outside = singles < ends if up else singles > ends
    return np.where(is_outside, inward, singles).astype(np.float64)


def _as_doubles(ends: Codes, type_: ValueType) -> Doubles:
    if isinstance(ends, np.ndarray) and (type_.scale == 0 or type_.precision <= _EXACT_DOUBLE_DIGITS):
        return np.asarray(ends / float(10**type_.scale), np.float64)
    # Division of Python integers rounds once, whatever their size.
    unit = 10**type_.scale
    values = (code.unscaled_of(type_, ends[index]) / unit for index in range(len(ends)))
    return np.fromiter(values, np.float64, len(ends))


def _as_singles(ends: Codes, type_: ValueType) -> Doubles:  # noqa: ARG001  the shape of `_as_doubles`
    """Integers rounded once to single precision; rounding to double first could break a tie the other way."""
    return np.asarray(ends).astype(np.float32).astype(np.float64)


def _saturated(whole: Doubles) -> IntArray:
    """Whole doubles as int64; larger ones become the ends of int64."""
    inside = (whole >= -_BEYOND_LONG) & (whole < _BEYOND_LONG)
    return np.where(inside, np.where(inside, whole, 0.0).astype(np.int64), np.where(whole < 0, LEAST, GREATEST))


def _as_decimals(ends: npt.NDArray[np.floating], column: ValueType, *, up: bool) -> Codes:
    """Floats as codes of a decimal type, rounded up or down; one step beyond the type's range for larger ones."""
    unit, beyond = 10**column.scale, 10**column.precision
    parts: list[Codes] = []
    for begin in range(0, len(ends), BLOCK):
        block = np.clip(ends[begin : begin + BLOCK].astype(np.float64), -_BEYOND_DECIMAL, _BEYOND_DECIMAL)
        ratios = (value.as_integer_ratio() for value in block.tolist())
        scaled = (-(-top * unit // bottom) if up else top * unit // bottom for top, bottom in ratios)
        parts.append(codes_of_unscaled(column, [max(min(value, beyond), -beyond) for value in scaled]))
    return code.concat(column, parts)
