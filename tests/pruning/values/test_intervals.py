"""Interval arithmetic compared with sets of Python's integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.values import ranges as intervals
from tests.pruning.strategies import LAW

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
SMALL = range(-1, 22)
PAIRS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 6)), max_size=6)


def _arrays(pairs: list[tuple[int, int]]) -> intervals.Intervals:
    lows, highs = ([pair[end] for pair in pairs] for end in (0, 1))
    return np.array(lows, np.int64), np.array(highs, np.int64)


def _normal(pairs: list[tuple[int, int]]) -> intervals.Intervals:
    return intervals.normalize(*_arrays([(low, low + width) for low, width in pairs]))


def _points(pairs: list[tuple[int, int]]) -> set[int]:
    return {point for low, width in pairs for point in range(low, low + width + 1)}


def _listed(line: intervals.Intervals) -> set[int]:
    return {point for low, high in zip(*line, strict=True) for point in range(int(low), int(high) + 1)}


@LAW
@given(PAIRS, PAIRS)
def test_union_and_intersection_match_python_sets(first, second):
    assert _points(first) == _listed(_normal(first))
    assert _points(first) | _points(second) == _listed(intervals.union(_normal(first), _normal(second)))
    assert _points(first) & _points(second) == _listed(intervals.intersect(_normal(first), _normal(second)))


@LAW
@given(PAIRS, PAIRS)
def test_intervals_are_sorted_and_never_touch(first, second):
    for line in (
        intervals.union(_normal(first), _normal(second)),
        intervals.intersect(_normal(first), _normal(second)),
    ):
        assert all(high + 1 < low for high, low in zip(line[1][:-1], line[0][1:], strict=True))


@LAW
@given(PAIRS, PAIRS)
def test_overlap_and_membership_match_python_sets(first, second):
    line = _normal(first)
    probes = _arrays([(low, low + width) for low, width in second])
    expected = [bool(_points(first) & set(range(low, low + width + 1))) for low, width in second]
    assert expected == intervals.overlap(line, *probes).tolist()
    assert [point in _points(first) for point in SMALL] == intervals.contains(line, np.array(SMALL)).tolist()


@LAW
@given(PAIRS)
def test_size_counts_points(pairs):
    assert len(_points(pairs)) == intervals.size(_normal(pairs))


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        pytest.param([(LEAST, LEAST), (LEAST, LEAST)], [(LEAST, LEAST)], id="least-twice"),
        pytest.param([(LEAST, -1), (0, GREATEST)], [(LEAST, GREATEST)], id="halves-touch"),
        pytest.param([(LEAST, LEAST), (GREATEST, GREATEST)], [(LEAST, LEAST), (GREATEST, GREATEST)], id="two-ends"),
        pytest.param([(LEAST, GREATEST), (3, 4)], [(LEAST, GREATEST)], id="inside-everything"),
        pytest.param([(GREATEST - 1, GREATEST - 1), (GREATEST, GREATEST)], [(GREATEST - 1, GREATEST)], id="at-the-end"),
        pytest.param([(5, 9), (1, 20), (2, 3)], [(1, 20)], id="covered-by-an-earlier-one"),
        pytest.param([], [], id="none"),
    ],
)
def test_normal_form_at_the_ends_of_int64(pairs, expected):
    line = intervals.normalize(*_arrays(pairs))
    assert expected == list(zip(*(end.tolist() for end in line), strict=True))


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        pytest.param([(LEAST, GREATEST)], 1 << 64, id="everything"),
        pytest.param([(LEAST, -2), (0, GREATEST)], (1 << 64) - 1, id="all-but-one"),
        pytest.param([(LEAST, LEAST)], 1, id="one"),
        pytest.param([], 0, id="none"),
    ],
)
def test_size_is_exact_beyond_int64(pairs, expected):
    assert expected == intervals.size(_arrays(pairs))


def test_empty_set_overlaps_no_interval():
    assert [False, False] == intervals.overlap(_arrays([]), *_arrays([(LEAST, GREATEST), (0, 0)])).tolist()


def test_open_end_is_the_greatest_int64():
    line = _arrays([(0, 4), (10, GREATEST)])
    assert [True, False, True] == intervals.overlap(line, *_arrays([(LEAST, 0), (5, 9), (11, GREATEST)])).tolist()
