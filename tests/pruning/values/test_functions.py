"""Preimages of functions hold every value that the function maps to a key, for keys in any order and at any end."""

from __future__ import annotations

import datetime as dt
import math
from calendar import monthrange
from collections.abc import Callable
from decimal import Decimal
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.reasons import Reason, ReasonCode
from pruning.values.coercion import DAY_MICROS
from pruning.values.date_texts import days_in
from pruning.values.domain import Domain
from pruning.values.functions import Function, FunctionKind, preimage
from pruning.values.types import ValueType

BIGINT, INT, STRING, DATE = map(ValueType, ("bigint", "int", "string", "date"))
NTZ, TIMESTAMP = ValueType("timestamp_ntz"), ValueType("timestamp")
LONGS = st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-5000, 5000))
INTS = st.one_of(st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-50, 50))
DECIMAL, WHOLE = ValueType("decimal", 12, 2), ValueType("decimal", 11, 0)
TEXTS = st.text(max_size=6)
NUMBERS = st.integers(-1000, 1000)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


def cut(dividend: int, divisor: int) -> int:
    return abs(dividend) // divisor * (1 if dividend >= 0 else -1)


def wrapped(value: int, bits: int = 32) -> int:
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def floor_of_double(value: int, divisor: float) -> int:
    result = float(value) / divisor // 1.0
    return max(-(1 << 63), min((1 << 63) - 1, int(result)))


def holds(function: Function, value: object, result: object, *others: object) -> bool:
    """True if the preimage of the result, alone, among others and in a range, holds the value."""
    keys = Domain.of(function.result, result, *others)
    upward = Domain.between(function.result, result, None)
    downward = Domain.between(function.result, None, result)
    found = [
        Domain.of(function.result, result),
        keys,
        *([upward, downward, keys.span()] if function.maps_ranges else []),
    ]
    return all(function.preimage(each).contains(value) for each in found)


@given(LONGS, st.integers(1, 1 << 40), LONGS)
def test_division_cuts_towards_zero(value, divisor, other):
    assert holds(Function(FunctionKind.DIVIDE, BIGINT, BIGINT, divisor), value, cut(value, divisor), other)


@given(LONGS, st.floats(1e-6, 1e12), LONGS)
def test_floor_of_a_division_of_doubles(value, divisor, other):
    function = Function(FunctionKind.FLOOR_DIVIDE, BIGINT, BIGINT, divisor)
    assert holds(function, value, floor_of_double(value, divisor), other)


@given(INTS, NUMBERS, INTS)
def test_sums_of_integers_wrap_or_raise(value, number, other):
    function = Function(FunctionKind.ADD, INT, INT, number)
    assert holds(function, value, wrapped(value + number), other)
    if value + number != wrapped(value + number):
        # Stock Spark raises an error for such a row, whatever the keys are.
        assert function.preimage(Domain.of(INT, other)).contains(value)


@given(LONGS, st.integers(-(1 << 61), 1 << 61), LONGS)
def test_sums_of_long_integers(value, number, other):
    function = Function(FunctionKind.ADD, BIGINT, BIGINT, number)
    assert holds(function, value, wrapped(value + number, 64), other)


@given(INTS, INTS)
def test_negative_integers_wrap_or_raise(value, other):
    function = Function(FunctionKind.NEGATE, INT, INT)
    assert holds(function, value, wrapped(-value), wrapped(-other))
    assert function.preimage(Domain.of(INT, other)).contains(-(1 << 31))
    if value not in (-other, -(1 << 31)):
        assert not function.preimage(Domain.of(INT, other)).contains(value)


@given(LONGS, LONGS)
def test_negative_long_integers(value, other):
    assert holds(Function(FunctionKind.NEGATE, BIGINT, BIGINT), value, wrapped(-value, 64), other)


@given(LONGS, st.integers(1, 1 << 40), LONGS)
def test_products_wrap_or_raise(value, number, other):
    function = Function(FunctionKind.MULTIPLY, BIGINT, BIGINT, number)
    result = wrapped(value * number, 64)
    assert holds(function, value, result, other)
    if result != value * number:
        assert function.preimage(Domain.of(BIGINT, other)).contains(value)
    elif result != other:
        assert not function.preimage(Domain.of(BIGINT, other)).contains(value)


@given(LONGS, LONGS, INTS)
def test_integers_of_fewer_bits_wrap_or_raise(value, other, key):
    function = Function(FunctionKind.SHORTEN, BIGINT, INT)
    assert holds(function, value, wrapped(value), wrapped(other))
    if wrapped(value) != value:
        assert function.preimage(Domain.of(INT, key)).contains(value)
    elif value != key:
        assert not function.preimage(Domain.of(INT, key)).contains(value)


