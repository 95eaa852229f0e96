"""`RangeSet`: a set of values of one type as sorted, disjoint, closed ranges.

The functions below it work on closed integer intervals, two int64 arrays in normal form: sorted, disjoint, not
adjacent, and `lows[i] <= highs[i]`. `normalize` makes that form; all others take and return it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pruning.values import encoding as code
from pruning.values.byte_strings import ByteStrings, IntArray
from pruning.values.encoding import GREATEST, LEAST, Codes
from pruning.values.types import Physical, ValueType


@dataclass(frozen=True, slots=True, eq=False)
class RangeSet:
    """Values of `type` in closed ranges `[lows[i], highs[i]]`, as codes.

    Normal form: sorted, disjoint; adjacent ranges of int64 codes are merged. For bytes, `unbounded` says that
    the last range has no upper end (its high is then not a value); int64 codes need no such flag, since their
    greatest code is a bound. A set of single values holds one array as both lows and highs.
    """

    type: ValueType
    lows: Codes
    highs: Codes
    unbounded: bool = False

    @staticmethod
    def none(type_: ValueType) -> RangeSet:
        """The empty set."""
        nothing = code.empty(type_)
        return RangeSet(type_, nothing, nothing)

    @staticmethod
    def all(type_: ValueType) -> RangeSet:
        """Every value."""
        if type_.physical is Physical.BYTES:
            least = ByteStrings.of([b""])
            return RangeSet(type_, least, least, unbounded=True)
        return RangeSet(type_, np.array([LEAST]), np.array([GREATEST]))

    @staticmethod
    def of_codes(type_: ValueType, codes: Codes, *, is_sorted: bool = False) -> RangeSet:
        """The set of these values; `is_sorted`: they are ascending and distinct."""
        points = codes if is_sorted else code.sort_unique(codes)
        if isinstance(points, ByteStrings):
            return RangeSet(type_, points, points)
        return RangeSet(type_, *of_points(points))

    @staticmethod
    def of_ranges(type_: ValueType, lows: Codes, highs: Codes) -> RangeSet:
        """The union of `[lows[i], highs[i]]`, in any order; a range whose low lies above its high is empty."""
        low_line, high_line = code.merged_ranks(lows, highs)
        valid = np.flatnonzero(low_line <= high_line)
        line = normalize(low_line[valid], high_line[valid])
        return _RankedValues(type_, (lows, highs), (low_line, high_line)).range_set(line)

    def __len__(self) -> int:
        return len(self.lows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RangeSet):
            return NotImplemented
        if self.type != other.type or len(self) != len(other):
            return False
        (mine, theirs), _ = _ranked_together(self, other)
        return np.array_equal(mine[0], theirs[0]) and np.array_equal(mine[1], theirs[1])

    def __hash__(self) -> int:
        return hash((self.type, len(self), self.unbounded))

    @property
    def is_none(self) -> bool:
        """True if the set is empty."""
        return len(self) == 0

    @property
    def is_all(self) -> bool:
        """True if every value is in the set."""
        return self == RangeSet.all(self.type)

    @property
    def is_points(self) -> bool:
        """True if every range is a single value."""
        return self.highs is self.lows and not self.unbounded

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, in bytes."""
        return int(self.lows.nbytes + (0 if self.highs is self.lows else self.highs.nbytes))

    def intersect(self, other: RangeSet) -> RangeSet:
        """The values in both sets."""
        if len(other) == 1 and other.contains_all(self.span()):
            return self
        (mine, theirs), line = _ranked_together(self, other)
        return line.range_set(intersect(mine, theirs))

    def union(self, other: RangeSet) -> RangeSet:
        """The values in either set."""
        (mine, theirs), line = _ranked_together(self, other)
        return line.range_set(union(mine, theirs))

    def overlaps(self, other: RangeSet) -> bool:
        """True if the two sets share a value."""
        (mine, theirs), _ = _ranked_together(self, other)
        return bool(overlap(mine, *theirs).any())

    def contains_all(self, other: RangeSet) -> bool:
        """True if `other` is a subset of this set."""
        return self.union(other) == self

    def contains(self, codes: Codes) -> BoolArray:
        """An array: True where a code is in the set."""
        points = RangeSet(self.type, codes, codes)
        (mine, probes), _ = _ranked_together(self, points)
        return contains(mine, probes[0])

    def span(self) -> RangeSet:
        """The range from the least to the greatest value; empty for an empty set."""
        if len(self) <= 1:
            return self
        last = np.array([len(self) - 1])
        return RangeSet(self.type, self.lows.take(np.array([0])), self.highs.take(last), self.unbounded)

    def bridged(self, gaps_kept: IntArray) -> RangeSet:
        """A superset with only the gaps before the ranges `gaps_kept`, which ascend and do not include 0."""
        if len(gaps_kept) + 1 >= len(self):
            return self
        starts = np.concatenate([[0], gaps_kept]).astype(np.int64)
        ends = np.concatenate([gaps_kept - 1, [len(self) - 1]]).astype(np.int64)
        return RangeSet(self.type, self.lows.take(starts), self.highs.take(ends), self.unbounded)

    def simplify(self, most: int) -> RangeSet:
        """A superset of at most `most` ranges, with the widest gaps between them."""
        if most < 1:
            msg = f"Cannot simplify to {most} ranges: at least one is needed"
            raise ValueError(msg)
        if len(self) <= most:
            return self
        if most == 1:
            return self.span()
        return self.bridged(_gaps_to_keep(self, most))

    def point_count(self) -> int | None:
        """The number of values in the set; None if a range of bytes or floats cannot be listed."""
        if isinstance(self.lows, ByteStrings):
            return len(self) if self.is_points else None
        return size(self._int_line()) if self.is_points or not self.type.is_float else None

    def points(self) -> Codes:
        """Every value of a set with a known `point_count()`, ascending."""
        if self.is_points:
            return self.lows
        lows, highs = self._int_line()
        # A cumulative sum in place, with steps of one within a range: there may be millions of values.
        begins = np.cumsum(highs - lows + 1)
        steps = np.ones(begins[-1] if len(begins) else 0, np.int64)
        steps[:1] = lows[:1]
        steps[begins[:-1]] = lows[1:] - highs[:-1]
        return np.cumsum(steps, out=steps)

    def _int_line(self) -> Intervals:
        if isinstance(self.lows, ByteStrings) or isinstance(self.highs, ByteStrings):
            msg = f"Cannot list the values of {self.type} ranges: they are not numbers"
            raise TypeError(msg)
        return self.lows, self.highs

    def __str__(self) -> str:
        shown = [self._render(index) for index in range(min(len(self), 4))]
        more = [f"... {len(self) - 4} more"] if len(self) > 4 else []
        return "{" + ", ".join([*shown, *more]) + "}"

    def __repr__(self) -> str:
        return f"RangeSet[{self.type}]{self}"

    def _render(self, index: int) -> str:
        low, high = (code.render(self.type, ends, index) for ends in (self.lows, self.highs))
        is_open = self.unbounded and index == len(self) - 1
        if self.lows[index] == self.highs[index] and not is_open:
            return low
        # For types other than bigint the ends of int64 mean an open end.
        has_ends = self.type.name != "bigint"
        left = "(..." if has_ends and self.lows[index] == LEAST else f"[{low}"
        is_open = is_open or (has_ends and self.highs[index] == GREATEST)
        return f"{left}, ...)" if is_open else f"{left}, {high}]"


