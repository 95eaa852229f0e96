"""32-bit murmur3 as Spark's bloom filter computes it, over arrays.

Whole words hash as in other libraries. Spark hashes each byte after the last whole word as a signed word of its own,
so strings whose length is not a multiple of four have other hashes than in other libraries.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pruning.values.byte_strings import ByteArray, IntArray

Words: TypeAlias = npt.NDArray[np.uint32]
Seeds: TypeAlias = "int | Words"

_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
_M1, _M2 = np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35)
_FIVE, _ADDEND = np.uint32(5), np.uint32(0xE6546B64)
_HIGH = np.uint64(32)


def hash_ints(values: Words, seeds: Seeds) -> Words:
    """Hash of each 4-byte value; `seeds` is one seed for all or one for each."""
    return _finished(_mixed(_scrambled(values), seeds), np.uint32(4))


def hash_longs(values: npt.NDArray[np.uint64], seeds: Seeds) -> Words:
    """Hash of each 8-byte value; `seeds` is one seed for all or one for each."""
    low, high = _halves(values)
    return _hash_halves(low, high, seeds)


def hash_long_pair(values: npt.NDArray[np.uint64], seed: int) -> tuple[Words, Words]:
    """Hash of each 8-byte value, and its hash seeded with the first one."""
    low, high = _halves(values)
    first = _hash_halves(low, high, seed)
    return first, _hash_halves(low, high, first)


def hash_bytes(data: ByteArray, starts: IntArray, lengths: IntArray, seeds: Seeds) -> Words:
    """Hash of each `data[start:start + length]`; `seeds` is one seed for all or one for each."""
    hashes = np.empty(len(starts), np.uint32)
    hashes[:] = _seed(seeds)
    _mix_words(hashes, np.ascontiguousarray(data), starts, lengths)
    tail = starts + (lengths & ~3)
    for step in range(3):
        rows = np.flatnonzero((lengths & 3) > step)
        signed = data[tail[rows] + step].view(np.int8).astype(np.int32).view(np.uint32)
        hashes[rows] = _mixed(_scrambled(signed), hashes[rows])
    return _finished(hashes, lengths.astype(np.uint32))


def _mix_words(hashes: Words, data: ByteArray, starts: IntArray, lengths: IntArray) -> None:
    counts = lengths >> 2
    # Longest first: the strings that still have a word to mix are always a prefix.
    order = np.argsort(-counts, kind="stable")
    descending, positions = -counts[order], starts[order]
    mixed = hashes[order]
    for step in range(int(counts.max(initial=0))):
        live = int(np.searchsorted(descending, -step, "left"))
        words = np.ndarray((len(data) - 3,), "<u4", data, 0, (1,))
        mixed[:live] = _mixed(_scrambled(words[positions[:live] + 4 * step]), mixed[:live])
    hashes[order] = mixed


def _halves(values: npt.NDArray[np.uint64]) -> tuple[Words, Words]:
    return _scrambled(values.astype(np.uint32)), _scrambled((values >> _HIGH).astype(np.uint32))


def _hash_halves(low: Words, high: Words, seeds: Seeds) -> Words:
    return _finished(_mixed(high, _mixed(low, seeds)), np.uint32(8))


def _scrambled(words: npt.NDArray[Any]) -> Words:
    scrambled = _rotated(words * _C1, 15)
    scrambled *= _C2
    return scrambled


def _mixed(words: Words, seeds: Seeds) -> Words:
    mixed = _rotated(words ^ _seed(seeds), 13)
    mixed *= _FIVE
    mixed += _ADDEND
    return mixed


def _finished(hashes: Words, lengths: np.uint32 | Words) -> Words:
    hashes ^= lengths
    hashes ^= hashes >> np.uint32(16)
    hashes *= _M1
    hashes ^= hashes >> np.uint32(13)
    hashes *= _M2
    hashes ^= hashes >> np.uint32(16)
    return hashes


def _rotated(words: Words, bits: int) -> Words:
    """`words` rotated left; the array is overwritten."""
    rotated = words << np.uint32(bits)
    words >>= np.uint32(32 - bits)
    rotated |= words
    return rotated


def _seed(seeds: Seeds) -> np.uint32 | Words:
    return np.uint32(seeds & 0xFFFFFFFF) if isinstance(seeds, int) else seeds
