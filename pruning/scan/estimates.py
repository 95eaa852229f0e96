"""Estimates for a row filter: the share of rows that pass, the bytes that a predicate opens, the size of its code.

- The share of rows follows from the density of keys in each container.
- For a predicate the reader opens every dictionary and page index of the column. This costs little beside large row
  groups; with small row groups it pays only where few rows match. A reader skips by the span of a long IN list alone,
  so such a list does not pay where its span covers nearly all rows.
- Spark generates one Java method for the rows of a stage, and the JVM never compiles a method of more than 8,000 bytes.
  With 64 ranges, three million rows took 8.5 s in an interpreted method and 0.8 s in a compiled one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pruning.limits import LIMITS, Limits
from pruning.scan.statistics import ColumnStatistics, Containers
from pruning.values.byte_strings import IntArray
from pruning.values.domain import Domain
from pruning.values.ranges import BoolArray, Intervals, RangeSet
from pruning.values.types import Physical

FloatArray = npt.NDArray[np.float64]

_VALUE, _LONG_VALUE = 4, 16
# Parquet writers give up a dictionary above this size.
_LARGEST_DICTIONARY = 1 << 20


def pass_ratio(column: ColumnStatistics, rows: IntArray, kept: BoolArray, domain: Domain) -> float:
    """The expected share, 0 to 1, of the rows in `kept` containers whose value lies in `domain`.

    Values are assumed to be spread evenly between a container's bounds. A container without bounds or without a row
    count counts as passing whole, so an error makes a filter look less useful than it is.
    """
    chosen = np.flatnonzero(kept)
    if len(chosen) == 0:
        return 1.0
    part = column.take(chosen)
    keys, (lows, highs), known = part.against(domain.ranges)
    weights = np.maximum(rows[chosen], 1).astype(np.float64)
    if part.type.has_density and known.any():
        keys = _within(keys, lows[known].min(), highs[known].max())
        before = _keys_before(keys)
        shares = _keys_up_to(keys, before, highs) - _keys_up_to(keys, before, lows, including=False)
        shares /= _width(lows, highs)
    else:
        shares = _ranges_between(keys, lows, highs) / weights
    shares = np.where(known, np.clip(shares, 0.0, 1.0), 1.0)
    return float(np.average(shares, weights=weights))


def span_ratio(column: ColumnStatistics, rows: IntArray, kept: BoolArray, domain: Domain) -> float:
    """The expected share, 0 to 1, of the rows in `kept` containers that lie within the span of `domain`.

    Bytes have no density: a container of bytes counts whole unless a known bound lies outside of the span.
    """
    span = Domain(domain.ranges.span())
    if column.type.has_density or span.is_none:
        return pass_ratio(column, rows, kept, span)
    chosen = np.flatnonzero(kept)
    if len(chosen) == 0:
        return 1.0
    part = column.take(chosen)
    (least, greatest), (lows, highs), known = part.against(span.ranges)
    inside = ~known | ((least[0] <= lows) & (highs <= greatest[-1]))
    return float(np.average(inside, weights=np.maximum(rows[chosen], 1)))


def dictionary_bytes(column: ColumnStatistics, rows: IntArray) -> IntArray:
    """An estimate of the most bytes that the dictionary of each container of `rows` rows takes."""
    distinct = rows.astype(np.float64)
    if column.type.has_density:
        _, (lows, highs), _ = column.against(RangeSet.none(column.type))
        distinct = np.minimum(distinct, _width(lows, highs))
    width = _LONG_VALUE if column.type.physical is Physical.BYTES else _VALUE
    return np.minimum(distinct * width, _LARGEST_DICTIONARY).astype(np.int64)


def _width(lows: IntArray, highs: IntArray) -> FloatArray:
    return highs.astype(np.float64) - lows.astype(np.float64) + 1


def _within(keys: Intervals, least: np.int64, greatest: np.int64) -> Intervals:
    """The keys cut to two ends: beside an unbounded end, differences of floats would lose all precision."""
    inside = slice(int(np.searchsorted(keys[1], least, "left")), int(np.searchsorted(keys[0], greatest, "right")))
    lows, highs = keys[0][inside], keys[1][inside]
    if keys[0] is keys[1]:
        return lows, lows
    if len(lows) == 0 or (lows[0] >= least and highs[-1] <= greatest):
        return lows, highs
    return np.maximum(lows, least), np.minimum(highs, greatest)


def _keys_before(keys: Intervals) -> FloatArray | None:
    """The number of key values before each interval, then of all; None for single values, whose index is the number."""
    if keys[0] is keys[1]:
        return None
    before = np.zeros(len(keys[0]) + 1)
    # There may be millions of keys, so each step works in place.
    before[1:] = keys[1]
    before[1:] -= keys[0]
    before[1:] += 1
    return np.cumsum(before, out=before)


def _keys_up_to(keys: Intervals, before: FloatArray | None, points: IntArray, *, including: bool = True) -> FloatArray:
    """The number of key values at or below each point; strictly below it unless `including`."""
    lows, highs = keys
    place = np.searchsorted(lows, points, "right" if including else "left")
    if before is None or len(lows) == 0:
        return place.astype(np.float64)
    inside = np.maximum(place - 1, 0)
    reached = np.minimum(points, highs[inside]).astype(np.float64) - lows[inside].astype(np.float64)
    at_end = reached + (1.0 if including else 0.0)
    partial = np.where(including | (points <= highs[inside]), at_end, _width(lows[inside], highs[inside]))
    return np.where(place == 0, 0.0, before[inside] + partial)


def _ranges_between(keys: Intervals, lows: IntArray, highs: IntArray) -> FloatArray:
    reaching = np.searchsorted(keys[0], highs, "right") - np.searchsorted(keys[1], lows, "left")
    return reaching.astype(np.float64)


# The default of `spark.sql.parquet.pushdown.inFilterThreshold`.
_LOOKED_UP = 10
# A dictionary and a page index each need a separate read, however small they are.
_LEAST_READ = 2 * 4096


def list_spans_nearly_all(
    column: ColumnStatistics, containers: Containers, kept: BoolArray, domain: Domain, limits: Limits = LIMITS
) -> bool:
    """True if an IN list of the values of `domain` is long and its span covers nearly all rows of kept containers."""
    if (domain.ranges.point_count() or 0) <= _LOOKED_UP:
        return False
    return span_ratio(column, containers.rows, kept, domain) >= limits.list_span


def predicate_pays(
    column: ColumnStatistics, containers: Containers, kept: BoolArray, ratio: float, limits: Limits = LIMITS
) -> bool:
    """True if a predicate makes the reader open few extra bytes, or few rows match; `ratio` is the expected share."""
    rows = np.maximum(containers.rows[kept], 1)
    if len(rows) == 0 or ratio * float(rows.mean()) < limits.few_matches:
        return True
    looked_at = dictionary_bytes(column.take(np.flatnonzero(kept)), rows) + _LEAST_READ
    return int(looked_at.sum()) <= limits.looked_at_share * int(containers.sizes[kept].sum())


# Code bytes of the two comparisons of a range, of one list value in a `switch`, and of a list compiled to a set.
_RANGE, _VALUE_BYTES, _SET = 75, 16, 100
# The default of `spark.sql.optimizer.inSetSwitchThreshold`.
_SWITCH_THRESHOLD = 400
_SWITCHED = frozenset({"tinyint", "smallint", "int", "date"})


def fits_codegen_limit(ranges: int, listed: Domain | None = None, limits: Limits = LIMITS) -> bool:
    """True if the code of a stage has room for `ranges` ranges and an IN list of the values of `listed`."""
    return ranges * _RANGE + (0 if listed is None else _list(listed)) <= limits.method_bytes


def _list(listed: Domain) -> int:
    values = listed.ranges.point_count() or 0
    return values * _VALUE_BYTES if listed.type.name in _SWITCHED and values <= _SWITCH_THRESHOLD else _SET
