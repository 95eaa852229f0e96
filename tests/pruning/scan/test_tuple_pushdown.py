"""Ranges over two columns: they contain every key and skip containers between keys in the lexicographic order of both
columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.scan.literals import tuple_ranges_sql
from pruning.options import PruningOptions
from pruning.reasons import Reason, ReasonCode
from pruning.scan.key_filter import KeyFilter, key_filter
from pruning.scan.pushdown import PushdownCapabilities
from pruning.scan.scan_plan import RowFilter, plan_scan
from pruning.scan.statistics import UNKNOWN, ColumnStatistics, ContainerKind, Containers
from pruning.scan.tuple_pushdown import plan_tuple_predicates
from pruning.values.types import ValueType
from tests.pruning.keys.test_summary import summary

INT, BIGINT = ValueType("int"), ValueType("bigint")
DELTA = PushdownCapabilities(
    accepts_file_list=False, push_refusal=None, tests_keys=True, must_be_exact=False, widen=lambda _, ranges: ranges
)
PARQUET = replace(DELTA, accepts_file_list=True)
# So few keys are expected to be shuffled, not broadcast.
OPTIONS = PruningOptions().with_limits(joined_rows=0)


@dataclass(frozen=True)
class Probe:
    """A probe column that can be pruned."""

    name: str
    type: ValueType
    refusal: Reason | None = None


def keys(*rows, types=(BIGINT, INT), probes=(BIGINT, INT)) -> KeyFilter:
    """A key filter of columns a, b, ... whose probe columns have the types `probes`."""
    columns = [Probe(name, type_) for name, type_ in zip("abc", probes, strict=False)]
    return key_filter(columns, summary(types, rows))


def containers(*boxes, kind=ContainerKind.FILE, types=(BIGINT, INT), parents=None, nulls=0):
    """Containers of 100 rows and 1000 bytes with bounds `((low, high) of a, (low, high) of b)`."""
    columns = {
        name: ColumnStatistics.of(type_, [(*box[at], nulls) for box in boxes])
        for at, (name, type_) in enumerate(zip("abc", types, strict=False))
    }
    count = len(boxes)
    where = None if parents is None else np.array(parents)
    return Containers(kind, [str(at) for at in range(count)], np.full(count, 100), np.full(count, 1000), columns, where)


# Shops 1 to 4 with order numbers 1 to 100 each, two files per shop.
SHOPS = containers(*(((shop, shop), half) for shop in (1, 2, 3, 4) for half in ((1, 50), (51, 100))))
ORDERS = keys((1, 5), (2, 95), (4, 20))


def test_files_between_keys_of_two_columns_are_skipped():
    # Column by column, shops 1, 2, 4 and numbers 5, 20, 95 skip only the files of shop 3.
    plan = plan_scan(SHOPS, None, [ORDERS], DELTA, OPTIONS)
    assert [0, 3, 6] == np.flatnonzero(plan.files.kept).tolist()
    (predicate,) = plan.joint_predicates
    assert ("a", "b") == predicate.columns
    assert (3, 3000) == (predicate.containers_skipped, predicate.bytes_skipped)
    assert plan.acts


def test_file_list_needs_no_tuple_predicate():
    plan = plan_scan(SHOPS, None, [ORDERS], PARQUET, OPTIONS)
    assert [0, 3, 6] == np.flatnonzero(plan.files.kept).tolist()
    assert () == plan.joint_predicates


def test_listed_file_without_a_row_group_with_keys_is_skipped():
    file = containers(((1, 2), (1, 100)))
    groups = containers(((1, 1), (51, 100)), ((2, 2), (1, 50)), kind=ContainerKind.ROW_GROUP, parents=[0, 0])
    wanted = keys((1, 5), (2, 95))
    assert [True] == list(plan_scan(file, None, [wanted], PARQUET, OPTIONS).files.kept)
    assert [False] == list(plan_scan(file, groups, [wanted], PARQUET, OPTIONS).files.kept)
    one = keys((1, 60), (2, 95))
    plan = plan_scan(file, groups, [one], PARQUET, OPTIONS)
    assert [True] == list(plan.files.kept)
    # The second row group is skipped by its order numbers alone.
    assert [True, False] == list(plan.row_groups.kept)


def test_row_groups_are_skipped_by_the_reader():
    file = containers(((1, 3), (1, 100)))
    bounds = [((shop, shop), half) for shop in (1, 2, 3) for half in ((1, 50), (51, 100))]
    groups = containers(*bounds, kind=ContainerKind.ROW_GROUP, parents=[0] * 6)
    plan = plan_scan(file, groups, [keys((1, 5), (2, 95), (3, 20))], PARQUET, OPTIONS)
    assert [0, 3, 4] == np.flatnonzero(plan.row_groups.kept).tolist()
    # No row group lies between the second and the third key.
    assert [2] == [len(predicate) for predicate in plan.joint_predicates]


def test_heaviest_gaps_stay_open():
    boxes = [((shop, shop), half) for shop in range(20) for half in ((1, 50), (51, 100))]
    files = containers(*boxes)
    heavy = np.where(np.arange(40) < 20, 1000, 10)
    plan = plan_scan(
        replace(files, sizes=heavy), None, [keys(*((shop, 5) for shop in range(20)), (0, 95))], DELTA, OPTIONS
    )
    (predicate,) = plan.joint_predicates
    assert 8 == len(predicate)
    # A key of 95 keeps both files of the first shop; the gaps between the keys of the last shops are too light for a
    # range.
    assert {3, 5, 7, 9, 11, 13, 15} == set(np.flatnonzero(~plan.files.kept).tolist()) - {39}


def test_files_after_all_keys_need_no_gap():
    plan = plan_scan(
        containers(((5, 5), (1, 9)), ((5, 5), (10, 20)), ((5, 5), (3, 30))),
        None,
        [keys((5, 4), (5, 2))],
        DELTA,
        OPTIONS,
    )
    assert [True, False, True] == list(plan.files.kept)


@pytest.mark.parametrize(
    ("refused", "types"),
    [
        (replace(DELTA, push_refusal=ReasonCode.NOT_VECTORISED), (BIGINT, INT)),
        (replace(DELTA, widen=lambda _, ranges: type(ranges).all(ranges.type)), (BIGINT, INT)),
        (DELTA, (BIGINT, ValueType("decimal", 9, 0))),
        (DELTA, (BIGINT, ValueType("timestamp"))),
    ],
)
def test_columns_without_pushdown_get_no_tuple_predicate(refused, types):
    files = containers(*(((1, 1), half) for half in ((1, 50), (51, 100))), types=types)
    wanted = keys((1, 5), types=types, probes=types)
    assert () == plan_tuple_predicates([files], [np.ones(2, bool)], [wanted], refused)


def test_points_are_coerced_to_the_column_types():
    wanted = keys((1, 5), (2, 1 << 40), types=(BIGINT, BIGINT), probes=(BIGINT, INT))
    # A key that no int can hold is dropped.
    assert [[1], [5]] == [each.tolist() for each in wanted.points.rows.columns]
    apart = keys((1, 5), types=(BIGINT, BIGINT), probes=(BIGINT, ValueType("decimal", 20, 0)))
    assert apart.points is None
    assert [ReasonCode.COLUMNS_APART] == [each.code for each in apart.reasons]


def test_single_column_has_no_points():
    assert keys((1,), types=(BIGINT,), probes=(BIGINT,)).points is None


def test_rows_are_still_tested_by_key_pairs():
    plan = plan_scan(SHOPS, None, [ORDERS], DELTA, OPTIONS)
    assert [RowFilter.BLOOM] == [each.test for each in plan.decisions]


def test_unknown_bounds_keep_and_all_null_columns_do_not():
    unknown = containers(((None, None), (None, None)), ((1, 1), (None, 50)), ((1, 1), (51, None)), nulls=UNKNOWN)
    plan = plan_scan(unknown, None, [keys((1, 5))], DELTA, OPTIONS)
    assert [True, True, False] == list(plan.files.kept)
    nothing = containers(((1, 1), (None, None)), ((1, 1), (9, 20)), ((1, 1), (6, 9)), nulls=100)
    plan = plan_scan(nothing, None, [keys((1, 5), (1, 10))], DELTA, OPTIONS)
    assert [False, True, False] == list(plan.files.kept)


numbers = st.integers(-3, 12)
pair = st.tuples(numbers, numbers)
bounds = st.tuples(st.none() | numbers, st.none() | numbers).filter(lambda it: None in it or it[0] <= it[1])


@given(st.lists(pair, min_size=1, max_size=30), st.lists(st.tuples(bounds, bounds), min_size=1, max_size=12), st.data())
def test_tuple_predicate_is_sound_and_skips_as_planned(rows, boxes, data):
    files = containers(*boxes, types=(INT, INT))
    wanted = keys(*rows, types=(INT, INT), probes=(INT, INT))
    (predicate,) = plan_tuple_predicates([files], [np.ones(len(boxes), bool)], [wanted], DELTA) or (None,)
    if predicate is None:
        return
    gone = predicate.skips(files)
    assert predicate.containers_skipped == gone.sum()
    inside = [any(_in(a, box[0]) and _in(b, box[1]) for a, b in rows) for box in boxes]
    assert not (gone & inside).any()
    others = data.draw(st.lists(pair, max_size=20))
    passed = _passing(predicate, [*rows, *others])
    assert set(rows) <= passed
    # Rows that pass lie in no skipped container.
    assert not any(
        _in(a, box[0]) and _in(b, box[1]) for a, b in passed for box, out in zip(boxes, gone, strict=True) if out
    )


def _in(value, ends):
    return (ends[0] is None or ends[0] <= value) and (ends[1] is None or value <= ends[1])


def _passing(predicate, rows):
    """The rows for which DuckDB finds the predicate true; its int literals are those of Spark."""
    values = ", ".join(f"({a}::int, {b}::int)" for a, b in rows)
    found = duckdb.sql(
        f"SELECT * FROM (VALUES {values}) t(a, b) WHERE {tuple_ranges_sql(predicate.columns, predicate)}"
    )
    return set(found.fetchall())


@given(st.lists(pair, min_size=1, max_size=60), st.integers(1, 7))
def test_every_gap_of_a_sorted_table_is_found(rows, size):
    """Files of a table sorted by both columns: a file is kept iff a key lies between its first and its last row."""
    table = sorted({(a, b) for a in range(-3, 6) for b in range(-3, 6)})
    files = [table[at : at + size] for at in range(0, len(table), size)]
    alike = [each for each in files if each[0][0] == each[-1][0]]
    boxes = [((each[0][0], each[0][0]), (each[0][1], each[-1][1])) for each in alike]
    if not boxes:
        return
    wanted = keys(*rows, types=(INT, INT), probes=(INT, INT))
    known = containers(*boxes, types=(INT, INT))
    found = plan_tuple_predicates([known], [np.ones(len(boxes), bool)], [wanted], DELTA)
    gaps = {sum(row < each[0] for row in set(rows)) for each in alike if not set(rows) & set(each)}
    if len(gaps - {0, len(set(rows))}) > 7:
        return
    expected = [not set(rows) & set(each) for each in alike]
    assert expected == (list(found[0].skips(known)) if found else [False] * len(alike))
