"""Spans hold every value whose result lies in a span, and every result of a value in it, in any time zone."""

from __future__ import annotations

import datetime as dt
import math
from calendar import monthrange
from decimal import Decimal
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pruning.values.coercion import DAY_MICROS
from pruning.values.encoding import decode, encode
from pruning.values.function_spans import Spans, result_spans, source_spans
from pruning.values.functions import Function, FunctionKind
from pruning.values.types import ValueType

BIGINT, INT, STRING, DATE = map(ValueType, ("bigint", "int", "string", "date"))
NTZ, TIMESTAMP = ValueType("timestamp_ntz"), ValueType("timestamp")
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
ZONES = st.sampled_from(sorted(available_timezones()))
MOMENTS = st.integers(-62_050_000_000_000_000, 253_402_200_000_000_000)
LONGS = st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-5000, 5000))
INTS = st.one_of(st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-50, 50))


def span(type_: ValueType, low: object, high: object) -> Spans:
    """The span of two Python values; None is an end that is not known."""
    filler = "" if type_ == STRING else 0
    lows, highs = (encode(type_, [filler if each is None else each]) for each in (low, high))
    return Spans(type_, lows, highs, np.array([low is not None]), np.array([high is not None]))


def ends(found: Spans | None) -> tuple[object, object]:
    assert found is not None
    (low,), (high,) = decode(found.type, found.lows), decode(found.type, found.highs)
    return low if found.has_low[0] else None, high if found.has_high[0] else None


def code_ends(found: Spans | None) -> tuple[object, object]:
    """The ends as codes, which unlike Python's dates reach beyond the year 9999."""
    assert found is not None
    return (found.lows[0] if found.has_low[0] else None, found.highs[0] if found.has_high[0] else None)


def holds(found: Spans | None, value: object) -> bool:
    if found is None:
        return True
    low, high = code_ends(found)
    code = encode(found.type, [value])[0]
    return (low is None or low <= code) and (high is None or code <= high)


def agree(functions: tuple[Function, ...], value: object, result: object, others: tuple[object, object]) -> bool:
    """True if spans around a value hold its result, and spans around the result the value."""
    source, type_ = functions[0].source, functions[-1].result
    other, other_result = others
    sources = [(value, value), (value, None), (None, value), (min(value, other), max(value, other))]
    results = [(result, result), (result, None), (None, result)]
    results.append((min(result, other_result), max(result, other_result)))
    return all(holds(result_spans(functions, span(source, *each), type_), result) for each in sources) and all(
        holds(source_spans(functions, span(type_, *each), source), value) for each in results
    )


def wrapped(value: int, bits: int) -> int:
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def local(micros: int, zone: str) -> dt.datetime:
    return (EPOCH + dt.timedelta(microseconds=micros)).astimezone(ZoneInfo(zone))


@given(MOMENTS, ZONES, MOMENTS, ZONES)
def test_days_of_instants_in_any_zone(moment, zone, other, another_zone):
    functions = (Function(FunctionKind.TO_DATE, TIMESTAMP, DATE),)
    others = (other, local(other, another_zone).date())
    assert agree(functions, moment, local(moment, zone).date(), others)


@given(MOMENTS, ZONES, MOMENTS, ZONES)
def test_years_of_instants_in_any_zone(moment, zone, other, another_zone):
    functions = (Function(FunctionKind.TO_DATE, TIMESTAMP, DATE), Function(FunctionKind.YEAR, DATE, INT))
    others = (other, local(other, another_zone).year)
    assert agree(functions, moment, local(moment, zone).year, others)


