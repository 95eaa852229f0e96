from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.keys import xxhash64
from pruning.values.byte_strings import ByteStrings

MASK = 2**64 - 1
P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5

seeds = st.integers(0, MASK)


def rotated(word: int, bits: int) -> int:
    word &= MASK
    return (word << bits | word >> (64 - bits)) & MASK


def scrambled(word: int) -> int:
    return rotated(word * P2, 31) * P1 & MASK


def reference(item: bytes, seed: int) -> int:
    """The published algorithm, byte by byte."""
    position, state = 0, (seed + P5) & MASK
    if len(item) >= 32:
        lanes = [(seed + P1 + P2) & MASK, (seed + P2) & MASK, seed, (seed - P1) & MASK]
        while position + 32 <= len(item):
            for lane in range(4):
                word = int.from_bytes(item[position + 8 * lane : position + 8 * lane + 8], "little")
                lanes[lane] = rotated(lanes[lane] + word * P2, 31) * P1 & MASK
            position += 32
        state = sum(rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & MASK
        for lane in lanes:
            state = ((state ^ scrambled(lane)) * P1 + P4) & MASK
    state = (state + len(item)) & MASK
    while position + 8 <= len(item):
        word = int.from_bytes(item[position : position + 8], "little")
        state = (rotated(state ^ scrambled(word), 27) * P1 + P4) & MASK
        position += 8
    if position + 4 <= len(item):
        word = int.from_bytes(item[position : position + 4], "little")
        state = (rotated(state ^ word * P1 & MASK, 23) * P2 + P3) & MASK
        position += 4
    for byte in item[position:]:
        state = rotated(state ^ byte * P5 & MASK, 11) * P1 & MASK
    state = (state ^ state >> 33) * P2 & MASK
    state = (state ^ state >> 29) * P3 & MASK
    return state ^ state >> 32


def hash_strings(items: list[bytes], own_seeds: int | np.ndarray) -> list[int]:
    strings = ByteStrings.of(items)
    return xxhash64.hash_bytes(strings.data, strings.offsets[:-1], strings.lengths(), own_seeds).tolist()


@pytest.mark.parametrize(
    ("item", "expected"),
    [(b"", 0xEF46DB3751D8E999), (b"abc", 0x44BC2CF5AD770999), (b"a" * 32, reference(b"a" * 32, 0))],
    ids=["empty", "tail", "stripe"],
)
def test_published_vectors(item, expected):
    assert [expected] == hash_strings([item], 0)


@given(st.lists(st.binary(max_size=110), max_size=20), seeds)
def test_strings_of_mixed_lengths_match_scalar_hashes(items, seed):
    assert [reference(item, seed) for item in items] == hash_strings(items, seed)


@given(st.lists(st.tuples(st.binary(max_size=70), seeds), max_size=20))
def test_each_string_has_its_own_seed(pairs):
    own_seeds = np.array([seed for _, seed in pairs], np.uint64)
    assert [reference(item, seed) for item, seed in pairs] == hash_strings([item for item, _ in pairs], own_seeds)


@given(st.lists(st.tuples(st.integers(0, MASK), seeds), max_size=20))
def test_integers_hash_as_their_little_endian_bytes(pairs):
    own_seeds = np.array([seed for _, seed in pairs], np.uint64)
    longs = np.array([number for number, _ in pairs], np.uint64)
    ints = longs.astype(np.uint32)
    assert hash_strings([each.tobytes() for each in longs], own_seeds) == xxhash64.hash_longs(longs, own_seeds).tolist()
    assert hash_strings([each.tobytes() for each in ints], own_seeds) == xxhash64.hash_ints(ints, own_seeds).tolist()


def test_block_size_does_not_change_hashes():
    count = 40_000
    longs = np.arange(count, dtype=np.uint64)
    whole = xxhash64.hash_longs(longs, 42)
    assert [reference(int(each).to_bytes(8, "little"), 42) for each in longs[-3:]] == whole[-3:].tolist()
    strings = ByteStrings.of_fixed_width(longs.view(np.uint8).reshape(count, 8))
    hashes = xxhash64.hash_bytes(strings.data, strings.offsets[:-1], strings.lengths(), np.full(count, 42, np.uint64))
    assert whole.tolist() == hashes.tolist()
