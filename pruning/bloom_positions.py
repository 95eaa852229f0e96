"""Bit positions of hashes in Spark's bloom filter, a block of hashes at a time, one array per step.

Both versions start from two murmur3 hashes, read as signed numbers. The position at step `i = 1, 2, ...` is
`x % bit_count`, or `~x % bit_count` where `x` is negative, with

- version 1: `x = first + i * second`, wrapping at 32 bits
- version 2: `x = first * (2**31 - 1) + i * second` in 64 bits
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pruning import murmur3
from pruning.byte_strings import IntArray
from pruning.xxhash64 import Hashes

VERSION_1, VERSION_2 = 1, 2
_SPREAD = np.int64((1 << 31) - 1)
_NARROW_BITS = 1 << 31


class Positions(Protocol):
    """A cursor over the steps of a block; it changes in place, so that a block keeps its few arrays."""

    def current(self) -> npt.NDArray[Any]:
        """The position of each hash at this step, not to be written to."""

    def advance(self) -> None:
        """Goes to the next step."""

    def keep(self, rows: IntArray) -> None:
        """Goes on with these rows of the block alone."""


def positions(hashes: Hashes, *, version: int, seed: int, bit_count: int, steps: int) -> Positions:
    """A cursor at the first of `steps` steps."""
    first, second = murmur3.hash_long_pair(hashes, seed)
    if version == VERSION_1:
        return _Version1(first.view(np.int32), second.view(np.int32), bit_count)
    increments = second.view(np.int32)
    sums = first.view(np.int32) * _SPREAD
    sums += increments
    if bit_count < _NARROW_BITS and not (abs(sums) < steps << 31).any():
        return _Narrow(sums, increments, bit_count)
    return _Wide(sums, increments.astype(np.int64), bit_count)


class _Narrow:
    """Version 2 where no step, of 2**31 at most, takes a sum past zero: remainders add up, 32 bits are enough."""

    def __init__(self, sums: IntArray, increments: npt.NDArray[np.int32], bit_count: int) -> None:
        size = np.uint32(bit_count)
        signs = sums >> np.int64(63)
        self._at = _remainder(sums ^ signs, bit_count).astype(np.uint32)
        step = (increments - increments // np.int32(bit_count) * np.int32(bit_count)).view(np.uint32)
        # A complement goes down where its sum goes up, so its step is `size - step`: -1 as a mask says where.
        down = signs.astype(np.uint32)
        self._step = (step ^ down) - down + (size & down)
        self._size = size

    def current(self) -> npt.NDArray[np.uint32]:
        return self._at

    def advance(self) -> None:
        self._at += self._step
        # Taking the size off a smaller number wraps to a larger one: the least of both is the remainder.
        np.minimum(self._at, self._at - self._size, out=self._at)

    def keep(self, rows: IntArray) -> None:
        self._at, self._step = self._at[rows], self._step[rows]


class _Wide:
    """Version 2 as it is defined."""

    def __init__(self, sums: IntArray, increments: IntArray, bit_count: int) -> None:
        self._sums, self._increments, self._bit_count = sums, increments, bit_count

    def current(self) -> IntArray:
        return _remainder(_complemented(self._sums), self._bit_count)

    def advance(self) -> None:
        self._sums += self._increments

    def keep(self, rows: IntArray) -> None:
        self._sums, self._increments = self._sums[rows], self._increments[rows]


class _Version1:
    """Version 1 as it is defined."""

    def __init__(self, first: npt.NDArray[np.int32], second: npt.NDArray[np.int32], bit_count: int) -> None:
        self._sums, self._increments, self._bit_count = first + second, second, bit_count

    def current(self) -> IntArray:
        return _remainder(_complemented(self._sums.astype(np.int64)), self._bit_count)

    def advance(self) -> None:
        self._sums += self._increments

    def keep(self, rows: IntArray) -> None:
        self._sums, self._increments = self._sums[rows], self._increments[rows]


def _complemented(sums: IntArray) -> IntArray:
    """`~x` for each negative `x`, and the others as they are."""
    folded = sums >> np.int64(63)
    folded ^= sums
    return folded


def _remainder(dividends: IntArray, divisor: int) -> IntArray:
    """`dividends % divisor` of numbers that are not negative."""
    # numpy divides unsigned numbers by a constant with a multiplication, but has no such way for `%`.
    unsigned = dividends.view(np.uint64)
    multiples = unsigned // np.uint64(divisor)
    multiples *= np.uint64(divisor)
    np.subtract(unsigned, multiples, out=multiples)
    return multiples.view(np.int64)
