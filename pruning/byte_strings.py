"""`ByteStrings`: many byte strings in two flat arrays, taken and joined without a Python object each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
ByteArray = npt.NDArray[np.uint8]

# Positions are expanded to one index per byte; a block keeps that expansion in the cache.
_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class ByteStrings:
    """Byte strings laid end to end: string `i` is `data[offsets[i]:offsets[i + 1]]`.

    Ordered bytewise, unsigned, a prefix before its extensions: the order of Spark's UTF8_BINARY.
    """

    data: ByteArray
    offsets: IntArray

    @staticmethod
    def of(items: Iterable[bytes]) -> ByteStrings:
        """The strings of `items`, in their order."""
        parts = tuple(items)
        offsets = np.zeros(len(parts) + 1, np.int64)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        return ByteStrings(np.frombuffer(b"".join(parts), np.uint8), offsets)

    @staticmethod
    def of_fixed_width(rows: ByteArray) -> ByteStrings:
        """One string for each row of a two-dimensional byte array."""
        count, width = rows.shape
        return ByteStrings(rows.reshape(-1), np.arange(count + 1, dtype=np.int64) * width)

    @staticmethod
    def concat(parts: Iterable[ByteStrings]) -> ByteStrings:
        """All strings of `parts`, one part after the other."""
        packed = tuple(part.packed() for part in parts)
        lengths = np.concatenate([np.zeros(1, np.int64), *(part.lengths() for part in packed)])
        data = [part.data for part in packed] or [np.zeros(0, np.uint8)]
        return ByteStrings(np.concatenate(data), np.cumsum(lengths))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> bytes:
        position = range(len(self))[index]
        return self.data[self.offsets[position] : self.offsets[position + 1]].tobytes()

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return int(self.data.nbytes + self.offsets.nbytes)

    def lengths(self) -> IntArray:
        """Length of each string in bytes."""
        return np.diff(self.offsets)

    def packed(self) -> ByteStrings:
        """The same strings over just the bytes they use, from offset 0."""
        first, last = int(self.offsets[0]), int(self.offsets[-1])
        if first == 0 and last == len(self.data):
            return self
        return ByteStrings(self.data[first:last], self.offsets - first)

    def take(self, indices: npt.NDArray[np.integer]) -> ByteStrings:
        """The strings at `indices`, in that order."""
        width = self._width()
        if width:
            rows = self.data[self.offsets[0] : self.offsets[-1]].reshape(-1, width)
            return ByteStrings.of_fixed_width(rows.take(indices, axis=0))
        return self._gathered(self.offsets[:-1][indices], self.lengths()[indices])

    def _width(self) -> int:
        """How long all strings are; 0 where they differ, or are empty, or none is there."""
        count, size = len(self), int(self.offsets[-1] - self.offsets[0])
        width = size // count if count else 0
        return width if width * count == size and (self.lengths() == width).all() else 0

    def truncated(self, width: int) -> ByteStrings:
        """Each string cut to its first `width` bytes."""
        return self._gathered(self.offsets[:-1], np.minimum(self.lengths(), width))

    def _gathered(self, starts: IntArray, lengths: IntArray) -> ByteStrings:
        """Strings that begin at `starts` and have `lengths`; in blocks, since each byte takes an index to copy."""
        offsets = np.zeros(len(starts) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        data = np.empty(offsets[-1], np.uint8)
        for begin in range(0, len(starts), _BLOCK):
            block = slice(begin, begin + _BLOCK)
            first, last = offsets[begin], offsets[min(begin + _BLOCK, len(starts))]
            positions = np.repeat(starts[block] - offsets[:-1][block], lengths[block]) + np.arange(first, last)
            data[first:last] = self.data[positions]
        return ByteStrings(data, offsets)
