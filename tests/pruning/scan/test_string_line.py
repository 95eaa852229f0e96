"""Byte strings and sorted ranges of byte strings as merged integer ranks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pruning.scan.statistics import line_of
from pruning.values import encoding as code
from pruning.values.byte_strings import ByteStrings
from pruning.values.ranges import RangeSet
from pruning.values.types import ValueType
from tests.pruning.values.test_string_order import TEXTS

STRING = ValueType("string")


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=6), st.lists(TEXTS, max_size=8))
def test_merged_ranks_compare_as_bytes(pairs, items):
    lows, highs = (ByteStrings.of([select(pair) for pair in pairs]) for select in (min, max))
    ranges = RangeSet.of_ranges(STRING, lows, highs)
    assert isinstance(ranges.lows, ByteStrings)
    assert isinstance(ranges.highs, ByteStrings)
    (firsts, lasts), (places,) = line_of(ranges.lows, ranges.highs, ByteStrings.of(items))
    for ends, line in ((ranges.lows, firsts), (ranges.highs, lasts)):
        for end, at in zip((ends[index] for index in range(len(ends))), line.tolist(), strict=True):
            for item, place in zip(items, places.tolist(), strict=True):
                assert [item < end, item == end] == [place < at, place == at]


def test_ranks_of_points_and_strings_between_them():
    points = RangeSet.of_codes(STRING, code.encode(STRING, ["b", "d"]))
    assert isinstance(points.lows, ByteStrings)
    line, (places,) = line_of(points.lows, points.lows, ByteStrings.of([b"a", b"b", b"c", b"d", b"e"]))
    assert [[0, 4], [0, 4]] == [each.tolist() for each in line]
    assert [-1, 0, 3, 4, 7] == places.tolist()
