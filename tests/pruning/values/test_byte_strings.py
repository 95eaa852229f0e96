"""Packed byte strings compared with lists of Python's bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.values.byte_strings import ByteStrings
from tests.pruning.strategies import LAW

# A small alphabet, so that strings share prefixes and end in NUL bytes often.
_TIGHT = st.text(alphabet="\0\x01a\xff", max_size=20).map(lambda text: text.encode("latin-1"))
ITEMS = st.lists(st.one_of(_TIGHT, st.binary(max_size=20)), max_size=12)


def _list(strings: ByteStrings) -> list[bytes]:
    return [strings[index] for index in range(len(strings))]


def test_take_of_more_strings_than_one_block():
    items = [b"%d" % ((number * 7919) % 100_003) for number in range(140_000)]
    backwards = np.arange(len(items))[::-1]
    assert items[::-1] == _list(ByteStrings.of(items).take(backwards))


@LAW
@given(ITEMS)
def test_strings_round_trip(items):
    strings = ByteStrings.of(items)
    assert items == _list(strings)
    assert [len(item) for item in items] == strings.lengths().tolist()


@LAW
@given(ITEMS, st.lists(st.integers(0, 11), max_size=8), st.integers(0, 21))
def test_take_and_truncate_match_python_slices(items, indices, width):
    strings = ByteStrings.of(items)
    inside = [index for index in indices if index < len(items)]
    assert [items[index] for index in inside] == _list(strings.take(np.array(inside, np.int64)))
    assert [item[:width] for item in items] == _list(strings.truncated(width))


@LAW
@given(st.lists(st.tuples(ITEMS, st.integers(0, 3)), max_size=3))
def test_slices_of_a_buffer_concatenate(parts):
    wholes = [(ByteStrings.of(items), min(begin, len(items))) for items, begin in parts]
    windows = [ByteStrings(whole.data, whole.offsets[begin:]) for whole, begin in wholes]
    expected = [item for window in windows for item in _list(window)]
    joined = ByteStrings.concat(windows)
    assert expected == _list(joined)
    assert (0, sum(map(len, expected))) == (int(joined.offsets[0]), len(joined.data))


def test_packed_slice_holds_only_its_bytes():
    whole = ByteStrings.of([b"abc", b"de", b"f"])
    window = ByteStrings(whole.data, whole.offsets[1:3])
    assert ([b"de"], b"de") == (_list(window.packed()), window.packed().data.tobytes())
    assert whole.packed() is whole


def test_matrix_rows_become_fixed_width_strings():
    rows = np.array([[1, 2], [0, 0], [255, 3]], np.uint8)
    assert [b"\x01\x02", b"\0\0", b"\xff\x03"] == _list(ByteStrings.of_fixed_width(rows))
    assert [] == _list(ByteStrings.of_fixed_width(np.zeros((0, 16), np.uint8)))


def test_index_may_be_negative_and_is_checked():
    strings = ByteStrings.of([b"a", b"b"])
    assert (b"b", b"a") == (strings[-1], strings[-2])
    with pytest.raises(IndexError):
        strings[2]


def test_nbytes_counts_data_and_offsets():
    assert 3 + 8 * 3 == ByteStrings.of([b"ab", b"c"]).nbytes
