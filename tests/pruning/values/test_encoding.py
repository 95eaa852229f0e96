"""The order-preserving encoding: order is kept, values round-trip, values without a code are refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.values import encoding as code
from pruning.values.types import Physical, ValueType
from tests.pruning.samples import ALL_TYPES, FLOATS, INF, NAN, nasty, order
from tests.pruning.strategies import LAW, values

PARSE = ValueType.parse
_LISTS = {type_: st.tuples(st.just(type_), st.lists(values(type_), max_size=8)) for type_ in ALL_TYPES}
TYPED_LISTS = st.sampled_from(ALL_TYPES).flatmap(lambda type_: _LISTS[type_])
_UNITS = {"date": "D", "timestamp": "us", "timestamp_ntz": "us"}


def _ranks(type_: ValueType, items: list) -> list[int]:
    distinct = sorted({order(type_, item) for item in items})
    return [distinct.index(order(type_, item)) for item in items]


@LAW
@given(TYPED_LISTS)
def test_codes_sort_as_their_values(example):
    type_, items = example
    (line,) = code.merged_ranks(code.encode(type_, items))
    assert _ranks(type_, items) == np.unique(line, return_inverse=True)[1].tolist()


@LAW
@given(TYPED_LISTS)
def test_codes_round_trip(example):
    type_, items = example
    # Python's dates end at year 9999, so dates and timestamps come back as text.
    unit = _UNITS.get(type_.name)
    expected = [str(np.datetime64(item, unit)) for item in items] if unit else items
    assert expected == code.decode(type_, code.encode(type_, items))


@LAW
@given(TYPED_LISTS, TYPED_LISTS)
def test_merged_ranks_of_two_arrays_sort_as_their_values(first, second):
    type_, items = first
    others = [item for item in second[1] if second[0] == type_] + items[::2]
    lines = code.merged_ranks(code.encode(type_, items), code.encode(type_, others))
    ranks = _ranks(type_, items + others)
    assert ranks == np.unique(np.concatenate(lines), return_inverse=True)[1].tolist()
    assert [len(items), len(others)] == [len(line) for line in lines]


@LAW
@given(TYPED_LISTS)
def test_sort_unique_keeps_each_value_once(example):
    type_, items = example
    found = code.sort_unique(code.encode(type_, items))
    expected = sorted({order(type_, item): item for item in items}.values(), key=lambda item: order(type_, item))
    assert code.decode(type_, code.encode(type_, expected)) == code.decode(type_, found)


@pytest.mark.parametrize("type_", ALL_TYPES, ids=str)
def test_take_and_concat_match_python_lists(type_):
    items = list(nasty(type_))
    codes = code.encode(type_, items)
    again = code.concat(type_, [code.empty(type_), codes.take(np.array([1, 0])), codes])
    assert code.decode(type_, code.encode(type_, [items[1], items[0], *items])) == code.decode(type_, again)
    assert isinstance(codes, np.ndarray) is (type_.physical is Physical.INT64)
    assert 0 == len(code.concat(type_, []))


def test_ranks_of_byte_strings_never_touch():
    # Two integers that touch form one range; between two strings there is always a third string.
    (line,) = code.merged_ranks(code.encode(PARSE("string"), ["a", "b", "c"]))
    assert [2, 2] == np.diff(line).tolist()


@pytest.mark.parametrize("type_", FLOATS, ids=str)
def test_both_zeros_have_one_code(type_):
    # Failure catalogue 66, 67: Spark joins -0.0 with 0.0.
    negative, positive = code.encode(type_, [-0.0, 0.0])
    assert np.signbit(np.float64(-0.0))
    assert negative == positive == 0


@pytest.mark.parametrize("type_", FLOATS, ids=str)
def test_nan_has_no_code(type_):
    with pytest.raises(ValueError, match="Cannot encode NaN"):
        code.encode(type_, [1.0, NAN])


def test_is_number_distinguishes_nan_codes():
    payloads = np.array([0x7FF8000000000000, -1, 0x7FF0000000000001], np.int64).view(np.float64)
    assert [False, False, False] == code.is_number(code.float_codes(payloads)).tolist()
    ends = code.float_codes(np.array([-INF, -0.0, 5e-324, INF]))
    assert [True, True, True, True] == code.is_number(ends).tolist()


@LAW
@given(st.lists(st.floats(allow_nan=False)))
def test_float_codes_round_trip(items):
    floats = np.array(items, np.float64)
    assert items == code.float_values(code.float_codes(floats)).tolist()


def test_float_values_are_encoded_in_single_precision():
    assert [float(np.float32(0.1)), INF] == code.decode(PARSE("float"), code.encode(PARSE("float"), [0.1, 1e300]))


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        pytest.param("date", dt.date(1969, 12, 31), -1, id="day-before-1970"),
        pytest.param("date", dt.date(1, 1, 1), -719_162, id="first-day-of-python"),
        pytest.param("timestamp_ntz", dt.datetime(1970, 1, 1, 0, 0, 1), 1_000_000, id="local"),  # noqa: DTZ001
        # Failure catalogue 105: microseconds before 1970 are floored, not truncated toward zero.
        pytest.param("timestamp_ntz", dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), -1, id="local-before-1970"),  # noqa: DTZ001
        pytest.param(
            # Failure catalogue 107: a datetime with a time zone is an instant; the process's time zone does not matter.
            *("timestamp", dt.datetime(1970, 1, 1, 5, 45, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=45))), 0),
            id="kathmandu",
        ),
        pytest.param(
            *(
                "timestamp",
                dt.datetime(9999, 12, 31, 23, tzinfo=dt.timezone(-dt.timedelta(hours=2))),
                253402304400000000,
            ),
            id="beyond-python-s-last-year",
        ),
        pytest.param("boolean", True, 1, id="true"),
        pytest.param("decimal(18,4)", Decimal("-1.5"), -15_000, id="decimal"),
        pytest.param("decimal(18,4)", 3, 30_000, id="integer-as-decimal"),
        pytest.param("decimal(5,2)", Decimal("1.2300"), 123, id="zeros-beyond-the-scale"),
        pytest.param("decimal(5,0)", Decimal("1E+2"), 100, id="exponent"),
        pytest.param("decimal(38,0)", 0, b"\x80" + b"\0" * 15, id="wide-zero"),
        pytest.param("decimal(38,0)", -1, b"\x7f" + b"\xff" * 15, id="wide-minus-one"),
        pytest.param("string", "é", b"\xc3\xa9", id="text"),
        pytest.param("string", b"\xff", b"\xff", id="text-that-is-not-utf-8"),
        pytest.param("binary", bytearray(b"\0"), b"\0", id="binary"),
    ],
)
def test_code_of_a_value(type_, value, expected):
    assert expected == code.encode(PARSE(type_), [value])[0]


@pytest.mark.parametrize(
    ("type_", "value", "error", "message"),
    [
        pytest.param("int", 1.5, TypeError, "float", id="fraction-as-int"),
        pytest.param("int", 3_000_000_000, ValueError, "3000000000 as int: it is out of range", id="beyond-int"),
        pytest.param("tinyint", -129, ValueError, "-129 as tinyint", id="beyond-tinyint"),
        pytest.param("bigint", 1 << 63, ValueError, "9223372036854775808 as bigint", id="beyond-bigint"),
        pytest.param("date", dt.datetime(2020, 1, 1, 12), TypeError, "time of day", id="datetime-as-date"),  # noqa: DTZ001
        pytest.param("decimal(5,2)", Decimal("1.234"), ValueError, "more digits after the point", id="scale"),
        pytest.param("decimal(5,2)", 1000, ValueError, "1000 as decimal.* out of range", id="precision"),
        pytest.param("decimal(38,0)", 10**38, ValueError, "out of range", id="wide-precision"),
        pytest.param("string", "\ud800", UnicodeEncodeError, "surrogates", id="lone-surrogate"),
    ],
)
def test_value_of_another_type_is_refused(type_, value, error, message):
    # Truncated or wrapped, the value would be another key.
    with pytest.raises(error, match=message):
        code.encode(PARSE(type_), [value])


@pytest.mark.parametrize(
    ("type_", "value", "shown"),
    [
        pytest.param("string", "x" * 100, "x" * 37 + "...", id="long-text"),
        pytest.param("string", "x" * 40, "x" * 40, id="text-that-just-fits"),
        pytest.param("string", b"\xff", "\ufffd", id="text-that-is-not-utf-8"),
        pytest.param("date", dt.date(2020, 2, 29), "2020-02-29", id="date"),
        pytest.param("date", 5_000_000, "15659-07-15", id="date-beyond-python"),
        pytest.param("timestamp", 1, "1970-01-01T00:00:00.000001", id="timestamp"),
        pytest.param("decimal(38,10)", Decimal("-0.0000000001"), "-1E-10", id="decimal"),
        pytest.param("boolean", False, "False", id="boolean"),
    ],
)
def test_rendered_values_are_short_and_typed(type_, value, shown):
    assert shown == code.render(PARSE(type_), code.encode(PARSE(type_), [value]), 0)
