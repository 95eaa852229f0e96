"""`RowSet`: the values that rows may have in one column, in the form in which many rows are tested fastest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pruning.bitmap import Bitmap, span_fits
from pruning.codes import Codes
from pruning.domain import Domain
from pruning.intervals import BoolArray
from pruning.ranges import RangeSet

# So few ranges are compared faster than a bit is looked up.
_FEW_RANGES = 2
# A bitmap that outgrows the caches of a processor, and is nearly empty, is no faster than a search.
_MOST_BYTES = 64 << 20
_MOST_BYTES_PER_KEY = 1 << 10
# They are listed once, at eight bytes each.
_MOST_POINTS = 16 << 20


@dataclass(frozen=True, slots=True, eq=False)
class RowSet:
    """A `Domain` as a test of rows: a bitmap where its codes are dense enough, else its sorted ranges; never both.

    NaN and NULL have no codes, so whether a row may hold them stands in `nan` and `null`.

    >>> from pruning.value_type import ValueType
    >>> rows = RowSet.of(Domain.of(ValueType("int"), 3, 5, 9, 12))
    >>> rows.contains(np.array([3, 4, 5])).tolist()
    [True, False, True]
    """

    values: Bitmap | RangeSet
    nan: bool
    null: bool

    @staticmethod
    def of(domain: Domain, most_bytes: int = _MOST_BYTES) -> RowSet:
        """The values of a domain."""
        return RowSet(_bitmap(domain.ranges, most_bytes) or domain.ranges, domain.nan, domain.null)

    def contains(self, codes: Codes) -> BoolArray:
        """For each code: True where it is in the set."""
        if isinstance(self.values, Bitmap):
            assert isinstance(codes, np.ndarray)  # noqa: S101
            return self.values.contains(codes)
        if not len(self.values):
            return np.zeros(len(codes), bool)
        if isinstance(codes, np.ndarray) and len(self.values) <= _FEW_RANGES:
            return _compared(codes, self.values)
        return self.values.contains(codes)


def _compared(codes: np.ndarray[tuple[int], np.dtype[np.int64]], ranges: RangeSet) -> BoolArray:
    found = np.zeros(len(codes), bool)
    for low, high in zip(np.asarray(ranges.lows), np.asarray(ranges.highs), strict=True):
        found |= (codes >= low) & (codes <= high)
    return found


def _bitmap(ranges: RangeSet, most_bytes: int) -> Bitmap | None:
    count = ranges.point_count() if ranges.type.has_density else None
    if count is None or count > _MOST_POINTS or len(ranges) <= _FEW_RANGES:
        return None
    low, high = int(np.asarray(ranges.lows)[0]), int(np.asarray(ranges.highs)[-1])
    if not span_fits(low, high, min(most_bytes, count * _MOST_BYTES_PER_KEY)):
        return None
    points = ranges.points()
    return Bitmap.of(points) if isinstance(points, np.ndarray) else None
