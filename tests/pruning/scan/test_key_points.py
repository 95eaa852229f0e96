"""Keys of several columns against bounds of containers: exactly the containers without a key are found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.keys.summary import KeyRows
from pruning.scan.key_filter import KeyPoints, _any_between
from pruning.scan.statistics import ColumnStatistics
from pruning.values import encoding as code
from pruning.values.types import ValueType

INT, STRING, DOUBLE = ValueType("int"), ValueType("string"), ValueType("double")


def points(types, rows):
    """Key points over columns a, b, ... of the given types."""
    rows = sorted(set(rows))
    columns = [code.encode(type_, [row[at] for row in rows]) for at, type_ in enumerate(types)]
    return KeyPoints(tuple("abc"[: len(types)]), tuple(types), KeyRows(tuple(columns)))


def boxes(types, *bounds):
    """Statistics of containers, from the bounds of each column in each container."""
    return {
        name: ColumnStatistics.of(type_, [(low, high, 0) for low, high in each])
        for name, type_, each in zip("abc", types, bounds, strict=False)
    }


def brute(rows, bounds, pairs):
    """For each box, whether some row lies in it by each of the given pairs of columns."""
    return [
        all(any(all(_within(row[at], box[at]) for at in pair) for row in rows) for pair in pairs)
        for box in zip(*bounds, strict=True)
    ]


def _within(value, ends):
    low, high = ends
    return (low is None or low <= value) and (high is None or value <= high)


def test_points_of_two_columns_keep_fewer_boxes_than_each_alone():
    found = points([INT, INT], [(1, 5), (2, 900), (7, 5)])
    shops, orders = [(1, 1), (1, 1), (2, 2), (2, 2), (3, 3)], [(1, 99), (900, 950), (1, 99), (100, 950), (1, 950)]
    # Each column alone would keep the first four boxes.
    assert [True, False, False, True, False] == list(found.lie_in(boxes([INT, INT], shops, orders)))


def test_column_without_statistics_is_ignored():
    found = points([INT, INT], [(1, 5)])
    assert [True, False] == list(found.lie_in(boxes([INT], [(0, 1), (2, 3)])))
    assert [True, False] == list(found.lie_in({"b": boxes([INT, INT], [], [(5, 9), (6, 9)])["b"]}))
    assert [True, True] == list(found.lie_in({"other": ColumnStatistics.of(INT, [(7, 7, 0)] * 2)}))


def test_float_bounds_are_not_compared():
    # A NaN key lies within no bounds.
    found = points([INT, DOUBLE], [(1, 5.0)])
    assert [True, False] == list(found.lie_in(boxes([INT, DOUBLE], [(1, 1), (2, 2)], [(8.0, 9.0), (5.0, 5.0)])))


def test_no_keys_keep_no_box():
    found = points([INT, INT], [])
    assert [False] == list(found.lie_in(boxes([INT, INT], [(None, None)], [(None, None)])))


def test_unknown_or_inverted_bounds_keep():
    found = points([INT, STRING], [(1, "é"), (9, "z" * 40)])
    ends = [(None, None), (None, 0), (1, None), (9, 9), (2, 8)]
    texts = [("z", None), (None, None), (None, "a"), ("zz", "a"), (None, None)]
    assert [True, False, False, True, False] == list(found.lie_in(boxes([INT, STRING], ends, texts)))


@pytest.mark.parametrize("ends", [(-(1 << 31), (1 << 31) - 1), (0, 0)])
def test_extreme_integers(ends):
    low, high = ends
    found = points([INT, INT], [(low, high), (high, low)])
    columns = boxes([INT, INT], [(low, low), (high, high), (low, high)], [(high, high), (high, high), (low, high)])
    assert [True, low == high, True] == list(found.lie_in(columns))


numbers = st.integers(0, 12)
ends = st.tuples(st.none() | numbers, st.none() | numbers).filter(lambda it: None in it or it[0] <= it[1])


@given(st.data(), st.lists(st.tuples(numbers, numbers), max_size=40), st.integers(1, 8))
def test_box_of_two_columns_is_kept_iff_it_has_a_key(data, rows, count):
    bounds = [data.draw(st.lists(ends, min_size=count, max_size=count)) for _ in range(2)]
    assert brute(rows, bounds, [(0, 1)]) == list(points([INT, INT], rows).lie_in(boxes([INT, INT], *bounds)))


@given(st.data(), st.lists(st.tuples(numbers, st.text("aé", max_size=3), numbers), max_size=30), st.integers(1, 6))
def test_three_columns_are_tested_by_pairs_with_the_first(data, rows, count):
    texts = st.tuples(st.text("aé", max_size=3), st.text("aé", max_size=3)).map(sorted).map(tuple)
    bounds = [data.draw(st.lists(each, min_size=count, max_size=count)) for each in (ends, texts, ends)]
    types = [INT, STRING, INT]
    # UTF-8 bytes sort as code points do.
    expected = brute(rows, bounds, [(0, 1), (0, 2)])
    assert expected == list(points(types, rows).lie_in(boxes(types, *bounds)))


@given(st.lists(st.integers(0, 30), max_size=70), st.data())
def test_any_between_on_slices_of_any_length(values, data):
    place, wanted = st.integers(0, len(values)), st.integers(0, 31)
    slices = data.draw(st.lists(st.tuples(place, place, wanted, wanted), max_size=20))
    begins, stops, lows, highs = (np.array([each[at] for each in slices], np.int64) for at in range(4))
    found = _any_between(np.array(values, np.int64), (begins, stops), (lows, highs))
    assert [any(low <= value < high for value in values[begin:stop]) for begin, stop, low, high in slices] == list(
        found
    )
