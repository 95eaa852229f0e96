"""Keys of one number type -> the values of another that Spark's `=` matches with them.

Exact numbers (integers, decimals) compare exactly, in a decimal wide enough for both. Beside a float, the exact
side is rounded to double; outside of ANSI mode an integer beside a single-precision float is rounded to single
precision instead, so both roundings are allowed for.

Every function takes the keys and the column's type, and gives the column's values that can equal a key and
whether each of them does.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pruning import codes as code
from pruning.byte_strings import ByteStrings, IntArray
from pruning.codes import GREATEST, LEAST, Codes, float_codes, float_values
from pruning.ranges import RangeSet
from pruning.value_type import INTEGER_BITS, Physical, ValueType

Matches: TypeAlias = tuple[RangeSet, bool]
Doubles: TypeAlias = npt.NDArray[np.float64]

# Spark's decimal for each integer type, when one meets a decimal.
_INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
# Unscaled numbers of so many digits are doubles, as is each power of ten up to there.
_EXACT_DOUBLE_DIGITS = 15
_BEYOND_LONG = 2.0**63
_BEYOND_DECIMAL = 1e39
_BLOCK = 1 << 16


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


def number_to_float(keys: RangeSet, column: ValueType) -> Matches:
    """Exact numbers against floats: the key is rounded."""
    roundings = [_as_doubles]
    if column.name == "float" and keys.type.is_integer:
        roundings.append(_as_singles)
    lows = [float_codes(rounded(keys.lows, keys.type)) for rounded in roundings]
    highs = [float_codes(rounded(keys.highs, keys.type)) for rounded in roundings]
    found = RangeSet.of_ranges(column, np.concatenate(lows), np.concatenate(highs))
    return found, keys.is_points and np.array_equal(lows[0], lows[-1])


def float_to_number(keys: RangeSet, column: ValueType) -> Matches:
    """Floats against exact numbers: the column's value is rounded, so what lies between neighbours may match."""
    precision = np.float32 if keys.type.name == "float" else np.float64
    with np.errstate(over="ignore"):
        lows, highs = (float_values(np.asarray(end)).astype(precision) for end in (keys.lows, keys.highs))
        below, above = np.nextafter(lows, precision(-np.inf)), np.nextafter(highs, precision(np.inf))
    if not column.is_integer:
        ends = [_as_decimals(below, column, up=True), _as_decimals(above, column, up=False)]
        return RangeSet.of_ranges(column, *ends).intersect(representable(column)), False
    # Below this limit every integer is a float, so none is rounded.
    limit = 2.0 ** (np.finfo(precision).nmant + 1)
    unrounded = np.maximum(np.abs(lows), np.abs(highs)) < limit
    first = np.ceil(np.where(unrounded, lows, below).astype(np.float64))
    last = np.floor(np.where(unrounded, highs, above).astype(np.float64))
    reached = (first < _BEYOND_LONG) & (last >= -_BEYOND_LONG)
    found = RangeSet.of_ranges(column, _saturated(first[reached]), _saturated(last[reached]))
    return found.intersect(representable(column)), keys.is_points and bool(unrounded[reached].all())


def float_to_float(keys: RangeSet, column: ValueType) -> Matches:
    """Single against double precision: codes are the double's for both, and a double that is no single drops out."""
    if column.name == "double" or not keys.is_points:
        return RangeSet(column, keys.lows, keys.highs), column.name == "float" or keys.is_points
    doubles = float_values(np.asarray(keys.lows))
    with np.errstate(over="ignore"):
        is_single = doubles.astype(np.float32).astype(np.float64) == doubles
    points = np.asarray(keys.lows)[is_single]
    return RangeSet(column, points, points), True


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
    return RangeSet(type_, _codes_of(type_, [low]), _codes_of(type_, [high]))


def _shared(source: ValueType, column: ValueType) -> RangeSet:
    """The values of `source` within the limits of both types."""
    low, high = (
        _times_power(end, source.scale - column.scale, up=up)
        for end, up in zip(_limits(column), (True, False), strict=True)
    )
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
    for begin in range(0, len(ends), _BLOCK):
        block = ends.take(np.arange(begin, min(begin + _BLOCK, len(ends))))
        unscaled = (code.unscaled_of(source, block[index]) for index in range(len(block)))
        parts.append(_codes_of(column, [_times_power(value, shift, up=up) for value in unscaled]))
    return code.concat(column, parts)


def _times_power(value: int, shift: int, *, up: bool) -> int:
    if shift >= 0:
        return int(value * 10**shift)
    return int(-(-value // 10**-shift) if up else value // 10**-shift)


def _codes_of(type_: ValueType, unscaled: list[int]) -> Codes:
    if type_.physical is Physical.INT64:
        return np.array(unscaled, np.int64)
    return ByteStrings.of(code.long_decimal_code(value) for value in unscaled)


def _as_doubles(ends: Codes, type_: ValueType) -> Doubles:
    if isinstance(ends, np.ndarray) and (type_.scale == 0 or type_.precision <= _EXACT_DOUBLE_DIGITS):
        return np.asarray(ends / float(10**type_.scale), np.float64)
    # Python divides integers of any size with one rounding.
    unit = 10**type_.scale
    values = (code.unscaled_of(type_, ends[index]) / unit for index in range(len(ends)))
    return np.fromiter(values, np.float64, len(ends))


def _as_singles(ends: Codes, type_: ValueType) -> Doubles:  # noqa: ARG001  the shape of `_as_doubles`
    """Integers rounded once, straight to single precision: by way of double the tie can fall to the other side."""
    return np.asarray(ends).astype(np.float32).astype(np.float64)


def _saturated(whole: Doubles) -> IntArray:
    """Whole doubles as int64, those beyond it as its ends."""
    inside = (whole >= -_BEYOND_LONG) & (whole < _BEYOND_LONG)
    return np.where(inside, np.where(inside, whole, 0.0).astype(np.int64), np.where(whole < 0, LEAST, GREATEST))


def _as_decimals(ends: npt.NDArray[np.floating], column: ValueType, *, up: bool) -> Codes:
    """Floats as codes of a decimal type, rounded up or down; one step outside where it cannot hold them."""
    unit, beyond = 10**column.scale, 10**column.precision
    parts: list[Codes] = []
    for begin in range(0, len(ends), _BLOCK):
        block = np.clip(ends[begin : begin + _BLOCK].astype(np.float64), -_BEYOND_DECIMAL, _BEYOND_DECIMAL)
        ratios = (value.as_integer_ratio() for value in block.tolist())
        scaled = (-(-top * unit // bottom) if up else top * unit // bottom for top, bottom in ratios)
        parts.append(_codes_of(column, [max(min(value, beyond), -beyond) for value in scaled]))
    return code.concat(column, parts)
