"""Compaction: a few ranges that skip every container that the whole key set would skip."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.scan.compaction import Evidence, compact
from pruning.scan.statistics import ColumnStatistics
from pruning.values import encoding as code
from pruning.values.ranges import RangeSet
from pruning.values.types import ValueType
from tests.pruning.plain_pruning import assert_compacts_well, skippable
from tests.pruning.samples import ALL_TYPES, order
from tests.pruning.strategies import LAW, specs, values

BIGINT = ValueType("bigint")


def _integers(*keys: int) -> RangeSet:
    return RangeSet.of_codes(BIGINT, np.array(keys, np.int64))


def _evidence(*files: tuple, weights: tuple[int, ...] = ()) -> Evidence:
    column = ColumnStatistics.of(BIGINT, [(low, high, 0) for low, high in files])
    return Evidence(column, np.array(weights or (1,) * len(files), np.int64))


_FILES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=8)


@LAW
@given(st.lists(st.integers(0, 30), max_size=8), _FILES, st.integers(1, 5))
def test_no_choice_of_ranges_skips_more_bytes(keys, files, most):
    assert_compacts_well(keys, [(low, low + width) for low, width, _ in files], [each[2] for each in files], most)


def _column(type_: ValueType) -> st.SearchStrategy[list]:
    end = st.one_of(st.none(), values(type_))
    return st.lists(st.tuples(end, end), min_size=1, max_size=6)


_CASES = {type_: st.tuples(specs(type_), _column(type_), _column(type_)) for type_ in ALL_TYPES}


@LAW
@given(st.sampled_from(ALL_TYPES).flatmap(lambda type_: _CASES[type_]), st.integers(1, 8))
def test_compaction_is_lossless_within_the_budget_for_all_types(example, most):
    keys, *levels = example
    ranges = keys.domain().ranges
    columns = [
        ColumnStatistics.of(ranges.type, [(*_sorted(ranges.type, pair), 0) for pair in pairs]) for pairs in levels
    ]
    found = compact(ranges, [Evidence(column, np.ones(len(column), np.int64)) for column in columns], most)
    assert found.contains_all(ranges)
    assert len(found) <= max(most, min(1, len(ranges)))
    for column in columns:
        before, after = skippable(ranges, column), skippable(found, column)
        assert not (after & ~before).any()
        assert len(ranges) > most or before.tolist() == after.tolist()


def _sorted(type_: ValueType, pair: tuple) -> tuple:
    return pair if None in pair else tuple(sorted(pair, key=lambda value: order(type_, value)))


@pytest.mark.parametrize(
    ("keys", "files", "weights", "most", "expected"),
    [
        pytest.param((1, 5, 9), [(2, 4)], (1,), 9, "{1, [5, 9]}", id="a-gap-without-a-file-is-bridged"),
        pytest.param((1, 5, 9), [(2, 4), (6, 8)], (1, 1), 9, "{1, 5, 9}", id="each-gap-has-a-file"),
        pytest.param((1, 5, 9), [(2, 4), (6, 8)], (1, 2), 2, "{[1, 5], 9}", id="the-heavier-file-wins"),
        pytest.param(
            (1, 5, 9), [(2, 2), (3, 3), (6, 8)], (2, 2, 3), 2, "{1, [5, 9]}", id="two-light-files-outweigh-one"
        ),
        pytest.param((1, 5, 9), [(2, 4)], (0,), 9, "{[1, 9]}", id="a-file-of-no-weight-is-worth-no-gap"),
        pytest.param((1, 5, 9), [(1, 4), (4, 5)], (1, 1), 9, "{[1, 9]}", id="a-file-that-touches-a-key-is-in-no-gap"),
        pytest.param((1, 5, 9), [(0, 0), (10, 99)], (1, 1), 1, "{[1, 9]}", id="files-outside-cost-nothing"),
        pytest.param((1, 5, 9), [(None, 4), (6, None), (None, None)], (9, 9, 9), 9, "{[1, 9]}", id="unknown-ends"),
        pytest.param((1, 5, 9), [(4, 2)], (9,), 9, "{[1, 9]}", id="inverted-bounds"),
        pytest.param((1, 5, 9), [(2, 4), (6, 8)], (1, 1), 1, "{[1, 9]}", id="one-range-is-the-span"),
        pytest.param((7,), [(0, 6)], (1,), 1, "{7}", id="one-key"),
        pytest.param((), [(0, 6)], (1,), 1, "{}", id="no-key"),
    ],
)
def test_gaps_with_files_stay_open(keys, files, weights, most, expected):
    assert expected == str(compact(_integers(*keys), [_evidence(*files, weights=weights)], most))


def test_gaps_weigh_files_and_row_groups_together():
    files, row_groups = _evidence((2, 3), weights=(2,)), _evidence((6, 6), (7, 8), weights=(1, 2))
    assert "{[1, 5], 9}" == str(compact(_integers(1, 5, 9), [files, row_groups], 2))


def test_without_evidence_only_the_span_remains():
    assert "{[1, 9]}" == str(compact(_integers(1, 5, 9), [], 9))


def test_keys_stay_points_if_every_gap_is_kept():
    keys = RangeSet.of_codes(ValueType("string"), code.encode(ValueType("string"), ["a", "c"]))
    column = ColumnStatistics.of(keys.type, [("b", "b", 0)])
    assert compact(keys, [Evidence(column, np.array([1]))], 2) is keys


def test_weights_of_petabytes_do_not_overflow():
    evidence = _evidence((2, 4), (6, 7), (8, 8), weights=(1 << 51, 1 << 50, 1 << 50))
    assert "{1, 5, 9}" == str(compact(_integers(1, 5, 9), [evidence], 3))


@pytest.mark.parametrize("most", [0, -3])
def test_budget_without_a_range_is_refused(most):
    with pytest.raises(ValueError, match=f"Cannot compact to {most} ranges: at least one is needed"):
        compact(_integers(1, 5), [_evidence((2, 4))], most)
