"""Gaps kept open for the page index: the rows are sorted and the gap is wider than a page."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.scan.compaction import Evidence, compact, page_index_gaps
from pruning.scan.statistics import ColumnStatistics
from pruning.values.domain import Domain
from pruning.values.ranges import RangeSet
from pruning.values.types import ValueType
from tests.pruning.plain_pruning import skippable
from tests.pruning.strategies import LAW

INT = ValueType("int")
MIB = 1 << 20


def _weights(
    keys: list[int], bounds: list[tuple[int | None, int | None]], rows: int = 200_000, size: int = MIB
) -> list[int]:
    column = ColumnStatistics.of(INT, [(*each, 0) for each in bounds])
    count = len(bounds)
    ranges = Domain.of(INT, *keys).ranges
    gaps, weights = page_index_gaps(ranges, column, np.full(count, size), np.full(count, rows))
    found = np.zeros(len(ranges) + 1, np.int64)
    found[gaps] = weights
    return found.tolist()


def _sorted_groups(count: int, width: int = 100) -> list[tuple[int, int]]:
    return [(width * at, width * (at + 1) - 1) for at in range(count)]


def test_gap_saves_its_width_less_one_page():
    # A page has a tenth of the 100 values, so 29 of the 39 values between two keys are in pages without a key.
    assert [0, MIB * 29 // 100, 0] == _weights([110, 150], _sorted_groups(4))


def test_gap_counts_in_each_row_group_that_it_overlaps():
    # The gap has 49 values of the second row group and 50 of the third; each loses a page.
    assert [0, MIB * (39 + 40) // 100, 0] == _weights([150, 250], _sorted_groups(4))


@pytest.mark.parametrize(
    ("keys", "bounds", "rows"),
    [
        pytest.param([110, 115], _sorted_groups(4), 200_000, id="narrower-than-a-page"),
        pytest.param([110, 150], _sorted_groups(4), 20_000, id="one-page"),
        pytest.param([110, 150], _sorted_groups(4), -1, id="rows-unknown"),
        pytest.param([110, 150], [(0, 300), (1, 399), (0, 399)], 200_000, id="not-sorted"),
        pytest.param([110, 150], [(None, 199), (100, None), (120, 100)], 200_000, id="bounds-unknown"),
        pytest.param([110, 150], [(0, 300), (1, 399), (399, 0)], 200_000, id="not-sorted-beside-a-contradiction"),
        pytest.param([150], _sorted_groups(4), 200_000, id="no-gap"),
        pytest.param([], _sorted_groups(4), 200_000, id="no-key"),
        pytest.param([110, 150], [], 200_000, id="no-row-group"),
    ],
)
def test_gap_that_saves_no_page_weighs_nothing(keys, bounds, rows):
    assert not any(_weights(keys, bounds, rows))


def test_negligible_share_of_all_bytes_weighs_nothing():
    assert not any(_weights([110, 150], _sorted_groups(400)))


def test_gaps_between_strings_weigh_nothing():
    type_ = ValueType("string")
    column = ColumnStatistics.of(type_, [("a", "m", 0), ("n", "z", 0)])
    ranges = Domain.of(type_, "b", "y").ranges
    gaps, _ = page_index_gaps(ranges, column, np.array([MIB, MIB]), np.array([200_000, 200_000]))
    assert not len(gaps)


def test_very_large_key_sets_are_not_examined():
    keys = RangeSet.of_codes(INT, np.arange(0, 2_000_000, 2), is_sorted=True)
    column = ColumnStatistics.of(INT, [(*each, 0) for each in _sorted_groups(8, 250_000)])
    gaps, _ = page_index_gaps(keys, column, np.full(8, MIB), np.full(8, 10_000_000))
    assert not len(gaps)


@pytest.mark.parametrize(("filled", "expected"), [(1.0, 2), (0.05, 2), (0.01, 1), (0.0, 1)])
def test_gaps_without_values_hold_no_pages(filled, expected):
    """29 of 100 numbers of one of four row groups are beyond a page, of which only a part are values of rows."""
    column = ColumnStatistics.of(INT, [(*each, 0) for each in _sorted_groups(4)])
    evidence = Evidence(column, np.full(4, MIB), np.full(4, 200_000), filled=filled)
    assert expected == len(compact(Domain.of(INT, 110, 150).ranges, [evidence], 10))


def test_page_gaps_stay_open_beside_row_group_gaps():
    groups = [*_sorted_groups(3), (400, 499), (500, 599)]
    column = ColumnStatistics.of(INT, [(*each, 0) for each in groups])
    keys = Domain.of(INT, 110, 150, 160, 450).ranges
    sizes, rows = np.full(5, MIB), np.full(5, 200_000)
    # The row group of 200 to 299 lies in the last gap.
    assert "{[110, 160], 450}" == str(compact(keys, [Evidence(column, sizes)], 9))
    assert "{110, [150, 160], 450}" == str(compact(keys, [Evidence(column, sizes, rows)], 9))
    assert "{[110, 160], 450}" == str(compact(keys, [Evidence(column, sizes, rows)], 2))


@LAW
@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 90)), min_size=1, max_size=6),
    st.integers(1, 6),
)
def test_page_ranges_contain_keys_and_skip_the_same_row_groups(keys, groups, most):
    column = ColumnStatistics.of(INT, [(low, low + width, 0) for low, width in groups])
    ranges, sizes = Domain.of(INT, *keys).ranges, np.full(len(groups), MIB)
    found = compact(ranges, [Evidence(column, sizes, np.full(len(groups), 10**6))], most)
    assert found.contains_all(ranges)
    assert len(found) <= most
    before, after = skippable(ranges, column), skippable(found, column)
    assert not (after & ~before).any()
    assert len(ranges) > most or before.tolist() == after.tolist()
