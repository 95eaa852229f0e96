"""`coerce`: from a domain of keys to the domain of column values that Spark's `=` can match with them.

The result is a superset: keys that provably match no value are dropped, and ranges are widened where rounding or a time
zone matters. `Coerced.is_exact` says that each value of the result has a matching key.

Spark compares a date as its midnight, and converts a date or a `timestamp_ntz` to an instant (`timestamp`) in the time
zone of the session. Ranges are widened by the largest offset, so the result holds for every time zone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from pruning.errors import InvalidKeysError
from pruning.reasons import Reason, ReasonCode
from pruning.values.byte_strings import IntArray
from pruning.values.domain import Domain
from pruning.values.encoding import GREATEST, LEAST
from pruning.values.numeric_coercion import (
    common_decimal_digits,
    float_to_float,
    float_to_number,
    number_to_float,
    number_to_number,
    representable,
)
from pruning.values.ranges import RangeSet
from pruning.values.types import DECIMAL_DIGITS, ValueType


@dataclass(frozen=True, slots=True)
class Coerced:
    """A domain in the column's type; `is_exact` if each of its values matches a key."""

    domain: Domain
    is_exact: bool


def coerce(keys: Domain, column: ValueType, subject: str) -> Coerced | Reason:
    """The values of type `column` that can equal `keys`; a `Reason` if no sound answer is known.

    `InvalidKeysError` for types of different kinds: Spark refuses to compare them, or casts the column, whose
    statistics then say nothing. `subject` names the column in messages.

    >>> int_, bigint = ValueType("int"), ValueType("bigint")
    >>> print(coerce(Domain.of(bigint, 7, 3000000000), int_, "`sk`").domain)
    {7}
    """
    key_type = keys.type
    if key_type == column:
        return Coerced(keys, is_exact=True)
    if key_type.is_exact_number and column.is_exact_number and common_decimal_digits(key_type, column) > DECIMAL_DIGITS:
        return Reason(ReasonCode.INEXACT_CAST, subject, f"{key_type} and {column} have no common decimal type")
    # An open end of a range means the least or greatest value of the keys' type.
    ranges, is_exact = _matches(keys.ranges.intersect(representable(key_type)), column, subject)
    return Coerced(Domain(ranges, keys.null, keys.nan and column.is_float), is_exact)


def _matches(keys: RangeSet, column: ValueType, subject: str) -> tuple[RangeSet, bool]:
    key_type = keys.type
    match (key_type, column):
        case _ if key_type.is_exact_number and column.is_exact_number:
            return number_to_number(keys, column)
        case _ if key_type.is_exact_number and column.is_float:
            return number_to_float(keys, column)
        case _ if key_type.is_float and column.is_exact_number:
            return float_to_number(keys, column)
        case _ if key_type.is_float and column.is_float:
            return float_to_float(keys, column)
        case _ if key_type.name in MOMENTS and column.name in MOMENTS:
            return moment_to_moment(keys, column)
        case _:
            msg = (
                f"Cannot compare keys of {key_type} with column {subject} of {column}: cast the keys to {column} first"
            )
            raise InvalidKeysError(msg)


DAY_MICROS = 86_400_000_000
# The largest offset from UTC: java.time.ZoneOffset allows 18 hours.
ZONE_MARGIN = 18 * 3_600_000_000
# Spark fails on the midnight of later and earlier days in every time zone, so they match no timestamp.
_LAST_DAY = GREATEST // DAY_MICROS
_Ends: TypeAlias = tuple[IntArray, IntArray]


def moment_to_moment(keys: RangeSet, column: ValueType) -> tuple[RangeSet, bool]:
    """The values of `column` that can equal `keys`; True if each of them equals one."""
    move, is_exact = MOMENTS[keys.type.name][column.name]
    if keys.type.name == "date":
        keys = keys.intersect(RangeSet(keys.type, np.array([-_LAST_DAY]), np.array([_LAST_DAY])))
    lows, highs = move(np.asarray(keys.lows), np.asarray(keys.highs))
    # A range of days also covers timestamps between two midnights.
    without_between = keys.is_points or column.name == "date"
    return RangeSet.of_ranges(column, lows, highs), is_exact and without_between


def _in_any_zone(lows: IntArray, highs: IntArray) -> _Ends:
    """The ranges widened by the largest zone offset, within int64."""
    return np.maximum(lows, LEAST + ZONE_MARGIN) - ZONE_MARGIN, np.minimum(highs, GREATEST - ZONE_MARGIN) + ZONE_MARGIN


def _midnights(lows: IntArray, highs: IntArray) -> _Ends:
    return lows * DAY_MICROS, highs * DAY_MICROS


def _days(lows: IntArray, highs: IntArray) -> _Ends:
    """The days whose midnight lies between the ends."""
    return lows // DAY_MICROS + (lows % DAY_MICROS != 0), highs // DAY_MICROS


def _midnights_in_any_zone(lows: IntArray, highs: IntArray) -> _Ends:
    return _in_any_zone(*_midnights(lows, highs))


def _days_in_any_zone(lows: IntArray, highs: IntArray) -> _Ends:
    return _days(*_in_any_zone(lows, highs))


MOMENTS: dict[str, dict[str, tuple[Callable[[IntArray, IntArray], _Ends], bool]]] = {
    "date": {"timestamp_ntz": (_midnights, True), "timestamp": (_midnights_in_any_zone, False)},
    "timestamp_ntz": {"date": (_days, True), "timestamp": (_in_any_zone, False)},
    "timestamp": {"date": (_days_in_any_zone, False), "timestamp_ntz": (_in_any_zone, False)},
}
