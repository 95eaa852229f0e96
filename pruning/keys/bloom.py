"""`BloomFilter`: a set of 64-bit hashes with false positives and no false negatives.

It is bit for bit Spark's own `BloomFilter`, so that the JVM's `might_contain` and numpy share one filter. Its items are
`xxhash64` values (see `pruning.keys.xxhash64`), as in Spark's runtime filters.

Each item has two murmur3 hashes, `first` and `second`, read as signed numbers, and from them `hash_count` bit
positions. The position at step `i = 1, 2, ...` is `x % bit_count`, or `~x % bit_count` where `x` is negative, with

- version 1: `x = first + i * second`, wrapping at 32 bits
- version 2: `x = first * (2**31 - 1) + i * second` in 64 bits
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from pruning.keys import murmur3
from pruning.keys.xxhash64 import Hashes
from pruning.values.byte_strings import ByteArray, IntArray
from pruning.values.ranges import BoolArray

BitWords: TypeAlias = npt.NDArray[np.uint64]

VERSION_1, VERSION_2 = 1, 2
# A Java array, which is how the JVM holds the filter, has at most 2**31 - 1 bytes.
MAX_BYTES = (1 << 31) - 64

_WORD_BITS = 64
_BLOCK = 1 << 14
_DROP_BELOW = 0.6
_SPARE_BITS = 1.125
# In a filter of few words two items often share all positions, however many bits there are for each item.
_LEAST_WORDS = 128
# Probability: a bloom that passes more drops fewer than half of the rows, even where not one matches.
_USELESS_FPP = 0.5
_V1_POSITIONS = 1 << 31
_HEADERS = {VERSION_1: struct.Struct(">iii"), VERSION_2: struct.Struct(">iiii")}


@dataclass(frozen=True, slots=True)
class TooLarge:
    """The refusal of a filter that is too large: the needed and the allowed size, in bytes."""

    items: int
    fpp: float
    needed_bytes: int
    max_bytes: int

    def __str__(self) -> str:
        return (
            f"a bloom filter of {self.items:,} items at a false positive rate of {self.fpp:g} takes "
            f"{self.needed_bytes:,} bytes, more than the {self.max_bytes:,} allowed"
        )


@dataclass(frozen=True, slots=True, eq=False)
class BloomFilter:
    """An immutable bloom filter: adding and merging give a new one. Two filters are equal if their `to_bytes()` are.

    >>> empty = BloomFilter.of_capacity(1000, 0.01)
    >>> empty.might_contain(np.array([7], np.uint64)).tolist()
    [False]
    >>> empty.adding(np.array([7], np.uint64)).might_contain(np.array([7], np.uint64)).tolist()
    [True]
    """

    words: BitWords
    hash_count: int
    version: int = VERSION_2
    seed: int = 0

    def __post_init__(self) -> None:
        if self.version not in _HEADERS or (self.version == VERSION_1 and self.seed != 0):
            msg = f"Cannot make a bloom filter of version {self.version} with seed {self.seed}: see Spark's BloomFilter"
            raise ValueError(msg)
        if len(self.words) == 0 or self.hash_count < 1:
            msg = f"Cannot make a bloom filter of {len(self.words)} words and {self.hash_count} hashes: expected some"
            raise ValueError(msg)
        self.words.setflags(write=False)

    @staticmethod
    def of_capacity(
        items: int, fpp: float, *, max_bytes: int = MAX_BYTES, version: int = VERSION_2
    ) -> BloomFilter | TooLarge:
        """An empty filter whose false positive rate is `fpp` once it holds `items`."""
        if items < 0 or not 0 < fpp < 1:
            msg = f"Cannot size a bloom filter for {items} items at a rate of {fpp}: expected 0 < rate < 1"
            raise ValueError(msg)
        hash_count = _hash_count(fpp)
        words = max(_LEAST_WORDS, math.ceil(items * _bits_per_item(fpp, hash_count) / _WORD_BITS))
        if words * 8 > min(max_bytes, MAX_BYTES):
            return TooLarge(items, fpp, words * 8, min(max_bytes, MAX_BYTES))
        return BloomFilter(np.zeros(words, np.uint64), hash_count, version)

    @property
    def bit_count(self) -> int:
        """Size of the filter in bits."""
        return len(self.words) * _WORD_BITS

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return int(self.words.nbytes)

    @property
    def fill_ratio(self) -> float:
        """The share of usable bits that are set."""
        blocks = range(0, len(self.words), _BLOCK)
        ones = sum(int(np.bitwise_count(self.words[at : at + _BLOCK]).sum(dtype=np.int64)) for at in blocks)
        usable = self.bit_count if self.version == VERSION_2 else min(self.bit_count, _V1_POSITIONS)
        return ones / usable

    @property
    def expected_fpp(self) -> float:
        """The false positive rate that follows from the share of set bits."""
        return float(self.fill_ratio**self.hash_count)

    @property
    def is_useless(self) -> bool:
        """True if the filter passes most of what does not match."""
        return self.expected_fpp > _USELESS_FPP

    def adding(self, hashes: Hashes) -> BloomFilter:
        """A filter with the items of this one and `hashes`."""
        words = self.words.copy()
        octets = words.view(np.uint8)
        for begin in range(0, len(hashes), _BLOCK):
            cursor = self._positions(hashes[begin : begin + _BLOCK])
            _set_bits(octets, cursor.current())
            for _ in range(1, self.hash_count):
                cursor.advance()
                _set_bits(octets, cursor.current())
        return replace(self, words=words)

    def might_contain(self, hashes: Hashes) -> BoolArray:
        """An array: True for each hash that was added, and by chance for others; False proves that it was not added."""
        octets = self.words.view(np.uint8)
        found = np.zeros(len(hashes), bool)
        for begin in range(0, len(hashes), _BLOCK):
            block = hashes[begin : begin + _BLOCK]
            survivors = _survivors(octets, self._positions(block), len(block), self.hash_count)
            found[begin : begin + _BLOCK][survivors] = True
        return found

    def merge(self, other: BloomFilter) -> BloomFilter:
        """The union of both; `ValueError` where the two differ in size, hashes, version or seed."""
        if self._shape != other._shape:
            msg = f"Cannot merge bloom filters of different shapes: found {self._shape} and {other._shape}"
            raise ValueError(msg)
        return replace(self, words=self.words | other.words)

    def halved(self) -> BloomFilter | None:
        """A filter of the same keys in half of the words; None where their number is odd.

        A bit position is a hash modulo the size, and taking it modulo half the size gives the position in a filter of
        half the size. So that filter is the bitwise OR of the two halves.
        """
        half, rest = divmod(len(self.words), 2)
        return None if rest else replace(self, words=self.words[:half] | self.words[half:])

    @property
    def _shape(self) -> str:
        return f"{len(self.words)} words with {self.hash_count} hashes, version {self.version}, seed {self.seed}"

    def _positions(self, hashes: Hashes) -> Positions:
        return positions(hashes, version=self.version, seed=self.seed, bit_count=self.bit_count, steps=self.hash_count)

    def to_bytes(self) -> bytes:
        """Spark's binary form, for `might_contain` and `BloomFilter.readFrom`."""
        numbers = (self.version, self.hash_count, *([self.seed] if self.version == VERSION_2 else []), len(self.words))
        return _HEADERS[self.version].pack(*numbers) + self.words.astype(">u8").tobytes()

    @staticmethod
    def from_bytes(data: bytes) -> BloomFilter:
        """The filter that Spark or `to_bytes()` wrote; `ValueError` for anything else."""
        version = int.from_bytes(data[:4], "big")
        header = _HEADERS.get(version)
        if header is None or len(data) < header.size:
            msg = f"Cannot read a bloom filter of {len(data)} bytes: found version {version}, expected Spark's 1 or 2"
            raise ValueError(msg)
        _, hash_count, *seed, words = header.unpack_from(data)
        if len(data) != header.size + 8 * words:
            found = len(data) - header.size
            msg = f"Cannot read a bloom filter of {words} words: found {found} bytes, expected {8 * words}"
            raise ValueError(msg)
        bits = np.frombuffer(data, ">u8", words, header.size).astype(np.uint64)
        return BloomFilter(bits, hash_count, version, *seed)


