from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pruning import string_order
from pruning.byte_strings import ByteStrings

TEXTS = st.one_of(
    st.binary(max_size=20),
    st.sampled_from([b"", b"\0", b"\0\0", b"abcdefgh", b"abcdefgh\0", b"abcdefghi", b"abcdefgh\xff", b"\xff" * 9]),
    st.binary(max_size=10).map(lambda tail: b"a common prefix of some length " + tail),
)


def listed(strings):
    return [strings[index] for index in range(len(strings))]


@given(st.lists(TEXTS, max_size=12))
def test_order_is_that_of_unsigned_bytes(items):
    strings = ByteStrings.of(items)
    ranks = string_order.ranks(strings)
    assert sorted(set(items)) == listed(string_order.sorted_distinct(strings))
    assert [items.index(each) for each in sorted(items)] == [
        items.index(items[at]) for at in ranks.argsort(kind="stable")
    ]
    assert len(set(items)) == len(set(ranks.tolist()))


@given(st.lists(TEXTS, min_size=1, max_size=12))
@example([b"abcdefgh\0", b"abcdefgh", b"abcdefgh\0\0", b"abcdefgh\0"])
def test_extremes_are_those_of_unsigned_bytes(items):
    strings = ByteStrings.of(items)
    found = items[string_order.least(strings)], items[string_order.greatest(strings)]
    assert (min(items), max(items)) == found


@pytest.mark.parametrize("count", [1, 2, 1000])
def test_equal_strings_are_one(count):
    assert [b"same"] == listed(string_order.sorted_distinct(ByteStrings.of([b"same"] * count)))


def test_slice_of_longer_data_is_read_within_its_bounds():
    whole = ByteStrings.of([b"zz", b"b", b"a", b"zzz"])
    part = ByteStrings(whole.data, whole.offsets[1:4])
    assert [b"a", b"b"] == listed(string_order.sorted_distinct(part))