@given(LONGS, st.floats(1e-6, 1e12), LONGS)
def test_the_integer_above_a_division_of_doubles(value, divisor, other):
    function = Function(FunctionKind.CEIL_DIVIDE, BIGINT, BIGINT, divisor)
    result = max(-(1 << 63), min((1 << 63) - 1, math.ceil(float(value) / divisor)))
    assert holds(function, value, result, other)


def test_the_integer_above_an_exact_division():
    found = Function(FunctionKind.CEIL_DIVIDE, BIGINT, BIGINT, 10.0).preimage(Domain.of(BIGINT, 3, -1))
    inside, outside = (21, 30, -19, -10), (20, 31, -20, -9, 0)
    assert all(map(found.contains, inside))
    assert not any(map(found.contains, outside))


@pytest.mark.parametrize(("kind", "rounded"), [(FunctionKind.FLOOR, math.floor), (FunctionKind.CEIL, math.ceil)])
@given(st.decimals(-9_999_999_999, 9_999_999_999, places=2), st.integers(-9_999_999_999, 9_999_999_999))
def test_the_integer_beside_a_decimal(kind, rounded, value, other):
    function = Function(kind, DECIMAL, WHOLE, 100)
    assert holds(function, value, rounded(value), other)
    if rounded(value) != other:
        assert not function.preimage(Domain.of(WHOLE, other)).contains(value)


@given(LONGS, st.lists(LONGS, max_size=3))
def test_texts_of_integers(value, others):
    function = Function(FunctionKind.TEXT, BIGINT, STRING)
    assert holds(function, value, str(value), *map(str, others), "", "-0", "007", "x", "+1", " 1", "1" * 40)
    texts = Domain.of(STRING, *map(str, others), "", "-0", "007", "x", "+1", " 1", "1" * 40, "9" * 19)
    assert function.preimage(texts) == Domain.of(BIGINT, *others)


PATTERNS = {"yyyy-MM-dd": "%Y-%m-%d", "yyyyMMdd": "%Y%m%d", "dd.MM.yyyy": "%d.%m.%Y", "yyyy/MM": "%Y/%m", "yyyy": "%Y"}
PATTERNS |= {"yyyy-MM-dd HH": "%Y-%m-%d 23", "dd/MM/yyyy HH:mm": "%d/%m/%Y 00:59", "yyyyMMdd'T'HHmmss": "%Y%m%dT123456"}


@pytest.mark.parametrize("pattern", PATTERNS)
@given(st.dates(dt.date(1000, 1, 1)), st.dates(dt.date(1000, 1, 1)))
def test_texts_of_days(pattern, date, other):
    function = Function(FunctionKind.DATE_TEXT, DATE, STRING, days_in(pattern), pattern)
    text, another = (each.strftime(PATTERNS[pattern]) for each in (date, other))
    assert holds(function, date, text, another, "", "x", "2024-02-31", "2024-13-01", "+10000-01-01")
    found = function.preimage(Domain.of(STRING, another))
    if date.year >= 1600 and text != another:
        assert not found.contains(date)


@pytest.mark.parametrize(
    "pattern",
    ["", "MM", "MM-dd", "yy-MM", "yyyy'T'MM", "yyyyyyyy", "y", "E", "HH yyyy-MM-dd", "yyyy-MM-dd hh", "yyyy-MM-dd'x'"],
)
def test_patterns_that_are_not_understood(pattern):
    assert 0 == days_in(pattern)


@pytest.mark.parametrize(("pattern", "days"), [("yyyy-MM-dd", 1), ("MM/yyyy", 31), ("yyyy", 365)])
def test_days_of_a_pattern(pattern, days):
    assert days == days_in(pattern)


@pytest.mark.parametrize("pattern", ["yyyy-MM-dd", "yyyyMMdd", "yyyy/MM", "yyyy", "yyyyMMdd'T'HHmmss"])
@given(st.dates(dt.date(1600, 1, 1)), st.text("0123456789-/T a", max_size=10), st.text("012", max_size=5))
def test_ranges_of_texts_of_days(pattern, date, key, prefix):
    function = Function(FunctionKind.DATE_TEXT, DATE, STRING, days_in(pattern), pattern)
    assert function.maps_ranges
    text = date.strftime(PATTERNS[pattern])
    for other in (key, prefix + key, text[:-1], text + "0"):
        for low, high in ((None, other), (other, None), (other, other + "5")):
            is_inside = (low is None or low <= text) and (high is None or text <= high)
            assert not is_inside or function.preimage(Domain.between(STRING, low, high)).contains(date)


