from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pruning.values import byte_strings as string_order
from pruning.values.byte_strings import ByteStrings
from tests.pruning.soundness import assert_ranked

# A small alphabet, so that strings share prefixes and end in NUL bytes often.
TEXTS = st.one_of(
    st.text(alphabet="\0\x01a\xff", max_size=20).map(lambda text: text.encode("latin-1")),
    st.binary(max_size=20),
    st.sampled_from([b"", b"\0", b"\0\0", b"abcdefgh", b"abcdefgh\0", b"abcdefghi", b"abcdefgh\xff", b"\xff" * 9]),
    st.binary(max_size=10).map(lambda tail: b"a common prefix of some length " + tail),
)


def listed(strings):
    return [strings[index] for index in range(len(strings))]


@given(st.lists(TEXTS, max_size=12))
def test_strings_sort_by_unsigned_bytes(items):
    strings = ByteStrings.of(items)
    assert_ranked(items, string_order.ranks(strings))
    assert sorted(set(items)) == listed(string_order.sorted_distinct(strings))


@pytest.mark.parametrize(
    "items",
    [
        pytest.param([b"a", b"a\0", b"a\0\0", b"", b"\0"], id="trailing-nul-bytes"),
        pytest.param([b"a\0b", b"a", b"a\0", b"a\0a"], id="inner-nul-bytes"),
        pytest.param([b"x" * 8 + b"\0", b"x" * 8, b"x" * 9, b"x" * 7], id="around-one-word"),
        pytest.param([b"x" * 16, b"x" * 15 + b"\0", b"x" * 17, b"x" * 16 + b"\0" * 8], id="around-two-words"),
        pytest.param([b"\xff", b"\x7f", b"\x80", b"\0", b"\xff\xff"], id="unsigned"),
        # Failure catalogue 88: as 16-bit units, the emoji would sort before U+FFFF.
        pytest.param(["\uffff".encode(), "😀".encode(), b"z", "é".encode()], id="utf-8-beyond-16-bits"),
        pytest.param([b"k" * 300 + bytes([last]) for last in (3, 1, 2)], id="long-common-prefix"),
        pytest.param([b"", b"", b""], id="all-empty"),
        pytest.param([], id="none"),
    ],
)
def test_ranks_at_the_edges_of_words_and_prefixes(items):
    assert_ranked(items, string_order.ranks(ByteStrings.of(items)))


def test_ranks_of_many_strings():
    items = [b"%d" % ((number * 7919) % 100_003) for number in range(70_000)]
    order = np.argsort(string_order.ranks(ByteStrings.of(items)))
    assert sorted(items) == [items[index] for index in order.tolist()]


@given(st.lists(TEXTS, min_size=1, max_size=12))
@example([b"abcdefgh\0", b"abcdefgh", b"abcdefgh\0\0", b"abcdefgh\0"])
def test_least_and_greatest_by_unsigned_bytes(items):
    strings = ByteStrings.of(items)
    found = items[string_order.least(strings)], items[string_order.greatest(strings)]
    assert (min(items), max(items)) == found


@pytest.mark.parametrize("count", [1, 2, 1000])
def test_equal_strings_become_one(count):
    assert [b"same"] == listed(string_order.sorted_distinct(ByteStrings.of([b"same"] * count)))


def test_slice_is_read_within_its_bounds():
    whole = ByteStrings.of([b"zz", b"b", b"a", b"zzz"])
    part = ByteStrings(whole.data, whole.offsets[1:4])
    assert [b"a", b"b"] == listed(string_order.sorted_distinct(part))


@given(st.sets(TEXTS, max_size=12), st.lists(TEXTS, max_size=12))
def test_place_counts_smaller_strings(ordered, items):
    below, is_equal = string_order.places(ByteStrings.of(sorted(ordered)), ByteStrings.of(items))
    assert [sum(each < item for each in ordered) for item in items] == below.tolist()
    assert [item in ordered for item in items] == is_equal.tolist()


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=12))
def test_above_compares_by_unsigned_bytes(pairs):
    first, second = (ByteStrings.of(each) for each in zip(*pairs, strict=True)) if pairs else [ByteStrings.of(())] * 2
    assert [one > other for one, other in pairs] == string_order.above(first, second).tolist()


def test_places_among_strings_with_long_common_prefixes():
    ordered = [
        b"%b%03d" % (prefix, number) for prefix in (b"a" * 9, b"a" * 17, b"b" * 9) for number in range(0, 200, 2)
    ]
    items = [*ordered[::7], b"a" * 9 + b"001", b"a" * 17 + b"199", b"b" * 9, b"", b"c"]
    below, is_equal = string_order.places(ByteStrings.of(sorted(ordered)), ByteStrings.of(items))
    assert [sum(each < item for each in ordered) for item in items] == below.tolist()
    assert [item in ordered for item in items] == is_equal.tolist()
