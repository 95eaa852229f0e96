"""Column statistics as domains, and statistics that are not trusted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pruning.scan.skipping import prune_containers
from pruning.scan.statistics import UNKNOWN, ColumnStatistics, ContainerKind, Containers
from pruning.values import encoding as code
from pruning.values.domain import Domain
from pruning.values.encoding import float_codes
from pruning.values.ranges import RangeSet
from pruning.values.types import ValueType
from tests.pruning.samples import ALL_TYPES, INF, NAN, nasty

BIGINT, DOUBLE, STRING = ValueType("bigint"), ValueType("double"), ValueType("string")
OPEN_INTEGERS, OPEN_DOUBLES = Domain.between(BIGINT, None, None), Domain.between(DOUBLE, None, None)


def _with_null(domain: Domain) -> Domain:
    return domain.union(Domain.only_null(domain.type))


@pytest.mark.parametrize(
    ("row", "rows", "expected"),
    [
        pytest.param((1, 9, 0), 5, Domain.between(BIGINT, 1, 9), id="all-known"),
        pytest.param((1, 9, 2), 5, _with_null(Domain.between(BIGINT, 1, 9)), id="some-null"),
        # Failure catalogue 68: a missing null count may be any number.
        pytest.param((1, 9, None), 5, _with_null(Domain.between(BIGINT, 1, 9)), id="null-count-unknown"),
        pytest.param((None, 9, 0), 5, Domain.between(BIGINT, None, 9), id="low-unknown"),
        pytest.param((1, None, 0), 5, Domain.between(BIGINT, 1, None), id="high-unknown"),
        pytest.param((None, None, 0), 5, OPEN_INTEGERS, id="bounds-unknown"),
        pytest.param((None, None, None), UNKNOWN, Domain.all(BIGINT), id="nothing-known"),
        pytest.param((None, None, 5), 5, Domain.only_null(BIGINT), id="all-null"),
        pytest.param((None, None, 5), UNKNOWN, _with_null(OPEN_INTEGERS), id="all-null-of-unknown-rows"),
        # Failure catalogue 72: contradictory statistics keep the container.
        pytest.param((9, 1, 0), 5, OPEN_INTEGERS, id="inverted"),
        pytest.param((1, 9, 5), 5, _with_null(Domain.between(BIGINT, 1, 9)), id="all-null-yet-bounds"),
        pytest.param((1, 9, 7), 5, _with_null(Domain.between(BIGINT, 1, 9)), id="more-nulls-than-rows"),
        pytest.param((None, None, 0), 0, Domain.none(BIGINT), id="no-rows"),
        pytest.param((1, 9, None), 0, Domain.none(BIGINT), id="no-rows-yet-bounds"),
    ],
)
def test_domain_of_a_container_contains_its_possible_values(row, rows, expected):
    assert expected == ColumnStatistics.of(BIGINT, [(0, 0, 0), row]).domain(1, rows)


@pytest.mark.parametrize(
    ("row", "may_have_nan", "expected"),
    [
        # Failure catalogue 61, 64: a finite upper bound does not prove that NaN is absent.
        pytest.param((1.0, 3.0, 0), None, Domain(Domain.between(DOUBLE, 1.0, 3.0).ranges, nan=True), id="nan-unknown"),
        pytest.param((1.0, 3.0, 0), False, Domain.between(DOUBLE, 1.0, 3.0), id="nan-absent"),
        # Failure catalogue 62, 65: a NaN bound shows that the writer did not order NaN.
        pytest.param((NAN, 3.0, 0), False, Domain.between(DOUBLE, None, 3.0), id="nan-as-low"),
        pytest.param((1.0, NAN, 0), False, Domain.between(DOUBLE, 1.0, None), id="nan-as-high"),
        pytest.param((NAN, NAN, 0), False, OPEN_DOUBLES, id="nan-as-both"),
        # Failure catalogue 74: infinity is a value.
        pytest.param((-INF, INF, 0), False, Domain.between(DOUBLE, -INF, INF), id="infinities"),
        # Failure catalogue 66: a lower bound of -0.0 in Parquet covers a value of 0.0, too.
        pytest.param((-0.0, -0.0, 0), False, Domain.of(DOUBLE, 0.0), id="negative-zero"),
    ],
)
def test_float_bounds_do_not_exclude_nan(row, may_have_nan, expected):
    assert expected == ColumnStatistics.of(DOUBLE, [row], may_have_nan=may_have_nan).domain(0, 5)


@pytest.mark.parametrize("bits", [0x7FF << 52 | 1 << 51, -1, 0x7FF << 52 | 1], ids=["quiet", "negative", "signalling"])
@pytest.mark.parametrize("end", ["lows", "highs", "both"])
def test_nan_bound_makes_both_bounds_unknown(bits, end):
    column = ColumnStatistics.of(DOUBLE, [(1.0, 3.0, 0)], may_have_nan=False)
    wrong = float_codes(np.array([bits], np.int64).view(np.float64))
    ends = ("lows", "highs") if end == "both" else (end,)
    assert OPEN_DOUBLES == replace(column, **dict.fromkeys(ends, wrong)).domain(0, 5)


@pytest.mark.parametrize("type_", ALL_TYPES, ids=str)
def test_unknown_statistics_give_domain_all(type_):
    column = ColumnStatistics.unknown(type_, 3)
    assert [Domain.all(type_)] * 3 == [column.domain(index, rows) for index, rows in enumerate((UNKNOWN, 1, 7))]


@pytest.mark.parametrize("type_", ALL_TYPES, ids=str)
def test_take_keeps_statistics_of_containers(type_):
    low, high = min(nasty(type_)), max(nasty(type_))
    column = ColumnStatistics.of(type_, [(low, None, 0), (None, high, None), (low, high, 2)])
    taken = column.take(np.array([2, 0]))
    assert [column.domain(2, 9), column.domain(0, 9)] == [taken.domain(0, 9), taken.domain(1, 9)]
    assert 2 == len(taken)


def test_keys_of_another_type_are_refused():
    # Days and microseconds are both integers, but denote different moments.
    column = ColumnStatistics.of(ValueType("date"), [(0, 9, 0)])
    with pytest.raises(ValueError, match="Cannot compare bounds of date with keys of timestamp: coerce the keys"):
        column.against(RangeSet.all(ValueType("timestamp")))


def test_unknown_bounds_are_the_extreme_ranks():
    column = ColumnStatistics.of(STRING, [(None, "b", 0), ("b", None, 0), ("z", "a", 0)])
    keys = RangeSet.of_ranges(STRING, *(Domain.of(STRING, "a", "c").ranges.lows,) * 2)
    _, (lows, highs), is_known = column.against(keys)
    assert not is_known.any()
    ends = np.iinfo(np.int64)
    assert [(True, False), (False, True), (True, True)] == [
        (low == ends.min, high == ends.max) for low, high in zip(lows, highs, strict=True)
    ]


@pytest.mark.parametrize(
    ("low", "high"),
    [
        pytest.param("m", "h", id="within one gap"),
        pytest.param("zz", "z", id="beyond all keys"),
        pytest.param("f", "e", id="within one range"),
    ],
)
def test_inverted_string_bounds_keep_container(low, high):
    # Between the same two keys, both bounds have the same rank. Skipping by rank would skip a file that may hold any
    # key.
    keys = RangeSet.of_ranges(STRING, code.encode(STRING, ["a", "d", "y"]), code.encode(STRING, ["b", "g", "y"]))
    column = ColumnStatistics.of(STRING, [(low, high, 0), ("h", "i", 0)])
    files = Containers(ContainerKind.FILE, ["wrong", "right"], np.array([9, 9]), np.array([1, 1]), {"k": column})
    assert [True, False] == prune_containers(files, {"k": Domain(keys)}).kept.tolist()


@pytest.mark.parametrize(
    ("rows", "sizes", "columns"),
    [
        pytest.param([1, 2], [1], {}, id="sizes"),
        pytest.param([1, 2], [1, 2], {"k": ColumnStatistics.unknown(BIGINT, 3)}, id="column"),
    ],
)
def test_arrays_of_different_lengths_are_refused(rows, sizes, columns):
    with pytest.raises(ValueError, match="Cannot describe 2 containers: found"):
        Containers(ContainerKind.FILE, ["a", "b"], np.array(rows), np.array(sizes), columns)


def test_arrays_that_numpy_would_broadcast_are_refused():
    column = ColumnStatistics.unknown(BIGINT, 3)
    with pytest.raises(ValueError, match=r"Cannot describe a column by arrays of \[3, 3, 1, 3, 3, 3\] entries"):
        replace(column, has_low=np.array([True]))


def test_indexing_gives_one_container():
    columns = {"k": ColumnStatistics.of(BIGINT, [(0, 0, 0), (1, 9, 3)])}
    files = Containers(ContainerKind.FILE, ["a", "b"], np.array([1, 3]), np.array([10, 20]), columns)
    found = files[1]
    assert ("b", 3, 20, ContainerKind.FILE) == (found.name, found.rows, found.size, found.kind)
    assert {"k": _with_null(Domain.between(BIGINT, 1, 9))} == found.domains
