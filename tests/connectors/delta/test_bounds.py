from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.delta.bounds import NO_FLAW, Flaws, StoredBounds
from pruning.values import encoding as code
from pruning.values.domain import Domain
from pruning.values.encoding import GREATEST, LEAST
from pruning.values.types import ValueType

STRING = ValueType("string")
REPLACED = Flaws(replaced=True, inverted=False)
TIMESTAMP = ValueType("timestamp")
ALPHABET = "ab?\x00\x7fé\u07ff\ufffd\uffff😀\U0010ffff"
TEXTS = st.text(st.sampled_from(ALPHABET), max_size=70)
PREFIXES = st.sampled_from([1, 2, 8, 32])
LONG_AGO = -3_000_000_000_000_000
RECENT = 1_700_000_000_000_000
MINUTE = 60_000_000


def units(text):
    raw = text.encode("utf-16-le", "surrogatepass")
    return [raw[at : at + 2] for at in range(0, len(raw), 2)]


def as_written(chosen):
    """A Java string encoded as UTF-8: half a surrogate pair becomes a question mark."""
    text = b"".join(chosen).decode("utf-16-le", "surrogatepass")
    return "".join("?" if "\ud800" <= each <= "\udfff" else each for each in text)


def truncated_with_replacement_character(text, prefix):
    """The maximum as Delta before 3.3 truncates it: the tie-breaker is U+FFFD, which sorts below an emoji."""
    chosen = units(text)
    if len(chosen) <= prefix:
        return text
    tie = "\ufffd".encode("utf-16-le")
    kept = [each for each in chosen[prefix:] if int.from_bytes(each, "little") < 0xFFFD][:1]
    above = chosen[prefix:][: chosen[prefix:].index(kept[0])] if kept else chosen[prefix:]
    return as_written([*chosen[:prefix], *above, tie])


def truncated_with_greatest_character(text, prefix):
    """The maximum as Delta truncates it: with the greatest ASCII character if that suffices, else the greatest
    of all.
    """
    if len(units(text)) <= prefix:
        return text
    tie = "\x7f" if units(text)[prefix] < b"\x7f\x00" else "\U0010ffff"
    return as_written(units(text)[:prefix]) + tie


def truncated_without_rounding(text, prefix):
    """The maximum of a writer that truncates it without rounding up."""
    return as_written(units(text)[:prefix])


WRITERS = pytest.mark.parametrize(
    "truncate",
    [
        truncated_with_replacement_character,
        truncated_with_greatest_character,
        truncated_without_rounding,
        lambda text, _: text,
    ],
    ids=["U+FFFD", "greatest", "cut short", "whole"],
)


def bounds(type_, low, high, arrow_type=None, **kept_as):
    found = StoredBounds(type_, **kept_as).sound(pa.array([low], arrow_type), pa.array([high], arrow_type))
    assert [True, True] == [found.has_low[0], found.has_high[0]]
    return found.lows[0], found.highs[0]


# Failure catalogue 88, 89: a maximum truncated to a prefix sorts below the values that it stands for.
@WRITERS
@given(text=TEXTS, prefix=PREFIXES)
def test_truncated_bounds_contain_every_string(truncate, text, prefix):
    found = StoredBounds(STRING, prefix).sound(
        pa.array([truncated_without_rounding(text, prefix)]), pa.array([truncate(text, prefix)])
    )
    assert found.lows[0] <= text.encode()
    assert not found.has_high[0] or found.highs[0] >= text.encode()


# Failure catalogue 88: a pushed predicate is compared with the maximum as it is stored.
@WRITERS
@given(text=TEXTS, prefix=PREFIXES, above=st.booleans())
def test_pushed_string_ranges_reach_the_stored_maximum(truncate, text, prefix, above):
    ranges = (Domain.between(STRING, text, None) if above else Domain.of(STRING, text)).ranges
    pushed = StoredBounds(STRING, prefix).comparable(ranges, NO_FLAW)
    assert pushed.contains_all(ranges)
    assert pushed.lows[0] <= truncate(text, prefix).encode()


@pytest.mark.parametrize(
    ("high", "expected"),
    [
        ("short", b"short"),
        ("x" * 31, b"x" * 31),
        ("x" * 32, b"x" * 30 + b"y"),
        ("x" * 31 + "\x7f", b"x" * 30 + b"y"),
        ("é" * 40, ("é" * 31).encode()[:-1] + b"\xaa"),
        ("😀" * 16, ("😀" * 15).encode()[:-1] + b"\x81"),
        ("ab\x7f", b"ac"),
        ("ab?\ufffd", b"ac"),
    ],
)
def test_only_maxima_that_may_be_truncated_are_raised(high, expected):
    assert (b"a", expected) == bounds(STRING, "a", high)