def test_a_range_of_texts_of_days_is_one_of_days():
    function = Function(FunctionKind.DATE_TEXT, DATE, STRING, 31, "yyyy-MM")
    found = function.preimage(Domain.between(STRING, "2024-02", "2024-03-15"))
    inside = [dt.date(2024, 2, 1), dt.date(2024, 3, 31), dt.date(1599, 12, 31)]
    outside = [dt.date(2024, 1, 31), dt.date(2024, 4, 1), dt.date(1600, 1, 1), dt.date(9999, 12, 31)]
    assert all(map(found.contains, inside))
    assert not any(map(found.contains, outside))


@pytest.mark.parametrize("pattern", ["dd.MM.yyyy", "MM/yyyy", "yyyy-dd-MM"])
def test_texts_in_another_order_have_no_ranges(pattern):
    function = Function(FunctionKind.DATE_TEXT, DATE, STRING, 1, pattern)
    assert not function.maps_ranges
    assert function.preimage(Domain.between(STRING, "1", "2")).ranges.is_all


def test_days_of_unknown_calendars_have_any_text():
    found = Function(FunctionKind.DATE_TEXT, DATE, STRING, 1, "yyyy-MM-dd").preimage(Domain.of(STRING, "2024-05-01"))
    inside = [dt.date(1, 1, 1), dt.date(1599, 12, 31), dt.date(2024, 5, 1)]
    outside = [dt.date(1600, 1, 1), dt.date(2024, 4, 30), dt.date(2024, 5, 2), dt.date(9999, 12, 31)]
    assert all(map(found.contains, inside))
    assert not any(map(found.contains, outside))


def test_a_range_of_texts_is_any_integer():
    assert Function(FunctionKind.TEXT, INT, STRING).preimage(Domain.between(STRING, "1", "2")).ranges.is_all


@given(TEXTS, st.integers(1, 4), TEXTS)
def test_prefixes(value, length, other):
    assert holds(Function(FunctionKind.PREFIX, STRING, STRING, length), value, value[:length], other)


@given(TEXTS, st.integers(1, 4), TEXTS)
def test_prefixes_within_a_range_that_ends_at_a_longer_text(value, length, key):
    function = Function(FunctionKind.PREFIX, STRING, STRING, length)
    prefix = value[:length]
    if prefix.encode() <= key.encode():
        assert function.preimage(Domain.between(STRING, None, key)).contains(value)
    else:
        assert function.preimage(Domain.between(STRING, key, None)).contains(value)


def test_a_prefix_up_to_a_longer_text_has_later_extensions():
    function = Function(FunctionKind.PREFIX, STRING, STRING, 4)
    found = function.preimage(Domain.between(STRING, "a", "k0034567"))
    assert [True, True, False] == [found.contains(each) for each in ("k00399", "k003", "k0041")]
    assert function.preimage(Domain.between(STRING, "a", "äöü€😀")).contains("äöü€😁")


def test_prefixes_leave_other_texts_out():
    found = Function(FunctionKind.PREFIX, STRING, STRING, 3).preimage(Domain.of(STRING, "abc", "x"))
    assert [True, True, False, False, False, True] == [
        found.contains(each) for each in ("abc", "abcz", "abb", "abe", "w", "x")
    ]


SMALL = st.integers(-128, 127)


@given(SMALL, SMALL, st.sets(SMALL, max_size=3))
def test_sums_of_the_smallest_integers_hold_values_of_their_type(value, number, others):
    tinyint = ValueType("tinyint")
    function = Function(FunctionKind.ADD, tinyint, tinyint, number)
    result = wrapped(value + number, 8)
    for keys in (Domain.of(tinyint, result, *others), Domain.between(tinyint, result, None)):
        found = function.preimage(keys)
        assert found.contains(value)
        # An end beyond the type would have no literal.
        assert all(-128 <= int(each) <= 127 for each in found.ranges.lows if each != -(1 << 63))
        assert all(-128 <= int(each) <= 127 for each in found.ranges.highs if each != (1 << 63) - 1)


@pytest.mark.parametrize("number", [6, -6])
def test_sums_that_reach_the_end_of_their_type(number):
    function = Function(FunctionKind.ADD, BIGINT, BIGINT, number)
    end = (1 << 63) - 1 if number > 0 else -(1 << 63)
    assert holds(function, end - number, end)


def test_the_first_days_are_truncated_to_any_day():
    function = Function(FunctionKind.TRUNCATE_DATE, DATE, DATE, 31, "MM")
    assert function.preimage(Domain.of(DATE, 0)).contains(-(1 << 31))


