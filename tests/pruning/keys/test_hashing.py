from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.keys.key_set import NAN_CODE, row_hashes
from pruning.keys.xxhash64 import SPARK_SEED, hash_codes
from pruning.values import encoding as code
from pruning.values.types import ValueType
from tests.pruning.keys.test_xxhash64 import reference


def hash_one(type_: str, value: Any) -> int:
    parsed = ValueType.parse(type_)
    return int(hash_codes(parsed, code.encode(parsed, [value]))[0])


STORED = [
    ("tinyint", -1, b"\xff\xff\xff\xff"),
    ("smallint", 258, b"\x02\x01\x00\x00"),
    ("int", -(2**31), b"\x00\x00\x00\x80"),
    ("boolean", True, b"\x01\x00\x00\x00"),
    ("date", -1, b"\xff\xff\xff\xff"),
    ("float", 1.5, b"\x00\x00\xc0\x3f"),
    ("float", -0.0, b"\x00\x00\x00\x00"),
    ("bigint", -(2**63), b"\x00\x00\x00\x00\x00\x00\x00\x80"),
    ("timestamp", -1, b"\xff" * 8),
    ("timestamp_ntz", 1, b"\x01" + b"\x00" * 7),
    ("double", -2.0, b"\x00\x00\x00\x00\x00\x00\x00\xc0"),
    ("double", -0.0, b"\x00" * 8),
    ("decimal(18,2)", Decimal("-0.01"), b"\xff" * 8),
    ("decimal(19,0)", Decimal(0), b"\x00"),
    ("decimal(38,10)", Decimal("-0.0000000001"), b"\xff"),
    ("decimal(38,0)", Decimal(128), b"\x00\x80"),
    ("decimal(38,0)", Decimal(-128), b"\x80"),
    ("decimal(38,0)", Decimal(10**38 - 1), (10**38 - 1).to_bytes(16, "big")),
    ("string", "\U0001f600", "\U0001f600".encode()),
    ("binary", b"\x00\xff", b"\x00\xff"),
]


@pytest.mark.parametrize(("type_", "value", "stored"), STORED, ids=[f"{row[0]} {row[1]!r}" for row in STORED])
def test_value_hashes_as_its_stored_bytes(type_, value, stored):
    assert reference(stored, SPARK_SEED) == hash_one(type_, value)


@given(st.integers(-(10**38) + 1, 10**38 - 1))
def test_long_decimals_hash_as_java_big_integer_bytes(unscaled):
    length = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
    stored = unscaled.to_bytes(length, "big", signed=True)
    assert reference(stored, SPARK_SEED) == hash_one("decimal(38,0)", Decimal(unscaled))


# Failure catalogue 77: a filter that is hashed by one width and tested by another loses every row.
def test_equal_values_of_different_width_hash_differently():
    assert hash_one("int", 7) != hash_one("bigint", 7)
    assert hash_one("bigint", 7) != hash_one("decimal(19,0)", Decimal(7))


# Failure catalogue 67: Spark hashes every NaN as the canonical one.
@pytest.mark.parametrize(("type_", "stored"), [("float", b"\x00\x00\xc0\x7f"), ("double", b"\0" * 6 + b"\xf8\x7f")])
def test_nan_has_one_hash(type_, stored):
    assert [reference(stored, SPARK_SEED)] == hash_codes(ValueType(type_), np.array([NAN_CODE])).tolist()


def test_hash_of_a_column_seeds_the_next():
    types = ValueType("int"), ValueType("string")
    rows = tuple(code.encode(type_, values) for type_, values in zip(types, ([1, 2], ["a", "b"]), strict=True))
    expected = [reference(b"a", hash_one("int", 1)), reference(b"b", hash_one("int", 2))]
    assert expected == row_hashes(types, rows).tolist()


def test_int64_codes_for_strings_are_refused():
    with pytest.raises(ValueError, match="Cannot hash int64 codes as string"):
        hash_codes(ValueType("string"), np.zeros(1, np.int64))
