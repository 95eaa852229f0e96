"""A domain of keys in their own type -> the domain of column values that Spark's `=` can match with them.

The answer is a superset: what provably cannot match is dropped, and where rounding or a time zone comes in, ends
move outward. `Coerced.is_exact` says that the answer holds no value without a matching key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pruning import codes as code
from pruning.byte_strings import ByteStrings, IntArray
from pruning.codes import GREATEST, LEAST, Codes, float_codes, float_values
from pruning.domain import Domain
from pruning.errors import InvalidKeysError
from pruning.ranges import RangeSet
from pruning.reasons import Reason, ReasonCode
from pruning.value_type import INTEGER_BITS, LONG_DECIMAL_DIGITS, Physical, ValueType

_DAY = 86_400_000_000
# No zone is further from UTC: java.time.ZoneOffset allows 18 hours.
_ZONE_MARGIN = 18 * 3_600_000_000
_MOST_DIGITS = 38
_BLOCK = 1 << 16
_Ends = tuple[Codes, Codes]


@dataclass(frozen=True, slots=True)
class Coerced:
    """The domain in the column's type, and whether each of its values matches a key."""

    domain: Domain
    is_exact: bool


def coerce(keys: Domain, column: ValueType, subject: str) -> Coerced | Reason:
    """What values of a `column` type can equal `keys`; a `Reason` where that is not known soundly.

    `InvalidKeysError` where Spark itself would not compare the two types without an explicit cast.
    `subject` names the column in messages.

    >>> int_, bigint = ValueType("int"), ValueType("bigint")
    >>> print(coerce(Domain.of(bigint, 7, 3000000000), int_, "`sk`").domain)
    {7}
    """
    source = keys.type
    if source == column:
        return Coerced(keys, is_exact=True)
    nan = keys.nan and column.is_float
    match (source, column):
        case _ if source.is_exact_number and column.is_exact_number:
            return _number_to_number(keys, column, subject)
        case _ if source.is_float and column.is_float:
            return Coerced(Domain(_float_to_float(keys.ranges, column), keys.null, nan), is_exact=True)
        case _ if source.is_exact_number and column.is_float:
            ends = _number_ends_as_float(keys.ranges)
            return Coerced(Domain(RangeSet.of_ranges(column, *ends), keys.null), is_exact=False)
        case _ if source.is_float and column.is_exact_number:
            return Coerced(Domain(_float_to_number(keys.ranges, column), keys.null), is_exact=False)
        case _ if source.name in _MOMENTS and column.name in _MOMENTS:
            ends, exact = _MOMENTS[source.name][column.name](keys.ranges)
            return Coerced(Domain(RangeSet.of_ranges(column, *ends), keys.null), exact)
        case _:
            msg = f"Cannot compare keys of {source} with column {subject} of {column}: cast the keys to {column} first"
            raise InvalidKeysError(msg)


def _number_to_number(keys: Domain, column: ValueType, subject: str) -> Coerced | Reason:
    source = keys.type
    whole = max(_digits(source) - source.scale, _digits(column) - column.scale)
    if whole + max(source.scale, column.scale) > _MOST_DIGITS:
        return Reason(ReasonCode.INEXACT_CAST, subject, f"{source} and {column} have no common decimal type")
    shift = column.scale - source.scale
    if source.physical is Physical.INT64 and column.physical is Physical.INT64 and shift == 0:
        ends: _Ends = (keys.ranges.lows, keys.ranges.highs)
    else:
        ends = _rescaled(keys.ranges, column, shift)
    inside = RangeSet.of_ranges(column, *ends).intersect(_representable(column))
    return Coerced(Domain(inside, keys.null), is_exact=True)


def _digits(type_: ValueType) -> int:
    return type_.precision or {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}[type_.name]


def _representable(type_: ValueType) -> RangeSet:
    """The values that a column of an exact number type can hold."""
    if type_.is_integer:
        most = (1 << (INTEGER_BITS[type_.name] - 1)) - 1
        return RangeSet(type_, np.array([-most - 1]), np.array([most]))
    most = 10**type_.precision - 1
    if type_.physical is Physical.INT64:
        return RangeSet(type_, np.array([-most]), np.array([most]))
    ends = ByteStrings.of([code.long_decimal_code(-most), code.long_decimal_code(most)])
    return RangeSet(type_, ends.take(np.array([0])), ends.take(np.array([1])))