@given(LONGS, st.floats(1e200, 1.7e308), LONGS)
def test_quotients_by_huge_doubles(value, divisor, other):
    function = Function(FunctionKind.FLOOR_DIVIDE, BIGINT, BIGINT, divisor)
    assert holds(function, value, floor_of_double(value, divisor), other)


@given(st.dates(), st.integers(-4000, 4000))
def test_days_later(date, days):
    function = Function(FunctionKind.ADD_DAYS, DATE, DATE, days)
    code = date.toordinal() - dt.date(1970, 1, 1).toordinal()
    keys = Domain.of(DATE, code + days)
    assert function.preimage(keys).contains(code)
    assert not function.preimage(keys).contains(code + 1)


@given(st.dates())
def test_years(date):
    function = Function(FunctionKind.YEAR, DATE, INT)
    assert holds(function, date, date.year)
    assert not function.preimage(Domain.of(INT, date.year - 1, date.year + 1)).contains(date)


@given(st.dates(), st.dates())
def test_last_days_of_months(date, other):
    last = date.replace(day=monthrange(date.year, date.month)[1])
    function = Function(FunctionKind.LAST_DAY, DATE, DATE)
    assert holds(function, date, last, other)
    assert not function.preimage(Domain.of(DATE, date - dt.timedelta(days=1))).contains(date)


@given(st.datetimes(), st.dates())
def test_dates_of_local_times(moment, other):
    assert holds(Function(FunctionKind.TO_DATE, NTZ, DATE), moment, moment.date(), other)


def test_dates_of_local_times_are_exact():
    found = Function(FunctionKind.TO_DATE, NTZ, DATE).preimage(Domain.of(DATE, 0, 2))
    assert [False, True, True, False, True] == [
        found.contains(each) for each in (-1, 0, DAY_MICROS - 1, DAY_MICROS, 2 * DAY_MICROS)
    ]


ZONES = st.sampled_from(sorted(available_timezones()))
MOMENTS = st.integers(-62_050_000_000_000_000, 253_402_200_000_000_000).map(
    lambda it: EPOCH + dt.timedelta(microseconds=it)
)


@given(MOMENTS, ZONES, st.dates())
def test_dates_of_instants_in_any_zone(moment, zone, other):
    local = moment.astimezone(ZoneInfo(zone))
    assert holds(Function(FunctionKind.TO_DATE, TIMESTAMP, DATE), moment, local.date(), other)


@given(MOMENTS, ZONES, st.booleans())
def test_clocks_of_any_zone(moment, zone, is_read):
    clock = moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    if is_read:
        assert holds(Function(FunctionKind.SET_CLOCK, TIMESTAMP, NTZ), moment, clock)
    else:
        assert holds(Function(FunctionKind.SET_CLOCK, NTZ, TIMESTAMP), clock, moment)


