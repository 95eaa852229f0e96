"""ORs of key sets: a container that holds no key of any operand is skipped, and no other."""

from __future__ import annotations

import re
from dataclasses import replace

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.scan.literals import disjunction_sql
from pruning.options import PruningOptions
from pruning.reasons import ReasonCode
from pruning.scan.disjunction import any_of
from pruning.scan.key_filter import KeyFilter, key_filter
from pruning.scan.scan_plan import ScanPlan, plan_scan
from pruning.scan.statistics import ColumnStatistics, ContainerKind, Containers
from tests.pruning.keys.test_summary import summary
from tests.pruning.scan.test_tuple_pushdown import BIGINT, DELTA, INT, PARQUET, Probe, containers

OPTIONS = PruningOptions()


def keys(name: str, *values, type_=BIGINT) -> KeyFilter:
    return key_filter([Probe(name, type_)], summary((type_,), [(each,) for each in values]))


def either(*filters: KeyFilter) -> KeyFilter:
    return any_of(filters)


# `a` ascends from file to file, `b` descends.
FILES = containers(
    *(((10 * at, 10 * at + 9), (90 - 10 * at, 99 - 10 * at)) for at in range(10)), types=(BIGINT, BIGINT)
)


def kept(plan: ScanPlan) -> list[int]:
    return np.flatnonzero(plan.files.kept).tolist()


@pytest.mark.parametrize("capabilities", [DELTA, PARQUET], ids=["by a predicate", "by a list of files"])
@pytest.mark.parametrize(
    ("filter_", "expected"),
    [
        (either(keys("a", 5, 31), keys("b", 5)), [0, 3, 9]),
        (either(keys("a", 5), keys("b", 95)), [0]),
        (either(keys("a", 5), keys("a", 95)), [0, 9]),
        (either(keys("a", 5), keys("b", 1000)), [0]),
        (either(keys("a", 5, -1), keys("b", 5), keys("a", 71)), [0, 7, 9]),
        (either(keys("a", -1), keys("b", 1000)), []),
    ],
)
def test_containers_without_a_key_of_any_operand_are_skipped(capabilities, filter_, expected):
    plan = plan_scan(FILES, None, [filter_], capabilities, OPTIONS)
    assert expected == kept(plan)
    assert plan.acts
    assert () == plan.reasons
    assert "one of several" == filter_.kind


def test_an_or_and_the_keys_of_a_column_both_skip():
    filters = [either(keys("a", 5, 31), keys("b", 5)), keys("a", 5, 95)]
    plan = plan_scan(FILES, None, filters, PARQUET, OPTIONS)
    assert [0, 9] == kept(plan)


def test_row_groups_are_skipped_by_the_pushed_predicate():
    file = containers(((0, 99), (0, 99)), types=(BIGINT, BIGINT))
    groups = replace(FILES, kind=ContainerKind.ROW_GROUP, parents=np.zeros(10, np.int64))
    plan = plan_scan(file, groups, [either(keys("a", 5, 31), keys("b", 5))], PARQUET, OPTIONS)
    assert [0, 3, 9] == np.flatnonzero(plan.row_groups.kept).tolist()
    (predicate,) = plan.joint_predicates
    assert ("a", "b") == predicate.columns
    assert (7, 7000) == (predicate.containers_skipped, predicate.bytes_skipped)


def test_listed_file_of_which_each_row_group_is_skipped_is_not_listed():
    file = containers(((0, 9), (0, 9)), types=(BIGINT, BIGINT))
    halves = containers(((0, 3), (0, 3)), ((6, 9), (6, 9)), kind=ContainerKind.ROW_GROUP, parents=[0, 0])
    halves = replace(halves, columns={name: _of_bigint(each) for name, each in halves.columns.items()})
    assert [] == kept(plan_scan(file, halves, [either(keys("a", 5), keys("b", 4))], PARQUET, OPTIONS))
    assert [0] == kept(plan_scan(file, halves, [either(keys("a", 5), keys("b", 3))], PARQUET, OPTIONS))


def _of_bigint(column: ColumnStatistics) -> ColumnStatistics:
    return replace(column, type=BIGINT)


@pytest.mark.parametrize("capabilities", [DELTA, PARQUET])
def test_operand_that_every_container_may_hold_has_a_reason(capabilities):
    unknown = Containers(FILES.kind, FILES.names, FILES.rows, FILES.sizes, {"a": FILES.columns["a"]})
    plan = plan_scan(unknown, None, [either(keys("a", 5), keys("b", 5))], capabilities, OPTIONS)
    assert list(range(10)) == kept(plan)
    assert [(ReasonCode.UNCLUSTERED, "a or b")] == [(each.code, each.subject) for each in plan.reasons]
    assert not plan.acts


