"""Sketch of keys that are too many to list: their bounds, coarse ranges and a bloom filter.

Each part depends only on the keys that were added, not on their order or grouping, so partial results merge to
the same whole. Each part only widens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pruning.keys.bloom import MAX_BYTES, BloomFilter
from pruning.values import encoding as code
from pruning.values.byte_strings import ByteStrings, IntArray, greatest, least
from pruning.values.encoding import Codes
from pruning.values.ranges import RangeSet
from pruning.values.types import ValueType

_WORD = 8
_WORD_BITS = 64
# Ranges that too many keys become: they follow clusters, and compare with every container's bounds at no cost.
_COARSE_RANGES = 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class KeySketch:
    """Bounds of codes of one type, one code each or none, and for int64 codes at most `_COARSE_RANGES` ranges.

    Range `p` holds the codes whose bits above the lowest `shift` are `p`; `shift` is the least that gives so few
    ranges.

    >>> span = KeySketch.empty(ValueType("bigint")).adding(np.arange(0, 3_000_000, 100))
    >>> span.shift, len(span.prefixes), span.range_set()
    (8, 11719, RangeSet[bigint]{[0, 2999900]})
    """

    type: ValueType
    low: Codes
    high: Codes
    shift: int
    prefixes: IntArray

    @staticmethod
    def empty(type_: ValueType) -> KeySketch:
        """The sketch of no codes."""
        nothing = code.empty(type_)
        return KeySketch(type_, nothing, nothing, 0, np.zeros(0, np.int64))

    def adding(self, codes: Codes) -> KeySketch:
        """A sketch of the codes of this one and of `codes`."""
        return self.merge(_span_of(self.type, codes)) if len(codes) else self

    def merge(self, other: KeySketch) -> KeySketch:
        """The sketch of the codes of both."""
        shift = max(self.shift, other.shift)
        prefixes = np.concatenate([self.prefixes >> (shift - self.shift), other.prefixes >> (shift - other.shift)])
        low, _ = _bounds(code.concat(self.type, [self.low, other.low]))
        _, high = _bounds(code.concat(self.type, [self.high, other.high]))
        return KeySketch(self.type, low, high, *_coarsened(distinct(prefixes), shift))

    def range_set(self) -> RangeSet:
        """Ranges that hold every code added."""
        bounds = RangeSet.of_ranges(self.type, self.low, self.high)
        if isinstance(self.low, ByteStrings):
            return bounds
        lows = self.prefixes << self.shift
        # A shift by 63 wraps to -1, which is correct: the range of the sign bit 0 ends at the greatest int64.
        highs = lows + np.int64((1 << self.shift) - 1)
        return RangeSet.of_ranges(self.type, lows, highs).intersect(bounds)


def distinct(codes: IntArray) -> IntArray:
    """The distinct codes in ascending order; sorts instead of hashing, which is faster from some thousands on."""
    return distinct_in_place(codes.copy())


def distinct_in_place(codes: IntArray) -> IntArray:
    """The distinct codes in ascending order; the array is sorted in place, and returned if no code repeats."""
    codes.sort()
    kept = np.ones(len(codes), bool)
    np.not_equal(codes[1:], codes[:-1], out=kept[1:])
    return codes if kept.all() else codes[kept]


def _span_of(type_: ValueType, codes: Codes) -> KeySketch:
    low, high = _bounds(codes)
    if isinstance(codes, ByteStrings):
        return KeySketch(type_, low, high, 0, np.zeros(0, np.int64))
    return KeySketch(type_, low, high, *_coarsened(distinct(codes), 0))


def _coarsened(prefixes: IntArray, shift: int) -> tuple[int, IntArray]:
    if len(prefixes) <= _COARSE_RANGES:
        return shift, prefixes
    # Neighbouring prefixes stay distinct while their highest differing bit is above the shift.
    differing = (prefixes[1:] ^ prefixes[:-1]).view(np.uint64)
    greatest_dropped = np.partition(differing, -_COARSE_RANGES)[-_COARSE_RANGES]
    more = int(greatest_dropped).bit_length()
    shorter = prefixes >> more
    return shift + more, shorter[np.append(True, shorter[1:] != shorter[:-1])]


def _bounds(codes: Codes) -> tuple[Codes, Codes]:
    if len(codes) == 0:
        return codes, codes
    if isinstance(codes, ByteStrings):
        return codes.take(np.array([least(codes)])), codes.take(np.array([greatest(codes)]))
    return codes.min(keepdims=True), codes.max(keepdims=True)


def roomy_bloom(keys: int, fpp: float, max_bytes: int) -> BloomFilter:
    """An empty filter with room for `keys` at `fpp`, of at most about `max_bytes`, that can be folded."""
    hash_count = max(1, round(-math.log2(fpp)))
    wanted = math.ceil(keys * -math.log(fpp) / math.log(2) ** 2 / _WORD_BITS)
    most = max(1, min(max_bytes, MAX_BYTES) // _WORD)
    words = min(1 << (wanted - 1).bit_length(), 1 << (most.bit_length() - 1))
    return BloomFilter(np.zeros(words, np.uint64), hash_count)


def folded(bloom: BloomFilter, fpp: float) -> BloomFilter:
    """The smallest halving of `bloom` that keeps the rate `fpp`."""
    while (half := bloom.halved()) is not None and half.expected_fpp <= fpp:
        bloom = half
    return bloom