def test_maximum_that_cannot_be_raised_is_unknown():
    found = StoredBounds(STRING).sound(pa.array(["", None]), pa.array(["\U0010ffff", None]))
    assert ([True, False], [False, False]) == (found.has_low.tolist(), found.has_high.tolist())


def test_bounds_with_replacement_characters_are_widened():
    # Spark writes any byte that is not UTF-8 as U+FFFD.
    assert (b"a", b"b") == bounds(STRING, "a\ufffd", "a\ufffd")


@pytest.mark.parametrize(
    ("low", "high", "is_safe"),
    [("a", "z\x7f", True), ("é", None, False), ("a", "é", False), (b"\xff", None, False), ("", "a", True)],
)
def test_only_ascii_is_pushed_against_replaced_bounds(low, high, is_safe):
    ranges = Domain.between(STRING, low, high).ranges
    pushed = StoredBounds(STRING).comparable(ranges, REPLACED)
    assert (pushed == ranges) is is_safe
    assert pushed.is_all is not is_safe
    assert ranges == StoredBounds(STRING).comparable(ranges, NO_FLAW)
    assert StoredBounds(STRING).comparable(Domain.none(STRING).ranges, REPLACED).is_none


# Failure catalogue 72, 119: no value lies between inverted bounds, so no predicate may be compared with them.
@pytest.mark.parametrize(
    ("name", "low", "high", "is_inverted"),
    [
        ("int", [1, 5], [2, 4], True),
        ("int", [1, 5], [2, 5], False),
        ("int", [None, 5], [2, None], False),
        ("string", ["a", "b"], ["b", "a"], True),
        ("string", ["a"], ["a"], False),
        ("double", [float("nan")], [1.0], True),
        ("double", [float("nan")], [None], True),
        ("double", [1.0, float("nan")], [2.0, float("nan")], False),
        ("double", [1.0], [float("nan")], False),
        ("double", [0.0], [-0.0], False),
        ("int", [], [], False),
    ],
)
def test_inverted_bounds_flag_the_column(name, low, high, is_inverted):
    type_, arrow_type = ValueType(name), {"int": pa.int32(), "string": pa.string(), "double": pa.float64()}[name]
    flaws = Flaws.of(pa.chunked_array([low], arrow_type), pa.chunked_array([high], arrow_type), type_)
    assert Flaws(replaced=False, inverted=is_inverted) == flaws
    ranges = Domain.of(type_, {"int": 3, "string": "b", "double": 2.0}[name]).ranges
    assert is_inverted is StoredBounds(type_).comparable(ranges, flaws).is_all


# Failure catalogue 93, 94: statistics keep milliseconds. 95: the greatest timestamp cannot be raised.
@pytest.mark.parametrize("name", ["timestamp", "timestamp_ntz"])
@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (RECENT, RECENT, (RECENT, RECENT + 999)),
        (RECENT, GREATEST - 5, (RECENT, GREATEST)),
        # Failure catalogue 96: historical time zones had offsets with seconds, which the text of a timestamp drops.
        (LONG_AGO, LONG_AGO, (LONG_AGO - MINUTE, LONG_AGO + MINUTE + 999)),
        (LEAST + 5, LONG_AGO, (LEAST, LONG_AGO + MINUTE + 999)),
    ],
    ids=["recent", "last", "offset with seconds", "first"],
)
def test_timestamp_bounds_are_widened_by_their_precision(name, low, high, expected):
    zone = "UTC" if name == "timestamp" else None
    assert expected == bounds(ValueType(name), low, high, pa.timestamp("us", zone))


# Failure catalogue 96: Delta compares the predicate with the bound that lost its seconds.
@pytest.mark.parametrize(
    ("key", "low", "high"),
    [(LONG_AGO, LONG_AGO - MINUTE, LONG_AGO + MINUTE), (RECENT, RECENT, RECENT)],
    ids=["offset with seconds", "recent"],
)
def test_pushed_timestamps_reach_bounds_without_seconds(key, low, high):
    assert Domain.between(TIMESTAMP, low, high).ranges == StoredBounds(TIMESTAMP).comparable(
        Domain.of(TIMESTAMP, key).ranges, NO_FLAW
    )


