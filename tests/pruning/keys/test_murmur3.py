from __future__ import annotations

import mmh3
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.keys import murmur3
from pruning.values.byte_strings import ByteStrings
from tests.pruning import java_bloom

longs = st.integers(-(2**63), 2**63 - 1)
seeds = st.integers(-(2**31), 2**31 - 1)


def hash_strings(items: list[bytes], seed: int) -> list[int]:
    strings = ByteStrings.of(items)
    hashes = murmur3.hash_bytes(strings.data, strings.offsets[:-1], strings.lengths(), seed)
    return hashes.view(np.int32).tolist()


@given(st.lists(longs, max_size=20), seeds)
def test_longs_hash_as_in_mmh3(items, seed):
    hashes = murmur3.hash_longs(np.array(items, np.int64).view(np.uint64), seed)
    expected = [mmh3.hash(item.to_bytes(8, "little", signed=True), seed & 0xFFFFFFFF) for item in items]
    assert expected == hashes.view(np.int32).tolist()


@given(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=20), seeds)
def test_ints_hash_as_in_mmh3(items, seed):
    hashes = murmur3.hash_ints(np.array(items, np.int32).view(np.uint32), seed)
    expected = [mmh3.hash(item.to_bytes(4, "little", signed=True), seed & 0xFFFFFFFF) for item in items]
    assert expected == hashes.view(np.int32).tolist()


@given(st.lists(longs, max_size=20), seeds)
def test_second_hash_of_a_pair_is_seeded_with_the_first(items, seed):
    first, second = murmur3.hash_long_pair(np.array(items, np.int64).view(np.uint64), seed)
    expected = [java_bloom.murmur3_long(item, seed) for item in items]
    assert expected == first.view(np.int32).tolist()
    assert [java_bloom.murmur3_long(item, one) for item, one in zip(items, expected, strict=True)] == second.view(
        np.int32
    ).tolist()


@given(st.lists(st.binary(max_size=40), max_size=20), seeds)
def test_strings_of_mixed_lengths_match_scalar_hashes(items, seed):
    assert [java_bloom.murmur3_bytes(item, seed) for item in items] == hash_strings(items, seed)


@pytest.mark.parametrize("length", range(9))
def test_strings_without_a_tail_hash_as_in_mmh3(length):
    item = bytes(range(200, 200 + length))
    agrees = mmh3.hash(item, 7) == hash_strings([item], 7)[0]
    assert (length % 4 == 0) == agrees


def test_string_may_be_a_slice_of_the_data():
    data = np.frombuffer(b"skipped-abcdef-skipped", np.uint8)
    hashes = murmur3.hash_bytes(data, np.array([8]), np.array([6]), 0)
    assert [java_bloom.murmur3_bytes(b"abcdef", 0)] == hashes.view(np.int32).tolist()
