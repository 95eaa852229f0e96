"""Membership tests of many rows: `MembershipTest` holds the values of one column in the form that is tested fastest.

`Bitmap` is an exact set of int64 codes, one bit for each number between its least and its greatest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pruning.limits import LIMITS, Limits
from pruning.values.byte_strings import ByteArray, IntArray
from pruning.values.domain import Domain
from pruning.values.encoding import GREATEST, LEAST, Codes
from pruning.values.ranges import BoolArray, RangeSet

MAX_BYTES = 1 << 31

_BLOCK = 1 << 14
_SEGMENT_BITS = 1 << 20


def bytes_needed(low: int, high: int) -> int:
    """Memory of a bitmap whose least code is `low` and greatest `high`, in bytes.

    >>> bytes_needed(0, 6), bytes_needed(0, 7)
    (1, 2)
    """
    # One bit beyond the greatest code stays clear: it stands for every number outside the span.
    return (high - low // 8 * 8 + 1) // 8 + 1


def span_fits(low: int, high: int, max_bytes: int) -> bool:
    """True where a bitmap of codes from `low` to `high` takes at most `max_bytes`."""
    return bytes_needed(low, high) <= min(max_bytes, MAX_BYTES)


@dataclass(frozen=True, slots=True, eq=False)
class Bitmap:
    """An immutable set of codes; bit `i`, least significant first, stands for the code `low + i`.

    `low` is a multiple of eight, so that octets of two bitmaps cover the same codes; the last bit is clear.

    >>> Bitmap.of(np.array([3, 9])).contains(np.array([2, 3, 9, -(2**63)])).tolist()
    [False, True, True, False]
    """

    low: int
    octets: ByteArray

    def __post_init__(self) -> None:
        if self.low % 8 or len(self.octets) == 0 or self.octets[-1] >= 128:
            msg = f"Cannot make a bitmap of {len(self.octets)} octets from {self.low}: see `Bitmap` for its form"
            raise ValueError(msg)
        self.octets.setflags(write=False)

    @staticmethod
    def of(codes: IntArray) -> Bitmap:
        """The set of `codes`, which ascend; `ValueError` where they do not, or span more than `MAX_BYTES`."""
        if len(codes) == 0:
            return Bitmap(0, np.zeros(1, np.uint8))
        if (codes[1:] < codes[:-1]).any():
            msg = f"Cannot make a bitmap of {len(codes)} codes: expected them in ascending order"
            raise ValueError(msg)
        low, octets = _cleared(int(codes[0]), int(codes[-1]))
        _fill(octets, low, codes)
        return Bitmap(low, octets)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return int(self.octets.nbytes)

    @property
    def count(self) -> int:
        """The number of codes in the set."""
        blocks = range(0, len(self.octets), _SEGMENT_BITS)
        return sum(int(np.bitwise_count(self.octets[at : at + _SEGMENT_BITS]).sum()) for at in blocks)

    def contains(self, codes: IntArray) -> BoolArray:
        """For each code: True where it is in the set."""
        found = np.empty(len(codes), bool)
        low, clear = np.int64(self.low), np.uint64(8 * len(self.octets) - 1)
        for begin in range(0, len(codes), _BLOCK):
            # Modulo 2**64 a code below `low` lies beyond every bit, and no difference overflows.
            offsets = np.subtract(codes[begin : begin + _BLOCK], low).view(np.uint64)
            np.minimum(offsets, clear, out=offsets)
            found[begin : begin + _BLOCK] = self._bits_at(offsets.view(np.int64))
        return found

    def words(self) -> tuple[int, bytes]:
        r"""The code of the first bit, a multiple of 64, and the bits as little-endian words of 64.

        >>> Bitmap.of(np.array([70, 72])).words()
        (64, b'@\x01\x00\x00\x00\x00\x00\x00')
        """
        before = self.low % 64 // 8
        padded = np.pad(self.octets, (before, -(before + len(self.octets)) % 8))
        return self.low - 8 * before, padded.tobytes()

    def merge(self, other: Bitmap) -> Bitmap:
        """Codes in either; `ValueError` where together they span more than `MAX_BYTES`."""
        parts = [part for part in (self, other) if part.octets.any()]
        if len(parts) < 2:
            return parts[0] if parts else self
        low, octets = _cleared(min(part.low for part in parts), max(map(_last, parts)))
        for part in parts:
            start = (part.low - low) // 8
            octets[start : start + len(part.octets)] |= part.octets
        return Bitmap(low, octets)

    def _bits_at(self, offsets: IntArray) -> BoolArray:
        shifts = offsets.astype(np.uint8)
        shifts &= np.uint8(7)
        offsets >>= np.int64(3)
        bits = self.octets.take(offsets, mode="clip")
        bits >>= shifts
        bits &= np.uint8(1)
        return bits.view(np.bool_)


def _last(bitmap: Bitmap) -> int:
    """The greatest code that has a bit, without the clear bit at the end."""
    return bitmap.low + 8 * len(bitmap.octets) - 2


def _cleared(low: int, high: int) -> tuple[int, ByteArray]:
    if not span_fits(low, high, MAX_BYTES):
        msg = f"Cannot make a bitmap from {low} to {high}: it takes more than {MAX_BYTES} bytes, ask `span_fits` first"
        raise ValueError(msg)
    return low // 8 * 8, np.zeros(bytes_needed(low, high), np.uint8)


def _fill(octets: ByteArray, low: int, codes: IntArray) -> None:
    """Sets the bits of ascending codes, a segment at a time, since flags take eight times the memory of bits."""
    offsets = np.subtract(codes, np.int64(low))
    starts = np.arange(0, 8 * len(octets), _SEGMENT_BITS)
    bounds = np.append(np.searchsorted(offsets, starts), len(offsets))
    for start, begin, end in zip(starts.tolist(), bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if begin < end:
            flags = np.zeros(min(_SEGMENT_BITS, 8 * len(octets) - start), bool)
            flags[offsets[begin:end] - start] = True
            octets[start // 8 : start // 8 + len(flags) // 8] = np.packbits(flags, bitorder="little")


@dataclass(frozen=True, slots=True, eq=False)
class Flags:
    """A set of integers, one byte for each between its least and its greatest: `flags[i]` stands for `low + i`.

    The first and the last are False: they stand for every number below and above.
    """

    low: int
    flags: BoolArray

    @staticmethod
    def of(points: IntArray) -> Flags:
        """The set of `points`, ascending, at least one."""
        low = int(points[0]) - 1
        flags = np.zeros(int(points[-1]) - low + 2, bool)
        flags[points - low] = True
        return Flags(low, flags)

    def contains(self, codes: IntArray) -> BoolArray:
        """For each code: True where it is in the set."""
        found, offsets = np.empty(len(codes), bool), np.empty(_BLOCK, np.int64)
        # A difference that overflows 64 bits would wrap to an index among the flags.
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
class MembershipTest:
    """A `Domain` as a test of rows: a table or a bitmap where its codes are dense enough, else its sorted ranges.

    NaN and NULL have no codes, so `nan` and `null` say whether a row may hold them.

    >>> from pruning.values.types import ValueType
    >>> rows = MembershipTest.of(Domain.of(ValueType("int"), 3, 5, 9, 12))
    >>> rows.contains(np.array([3, 4, 5])).tolist()
    [True, False, True]
    """

    values: Flags | Bitmap | RangeSet
    nan: bool
    null: bool
    limits: Limits

    @staticmethod
    def of(domain: Domain, limits: Limits = LIMITS) -> MembershipTest:
        """The values of a domain."""
        return MembershipTest(_dense(domain.ranges, limits) or domain.ranges, domain.nan, domain.null, limits)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return int(self.values.flags.nbytes) if isinstance(self.values, Flags) else self.values.nbytes

    def listed(self) -> Codes | None:
        """The values, ascending, if a hash table of them is faster than the form in `values`; else None.

        >>> from pruning.values.types import ValueType
        >>> dense, sparse = (Domain.of(ValueType("bigint"), 1, 3, 5, last) for last in (7, 1 << 60))
        >>> MembershipTest.of(dense).listed(), len(MembershipTest.of(sparse).listed())
        (None, 4)
        """
        if not isinstance(self.values, RangeSet):
            return None
        count, ranges, limits = self.values.point_count(), len(self.values), self.limits
        is_compared = isinstance(self.values.lows, np.ndarray) and ranges <= limits.compared_ranges
        if count is None or is_compared or count > min(limits.listed_keys, limits.hashed_per_range * ranges):
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
        is_compared = len(self.values) <= self.limits.compared_ranges
        return _compared(wide, self.values) if is_compared else self.values.contains(wide)


def _compared(codes: IntArray, ranges: RangeSet) -> BoolArray:
    found = np.zeros(len(codes), bool)
    for low, high in zip(np.asarray(ranges.lows), np.asarray(ranges.highs), strict=True):
        found |= (codes >= low) & (codes <= high)
    return found


def is_searched(domain: Domain, limits: Limits = LIMITS) -> bool:
    """True where rows are tested by a binary search, neither in a table nor by comparisons with few range ends."""
    return len(domain.ranges) > limits.compared_ranges and not _fits_a_table(domain.ranges, limits)


def _fits_a_table(ranges: RangeSet, limits: Limits) -> bool:
    count = ranges.point_count() if ranges.type.has_density else None
    if count is None or count > limits.listed_keys or len(ranges) <= limits.compared_ranges:
        return False
    low, high = _ends(ranges)
    return span_fits(low, high, min(limits.bitmap_bytes, count * limits.bitmap_bytes_per_key))


def _ends(ranges: RangeSet) -> tuple[int, int]:
    return int(np.asarray(ranges.lows)[0]), int(np.asarray(ranges.highs)[-1])


def _dense(ranges: RangeSet, limits: Limits) -> Flags | Bitmap | None:
    points = ranges.points() if _fits_a_table(ranges, limits) else None
    if not isinstance(points, np.ndarray):
        return None
    low, high = _ends(ranges)
    # Flags need a number below the least and above the greatest value.
    fits = high - low < limits.flags_span and LEAST < low and high < GREATEST
    return Flags.of(points) if fits else Bitmap.of(points)