@pytest.mark.parametrize(
    "capabilities",
    [
        replace(PARQUET, push_refusal=ReasonCode.NOT_VECTORISED),
        replace(PARQUET, file_only=frozenset({"b"})),
        replace(PARQUET, widen=lambda _, ranges: type(ranges).all(ranges.type)),
    ],
)
def test_columns_without_pushdown_get_no_predicate_but_a_list_of_files(capabilities):
    groups = replace(FILES, kind=ContainerKind.ROW_GROUP, parents=np.arange(10))
    plan = plan_scan(FILES, groups, [either(keys("a", 5), keys("b", 5))], capabilities, OPTIONS)
    assert () == plan.joint_predicates
    assert [0, 9] == kept(plan)


def test_ends_between_keys_that_storage_compares_wrongly_are_not_pushed():
    """As of texts, whose bounds are cut: the first and the last key may be compared as they are, and others not."""
    moved = replace(DELTA, widen=lambda _, ranges: ranges if len(ranges) == 1 else ranges.span())
    filter_ = either(keys("a", 5, 31, 95), keys("b", 45))
    assert [0, 3, 5, 9] == kept(plan_scan(FILES, None, [filter_], DELTA, OPTIONS))
    plan = plan_scan(FILES, None, [filter_], moved, OPTIONS)
    assert () == plan.joint_predicates
    assert list(range(10)) == kept(plan)


def test_partition_column_gets_no_predicate():
    by_folder = {**FILES.columns, "b": replace(FILES.columns["b"], is_partition=True)}
    plan = plan_scan(replace(FILES, columns=by_folder), None, [either(keys("a", 5), keys("b", 5))], PARQUET, OPTIONS)
    assert () == plan.joint_predicates
    assert [0, 9] == kept(plan)


def test_nan_keys_are_pushed_to_no_storage():
    double = type(BIGINT)("double")
    files = containers(((0.0, 1.0), (0, 1)), ((2.0, 3.0), (2, 3)), types=(double, INT))
    plan = plan_scan(
        files, None, [either(keys("a", 0.5, float("nan"), type_=double), keys("b", 1, type_=INT))], DELTA, OPTIONS
    )
    assert () == plan.joint_predicates
    assert [0, 1] == kept(plan)


CELL = st.one_of(st.none(), st.integers(-3, 12))


@given(
    st.lists(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=4), min_size=1, max_size=8),
    st.lists(
        st.tuples(st.sampled_from("ab"), st.lists(st.integers(-3, 12), min_size=1, max_size=6)), min_size=2, max_size=3
    ),
    st.booleans(),
)
def test_no_container_with_a_matching_row_is_skipped(files, operands, by_list):
    """As a list of files, or as a predicate, which no matching row fails."""
    sizes = np.arange(1, len(files) + 1) * 100
    columns = {
        name: ColumnStatistics.of(BIGINT, [_bounds([row[at] for row in rows]) for rows in files])
        for at, name in enumerate("ab")
    }
    rows = np.array([len(each) for each in files])
    level = Containers(ContainerKind.FILE, [str(at) for at in range(len(files))], rows, sizes, columns)
    filter_ = either(*(keys(name, *values) for name, values in operands))
    plan = plan_scan(level, None, [filter_], PARQUET if by_list else DELTA, OPTIONS)
    matching = [[any(row["ab".index(name)] in values for name, values in operands) for row in each] for each in files]
    assert all(is_kept or not any(each) for is_kept, each in zip(plan.files.kept, matching, strict=True))
    for predicate in plan.joint_predicates:
        sql = re.sub(r"(\d)L", r"\1", disjunction_sql(predicate.operands))
        for each, wanted in zip(files, matching, strict=True):
            for row, is_wanted in zip(each, wanted, strict=True):
                (found,) = duckdb.execute(f"SELECT {sql} FROM (SELECT ?::BIGINT AS a, ?::BIGINT AS b)", row).fetchone()
                assert found or not is_wanted


def _bounds(cells: list[int | None]) -> tuple[int | None, int | None, int]:
    known = [each for each in cells if each is not None]
    return (min(known, default=None), max(known, default=None), len(cells) - len(known))