def _hash_count(fpp: float) -> int:
    """The fewest hashes that cost at most `_SPARE_BITS` more bits than the number that needs the fewest bits.

    Each hash is a walk to memory for every key. At 1 % seven hashes need 9.6 bits an item, four need 10.5.
    """
    best = max(1, round(-math.log2(fpp)))
    allowed = _SPARE_BITS * _bits_per_item(fpp, best)
    return next(count for count in range(1, best + 1) if _bits_per_item(fpp, count) <= allowed)


def _bits_per_item(fpp: float, hash_count: int) -> float:
    # The share of set bits is 1 - exp(-hashes * items / bits), and the rate is this share to the power `hash_count`.
    return -hash_count / math.log1p(-(fpp ** (1 / hash_count)))


def _survivors(octets: ByteArray, cursor: Positions, count: int, steps: int) -> IntArray | BoolArray:
    """The rows, of `count`, that have all their bits set, as indices or as a mask."""
    rows: IntArray | None = None
    hits = np.ones(count, np.uint8)
    for step in range(steps):
        if step:
            cursor.advance()
        hits &= _bits_at(octets, cursor.current())
        # Rows that failed are dropped once they are enough to pay for the copying.
        if np.count_nonzero(hits.view(bool)) < _DROP_BELOW * len(hits):
            kept = np.flatnonzero(hits.view(bool))
            rows = kept if rows is None else rows[kept]
            cursor.keep(kept)
            hits = np.ones(len(kept), np.uint8)
    return hits.view(bool) if rows is None else rows[np.flatnonzero(hits)]