def _rescaled(ranges: RangeSet, column: ValueType, shift: int) -> _Ends:
    """Ends of `ranges` times 10**shift, lows rounded up and highs down; beyond the column's range they are cut."""
    if isinstance(ranges.lows, np.ndarray) and column.physical is Physical.INT64 and shift < 0:
        unit = 10**-shift
        highs = np.asarray(ranges.highs) // unit
        # Ceiling division without negating the least int64.
        lows = ranges.lows // unit + (ranges.lows % unit != 0)
        return lows, highs
    if isinstance(ranges.lows, np.ndarray) and column.physical is Physical.INT64:
        unit = 10 ** min(shift, LONG_DECIMAL_DIGITS)
        low, high = -(-LEAST // unit), GREATEST // unit
        kept = np.flatnonzero((ranges.highs >= low) & (ranges.lows <= high))
        return tuple(np.clip(np.asarray(end)[kept], low, high) * unit for end in (ranges.lows, ranges.highs))  # type: ignore[return-value]
    return tuple(_in_blocks(ranges, end, column, shift, up=up) for end, up in ((ranges.lows, True), (ranges.highs, False)))  # type: ignore[return-value]


def _in_blocks(ranges: RangeSet, ends: Codes, column: ValueType, shift: int, *, up: bool) -> Codes:
    """Wide decimals through Python's integers, a block at a time so that no object outlives its block."""
    most = 10**column.precision if column.precision else 1 << 63
    parts: list[Codes] = []
    for begin in range(0, len(ends), _BLOCK):
        block = ends.take(np.arange(begin, min(begin + _BLOCK, len(ends))))
        unscaled = (code.unscaled_of(ranges.type, block[index]) for index in range(len(block)))
        moved = (_times_power(value, shift, up=up) for value in unscaled)
        # One step outside of the column's range stays outside of it and fits the code.
        clipped = [max(min(value, most), -most - 1) for value in moved]
        if column.physical is Physical.INT64:
            parts.append(np.array([max(min(value, GREATEST), LEAST) for value in clipped], np.int64))
        else:
            parts.append(ByteStrings.of(code.long_decimal_code(value) for value in clipped))
    return code.concat(column, parts)


def _times_power(value: int, shift: int, *, up: bool) -> int:
    if shift >= 0:
        return int(value * 10**shift)
    return int(-(-value // 10**-shift) if up else value // 10**-shift)


def _float_to_float(ranges: RangeSet, column: ValueType) -> RangeSet:
    """Codes are the double's for both; a double that is no float equals none."""
    as_column = RangeSet(column, ranges.lows, ranges.highs)
    if column.name == "double" or ranges.highs is not ranges.lows:
        return as_column
    values = float_values(np.asarray(ranges.lows))
    with np.errstate(over="ignore"):
        same = values.astype(np.float32).astype(np.float64) == values
    points = np.asarray(ranges.lows)[same]
    return RangeSet(column, points, points)


def _number_ends_as_float(ranges: RangeSet) -> _Ends:
    """Spark rounds the key, to double or (outside of ANSI mode, for an integer and a float) to single precision."""
    doubles = [_as_doubles(ranges.type, end) for end in (ranges.lows, ranges.highs)]
    with np.errstate(over="ignore"):
        singles = [end.astype(np.float32).astype(np.float64) for end in doubles]
    lows = float_codes(np.concatenate([doubles[0], singles[0]]))
    highs = float_codes(np.concatenate([doubles[1], singles[1]]))
    return lows, highs


def _as_doubles(type_: ValueType, ends: Codes) -> npt.NDArray[np.float64]:
    if isinstance(ends, np.ndarray) and type_.scale == 0:
        return ends.astype(np.float64)
    unit = 10**type_.scale
    values = (code.unscaled_of(type_, ends[index]) / unit for index in range(len(ends)))
    return np.fromiter(values, np.float64, len(ends))


def _float_to_number(ranges: RangeSet, column: ValueType) -> RangeSet:
    """Spark rounds the column's value: every number between the float's neighbours may round to it."""
    precision = np.float32 if ranges.type.name == "float" else np.float64
    lows, highs = (float_values(np.asarray(end)).astype(precision) for end in (ranges.lows, ranges.highs))
    below, above = np.nextafter(lows, precision(-np.inf)), np.nextafter(highs, precision(np.inf))
    unit, most = 10**column.scale, _greatest_unscaled(column)
    low_codes = [_scaled(value, unit, most, up=True) for value in below.tolist()]
    high_codes = [_scaled(value, unit, most, up=False) for value in above.tolist()]
    exact = column.is_integer and (np.abs(lows) < _whole_limit(precision)) & (np.abs(highs) < _whole_limit(precision))
    if column.is_integer:
        low_codes = [_scaled(v, 1, most, up=True) if e else c for v, e, c in zip(lows.tolist(), exact, low_codes, strict=True)]
        high_codes = [_scaled(v, 1, most, up=False) if e else c for v, e, c in zip(highs.tolist(), exact, high_codes, strict=True)]
    ends = [_codes_of_unscaled(column, each) for each in (low_codes, high_codes)]
    return RangeSet.of_ranges(column, *ends).intersect(_representable(column))


def _whole_limit(precision: type) -> float:
    return 2.0 ** (np.finfo(precision).nmant + 1)


def _greatest_unscaled(column: ValueType) -> int:
    return int(10**column.precision if column.precision else 1 << 63)


def _scaled(value: float, unit: int, most: int, *, up: bool) -> int:
    if value in (float("inf"), float("-inf")):
        return most if value > 0 else -most
    exact = Fraction(value) * unit
    rounded = -(-exact.numerator // exact.denominator) if up else exact.numerator // exact.denominator
    return max(min(rounded, most), -most)


def _codes_of_unscaled(column: ValueType, values: list[int]) -> Codes:
    if column.physical is Physical.INT64:
        return np.array([max(min(value, GREATEST), LEAST) for value in values], np.int64)
    return ByteStrings.of(code.long_decimal_code(value) for value in values)


_Moved = tuple[tuple[IntArray, IntArray], bool]


def _shifted(lows: IntArray, highs: IntArray, margin: int) -> tuple[IntArray, IntArray]:
    """Ends moved outward by `margin` microseconds, stopping at the ends of int64."""
    return np.maximum(lows, LEAST + margin) - margin, np.minimum(highs, GREATEST - margin) + margin


def _midnights(days: IntArray) -> IntArray:
    limit = GREATEST // _DAY
    return np.clip(days, -limit, limit) * _DAY


def _same_moment(ranges: RangeSet) -> _Moved:
    return (np.asarray(ranges.lows), np.asarray(ranges.highs)), True


def _other_clock(ranges: RangeSet) -> _Moved:
    return _shifted(np.asarray(ranges.lows), np.asarray(ranges.highs), _ZONE_MARGIN), False


def _date_to_local(ranges: RangeSet) -> _Moved:
    is_point = ranges.highs is ranges.lows
    return (_midnights(np.asarray(ranges.lows)), _midnights(np.asarray(ranges.highs))), is_point


def _date_to_instant(ranges: RangeSet) -> _Moved:
    (lows, highs), _ = _date_to_local(ranges)
    return _shifted(lows, highs, _ZONE_MARGIN), False


def _local_to_date(ranges: RangeSet) -> _Moved:
    lows, highs = np.asarray(ranges.lows), np.asarray(ranges.highs)
    return (lows // _DAY + (lows % _DAY != 0), highs // _DAY), True


def _instant_to_date(ranges: RangeSet) -> _Moved:
    lows, highs = _shifted(np.asarray(ranges.lows), np.asarray(ranges.highs), _ZONE_MARGIN)
    return (lows // _DAY + (lows % _DAY != 0), highs // _DAY), False


_MOMENTS: dict[str, dict[str, Callable[[RangeSet], _Moved]]] = {
    "date": {"date": _same_moment, "timestamp_ntz": _date_to_local, "timestamp": _date_to_instant},
    "timestamp_ntz": {"date": _local_to_date, "timestamp_ntz": _same_moment, "timestamp": _other_clock},
    "timestamp": {"date": _instant_to_date, "timestamp_ntz": _other_clock, "timestamp": _same_moment},
}
