"""Closed integer intervals as two int64 arrays: sorted, disjoint, never touching.

Every function takes and gives that normal form, save `normalize`, which makes it. `lows[i] <= highs[i]`.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pruning.byte_strings import IntArray

Intervals: TypeAlias = tuple[IntArray, IntArray]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


def normalize(lows: IntArray, highs: IntArray) -> Intervals:
    """The same points as sorted intervals with a missing point between any two."""
    if len(lows) == 0:
        return lows, highs
    order = np.argsort(lows, kind="stable")
    lows, reach = lows[order], np.maximum.accumulate(highs[order])
    # `low - 1` wraps only for the least int64, where the first test already holds.
    apart = (lows[1:] > reach[:-1]) & (lows[1:] - 1 != reach[:-1])
    starts = np.concatenate([[True], apart])
    ends = np.concatenate([apart, [True]])
    return lows[starts], reach[ends]


def of_points(points: IntArray) -> Intervals:
    """Points that ascend without a repetition as intervals; the same array twice where no two of them touch."""
    # Of two neighbours the second is above the least int64, so nothing wraps.
    apart = points[1:] - 1 != points[:-1]
    if apart.all():
        return points, points
    return points[np.concatenate([[True], apart])], points[np.concatenate([apart, [True]])]


def union(first: Intervals, second: Intervals) -> Intervals:
    """Points in either."""
    return normalize(np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]]))


def intersect(first: Intervals, second: Intervals) -> Intervals:
    """Points in both."""
    begin = np.searchsorted(second[1], first[0], "left")
    end = np.searchsorted(second[0], first[1], "right")
    counts = np.maximum(end - begin, 0)
    left = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
    right = np.repeat(begin, counts) + within
    return np.maximum(first[0][left], second[0][right]), np.minimum(first[1][left], second[1][right])


def overlap(intervals: Intervals, lows: IntArray, highs: IntArray) -> BoolArray:
    """For each `[lows[i], highs[i]]`, whether a point of it lies in `intervals`; needs no normal form of them."""
    if len(intervals[0]) == 0:
        return np.zeros(len(lows), bool)
    first_reaching = np.searchsorted(intervals[1], lows, "left")
    candidate = intervals[0][np.minimum(first_reaching, len(intervals[0]) - 1)]
    return (first_reaching < len(intervals[0])) & (candidate <= highs)


def contains(intervals: Intervals, points: IntArray) -> BoolArray:
    """For each point, whether it lies in `intervals`."""
    return overlap(intervals, points, points)


def size(intervals: Intervals) -> int:
    """How many integers the intervals hold; exact beyond int64."""
    # Of n disjoint intervals the widths sum to at most 2**64 - n, so only the last addition needs more than 64 bits.
    widths = intervals[1].view(np.uint64) - intervals[0].view(np.uint64)
    return int(widths.sum(dtype=np.uint64)) + len(widths)
