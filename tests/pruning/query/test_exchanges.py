"""The share of bytes that any key keeps, before any key is known."""

from __future__ import annotations

import numpy as np
import pytest

from pruning.query.exchanges import unprunable_fraction
from pruning.scan.statistics import ColumnStatistics
from pruning.values.types import ValueType

EVEN = [(1, 10, 0), (11, 20, 0), (21, 30, 0), (31, 40, 0)]
ALL = [(1, 40, 0), (2, 40, 0), (1, 39, 0)]


def share(rows, type_="int", sizes=None) -> float:
    return unprunable_fraction(
        ColumnStatistics.of(ValueType(type_), rows), np.array(sizes or [10] * len(rows), np.int64)
    )


def test_disjoint_containers_keep_one_per_key():
    assert share(EVEN) == 0.25


def test_containers_with_nearly_all_values_are_unprunable():
    assert share(ALL) == 1.0


def test_fraction_counts_bytes_not_containers():
    assert share([(1, 40, 0), (1, 20, 0), (21, 40, 0)], sizes=[80, 10, 10]) == pytest.approx(0.9)


@pytest.mark.parametrize(
    "rows",
    [[(None, None, None)] * 3, [(1, None, 0)], [(None, 9, 0), (1, None, 0)]],
    ids=["nothing", "no end", "one end each"],
)
def test_containers_without_bounds_are_all_kept(rows):
    assert share(rows) == 1.0


def test_container_without_bounds_counts_as_those_beside_it():
    assert share([*ALL, (None, None, None)]) == 1.0
    assert share([*EVEN, (None, None, None)]) == 0.25


def test_few_containers_with_bounds_tell_nothing_of_others():
    nothing = (None, None, None)
    assert share([*EVEN, *[nothing] * 76]) == 1.0
    assert share([*EVEN, *[nothing] * 75]) == 0.25
    # Bytes count: a small file has bounds, the large ones have none.
    assert share([*EVEN, nothing], sizes=[10, 10, 10, 10, 760]) == 1.0


def test_extreme_integers_do_not_overflow():
    least, most = -(2**63), 2**63 - 1
    assert share([(least, most, 0), (least, most, 0)], "bigint") == 1.0
    assert share([(least, -1, 0), (0, most, 0)], "bigint") == pytest.approx(0.5)


def test_string_containers_are_skipped_by_the_bounds_of_each_other():
    assert share([("a", "z", 0), ("a", "z", 0)], "string") == 1.0
    assert share([("a", "f", 0), ("g", "p", 0), ("q", "z", 0)], "string") == pytest.approx(1 / 3)


def test_single_container_is_unprunable():
    assert share([("a", "z", 0)], "string") == share([(1, 40, 0)]) == 1.0


def test_no_containers_have_no_unprunable_bytes():
    assert share([]) == 0.0
