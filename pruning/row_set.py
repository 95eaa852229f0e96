"""`RowSet`: the values that rows may have in one column, in the form in which many rows are tested fastest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pruning.bitmap import Bitmap, span_fits
from pruning.byte_strings import IntArray
from pruning.codes import GREATEST, LEAST, Codes
from pruning.domain import Domain
from pruning.intervals import BoolArray
from pruning.ranges import RangeSet

# A byte for each number is looked up twice as fast as a bit, while the table fits a processor's cache.
_MOST_FLAGS = 1 << 20
_BLOCK = 1 << 14
# So few ranges are compared faster than a bit is looked up.
_FEW_RANGES = 2
# A bitmap that outgrows the caches of a processor, and is nearly empty, is no faster than a search.
_MOST_BYTES = 64 << 20
_MOST_BYTES_PER_KEY = 1 << 10
# They are listed once, at eight bytes each.
_MOST_POINTS = 16 << 20
# A hash table of the values is larger than their ranges, which are searched, by so much at most.
_POINTS_PER_RANGE = 4


@dataclass(frozen=True, slots=True, eq=False)
class Flags:
    """A set of integers, one byte for each between its least and its greatest: `flags[i]` stands for `low + i`.

    The first and the last are False: they stand for every number below and above.
    """

    low: int
    flags: BoolArray

    @staticmethod
    def of(points: IntArray) -> Flags:
        """The set of `points`, of which there is one at least, ascending."""
        low = int(points[0]) - 1
        flags = np.zeros(int(points[-1]) - low + 2, bool)
        flags[points - low] = True
        return Flags(low, flags)

    def contains(self, codes: IntArray) -> BoolArray:
        """For each code: True where it is in the set."""
        found, offsets = np.empty(len(codes), bool), np.empty(_BLOCK, np.int64)
        # A difference beyond 64 bits would come out among the flags.
        least, greatest = self.low, self.low + len(self.flags) - 1
        for begin in range(0, len(codes), _BLOCK):
            part = codes[begin : begin + _BLOCK]
            places = offsets[: len(part)]
            if codes.dtype.itemsize == offsets.dtype.itemsize:
                np.clip(part, least, greatest, out=places)
                np.subtract(places, self.low, out=places)
            else:
                np.subtract(part, self.low, out=places, dtype=np.int64)
            self.flags.take(places, mode="clip", out=found[begin : begin + _BLOCK])
        return found


@dataclass(frozen=True, slots=True, eq=False)
class RowSet:
    """A `Domain` as a test of rows: a table or a bitmap where its codes are dense enough, else its sorted ranges.

    NaN and NULL have no codes, so whether a row may hold them stands in `nan` and `null`.

    >>> from pruning.value_type import ValueType
    >>> rows = RowSet.of(Domain.of(ValueType("int"), 3, 5, 9, 12))
    >>> rows.contains(np.array([3, 4, 5])).tolist()
    [True, False, True]
    """

    values: Flags | Bitmap | RangeSet
    nan: bool
    null: bool

    @staticmethod
    def of(domain: Domain, most_bytes: int = _MOST_BYTES) -> RowSet:
        """The values of a domain."""
        return RowSet(_dense(domain.ranges, most_bytes) or domain.ranges, domain.nan, domain.null)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return int(self.values.flags.nbytes) if isinstance(self.values, Flags) else self.values.nbytes

    def listed(self) -> Codes | None:
        """The values, ascending, where a hash table of them is faster than what is held; else None.

        >>> from pruning.value_type import ValueType
        >>> dense, sparse = (Domain.of(ValueType("bigint"), 1, 3, 5, last) for last in (7, 1 << 60))
        >>> RowSet.of(dense).listed(), len(RowSet.of(sparse).listed())
        (None, 4)
        """
        if not isinstance(self.values, RangeSet):
            return None
        count, ranges = self.values.point_count(), len(self.values)
        is_compared = isinstance(self.values.lows, np.ndarray) and ranges <= _FEW_RANGES
        if count is None or is_compared or count > min(_MOST_POINTS, _POINTS_PER_RANGE * ranges):
            return None
        return self.values.points()

    def contains(self, codes: Codes) -> BoolArray:
        """For each code: True where it is in the set; integers may be narrower than 64 bits."""
        if not isinstance(self.values, RangeSet):
            assert isinstance(codes, np.ndarray)  # noqa: S101
            return self.values.contains(codes)
        if not len(self.values):
            return np.zeros(len(codes), bool)
        if not isinstance(codes, np.ndarray):
            return self.values.contains(codes)
        wide = codes.astype(np.int64, copy=False)
        return _compared(wide, self.values) if len(self.values) <= _FEW_RANGES else self.values.contains(wide)


def _compared(codes: IntArray, ranges: RangeSet) -> BoolArray:
    found = np.zeros(len(codes), bool)
    for low, high in zip(np.asarray(ranges.lows), np.asarray(ranges.highs), strict=True):
        found |= (codes >= low) & (codes <= high)
    return found


def is_searched(domain: Domain) -> bool:
    """True where the values of a domain are neither in a table for each number nor compared with few ends."""
    return len(domain.ranges) > _FEW_RANGES and not _fits_a_table(domain.ranges, _MOST_BYTES)


def _fits_a_table(ranges: RangeSet, most_bytes: int) -> bool:
    count = ranges.point_count() if ranges.type.has_density else None
    if count is None or count > _MOST_POINTS or len(ranges) <= _FEW_RANGES:
        return False
    low, high = _ends(ranges)
    return span_fits(low, high, min(most_bytes, count * _MOST_BYTES_PER_KEY))


def _ends(ranges: RangeSet) -> tuple[int, int]:
    return int(np.asarray(ranges.lows)[0]), int(np.asarray(ranges.highs)[-1])


def _dense(ranges: RangeSet, most_bytes: int) -> Flags | Bitmap | None:
    points = ranges.points() if _fits_a_table(ranges, most_bytes) else None
    if not isinstance(points, np.ndarray):
        return None
    low, high = _ends(ranges)
    # An end of all numbers leaves no room for the flag beyond it.
    fits = high - low < _MOST_FLAGS and LEAST < low and high < GREATEST
    return Flags.of(points) if fits else Bitmap.of(points)
