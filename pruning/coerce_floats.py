"""Keys or columns that are floats -> the column values that Spark's `=` matches with the keys.

Beside a float, an exact number is rounded to double; outside of ANSI mode an integer beside a single-precision
float is rounded to single precision instead, so both roundings are allowed for. Ends of a float column are always
single precision, since no other value has a literal of the column's type.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pruning import codes as code
from pruning.byte_strings import IntArray
from pruning.codes import GREATEST, LEAST, Codes, float_codes, float_values
from pruning.coerce_numbers import BLOCK, Matches, codes_of_unscaled, representable
from pruning.ranges import RangeSet
from pruning.value_type import ValueType

Doubles: TypeAlias = npt.NDArray[np.float64]

# Unscaled numbers of so many digits are doubles, as is each power of ten up to there.
_EXACT_DOUBLE_DIGITS = 15
_BEYOND_LONG = 2.0**63
_BEYOND_DECIMAL = 1e39


def number_to_float(keys: RangeSet, column: ValueType) -> Matches:
    """Exact numbers against floats: the key is rounded."""
    roundings = [_as_doubles]
    if column.name == "float" and keys.type.is_integer:
        roundings.append(_as_singles)
    lows = [rounded(keys.lows, keys.type) for rounded in roundings]
    highs = [rounded(keys.highs, keys.type) for rounded in roundings]
    found = _floats_between(np.concatenate(lows), np.concatenate(highs), column)
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
    """Single against double precision: the single is widened, so a double that is no single drops out."""
    if column.name == "double":
        return RangeSet(column, keys.lows, keys.highs), keys.is_points
    lows, highs = (float_values(np.asarray(end)) for end in (keys.lows, keys.highs))
    return _floats_between(lows, highs, column), True


def _floats_between(lows: Doubles, highs: Doubles, column: ValueType) -> RangeSet:
    """The column's floats between each pair of doubles: ends that are no value of the column move inward."""
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
    for begin in range(0, len(ends), BLOCK):
        block = np.clip(ends[begin : begin + BLOCK].astype(np.float64), -_BEYOND_DECIMAL, _BEYOND_DECIMAL)
        ratios = (value.as_integer_ratio() for value in block.tolist())
        scaled = (-(-top * unit // bottom) if up else top * unit // bottom for top, bottom in ratios)
        parts.append(codes_of_unscaled(column, [max(min(value, beyond), -beyond) for value in scaled]))
    return code.concat(column, parts)
