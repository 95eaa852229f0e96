"""Hashes of codes, equal to Spark SQL's `xxhash64(column, ...)` bit for bit.

Spark hashes the stored form of a value, so the type matters as much as the value: an `int` 7 and a
`bigint` 7 are equal and hash differently. Bring keys to the probe column's type before hashing.

| type | hashed as |
|---|---|
| tinyint, smallint, int, boolean, date, float | 4 bytes |
| bigint, timestamp, timestamp_ntz, double, decimal up to 18 digits | 8 bytes |
| decimal, more digits | the fewest big-endian bytes that hold the unscaled number |
| string, binary | its bytes |
"""

from __future__ import annotations

import numpy as np

from pruning import xxhash64
from pruning.byte_strings import ByteArray, ByteStrings, IntArray
from pruning.codes import Codes, float_values
from pruning.value_type import ValueType
from pruning.xxhash64 import Hashes, Seeds

SPARK_SEED = 42
_SIGN_BIT = np.uint8(0x80)


def hash_codes(type_: ValueType, codes: Codes, seeds: Seeds = SPARK_SEED) -> Hashes:
    """`xxhash64` of each value of `type_`; `seeds` is one seed for all or one for each."""
    match type_.name, codes:
        case "decimal", ByteStrings():
            return xxhash64.hash_bytes(*_minimal_big_endian(codes), seeds)
        case _, ByteStrings():
            return xxhash64.hash_bytes(codes.data, codes.offsets[:-1], codes.lengths(), seeds)
        case "tinyint" | "smallint" | "int" | "boolean" | "date", _:
            return xxhash64.hash_ints(codes.astype(np.uint32), seeds)
        case "float", _:
            return xxhash64.hash_ints(float_values(codes).astype(np.float32).view(np.uint32), seeds)
        case "double", _:
            return xxhash64.hash_longs(float_values(codes).view(np.uint64), seeds)
        case "bigint" | "timestamp" | "timestamp_ntz" | "decimal", _:
            return xxhash64.hash_longs(codes.view(np.uint64), seeds)
        case _:
            msg = f"Cannot hash int64 codes as {type_}: its codes are byte strings"
            raise ValueError(msg)


def _minimal_big_endian(codes: ByteStrings) -> tuple[ByteArray, IntArray, IntArray]:
    """Codes of long decimals as Java's `BigInteger.toByteArray`: data, starts and lengths."""
    width = 16
    rows = codes.packed().data.reshape(-1, width).copy()
    rows[:, 0] ^= _SIGN_BIT
    # A leading byte says nothing where it repeats the sign bit of the byte after it.
    telling = np.ones(rows.shape, bool)
    np.not_equal(rows[:, :-1], (rows[:, 1:].view(np.int8) >> 7).view(np.uint8), out=telling[:, :-1])
    skipped = telling.argmax(axis=1)
    return rows.reshape(-1), np.arange(len(rows)) * width + skipped, width - skipped