@dataclass(frozen=True, slots=True)
class _RankedValues:
    """Codes of one type and the integers by which they compare; `range_set` converts integers back to codes."""

    type: ValueType
    arrays: tuple[Codes, ...]
    positions: tuple[IntArray, ...]

    def range_set(self, line: Intervals) -> RangeSet:
        if self.type.physical is Physical.INT64:
            return RangeSet(self.type, line[0], line[0] if np.array_equal(*line) else line[1])
        distinct = {id(array): (array, place) for array, place in zip(self.arrays, self.positions, strict=True)}
        flat = np.concatenate([np.zeros(0, np.int64), *(place for _, place in distinct.values())])
        table, where = np.unique(flat, return_index=True)
        unbounded = len(line[1]) > 0 and int(line[1][-1]) == GREATEST
        # An open end has no code; the low of its range takes its place.
        ends = np.append(line[1][:-1], line[0][-1:]) if unbounded else line[1]
        values = ByteStrings.concat(array for array, _ in distinct.values() if isinstance(array, ByteStrings))
        lows = values.take(where[np.searchsorted(table, line[0])])
        if np.array_equal(line[0], ends):
            return RangeSet(self.type, lows, lows, unbounded)
        return RangeSet(self.type, lows, values.take(where[np.searchsorted(table, ends)]), unbounded)


