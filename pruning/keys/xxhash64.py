"""64-bit xxHash over arrays, equal bit for bit to Spark SQL's `xxhash64(column, ...)`.

It is the standard xxHash64 of the little-endian bytes of each value. Hashes are unsigned here and signed in Spark, with
the same bits. Spark hashes the stored form of a value, so an `int` 7 and a `bigint` 7 are equal but have different
hashes: cast keys to the probe column's type before hashing.

| type | hashed as |
|---|---|
| tinyint, smallint, int, boolean, date, float | 4 bytes |
| bigint, timestamp, timestamp_ntz, double, decimal up to 18 digits | 8 bytes |
| decimal, more digits | the fewest big-endian bytes that hold the unscaled number |
| string, binary | its bytes |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pruning.values.byte_strings import ByteArray, ByteStrings, IntArray
from pruning.values.encoding import Codes, float_values
from pruning.values.types import ValueType

Hashes: TypeAlias = npt.NDArray[np.uint64]
Seeds: TypeAlias = "int | Hashes"

_MASK = (1 << 64) - 1
_P1, _P2, _P3 = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9)
_P4, _P5 = np.uint64(0x85EBCA77C2B2AE63), np.uint64(0x27D4EB2F165667C5)
_LANE_SEEDS = np.array([(int(_P1) + int(_P2)) & _MASK, int(_P2), 0, -int(_P1) & _MASK], np.uint64)
_LANE_ROTATIONS = (1, 7, 12, 18)
# A block's working arrays stay in the cache.
_BLOCK = 1 << 14


def hash_ints(values: npt.NDArray[np.uint32], seeds: Seeds) -> Hashes:
    """Hash of each 4-byte value; `seeds` is one seed for all or one for each."""
    return _in_blocks(lambda part, seed: _finished(_with_int(_begun(seed, 4), part)), values, seeds)


def hash_longs(values: npt.NDArray[np.uint64], seeds: Seeds) -> Hashes:
    """Hash of each 8-byte value; `seeds` is one seed for all or one for each."""
    return _in_blocks(lambda part, seed: _finished(_with_long(_begun(seed, 8), part)), values, seeds)


def hash_bytes(data: ByteArray, starts: IntArray, lengths: IntArray, seeds: Seeds) -> Hashes:
    """Hash of each `data[start:start + length]`; `seeds` is one seed for all or one for each."""
    flat = np.ascontiguousarray(data)
    rows = np.arange(len(starts))
    return _in_blocks(lambda part, seed: _hash_strings(flat, starts[part], lengths[part], seed), rows, seeds)


def _in_blocks(kernel: Callable[[Any, Seeds], Hashes], values: npt.NDArray[Any], seeds: Seeds) -> Hashes:
    hashes = np.empty(len(values), np.uint64)
    for begin in range(0, len(values), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        hashes[block] = kernel(values[block], seeds if isinstance(seeds, int) else seeds[block])
    return hashes


def _hash_strings(data: ByteArray, starts: IntArray, lengths: IntArray, seeds: Seeds) -> Hashes:
    hashes = np.empty(len(starts), np.uint64)
    hashes[:] = _begun(seeds, 0)
    long = np.flatnonzero(lengths >= 32)
    if len(long):
        own_seeds = np.full(len(long), seeds & _MASK, np.uint64) if isinstance(seeds, int) else seeds[long]
        hashes[long] = _hash_stripes(data, starts[long], lengths[long] >> 5, own_seeds)
    hashes += lengths.astype(np.uint64)
    _add_rest(hashes, data, starts + (lengths & ~31), lengths & 31)
    return _finished(hashes)


def _hash_stripes(data: ByteArray, starts: IntArray, counts: IntArray, seeds: Hashes) -> Hashes:
    """The state after the whole 32-byte stripes of each string; `counts` holds their number, at least one."""
    # Longest first: the strings that still have a stripe to add are always a prefix.
    order = np.argsort(-counts, kind="stable")
    descending, positions = -counts[order], starts[order]
    lanes = seeds[order][:, None] + _LANE_SEEDS
    stripes: Hashes = np.ndarray((len(data) - 31, 4), "<u8", data, 0, (1, 8))
    for step in range(int(counts.max())):
        live = int(np.searchsorted(descending, -step, "left"))
        lanes[:live] += stripes[positions[:live] + 32 * step] * _P2
        lanes[:live] = _rotated(lanes[:live], 31) * _P1
    hashes = np.empty(len(starts), np.uint64)
    hashes[order] = _joined(lanes)
    return hashes


def _joined(lanes: Hashes) -> Hashes:
    hashes = np.zeros(len(lanes), np.uint64)
    for lane, bits in enumerate(_LANE_ROTATIONS):
        hashes += _rotated(lanes[:, lane].copy(), bits)
    for lane in range(4):
        hashes ^= _scrambled(lanes[:, lane])
        hashes *= _P1
        hashes += _P4
    return hashes


def _add_rest(hashes: Hashes, data: ByteArray, positions: IntArray, lengths: IntArray) -> None:
    """Adds the last `lengths` bytes, fewer than 32, of each string: words, then half a word, then bytes."""
    for step in range(3):
        rows = np.flatnonzero(lengths >> 3 > step)
        hashes[rows] = _with_long(hashes[rows], _unaligned(data, "<u8", positions[rows] + 8 * step))
    positions = positions + (lengths & ~7)
    rows = np.flatnonzero(lengths & 4)
    hashes[rows] = _with_int(hashes[rows], _unaligned(data, "<u4", positions[rows]))
    positions = positions + (lengths & 4)
    for step in range(3):
        rows = np.flatnonzero((lengths & 3) > step)
        added = _rotated(hashes[rows] ^ data[positions[rows] + step].astype(np.uint64) * _P5, 11)
        hashes[rows] = added * _P1


def _unaligned(data: ByteArray, dtype: str, positions: IntArray) -> npt.NDArray[Any]:
    """The number that starts at each byte position."""
    if len(positions) == 0:
        return np.empty(0, dtype)
    numbers = np.ndarray((len(data) - np.dtype(dtype).itemsize + 1,), dtype, data, 0, (1,))
    return numbers[positions]


def _begun(seeds: Seeds, length: int) -> np.uint64 | Hashes:
    begun = int(_P5) + length
    return np.uint64((seeds + begun) & _MASK) if isinstance(seeds, int) else seeds + np.uint64(begun)


def _with_int(hashes: np.uint64 | Hashes, values: npt.NDArray[np.uint32]) -> Hashes:
    mixed = _rotated(values.astype(np.uint64) * _P1 ^ hashes, 23)
    mixed *= _P2
    mixed += _P3
    return mixed


def _with_long(hashes: np.uint64 | Hashes, values: Hashes) -> Hashes:
    mixed = _scrambled(values)
    mixed ^= hashes
    mixed = _rotated(mixed, 27)
    mixed *= _P1
    mixed += _P4
    return mixed


def _scrambled(words: Hashes) -> Hashes:
    scrambled = _rotated(words * _P2, 31)
    scrambled *= _P1
    return scrambled


def _finished(hashes: Hashes) -> Hashes:
    hashes ^= hashes >> np.uint64(33)
    hashes *= _P2
    hashes ^= hashes >> np.uint64(29)
    hashes *= _P3
    hashes ^= hashes >> np.uint64(32)
    return hashes


def _rotated(words: Hashes, bits: int) -> Hashes:
    """`words` rotated left; the array is overwritten."""
    rotated = words << np.uint64(bits)
    words >>= np.uint64(64 - bits)
    rotated |= words
    return rotated


SPARK_SEED = 42
_SIGN_BIT = np.uint8(0x80)


def hash_codes(type_: ValueType, codes: Codes, seeds: Seeds = SPARK_SEED) -> Hashes:
    """`xxhash64` of each value of `type_`; `seeds` is one seed for all or one for each."""
    match type_.name, codes:
        case "decimal", ByteStrings():
            return hash_bytes(*_minimal_big_endian(codes), seeds)
        case _, ByteStrings():
            return hash_bytes(codes.data, codes.offsets[:-1], codes.lengths(), seeds)
        case "tinyint" | "smallint" | "int" | "boolean" | "date", _:
            return hash_ints(codes.astype(np.uint32), seeds)
        case "float", _:
            return hash_ints(float_values(codes).astype(np.float32).view(np.uint32), seeds)
        case "double", _:
            return hash_longs(float_values(codes).view(np.uint64), seeds)
        case "bigint" | "timestamp" | "timestamp_ntz" | "decimal", _:
            return hash_longs(codes.view(np.uint64), seeds)
        case _:
            msg = f"Cannot hash int64 codes as {type_}: its codes are byte strings"
            raise ValueError(msg)


def _minimal_big_endian(codes: ByteStrings) -> tuple[ByteArray, IntArray, IntArray]:
    """Codes of long decimals as Java's `BigInteger.toByteArray`: data, starts and lengths."""
    width = 16
    rows = codes.packed().data.reshape(-1, width).copy()
    rows[:, 0] ^= _SIGN_BIT
    # A leading byte is redundant where it only repeats the sign bit of the next byte.
    telling = np.ones(rows.shape, bool)
    np.not_equal(rows[:, :-1], (rows[:, 1:].view(np.int8) >> 7).view(np.uint8), out=telling[:, :-1])
    skipped = telling.argmax(axis=1)
    return rows.reshape(-1), np.arange(len(rows)) * width + skipped, width - skipped
