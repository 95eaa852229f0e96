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
    """A Java string as UTF-8: half a surrogate pair becomes a question mark."""
    text = b"".join(chosen).decode("utf-16-le", "surrogatepass")
    return "".join("?" if "\ud800" <= each <= "\udfff" else each for each in text)


def cut_with_replacement_character(text, prefix):
    """How Delta cut maxima before 3.3: the tie-breaker is U+FFFD, which sorts below an emoji."""
    chosen = units(text)
    if len(chosen) <= prefix:
        return text
    tie = "\ufffd".encode("utf-16-le")
    kept = [each for each in chosen[prefix:] if int.from_bytes(each, "little") < 0xFFFD][:1]
    above = chosen[prefix:][: chosen[prefix:].index(kept[0])] if kept else chosen[prefix:]
    return as_written([*chosen[:prefix], *above, tie])


def cut_with_greatest_character(text, prefix):
    """How Delta cuts maxima: with the greatest ASCII character where that is enough, else the greatest of all."""
    if len(units(text)) <= prefix:
        return text
    tie = "\x7f" if units(text)[prefix] < b"\x7f\x00" else "\U0010ffff"
    return as_written(units(text)[:prefix]) + tie


def cut_short(text, prefix):
    """A writer that forgets that a maximum must not sink."""
    return as_written(units(text)[:prefix])


WRITERS = pytest.mark.parametrize(
    "cut",
    [cut_with_replacement_character, cut_with_greatest_character, cut_short, lambda text, _: text],
    ids=["U+FFFD", "greatest", "cut short", "whole"],
)


def bounds(type_, low, high, arrow_type=None, **kept_as):
    found = StoredBounds(type_, **kept_as).sound(pa.array([low], arrow_type), pa.array([high], arrow_type))
    assert [True, True] == [found.has_low[0], found.has_high[0]]
    return found.lows[0], found.highs[0]


# 88, 89: a maximum cut to a prefix sorts below the values that it stands for.
@WRITERS
@given(text=TEXTS, prefix=PREFIXES)
def test_no_string_lies_outside_of_its_stored_bounds(cut, text, prefix):
    found = StoredBounds(STRING, prefix).sound(pa.array([cut_short(text, prefix)]), pa.array([cut(text, prefix)]))
    assert found.lows[0] <= text.encode()
    assert not found.has_high[0] or found.highs[0] >= text.encode()


# 88: what is pushed is compared with the maximum as it is stored.
@WRITERS
@given(text=TEXTS, prefix=PREFIXES, above=st.booleans())
def test_pushed_string_ranges_begin_at_or_below_the_stored_maximum(cut, text, prefix, above):
    ranges = (Domain.between(STRING, text, None) if above else Domain.of(STRING, text)).ranges
    pushed = StoredBounds(STRING, prefix).comparable(ranges, NO_FLAW)
    assert pushed.contains_all(ranges)
    assert pushed.lows[0] <= cut(text, prefix).encode()


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
def test_only_maxima_that_may_be_cut_are_raised(high, expected):
    assert (b"a", expected) == bounds(STRING, "a", high)


def test_a_maximum_of_which_nothing_is_left_is_unknown():
    found = StoredBounds(STRING).sound(pa.array(["", None]), pa.array(["\U0010ffff", None]))
    assert ([True, False], [False, False]) == (found.has_low.tolist(), found.has_high.tolist())


def test_bytes_that_are_no_text_make_no_bound():
    # Spark writes any byte that is no UTF-8 as U+FFFD.
    assert (b"a", b"b") == bounds(STRING, "a\ufffd", "a\ufffd")


@pytest.mark.parametrize(
    ("low", "high", "is_safe"),
    [("a", "z\x7f", True), ("é", None, False), ("a", "é", False), (b"\xff", None, False), ("", "a", True)],
)
def test_only_ascii_is_compared_with_bounds_that_lost_bytes(low, high, is_safe):
    ranges = Domain.between(STRING, low, high).ranges
    pushed = StoredBounds(STRING).comparable(ranges, REPLACED)
    assert (pushed == ranges) is is_safe
    assert pushed.is_all is not is_safe
    assert ranges == StoredBounds(STRING).comparable(ranges, NO_FLAW)
    assert StoredBounds(STRING).comparable(Domain.none(STRING).ranges, REPLACED).is_none


# 72, 119: whatever lies in between is no longer compared with bounds that no value lies between.
@pytest.mark.parametrize(
    ("name", "low", "high", "is_inverted"),
    [
        ("int", [1, 5], [2, 4], True),
        ("int", [1, 5], [2, 5], False),
        ("int", [None, 5], [2, None], False),
        ("string", ["a", "b"], ["b", "a"], True),
        ("string", ["a"], ["a"], False),
        ("double", [float("nan")], [1.0], True),
        ("double", [1.0], [float("nan")], False),
        ("double", [0.0], [-0.0], False),
        ("int", [], [], False),
    ],
)
def test_bounds_in_the_wrong_order_make_a_column_senseless(name, low, high, is_inverted):
    type_, arrow_type = ValueType(name), {"int": pa.int32(), "string": pa.string(), "double": pa.float64()}[name]
    flaws = Flaws.of(pa.chunked_array([low], arrow_type), pa.chunked_array([high], arrow_type), type_)
    assert Flaws(replaced=False, inverted=is_inverted) == flaws
    ranges = Domain.of(type_, {"int": 3, "string": "b", "double": 2.0}[name]).ranges
    assert is_inverted is StoredBounds(type_).comparable(ranges, flaws).is_all