# Failure catalogue 98, 101: the writer's time zone determines a partition value, the reader's a predicate on it.
def test_pushed_timestamps_reach_partitions_of_every_zone():
    day = 24 * 60 * MINUTE
    pushed = StoredBounds(TIMESTAMP, is_source=True).comparable(Domain.of(TIMESTAMP, RECENT).ranges, NO_FLAW)
    assert Domain.between(TIMESTAMP, RECENT - 2 * day, RECENT + 2 * day).ranges == pushed


# Failure catalogue 99: strings do not sort as the dates that they are truncated to.
def test_source_strings_of_date_partitions_are_not_pushed():
    stored = StoredBounds(STRING, is_source=True)
    assert stored.comparable(Domain.of(STRING, "10000-01-01").ranges, NO_FLAW).is_all
    assert stored.comparable(Domain.none(STRING).ranges, NO_FLAW).is_none


# Failure catalogue 82: writers that store statistics as doubles lose digits of long decimals.
@given(
    number=st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-(10**18), 10**18),
    precision=st.sampled_from([18, 38]),
)
def test_double_bounds_contain_every_decimal(number, precision):
    number %= 10**precision
    type_ = ValueType("decimal", precision, 0)
    stored = Decimal(repr(float(number))).to_integral_value()
    if stored >= 10**precision:
        return
    low, high = bounds(type_, stored, stored, pa.decimal128(precision, 0))
    unscaled = code.unscaled_of(type_, low), code.unscaled_of(type_, high)
    assert unscaled[0] <= number <= unscaled[1]
    pushed = StoredBounds(type_).comparable(Domain.of(type_, number).ranges, NO_FLAW)
    assert pushed.contains(code.encode(type_, [number]))[0]
    assert pushed.contains(code.encode(type_, [stored]))[0]


@pytest.mark.parametrize("precision", [9, 18, 38])
def test_bounds_of_short_decimals_are_exact(precision):
    type_ = ValueType("decimal", precision, 2)
    low, high = bounds(type_, Decimal("-1.23"), Decimal("456.00"), pa.decimal128(precision, 2))
    assert (-123, 45600) == (code.unscaled_of(type_, low), code.unscaled_of(type_, high))
    ranges = Domain.between(type_, -1, 4).union(Domain.of(type_, 7)).ranges
    assert ranges is StoredBounds(type_).comparable(ranges, NO_FLAW)


@pytest.mark.parametrize("precision", [18, 38])
@pytest.mark.parametrize(("low", "high"), [(None, 10), (10, None), (None, None)])
def test_widened_decimals_keep_open_ends_and_stay_in_the_type(precision, low, high):
    type_ = ValueType("decimal", precision, 0)
    most = 10**precision - 1
    ranges = Domain.between(type_, low, high).ranges
    assert ranges == StoredBounds(type_).comparable(ranges, NO_FLAW)
    pushed = StoredBounds(type_).comparable(Domain.of(type_, -most, most).ranges, NO_FLAW)
    found = [code.unscaled_of(type_, pushed.lows[0]), code.unscaled_of(type_, pushed.highs[len(pushed) - 1])]
    assert [-most, most] == found


# Failure catalogue 133: files from before a column was widened have the digits of a float, which denote another double.
@given(value=st.floats(width=32, allow_nan=False))
def test_float_digits_contain_every_widened_float(value):
    type_ = ValueType("double")
    digits = float(str(np.float32(value)))
    low, high = code.float_values(np.array(bounds(type_, digits, digits, pa.float64(), was_float=True)))
    assert low <= value <= high
    pushed = StoredBounds(type_, was_float=True).comparable(Domain.of(type_, value).ranges, NO_FLAW)
    assert pushed.contains(code.encode(type_, [digits]))[0]


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("bigint", LEAST, GREATEST), ("date", -719_162, 3_000_000), ("boolean", False, True), ("float", -0.5, 0.25)],
)
def test_other_bounds_are_exact(name, low, high):
    type_ = ValueType(name)
    arrow_type = {"date": pa.int32(), "boolean": pa.bool_(), "float": pa.float64()}.get(name, pa.int64())
    array = pa.array([low, high], arrow_type)
    found = StoredBounds(type_).sound(array.view(pa.date32()) if name == "date" else array, array[:0].cast(array.type))
    assert [code.encode(type_, [low])[0], code.encode(type_, [high])[0]] == found.lows.tolist()


# Failure catalogue 62: an older writer's NaN bound has no order.
def test_nan_bound_is_unknown():
    found = StoredBounds(ValueType("double")).sound(pa.array([float("nan"), 1.0]), pa.array([2.0, float("nan")]))
    assert ([False, True], [True, False]) == (found.has_low.tolist(), found.has_high.tolist())