def _bits_at(octets: ByteArray, at: npt.NDArray[Any]) -> ByteArray:
    """1 where the bit at a position is set, else 0."""
    shifts = at.astype(np.uint8)
    shifts &= np.uint8(7)
    bits: ByteArray = octets.take(at >> at.dtype.type(3), mode="clip")
    bits >>= shifts
    bits &= np.uint8(1)
    return bits


def _set_bits(octets: ByteArray, at: npt.NDArray[Any]) -> None:
    targets = (at >> at.dtype.type(3)).astype(np.int64)
    bits = np.uint8(1) << (at.astype(np.uint8) & np.uint8(7))
    # If several bits fall into one octet, numpy keeps only the last one written, so lost bits are written again.
    while len(targets):
        octets[targets] |= bits
        lost = np.flatnonzero((octets[targets] & bits) == 0)
        targets, bits = targets[lost], bits[lost]


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
    """Version 2 if no step, of at most 2**31, changes the sign of a sum: remainders are added in 32 bits."""

    def __init__(self, sums: IntArray, increments: npt.NDArray[np.int32], bit_count: int) -> None:
        size = np.uint32(bit_count)
        signs = sums >> np.int64(63)
        self._at = _remainder(sums ^ signs, bit_count).astype(np.uint32)
        step = (increments - increments // np.int32(bit_count) * np.int32(bit_count)).view(np.uint32)
        # The complement of a negative sum decreases while the sum increases, so its step is `size - step`; the sign
        # mask -1 selects these rows.
        down = signs.astype(np.uint32)
        self._step = (step ^ down) - down + (size & down)
        self._size = size

    def current(self) -> npt.NDArray[np.uint32]:
        return self._at

    def advance(self) -> None:
        self._at += self._step
        # Subtracting the size from a smaller number wraps around to a larger one, so the minimum is the remainder.
        np.minimum(self._at, self._at - self._size, out=self._at)

    def keep(self, rows: IntArray) -> None:
        self._at, self._step = self._at[rows], self._step[rows]


class _Wide:
    """Version 2 by its definition."""

    def __init__(self, sums: IntArray, increments: IntArray, bit_count: int) -> None:
        self._sums, self._increments, self._bit_count = sums, increments, bit_count

    def current(self) -> IntArray:
        return _remainder(_complemented(self._sums), self._bit_count)

    def advance(self) -> None:
        self._sums += self._increments

    def keep(self, rows: IntArray) -> None:
        self._sums, self._increments = self._sums[rows], self._increments[rows]


class _Version1:
    """Version 1 by its definition."""

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
    # numpy replaces `//` of unsigned numbers by a constant with a multiplication, but not `%`.
    unsigned = dividends.view(np.uint64)
    multiples = unsigned // np.uint64(divisor)
    multiples *= np.uint64(divisor)
    np.subtract(unsigned, multiples, out=multiples)
    return multiples.view(np.int64)