UNITS = {
    "hour": (DAY_MICROS // 24, {"minute": 0}),
    "day": (DAY_MICROS, {"minute": 0, "hour": 0}),
    "month": (31 * DAY_MICROS, {"minute": 0, "hour": 0, "day": 1}),
    "year": (366 * DAY_MICROS, {"minute": 0, "hour": 0, "day": 1, "month": 1}),
}


@pytest.mark.parametrize("unit", UNITS)
@given(MOMENTS, ZONES, MOMENTS)
def test_truncated_instants_in_any_zone(unit, moment, zone, other):
    most, parts = UNITS[unit]
    start = local(moment, zone).replace(second=0, microsecond=0, **parts).astimezone(dt.timezone.utc)
    result = (start - EPOCH) // dt.timedelta(microseconds=1)
    functions = (Function(FunctionKind.TRUNCATE_TIMESTAMP, TIMESTAMP, TIMESTAMP, most),)
    assert agree(functions, moment, result, (other, other))


@given(st.dates(), st.dates())
def test_truncated_days(date, other):
    functions = (Function(FunctionKind.TRUNCATE_DATE, DATE, DATE, 31, "MM"),)
    assert agree(functions, date, date.replace(day=1), (other, other.replace(day=1)))


@given(LONGS, LONGS)
def test_seconds_are_cut_down_or_towards_zero(value, other):
    functions = (Function(FunctionKind.UNIX_TIME, TIMESTAMP, BIGINT, 1_000_000, "unix_seconds"),)
    for result in (value // 1_000_000, abs(value) // 1_000_000 * (1 if value >= 0 else -1)):
        assert agree(functions, value, result, (other, other // 1_000_000))


@given(LONGS, st.integers(1, 1 << 40), LONGS)
def test_quotients(value, divisor, other):
    functions = (Function(FunctionKind.DIVIDE, BIGINT, BIGINT, divisor),)
    result, another = (abs(each) // divisor * (1 if each >= 0 else -1) for each in (value, other))
    assert agree(functions, value, result, (other, another))


@given(LONGS, st.floats(1e-6, 1e12), LONGS)
def test_rounded_quotients(value, divisor, other):
    functions = (Function(FunctionKind.FLOOR_DIVIDE, BIGINT, BIGINT, divisor),)
    result, another = (
        max(-(1 << 63), min((1 << 63) - 1, int(float(each) / divisor // 1.0))) for each in (value, other)
    )
    assert agree(functions, value, result, (other, another))


@given(INTS, st.integers(-1000, 1000), INTS)
def test_sums_that_wrap(value, number, other):
    functions = (Function(FunctionKind.ADD, INT, INT, number),)
    assert agree(functions, value, wrapped(value + number, 32), (other, wrapped(other + number, 32)))


@given(LONGS, st.integers(-(1 << 61), 1 << 61), LONGS)
def test_sums_of_long_integers_that_wrap(value, number, other):
    functions = (Function(FunctionKind.ADD, BIGINT, BIGINT, number),)
    assert agree(functions, value, wrapped(value + number, 64), (other, wrapped(other + number, 64)))


@given(INTS, INTS)
def test_negative_integers_that_wrap(value, other):
    functions = (Function(FunctionKind.NEGATE, INT, INT),)
    assert agree(functions, value, wrapped(-value, 32), (other, wrapped(-other, 32)))


@example((1 << 31) - 1, 2, 0)
@given(INTS, st.integers(1, 1 << 20), INTS)
def test_products_that_wrap(value, number, other):
    functions = (Function(FunctionKind.MULTIPLY, INT, INT, number),)
    assert agree(functions, value, wrapped(value * number, 32), (other, wrapped(other * number, 32)))


@given(LONGS, LONGS)
def test_integers_of_fewer_bits_that_wrap(value, other):
    functions = (Function(FunctionKind.SHORTEN, BIGINT, INT),)
    assert agree(functions, value, wrapped(value, 32), (other, wrapped(other, 32)))


@given(st.integers(-(10**11), 10**11), st.integers(-(10**11), 10**11))
def test_the_integers_beside_a_decimal(cents, other):
    decimal, whole = ValueType("decimal", 12, 2), ValueType("decimal", 11, 0)
    value, another = (Decimal(each).scaleb(-2) for each in (cents, other))
    for kind, rounded in ((FunctionKind.FLOOR, math.floor), (FunctionKind.CEIL, math.ceil)):
        functions = (Function(kind, decimal, whole, 100),)
        assert agree(functions, value, rounded(value), (another, rounded(another)))


@given(st.dates(), st.dates())
def test_last_days_of_months(date, other):
    functions = (Function(FunctionKind.LAST_DAY, DATE, DATE),)
    last, another = (each.replace(day=monthrange(each.year, each.month)[1]) for each in (date, other))
    assert agree(functions, date, last, (other, another))


@given(MOMENTS, ZONES, MOMENTS, ZONES)
def test_clocks_of_any_zone(moment, zone, other, another_zone):
    clock, another = (local(*each).replace(tzinfo=None) for each in ((moment, zone), (other, another_zone)))
    of_clock = moment, other
    assert agree((Function(FunctionKind.SET_CLOCK, TIMESTAMP, NTZ),), of_clock[0], clock, (of_clock[1], another))
    instants = [(EPOCH + dt.timedelta(microseconds=each)) for each in of_clock]
    assert agree((Function(FunctionKind.SET_CLOCK, NTZ, TIMESTAMP),), clock, instants[0], (another, instants[1]))


@given(MOMENTS, st.integers(-(1 << 50), 1 << 50), MOMENTS)
def test_intervals(value, number, other):
    functions = (Function(FunctionKind.ADD_MICROSECONDS, TIMESTAMP, TIMESTAMP, number),)
    assert agree(functions, value, value + number, (other, other + number))


@given(st.text(max_size=6), st.integers(1, 4), st.text(max_size=6))
def test_prefixes(value, length, other):
    functions = (Function(FunctionKind.PREFIX, STRING, STRING, length),)
    value, other = sorted((value, other), key=str.encode)
    result, another = value[:length], other[:length]
    for low, high in ((value, value), (value, other), (value, None)):
        assert holds(result_spans(functions, span(STRING, low, high), STRING), result)
    for low, high in ((result, result), (result, another), (None, another)):
        assert holds(source_spans(functions, span(STRING, low, high), STRING), value)


TO_DATE = (Function(FunctionKind.TO_DATE, NTZ, DATE),)
DAYS = "2024-01-05", "2024-01-06"
NIGHT = "2024-01-05T00:00:00.000000", "2024-01-06T23:59:59.999999"


def days(low: str | None, high: str | None) -> Spans:
    return span(DATE, *(None if each is None else dt.date.fromisoformat(each) for each in (low, high)))


def moments(type_: ValueType, low: str | None, high: str | None) -> Spans:
    zone = None if type_ == NTZ else dt.timezone.utc
    found = (None if each is None else dt.datetime.fromisoformat(each).replace(tzinfo=zone) for each in (low, high))
    return span(type_, *found)


def test_days_of_local_times_are_exact():
    assert NIGHT == ends(source_spans(TO_DATE, days(*DAYS), NTZ))
    assert DAYS == ends(result_spans(TO_DATE, moments(NTZ, *NIGHT), DATE))


def test_days_of_instants_are_those_of_every_zone():
    functions = (Function(FunctionKind.TO_DATE, TIMESTAMP, DATE),)
    expected = "2024-01-04T06:00:00.000000", "2024-01-07T17:59:59.999999"
    assert expected == ends(source_spans(functions, days(*DAYS), TIMESTAMP))
    noon = "2024-01-05T12:00:00"
    assert ("2024-01-04", "2024-01-06") == ends(result_spans(functions, moments(TIMESTAMP, noon, noon), DATE))


def test_an_end_that_is_not_known_stays_so():
    assert (NIGHT[0], None) == ends(source_spans(TO_DATE, days(DAYS[0], None), NTZ))
    assert (None, DAYS[1]) == ends(result_spans(TO_DATE, moments(NTZ, None, NIGHT[1]), DATE))


@pytest.mark.parametrize("carried", [source_spans, result_spans])
def test_ends_in_the_wrong_order_tell_nothing(carried):
    """Wider spans of them would be in order again."""
    functions = (Function(FunctionKind.TRUNCATE_DATE, DATE, DATE, 31, "MM"),)
    assert (None, None) == ends(carried(functions, days(DAYS[1], DAYS[0]), DATE))
    texts = (Function(FunctionKind.PREFIX, STRING, STRING, 1),)
    assert (None, None) == ends(carried(texts, span(STRING, "b", "a"), STRING))


@pytest.mark.parametrize(
    ("result", "expected"), [(7, (2, 2)), ((1 << 31) - 1, (None, None)), (-(1 << 31) + 4, (None, None))]
)
def test_a_sum_that_may_have_wrapped_tells_nothing(result, expected):
    functions = (Function(FunctionKind.ADD, INT, INT, 5),)
    assert expected == ends(source_spans(functions, span(INT, result, result), INT))


def test_a_sum_that_may_wrap_tells_nothing():
    functions = (Function(FunctionKind.ADD, INT, INT, 5),)
    assert (5, 6) == ends(result_spans(functions, span(INT, 0, 1), INT))
    assert (None, None) == ends(result_spans(functions, span(INT, 0, (1 << 31) - 1), INT))
    assert (None, None) == ends(result_spans(functions, span(INT, 0, None), INT))


@pytest.mark.parametrize("kind", [FunctionKind.TEXT, FunctionKind.DATE_TEXT])
def test_texts_of_values_tell_nothing(kind):
    source = BIGINT if kind is FunctionKind.TEXT else DATE
    functions = (Function(kind, source, STRING, 1, "yyyy-MM-dd"),)
    assert source_spans(functions, span(STRING, "1", "1"), source) is None
    assert result_spans(functions, span(source, 1, 1), STRING) is None


def test_a_choice_between_values_and_constants_tells_nothing():
    functions = (Function(FunctionKind.OR_CONSTANT, INT, INT, constants=(7,)),)
    assert source_spans(functions, span(INT, 7, 7), INT) is None
    assert result_spans(functions, span(INT, 1, 1), INT) is None


def test_other_types_between_functions_tell_nothing():
    functions = (Function(FunctionKind.YEAR, DATE, INT),)
    assert source_spans(functions, span(INT, 2024, 2024), TIMESTAMP) is None
    assert result_spans(functions, span(TIMESTAMP, 1, 1), INT) is None
    wider = source_spans(functions, span(BIGINT, 2024, 2024), DATE)
    assert ("2024-01-01", "2024-12-31") == ends(wider)


def test_more_texts_than_are_worth_counting_tell_nothing(monkeypatch):
    functions = (Function(FunctionKind.PREFIX, STRING, STRING, 2),)
    monkeypatch.setattr("pruning.values.function_spans._MOST_TEXTS", 0)
    for carried in (source_spans, result_spans):
        assert carried(functions, span(STRING, "ab", "ab"), STRING) is None


def test_texts_with_replaced_bytes_tell_nothing():
    functions = (Function(FunctionKind.PREFIX, STRING, STRING, 2),)
    assert (None, None) == ends(source_spans(functions, span(STRING, "a\ufffd", "a\ufffd"), STRING))
    assert ("ab", "ac") == ends(source_spans(functions, span(STRING, "ab", "ab"), STRING))
