"""Spark's bloom filter, one item at a time, as the JVM evaluates it: the oracle for the vectorised bloom filter."""

from __future__ import annotations


def murmur3_long(item: int, seed: int) -> int:
    state = seed & 0xFFFFFFFF
    for word in (item & 0xFFFFFFFF, item >> 32 & 0xFFFFFFFF):
        state = _mixed(word, state)
    return signed(_finished(state, 8), 32)


def murmur3_bytes(item: bytes, seed: int) -> int:
    state, aligned = seed & 0xFFFFFFFF, len(item) // 4 * 4
    for start in range(0, aligned, 4):
        state = _mixed(int.from_bytes(item[start : start + 4], "little"), state)
    for byte in item[aligned:]:
        state = _mixed(signed(byte, 8) & 0xFFFFFFFF, state)
    return signed(_finished(state, len(item)), 32)


def positions_v1(item: int, hash_count: int, bit_count: int) -> list[int]:
    first = murmur3_long(item, 0)
    second = murmur3_long(item, first)
    sums = [signed(first + step * second, 32) for step in range(1, hash_count + 1)]
    return [(~each if each < 0 else each) % bit_count for each in sums]


def positions_v2(item: int, hash_count: int, bit_count: int, seed: int) -> list[int]:
    first = murmur3_long(item, seed)
    second = murmur3_long(item, first)
    found, state = [], first * (2**31 - 1)
    for _ in range(hash_count):
        state = signed(state + second, 64)
        found.append((~state if state < 0 else state) % bit_count)
    return found


def signed(number: int, bits: int) -> int:
    """The low `bits` of a number as a signed Java integer."""
    low = number & ((1 << bits) - 1)
    return low - (1 << bits) if low >> (bits - 1) else low


def _mixed(word: int, state: int) -> int:
    scrambled = _rotated(word * 0xCC9E2D51, 15) * 0x1B873593 & 0xFFFFFFFF
    return (_rotated(state ^ scrambled, 13) * 5 + 0xE6546B64) & 0xFFFFFFFF


def _finished(state: int, length: int) -> int:
    state ^= length
    state = (state ^ state >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    state = (state ^ state >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return state ^ state >> 16


def _rotated(word: int, bits: int) -> int:
    low = word & 0xFFFFFFFF
    return (low << bits | low >> (32 - bits)) & 0xFFFFFFFF
