"""What gaps between keys are worth inside row groups: pages that are skipped where rows lie in the order of a column.

Bounds of pages are not read here, so this is a guess, and what comes of it is a longer predicate at worst.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pruning import intervals
from pruning.byte_strings import IntArray
from pruning.intervals import Intervals
from pruning.ranges import RangeSet
from pruning.statistics import ColumnStatistics

FloatArray = npt.NDArray[np.float64]

# `parquet.page.row.count.limit`, as it is by default.
_ROWS_OF_A_PAGE = 20_000
# Row groups that each span a larger part of all values have hardly been sorted.
_LARGEST_SPAN = 0.25
# A gap for less of what is read makes each row's test longer for next to nothing.
_LEAST_SHARE = 1 / 512
# Numbers of comparisons that take no time to speak of; of more keys, hardly a gap is as wide as a page.
_MOST_COMPARED = 1 << 20


def page_gaps(
    ranges: RangeSet, column: ColumnStatistics, weights: IntArray, rows: IntArray
) -> tuple[IntArray, IntArray]:
    """The gaps that spare pages, ascending, by the range behind each, and the bytes; none among too many to look at.

    `weights` are the bytes of each row group, `rows` its rows.
    """
    none = np.zeros(0, np.int64), np.zeros(0, np.int64)
    if not column.type.has_density or len(ranges) < 2 or len(ranges) * len(weights) > _MOST_COMPARED:
        return none
    keys, (lows, highs), known = column.against(ranges)
    has_pages = (rows > _ROWS_OF_A_PAGE) & (weights > 0)
    at = np.flatnonzero(known & has_pages & intervals.overlap(keys, lows, highs))
    if len(at) == 0:
        return none
    first, last = lows[at].astype(np.float64), highs[at].astype(np.float64)
    width, span = last - first + 1, float(highs[known].max()) - float(lows[known].min()) + 1
    at_least, is_sorted = weights.sum() * _LEAST_SHARE, width <= _LARGEST_SPAN * span
    spared = np.maximum(_shared(keys, first, last) - width * (_ROWS_OF_A_PAGE / rows[at]), 0.0)
    worth = (spared * (is_sorted * weights[at] / width)).sum(axis=1)
    gaps = np.flatnonzero((worth >= at_least) & (worth >= 1.0))
    return gaps + 1, worth[gaps].astype(np.int64)


def _shared(keys: Intervals, first: FloatArray, last: FloatArray) -> FloatArray:
    """For each gap between two keys, and each row group: how many values lie in both."""
    after, before = keys[1][:-1].astype(np.float64), keys[0][1:].astype(np.float64)
    inside: FloatArray = np.minimum.outer(before - 1, last) - np.maximum.outer(after + 1, first) + 1
    return np.maximum(inside, 0.0)