TRUNCATED: dict[str, tuple[int, Callable[[dt.datetime], dt.datetime]]] = {
    "hour": (DAY_MICROS // 24, lambda it: it.replace(minute=0, second=0, microsecond=0)),
    "day": (DAY_MICROS, lambda it: it.replace(hour=0, minute=0, second=0, microsecond=0)),
    "month": (31 * DAY_MICROS, lambda it: it.replace(day=1, hour=0, minute=0, second=0, microsecond=0)),
    "year": (366 * DAY_MICROS, lambda it: it.replace(month=1, day=1, hour=0, minute=0, second=0, microsecond=0)),
}


@pytest.mark.parametrize("unit", TRUNCATED)
@given(MOMENTS, ZONES)
def test_truncated_instants_in_any_zone(unit, moment, zone):
    most, truncate = TRUNCATED[unit]
    local = truncate(moment.astimezone(ZoneInfo(zone)))
    result = (local.astimezone(dt.timezone.utc) - EPOCH) // dt.timedelta(microseconds=1)
    value = (moment - EPOCH) // dt.timedelta(microseconds=1)
    assert holds(Function(FunctionKind.TRUNCATE_TIMESTAMP, TIMESTAMP, TIMESTAMP, most), value, result)


def test_clocks_may_be_set_by_a_day():
    found = Function(FunctionKind.TRUNCATE_TIMESTAMP, TIMESTAMP, TIMESTAMP, 1).preimage(Domain.of(TIMESTAMP, 0))
    assert [False, True, True, False] == [
        found.contains(each) for each in (-DAY_MICROS - 1, -DAY_MICROS, DAY_MICROS + 1, DAY_MICROS + 2)
    ]


@given(LONGS)
def test_seconds_are_cut_towards_zero_or_down(value):
    function = Function(FunctionKind.UNIX_TIME, TIMESTAMP, BIGINT, 1_000_000, "unix_seconds")
    assert holds(function, value, cut(value, 1_000_000))
    assert holds(function, value, value // 1_000_000)


@given(LONGS, st.integers(-(1 << 50), 1 << 50))
def test_intervals_later_raise_near_the_ends(value, number):
    function = Function(FunctionKind.ADD_MICROSECONDS, TIMESTAMP, TIMESTAMP, number)
    result = value + number
    if wrapped(result, 64) == result:
        assert holds(function, value, result)
    else:
        assert function.preimage(Domain.of(TIMESTAMP, 0)).contains(value)


@pytest.mark.parametrize("kind", FunctionKind)
def test_keys_that_no_value_has_and_all_keys(kind):
    source, result = {
        FunctionKind.TO_DATE: (TIMESTAMP, DATE),
        FunctionKind.TRUNCATE_TIMESTAMP: (TIMESTAMP, TIMESTAMP),
        FunctionKind.TRUNCATE_DATE: (DATE, DATE),
        FunctionKind.YEAR: (DATE, INT),
        FunctionKind.ADD_DAYS: (DATE, DATE),
        FunctionKind.ADD_MICROSECONDS: (NTZ, NTZ),
        FunctionKind.UNIX_TIME: (TIMESTAMP, BIGINT),
        FunctionKind.SET_CLOCK: (NTZ, TIMESTAMP),
        FunctionKind.LAST_DAY: (DATE, DATE),
        FunctionKind.SHORTEN: (BIGINT, INT),
        FunctionKind.TEXT: (INT, STRING),
        FunctionKind.DATE_TEXT: (DATE, STRING),
        FunctionKind.PREFIX: (STRING, STRING),
    }.get(kind, (BIGINT, BIGINT))
    function = Function(kind, source, result, 7, "yyyy-MM-dd")
    everything = function.preimage(Domain.all(result))
    ends = [""] if source == STRING else [-(1 << 31), 0, (1 << 31) - 1]
    assert all(everything.contains(each) for each in ends)
    beyond = function.preimage(Domain.none(result))
    assert not beyond.contains("" if source == STRING else 0)
    assert function.preimage(Domain.only_null(result)).null
    assert source == everything.type == beyond.type


@given(st.one_of(st.none(), INTS), st.lists(INTS, max_size=3), st.lists(INTS, max_size=4), st.booleans())
def test_constants_beside_a_value(value, constants, keys, is_constant):
    function = Function(FunctionKind.OR_CONSTANT, INT, INT, constants=tuple(constants))
    found = function.preimage(Domain.of(INT, *keys))
    if set(constants) & set(keys):
        assert isinstance(found, Reason)
        assert found.code is ReasonCode.CONSTANT_KEY
    else:
        assert isinstance(found, Domain)
        result = constants[0] if is_constant and constants else value
        assert result not in keys or found.contains(value)


@pytest.mark.parametrize(
    ("type_", "constant", "keys"),
    [
        (ValueType("double"), -0.0, (0.0,)),
        (ValueType("double"), float("nan"), (float("nan"),)),
        (ValueType("decimal", 9, 2), Decimal("1.50"), (Decimal("1.5"),)),
        (DATE, dt.date(1500, 1, 1), (dt.date(1500, 1, 1),)),
        (STRING, "\U0001f98a", ("a", "\U0001f98a")),
    ],
    ids=str,
)
def test_constants_equal_keys_as_spark_compares_them(type_, constant, keys):
    function = Function(FunctionKind.OR_CONSTANT, type_, type_, constants=(constant,))
    assert isinstance(function.preimage(Domain.of(type_, *keys)), Reason)
    assert isinstance(function.preimage(Domain.all(type_)), Reason)


def test_functions_of_functions_and_casts_between_them():
    functions = (Function(FunctionKind.TO_DATE, NTZ, DATE), Function(FunctionKind.YEAR, DATE, INT))
    found = preimage(functions, Domain.of(BIGINT, 2024, 1 << 40))
    assert isinstance(found, Domain)
    first, following = (EPOCH.replace(year=each, tzinfo=None) for each in (2024, 2025))
    assert found == Domain.between(NTZ, first, following - dt.timedelta(microseconds=1))


def test_keys_without_a_common_type_are_a_reason():
    decimal = ValueType("decimal", 38, 30)
    function = Function(FunctionKind.DIVIDE, BIGINT, BIGINT, 10)
    assert isinstance(preimage((function,), Domain.of(decimal, 1)), Reason)
