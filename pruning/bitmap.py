"""`Bitmap`: an exact set of int64 codes, one bit for each number between its least and its greatest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pruning.byte_strings import ByteArray, IntArray
from pruning.intervals import BoolArray

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
    """Immutable; bit `i`, least significant first, stands for the code `low + i`.

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
        """How many codes are in the set."""
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
    """The greatest code there is a bit for, the clear one at the end left out."""
    return bitmap.low + 8 * len(bitmap.octets) - 2


def _cleared(low: int, high: int) -> tuple[int, ByteArray]:
    if not span_fits(low, high, MAX_BYTES):
        msg = f"Cannot make a bitmap from {low} to {high}: it takes more than {MAX_BYTES} bytes, ask `span_fits` first"
        raise ValueError(msg)
    return low // 8 * 8, np.zeros(bytes_needed(low, high), np.uint8)


def _fill(octets: ByteArray, low: int, codes: IntArray) -> None:
    """Sets the bits of ascending codes, a segment at a time, since flags take eight times the room of bits."""
    offsets = np.subtract(codes, np.int64(low))
    starts = np.arange(0, 8 * len(octets), _SEGMENT_BITS)
    bounds = np.append(np.searchsorted(offsets, starts), len(offsets))
    for start, begin, end in zip(starts.tolist(), bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if begin < end:
            flags = np.zeros(min(_SEGMENT_BITS, 8 * len(octets) - start), bool)
            flags[offsets[begin:end] - start] = True
            octets[start // 8 : start // 8 + len(flags) // 8] = np.packbits(flags, bitorder="little")
