"""Lossless compaction: the few ranges that skip what the whole key set would.

Sorted keys leave gaps between them. A container can be skipped iff it lies inside one gap, so only gaps that hold
a container are worth keeping open, and those that are likely to hold pages of one; every other gap is bridged. Under
a budget the gaps with most bytes win.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pruning import intervals
from pruning.byte_strings import IntArray
from pruning.pages import page_gaps
from pruning.ranges import RangeSet
from pruning.statistics import ColumnStatistics


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Containers a range set could skip: their bounds, and what skipping each is worth (bytes; 0: nothing).

    `rows` are those of row groups, whose pages may be skipped, too; None of files.
    """

    column: ColumnStatistics
    weights: IntArray
    rows: IntArray | None = None


def compact(ranges: RangeSet, evidence: Sequence[Evidence], most: int) -> RangeSet:
    """A superset of `ranges` in at most `most` ranges that skips every weighted container that `ranges` skips.

    Where `most` ranges cannot skip them all, those with most bytes are skipped. Never skips more than `ranges`.
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
    """A superset of `ranges` that skips just the same weighted containers, and all gaps with pages are still open."""
    return ranges if len(ranges) <= 1 else ranges.bridged(_held(ranges, evidence)[0])


def _held(ranges: RangeSet, evidence: Sequence[Evidence]) -> tuple[IntArray, IntArray]:
    """The gaps that hold a container or pages, ascending, by the range behind each, and the bytes of each.

    There may be many more gaps than containers, so nothing is counted for a gap without one.
    """
    found = [_gaps(ranges, each) for each in evidence]
    none = np.zeros(0, np.int64)
    gaps, places = np.unique(np.concatenate([none, *(each[0] for each in found)]), return_inverse=True)
    # Weights stay below 2**53 for anything short of petabytes in one gap; rounding only changes the order.
    weights = np.bincount(places, np.concatenate([none, *(each[1] for each in found)]), len(gaps)).astype(np.int64)
    return gaps, weights


def _gaps(ranges: RangeSet, evidence: Evidence) -> tuple[IntArray, IntArray]:
    """For each container in a gap between two ranges, and each gap with pages, the range behind it, and its weight.

    The gaps before the first and after the last range stay open at no cost.
    """
    keys, (lows, highs), _ = evidence.column.against(ranges)
    within = np.flatnonzero(~intervals.overlap(keys, lows, highs) & (evidence.weights > 0))
    gaps = np.searchsorted(keys[1], lows[within], "left")
    is_inner = (gaps > 0) & (gaps < len(ranges))
    whole = gaps[is_inner], evidence.weights[within[is_inner]]
    if evidence.rows is None:
        return whole
    pages = page_gaps(ranges, evidence.column, evidence.weights, evidence.rows)
    return np.concatenate([whole[0], pages[0]]), np.concatenate([whole[1], pages[1]])