# 93, 94: statistics keep milliseconds. 95: the greatest timestamp has no room above.
@pytest.mark.parametrize("name", ["timestamp", "timestamp_ntz"])
@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (RECENT, RECENT, (RECENT, RECENT + 999)),
        (RECENT, GREATEST - 5, (RECENT, GREATEST)),
        # 96: zones of the past had offsets with seconds, which the text of a timestamp drops.
        (LONG_AGO, LONG_AGO, (LONG_AGO - MINUTE, LONG_AGO + MINUTE + 999)),
        (LEAST + 5, LONG_AGO, (LEAST, LONG_AGO + MINUTE + 999)),
    ],
    ids=["recent", "last", "offset with seconds", "first"],
)
def test_timestamp_bounds_leave_room_for_what_was_dropped(name, low, high, expected):
    zone = "UTC" if name == "timestamp" else None
    assert expected == bounds(ValueType(name), low, high, pa.timestamp("us", zone))


# 96: Delta compares the predicate with the bound that has lost its seconds.
@pytest.mark.parametrize(
    ("key", "low", "high"),
    [(LONG_AGO, LONG_AGO - MINUTE, LONG_AGO + MINUTE), (RECENT, RECENT, RECENT)],
    ids=["offset with seconds", "recent"],
)
def test_pushed_timestamps_reach_bounds_that_lost_their_seconds(key, low, high):
    assert Domain.between(TIMESTAMP, low, high).ranges == StoredBounds(TIMESTAMP).comparable(
        Domain.of(TIMESTAMP, key).ranges, NO_FLAW
    )


# 98, 101: a partition value computed from a timestamp is of the writer's zone, a predicate of the reader's.
def test_pushed_timestamps_reach_partitions_of_every_zone():
    day = 24 * 60 * MINUTE
    pushed = StoredBounds(TIMESTAMP, is_source=True).comparable(Domain.of(TIMESTAMP, RECENT).ranges, NO_FLAW)
    assert Domain.between(TIMESTAMP, RECENT - 2 * day, RECENT + 2 * day).ranges == pushed


# 99: the order of a string is not that of the date it is truncated to.
def test_strings_that_partitions_are_truncated_from_are_not_pushed():
    stored = StoredBounds(STRING, is_source=True)
    assert stored.comparable(Domain.of(STRING, "10000-01-01").ranges, NO_FLAW).is_all
    assert stored.comparable(Domain.none(STRING).ranges, NO_FLAW).is_none


# 82: writers that keep statistics as doubles lose digits of long decimals.
@given(
    number=st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-(10**18), 10**18),
    precision=st.sampled_from([18, 38]),
)
def test_decimals_lie_within_bounds_that_went_through_a_double(number, precision):
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
def test_decimals_of_few_digits_stay_exact(precision):
    type_ = ValueType("decimal", precision, 2)
    low, high = bounds(type_, Decimal("-1.23"), Decimal("456.00"), pa.decimal128(precision, 2))
    assert (-123, 45600) == (code.unscaled_of(type_, low), code.unscaled_of(type_, high))
    ranges = Domain.between(type_, -1, 4).union(Domain.of(type_, 7)).ranges
    assert ranges is StoredBounds(type_).comparable(ranges, NO_FLAW)


@pytest.mark.parametrize("precision", [18, 38])
@pytest.mark.parametrize(("low", "high"), [(None, 10), (10, None), (None, None)])
def test_open_ends_stay_open_and_the_greatest_number_stays_in_the_type(precision, low, high):
    type_ = ValueType("decimal", precision, 0)
    most = 10**precision - 1
    ranges = Domain.between(type_, low, high).ranges
    assert ranges == StoredBounds(type_).comparable(ranges, NO_FLAW)
    pushed = StoredBounds(type_).comparable(Domain.of(type_, -most, most).ranges, NO_FLAW)
    found = [code.unscaled_of(type_, pushed.lows[0]), code.unscaled_of(type_, pushed.highs[len(pushed) - 1])]
    assert [-most, most] == found


# 133: files from before a column was widened have the digits of a float, which name another double.
@given(value=st.floats(width=32, allow_nan=False))
def test_widened_floats_lie_within_bounds_with_the_digits_of_a_float(value):
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


# 62: a NaN bound of an old writer orders nothing.
def test_nan_is_no_bound():
    found = StoredBounds(ValueType("double")).sound(pa.array([float("nan"), 1.0]), pa.array([2.0, float("nan")]))
    assert ([False, True], [True, False]) == (found.has_low.tolist(), found.has_high.tolist())
