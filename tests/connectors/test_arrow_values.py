from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from connectors.arrow_values import CodedArray, arrow_of, coded, value_type_of
from pruning.errors import UnsupportedTypeError
from pruning.values import encoding as code
from pruning.values.encoding import Codes
from pruning.values.types import ValueType

CASES = [
    (pa.int8(), [-128, 127], "tinyint"),
    (pa.uint8(), [0, 255], "smallint"),
    (pa.int32(), [-(2**31), 2**31 - 1], "int"),
    (pa.uint32(), [0, 2**32 - 1], "bigint"),
    (pa.int64(), [-(2**63), 2**63 - 1], "bigint"),
    (pa.bool_(), [False, True], "boolean"),
    (pa.decimal128(7, 2), [Decimal("-99999.99"), Decimal("0.01")], "decimal(7,2)"),
    (pa.decimal128(38, 3), [Decimal("-99999999999999999999999999999999999.999"), Decimal("0.001")], "decimal(38,3)"),
    (pa.uint64(), [0, 2**64 - 1], "decimal(20,0)"),
    (pa.float64(), [float("-inf"), 5e-324], "double"),
    (pa.string(), ["", "\U0001f600"], "string"),
    (pa.binary(), [b"", b"\xff\x00"], "binary"),
]


def present(values: CodedArray) -> Codes:
    """The codes of the values that are neither NULL nor NaN."""
    return values.codes.take(np.flatnonzero(values.valid))


@pytest.mark.parametrize(("arrow_type", "values", "expected"), CASES, ids=[str(case[0]) for case in CASES])
@pytest.mark.parametrize("offset", [0, 2], ids=["whole", "sliced"])
def test_arrow_values_round_trip_through_codes(arrow_type, values, expected, offset):
    array = pa.array([*([values[0]] * offset), values[0], None, values[1]], arrow_type)[offset:]
    type_ = value_type_of(arrow_type)
    result = coded(array, type_)
    assert expected == str(type_)
    assert [True, False, True] == result.valid.tolist()
    assert values == code.decode(type_, present(result))
    assert 1 == result.null_count
    back = arrow_of(type_, present(result)).to_pylist()
    assert values == [int(each) if arrow_type == pa.uint64() else each for each in back]


@pytest.mark.parametrize(("unit", "factor"), [("s", 10**6), ("ms", 1000)])
def test_timestamps_out_of_range_are_not_valid(unit, factor):
    most = (2**63 - 1) // factor
    array = pa.array([most, most + 1, -most, -most - 1, 2**64 // factor + 1, None], pa.timestamp(unit))
    result = coded(array, ValueType("timestamp_ntz"))
    assert [True, False, True, False, False, False] == result.valid.tolist()
    assert [most * factor, -most * factor] == present(result).tolist()


def test_temporal_values_become_days_and_microseconds():
    dates = pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31)])
    codes = coded(dates, ValueType("date")).codes
    assert [-719162, 2932896] == codes.tolist()
    assert dates == arrow_of(ValueType("date"), codes)
    zoned = pa.array([-1], pa.timestamp("ms", "Europe/Stockholm"))
    assert [-1000] == coded(zoned, value_type_of(zoned.type)).codes.tolist()


def test_nan_is_a_flag_and_zero_has_one_code():
    result = coded(pa.array([float("nan"), -0.0, 0.0, None]), ValueType("double"))
    assert [True, False, False, False] == result.nan.tolist()
    assert 1 == result.null_count
    assert 1 == len(np.unique(present(result)))


def test_dictionary_and_chunks_are_flattened():
    array = pa.chunked_array([pa.array(["b", None]).dictionary_encode(), pa.array(["a"]).dictionary_encode()])
    assert ["b", "a"] == code.decode(ValueType("string"), present(coded(array, value_type_of(array.type))))


@pytest.mark.parametrize("arrow_type", [pa.list_(pa.int32()), pa.duration("s"), pa.null()], ids=str)
def test_unordered_types_are_refused_by_name(arrow_type):
    with pytest.raises(UnsupportedTypeError, match="Cannot prune by Arrow type"):
        value_type_of(arrow_type)
