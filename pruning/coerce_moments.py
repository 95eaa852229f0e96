"""Keys that are dates or timestamps -> the values of another such type that Spark's `=` matches with them.

Spark turns a date into its midnight, and where one side is an instant (`timestamp`) it reads the other by the
clock of the session's zone. Any zone is allowed for, so the answer holds whatever zone is set at run time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from pruning.byte_strings import IntArray
from pruning.codes import GREATEST, LEAST
from pruning.ranges import RangeSet
from pruning.value_type import ValueType

_DAY = 86_400_000_000
# No zone is further from UTC: java.time.ZoneOffset allows 18 hours.
_ZONE_MARGIN = 18 * 3_600_000_000
# Spark fails on the midnight of a day further out, in any zone, so such a day matches no timestamp.
_LAST_DAY = GREATEST // _DAY
_Ends: TypeAlias = tuple[IntArray, IntArray]


def moment_to_moment(keys: RangeSet, column: ValueType) -> tuple[RangeSet, bool]:
    """The values of `column` that can equal `keys`, and whether each of them does."""
    move, is_exact = MOMENTS[keys.type.name][column.name]
    if keys.type.name == "date":
        keys = keys.intersect(RangeSet(keys.type, np.array([-_LAST_DAY]), np.array([_LAST_DAY])))
    lows, highs = move(np.asarray(keys.lows), np.asarray(keys.highs))
    # Between the midnights of two days lie timestamps that are no midnight.
    without_between = keys.is_points or column.name == "date"
    return RangeSet.of_ranges(column, lows, highs), is_exact and without_between


def _in_any_zone(lows: IntArray, highs: IntArray) -> _Ends:
    """Ends moved outward by the zone margin, stopping at the ends of int64."""
    return np.maximum(lows, LEAST + _ZONE_MARGIN) - _ZONE_MARGIN, np.minimum(
        highs, GREATEST - _ZONE_MARGIN
    ) + _ZONE_MARGIN


def _midnights(lows: IntArray, highs: IntArray) -> _Ends:
    return lows * _DAY, highs * _DAY


def _days(lows: IntArray, highs: IntArray) -> _Ends:
    """The days whose midnight lies between the ends."""
    return lows // _DAY + (lows % _DAY != 0), highs // _DAY


def _midnights_in_any_zone(lows: IntArray, highs: IntArray) -> _Ends:
    return _in_any_zone(*_midnights(lows, highs))


def _days_in_any_zone(lows: IntArray, highs: IntArray) -> _Ends:
    return _days(*_in_any_zone(lows, highs))


MOMENTS: dict[str, dict[str, tuple[Callable[[IntArray, IntArray], _Ends], bool]]] = {
    "date": {"timestamp_ntz": (_midnights, True), "timestamp": (_midnights_in_any_zone, False)},
    "timestamp_ntz": {"date": (_days, True), "timestamp": (_in_any_zone, False)},
    "timestamp": {"date": (_days_in_any_zone, False), "timestamp_ntz": (_in_any_zone, False)},
}
