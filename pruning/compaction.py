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
from pruning.pages import page_weights
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
    weights = sum((_gap_weights(ranges, each) for each in evidence), np.zeros(len(ranges) + 1, np.int64))
    # The gaps before the first and after the last range stay open at no cost.
    inner = weights[1:-1]
    held = np.flatnonzero(inner)
    best = held[np.argsort(inner[held], kind="stable")[::-1][: most - 1]]
    return ranges.bridged(np.sort(best) + 1)


def _gap_weights(ranges: RangeSet, evidence: Evidence) -> IntArray:
    """Bytes that each gap holds: entry 0 before the first range, the last entry after the last range."""
    keys, (lows, highs) = evidence.column.against(ranges)
    within = np.flatnonzero(~intervals.overlap(keys, lows, highs) & (evidence.weights > 0))
    gaps = np.searchsorted(keys[1], lows[within], "left")
    # Weights stay below 2**53 for anything short of petabytes in one gap; rounding only changes the order.
    whole = np.bincount(gaps, weights=evidence.weights[within], minlength=len(ranges) + 1).astype(np.int64)
    return (
        whole
        if evidence.rows is None
        else whole + page_weights(ranges, evidence.column, evidence.weights, evidence.rows)
    )
