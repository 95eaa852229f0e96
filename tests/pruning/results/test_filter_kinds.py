"""Containers kept by each kind of filter: none, min-max, ranges, list."""

from __future__ import annotations

import numpy as np
import pytest

from pruning.results.table_explanation import LIST, MIN_MAX, NONE, RANGES, Scanned, before_build, kinds_of
from pruning.scan.key_filter import KeyFilter
from pruning.scan.statistics import ColumnStatistics, ContainerKind, Containers
from pruning.values.domain import Domain
from pruning.values.types import ValueType

INT = ValueType("int")


def files(count: int = 10) -> Containers:
    """Files with ten values and a hundred bytes each."""
    column = ColumnStatistics.of(INT, [(at * 10, at * 10 + 9, 0) for at in range(count)])
    names = [str(at) for at in range(count)]
    return Containers(ContainerKind.FILE, names, np.full(count, 10), np.full(count, 100), {"k": column})


def row_groups() -> Containers:
    """Two row groups per file, with five values and forty bytes each."""
    column = ColumnStatistics.of(INT, [(at * 5, at * 5 + 4, 0) for at in range(20)])
    parents = np.arange(20) // 2
    return Containers(
        ContainerKind.ROW_GROUP, list(map(str, range(20))), np.full(20, 5), np.full(20, 40), {"k": column}, parents
    )


def keys(*values: int, distinct: int | None = 1) -> KeyFilter:
    domain = Domain.of(INT, *values)
    return KeyFilter(
        ("k",), {"k": domain}, len(values), distinct, is_exact=True, is_empty=not values, has_bloom=True, source="list"
    )


def kept(filter_: KeyFilter, scanned: Scanned, most: int = 64) -> dict[str, tuple[int | None, ...]]:
    return {each.kind: (each.files, each.row_groups, each.bytes) for each in kinds_of(filter_, scanned, most)}


def test_each_kind_keeps_no_more_than_the_previous():
    scanned = Scanned.whole(files(), None)
    assert kept(keys(12, 14, 55, 91), scanned) == {
        NONE: (10, None, 1000),
        MIN_MAX: (9, None, 900),
        RANGES: (3, None, 300),
        LIST: (3, None, 300),
    }


def test_few_ranges_keep_files_between_keys():
    found = kept(keys(2, 35, 91), Scanned.whole(files(), None), most=2)
    assert ((5, None, 500), (3, None, 300)) == (found[RANGES], found[LIST])


def test_row_groups_of_kept_files_are_counted():
    found = kept(keys(12, 91), Scanned.whole(files(), row_groups()))
    assert {NONE: (10, 20, 800), MIN_MAX: (9, 17, 680), RANGES: (2, 2, 80), LIST: (2, 2, 80)} == found


def test_no_kind_keeps_statically_pruned_files():
    left = np.arange(10) < 5
    found = kept(keys(12, 55), Scanned(files(), None, left))
    assert {NONE: (5, None, 500), MIN_MAX: (4, None, 400), RANGES: (1, None, 100), LIST: (1, None, 100)} == found


def test_no_keys_keep_nothing():
    assert {(0, None, 0)} == {each for kind, each in kept(keys(), Scanned.whole(files(), None)).items() if kind != NONE}


def test_too_many_keys_have_no_list():
    found = kept(keys(12, 91, distinct=None), Scanned.whole(files(), None))
    assert ((2, None, 200), (None, None, None)) == (found[RANGES], found[LIST])


def test_kinds_that_keep_everything_are_unknown_before_build():
    lines = kinds_of(keys(2, 55, 99), Scanned.whole(files(), None), 64)
    assert [(NONE, 10), (MIN_MAX, None), (RANGES, 3), (LIST, None)] == [
        (each.kind, each.files) for each in before_build(lines)
    ]


@pytest.mark.parametrize("value", [5, 95])
def test_column_without_statistics_keeps_everything(value):
    unknown = Containers(ContainerKind.FILE, ["a"], np.array([1]), np.array([100]))
    assert {(1, None, 100)} == set(kept(keys(value), Scanned.whole(unknown, None)).values())
