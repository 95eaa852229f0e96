"""Lossless compaction: the few ranges that skip the same containers as the whole key set.

Sorted keys leave gaps between them. A container can be skipped iff it lies inside one gap, so only gaps that hold a
container, or are likely to hold pages of one, stay open; every other gap is bridged. Under a budget the gaps with most
bytes stay open.

Bounds of pages are not read. The gaps that may hold pages are estimated from row groups in the order of the column; a
wrong estimate only makes a predicate longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pruning.limits import LIMITS, Limits
from pruning.scan.statistics import ColumnStatistics
from pruning.values import ranges as intervals
from pruning.values.byte_strings import IntArray
from pruning.values.ranges import Intervals, RangeSet


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Containers that a range set could skip: their bounds, and the bytes that skipping each saves.

    `rows` are the rows of row groups, whose pages may be skipped, too; None for files. `filled` is the share, 0 to 1,
    of the numbers between keys that are expected to be values of rows.
    """

    column: ColumnStatistics
    weights: IntArray
    rows: IntArray | None = None
    limits: Limits = LIMITS
    filled: float = 1.0


def compact(ranges: RangeSet, evidence: Sequence[Evidence], most: int) -> RangeSet:
    """A superset of `ranges` in at most `most` ranges that skips every weighted container that `ranges` skips.

    Where `most` ranges cannot skip them all, those with most bytes are skipped. The result never skips more than
    `ranges`.
    """
    if most < 1:
        msg = f"Cannot compact to {most} ranges: at least one is needed"
        raise ValueError(msg)
    if len(ranges) <= 1:
        return ranges
    gaps, weights = _held(ranges, evidence)
    best = gaps[np.argsort(weights, kind="stable")[::-1][: most - 1]]
    return ranges.bridged(np.sort(best))


def bridged(ranges: RangeSet, evidence: Sequence[Evidence]) -> RangeSet:
    """A superset of `ranges` that skips the same weighted containers and leaves all gaps with pages open."""
    return ranges if len(ranges) <= 1 else ranges.bridged(_held(ranges, evidence)[0])


def _held(ranges: RangeSet, evidence: Sequence[Evidence]) -> tuple[IntArray, IntArray]:
    """The gaps that hold a container or pages, ascending, and the bytes of each; a gap is the index of the next range.

    There may be many more gaps than containers, so the arrays have no entry for an empty gap.
    """
    found = [_gaps(ranges, each) for each in evidence]
    none = np.zeros(0, np.int64)
    gaps, places = np.unique(np.concatenate([none, *(each[0] for each in found)]), return_inverse=True)
    # Weights stay below 2**53 for anything short of petabytes in one gap; rounding only changes the order.
    weights = np.bincount(places, np.concatenate([none, *(each[1] for each in found)]), len(gaps)).astype(np.int64)
    return gaps, weights


def _gaps(ranges: RangeSet, evidence: Evidence) -> tuple[IntArray, IntArray]:
    """The gap, as the index of the next range, and the weight of each container in a gap and of each gap with pages.

    The gaps before the first and after the last range are left out: they stay open at no cost.
    """
    keys, (lows, highs), _ = evidence.column.against(ranges)
    within = np.flatnonzero(~intervals.overlap(keys, lows, highs) & (evidence.weights > 0))
    gaps = np.searchsorted(keys[1], lows[within], "left")
    is_inner = (gaps > 0) & (gaps < len(ranges))
    whole = gaps[is_inner], evidence.weights[within[is_inner]]
    if evidence.rows is None:
        return whole
    pages = page_index_gaps(ranges, evidence.column, evidence.weights, evidence.rows, evidence.limits, evidence.filled)
    return np.concatenate([whole[0], pages[0]]), np.concatenate([whole[1], pages[1]])


FloatArray = npt.NDArray[np.float64]

# The default of `parquet.page.row.count.limit`.
_ROWS_OF_A_PAGE = 20_000


def page_index_gaps(  # noqa: PLR0913, PLR0917 - what `Evidence` has
    ranges: RangeSet,
    column: ColumnStatistics,
    weights: IntArray,
    rows: IntArray,
    limits: Limits = LIMITS,
    filled: float = 1.0,
) -> tuple[IntArray, IntArray]:
    """The gaps that skip pages, as indices of the next range, ascending, and their bytes; empty for too many gaps.

    `weights` are the bytes of each row group, `rows` its rows; pages lie at the share `filled` of the numbers of a gap.
    """
    none = np.zeros(0, np.int64), np.zeros(0, np.int64)
    if not column.type.has_density or len(ranges) < 2 or len(ranges) * len(weights) > limits.page_comparisons:
        return none
    keys, (lows, highs), known = column.against(ranges)
    has_pages = (rows > _ROWS_OF_A_PAGE) & (weights > 0)
    at = np.flatnonzero(known & has_pages & intervals.overlap(keys, lows, highs))
    if len(at) == 0:
        return none
    first, last = lows[at].astype(np.float64), highs[at].astype(np.float64)
    width, span = last - first + 1, float(highs[known].max()) - float(lows[known].min()) + 1
    at_least, is_sorted = weights.sum() * limits.page_share, width <= limits.page_span * span
    spared = np.maximum(_shared(keys, first, last) - width * (_ROWS_OF_A_PAGE / rows[at]), 0.0)
    worth = filled * (spared * (is_sorted * weights[at] / width)).sum(axis=1)
    gaps = np.flatnonzero((worth >= at_least) & (worth >= 1.0))
    return gaps + 1, worth[gaps].astype(np.int64)


def _shared(keys: Intervals, first: FloatArray, last: FloatArray) -> FloatArray:
    """The number of values in both, for each gap between two keys and each row group."""
    after, before = keys[1][:-1].astype(np.float64), keys[0][1:].astype(np.float64)
    inside: FloatArray = np.minimum.outer(before - 1, last) - np.maximum.outer(after + 1, first) + 1
    return np.maximum(inside, 0.0)