def _ranked_together(*sets: RangeSet) -> tuple[tuple[Intervals, ...], _RankedValues]:
    """The sets as intervals of merged ranks."""
    types = {str(each.type) for each in sets}
    if len(types) > 1:
        msg = f"Cannot combine ranges of {' and '.join(sorted(types))}: coerce one to the other's type first"
        raise ValueError(msg)
    arrays = tuple(array for each in sets for array in (each.lows, each.highs))
    positions = code.merged_ranks(*arrays)
    lines = tuple(
        (lows, _with_open_end(highs) if each.unbounded else highs)
        for each, lows, highs in zip(sets, positions[::2], positions[1::2], strict=True)
    )
    return lines, _RankedValues(sets[0].type, arrays, positions)


def _with_open_end(highs: IntArray) -> IntArray:
    return np.append(highs[:-1], GREATEST)


def _gaps_to_keep(ranges: RangeSet, most: int) -> IntArray:
    """The ranges before which `most` ranges keep a gap: the widest gaps; bytes have no width, so evenly spread ones."""
    if isinstance(ranges.lows, np.ndarray) and isinstance(ranges.highs, np.ndarray):
        # Distances of int64 codes fit uint64 only, so they are subtracted there.
        widths = ranges.lows[1:].view(np.uint64) - ranges.highs[:-1].view(np.uint64)
        narrow = len(widths) - most + 1
        return np.sort(np.argpartition(widths, narrow)[narrow:]) + 1
    return np.arange(1, most) * len(ranges) // most


Intervals: TypeAlias = tuple[IntArray, IntArray]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


def normalize(lows: IntArray, highs: IntArray) -> Intervals:
    """Sorted intervals of the points, with a missing point between any two."""
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
    """Intervals of ascending, distinct points; the same array twice if no two are adjacent."""
    # The second of two neighbours is above the least int64, so nothing wraps.
    apart = points[1:] - 1 != points[:-1]
    if apart.all():
        return points, points
    return points[np.concatenate([[True], apart])], points[np.concatenate([apart, [True]])]


def union(first: Intervals, second: Intervals) -> Intervals:
    """The union of two sets of intervals."""
    return normalize(np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]]))


def intersect(first: Intervals, second: Intervals) -> Intervals:
    """The intersection of two sets of intervals."""
    begin = np.searchsorted(second[1], first[0], "left")
    end = np.searchsorted(second[0], first[1], "right")
    counts = np.maximum(end - begin, 0)
    left = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
    right = np.repeat(begin, counts) + within
    return np.maximum(first[0][left], second[0][right]), np.minimum(first[1][left], second[1][right])


def overlap(intervals: Intervals, lows: IntArray, highs: IntArray) -> BoolArray:
    """An array: True where `[lows[i], highs[i]]`, in any order, shares a point with `intervals`."""
    if len(intervals[0]) == 0:
        return np.zeros(len(lows), bool)
    first_reaching = np.searchsorted(intervals[1], lows, "left")
    candidate = intervals[0][np.minimum(first_reaching, len(intervals[0]) - 1)]
    return (first_reaching < len(intervals[0])) & (candidate <= highs)


def contains(intervals: Intervals, points: IntArray) -> BoolArray:
    """An array: True where a point lies in `intervals`."""
    return overlap(intervals, points, points)


def size(intervals: Intervals) -> int:
    """The number of integers in the intervals; exact beyond int64."""
    # The widths of n disjoint intervals sum to at most 2**64 - n, so only the last addition needs more than 64 bits.
    widths = intervals[1].view(np.uint64) - intervals[0].view(np.uint64)
    return int(widths.sum(dtype=np.uint64)) + len(widths)
