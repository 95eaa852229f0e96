"""Keys by metadata alone: which scans hold them, and what the statistics of their files allow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pruning.query.key_origins import origins_of, zone_domain
from pruning.scan.statistics import ColumnStatistics, ContainerKind, Containers
from pruning.values.domain import Domain
from pruning.values.types import ValueType
from tests.pruning.plans import Plans, at_least, call, column, equal

INT, DOUBLE, STRING = ValueType("int"), ValueType("double"), ValueType("string")


@pytest.fixture
def plans() -> Plans:
    return Plans()


def found(node, key=None):
    """The scans by place, their columns, and how many conditions each has."""
    zones = origins_of(node, column(node.output[0]) if key is None else key)
    return [(each.relation.at, each.column, len(each.conditions)) for each in zones]


def test_a_scan_below_filters_is_found_with_their_conditions(plans):
    table = plans.table("k", "x")
    k, x = table.output
    assert [(table.at, k, 2)] == found(plans.filter(plans.filter(table, at_least(x, 3)), at_least(k, 1)))


@pytest.mark.parametrize("kind", ["GlobalLimit", "LocalLimit", "Offset", "Tail", "Sample"])
def test_some_rows_have_no_other_values_than_all_of_them(plans, kind):
    table = plans.table("k")
    assert [(table.at, *table.output, 1)] == found(plans.other(kind, plans.filter(table, at_least(*table.output, 3))))


def test_a_group_has_the_key_of_its_rows_and_conditions_on_a_sum_do_not_count(plans):
    table = plans.table("k", "x")
    grouped = plans.aggregate(table, table.output[0])
    above = plans.filter(grouped, at_least(grouped.output[-1], 3), at_least(table.output[0], 3))
    assert [(table.at, table.output[0], 1)] == found(above, column(table.output[0]))
    assert [] == found(grouped, column(grouped.output[-1]))


def test_a_condition_does_not_follow_an_id_to_a_column_of_another_scan(plans):
    """An engine may use the ids of a table's columns twice in one plan."""
    one, again = plans.table("k", "x"), plans.table("k", "x")
    again = replace(again, output=one.output)
    k, x = one.output
    renamed = plans.project(again, column(k), column(x))
    joined = plans.join(one, renamed, equal(k, renamed.output[0]))
    above = plans.filter(plans.other("GlobalLimit", joined), at_least(k, 5))
    assert [(again.at, x, 0)] == found(above, column(renamed.output[1]))
    assert [(one.at, x, 1)] == found(above, column(x))


def test_a_condition_on_both_sides_of_a_join_says_nothing_of_one(plans):
    one, other = plans.table("k"), plans.table("k")
    both_sides = call("Or", at_least(*one.output, 3), at_least(*other.output, 3))
    joined = plans.filter(plans.join(one, other), both_sides, at_least(*one.output, 1))
    assert [(one.at, *one.output, 1)] == found(joined, column(*one.output))


@pytest.mark.parametrize(
    "type_", ["Inner", "Cross", "LeftOuter", "RightOuter", "FullOuter", "LeftSemi", "LeftAnti", "ExistenceJoin"]
)
def test_the_side_of_a_join_that_owns_the_key_holds_its_values(plans, type_):
    left, right = plans.table("k"), plans.table("k")
    joined = plans.join(left, right, equal(*left.output, *right.output), type_=type_)
    assert [(left.at, *left.output, 0)] == found(joined, column(*left.output))
    if right.output[0] in joined.output:
        assert [(right.at, *right.output, 0)] == found(joined, column(*right.output))


def test_every_branch_of_a_union_holds_some_and_conditions_above_it_are_dropped(plans):
    """Two branches may share the ids of their columns in another order."""
    one, other = plans.table("k"), plans.table("k")
    union = plans.union(plans.filter(one, at_least(*one.output, 1)), other)
    above = plans.filter(union, at_least(union.output[0], 3))
    assert [(one.at, *one.output, 1), (other.at, *other.output, 0)] == found(above)


def test_one_branch_that_is_not_known_leaves_all_unknown(plans):
    one, other = plans.table("k"), plans.table("k")
    assert [] == found(plans.union(one, plans.other("Deduplicate", other)))


@pytest.mark.parametrize("kind", ["Expand", "MapInArrow", "InMemoryRelation", "Deduplicate"])
def test_what_is_not_on_the_list_ends_the_way(plans, kind):
    table = plans.table("k")
    assert [] == found(plans.other(kind, table))


def test_a_computed_key_has_no_zone_and_a_wider_integer_has(plans):
    table = plans.table("k", type_="int")
    own = column(*table.output, "int")
    assert [] == found(table, call("Add", own, own))
    assert [(table.at, *table.output, 0)] == found(table, call("Cast", own, type_="bigint"))


# 98: where a time zone left out a day, its midnight is that of the next.
def test_a_day_that_is_made_an_instant_has_no_zone(plans):
    table = plans.table("k", type_="date")
    own = column(*table.output, "date")
    assert [(table.at, *table.output, 0)] == found(table, own)
    assert [] == found(table, call("Cast", own, type_="timestamp"))


def domain(type_, *rows, kept=None, counts=None, nan=None) -> Domain:
    statistics = ColumnStatistics.of(type_, rows, may_have_nan=nan)
    counts = np.array([10] * len(rows) if counts is None else counts, np.int64)
    containers = Containers(ContainerKind.FILE, ["f"] * len(rows), counts, counts, {"k": statistics})
    return zone_domain(containers, "k", np.array([True] * len(rows) if kept is None else kept, bool), type_)


def test_each_kept_file_is_a_range_and_null_is_no_key():
    assert Domain.between(INT, 1, 5).union(Domain.of(INT, 9)) == domain(INT, (1, 5, 0), (9, 9, 3))
    assert Domain.of(INT, 9) == domain(INT, (1, 5, 0), (9, 9, 3), kept=[False, True])


def test_files_without_rows_or_with_null_alone_hold_no_key():
    assert Domain.none(INT) == domain(INT, (None, None, 10), (1, 5, 0), counts=[10, 0])
    assert Domain.none(INT) == domain(INT)


@pytest.mark.parametrize("bounds", [(None, 5, 0), (1, None, 0), (None, None, None), (9, 7, 0)])
def test_one_file_whose_bounds_are_not_known_may_hold_anything(bounds):
    """A range whose ends are in the wrong order would be an empty one."""
    assert domain(INT, (1, 2, 0), bounds).ranges.is_all


def test_bounds_that_are_nan_say_nothing():
    assert domain(DOUBLE, (1.0, 2.0, 0), (1.0, float("nan"), 0)).ranges.is_all


def test_nan_is_a_key_unless_it_is_known_to_be_absent():
    assert domain(DOUBLE, (1.0, 2.0, 0), nan=True).nan
    assert Domain.between(DOUBLE, 1.0, 2.0) == domain(DOUBLE, (1.0, 2.0, 0), nan=False)


def test_strings_keep_their_ends():
    assert Domain.between(STRING, "a", "b") == domain(STRING, ("a", "b", 0))
    assert domain(STRING, ("a", None, 0)).ranges.is_all


def test_a_column_without_statistics_may_hold_anything():
    containers = Containers(ContainerKind.FILE, ["f"], np.array([10]), np.array([1]))
    assert zone_domain(containers, "k", np.array([True]), INT).ranges.is_all
    assert zone_domain(containers, "k", np.array([False]), INT).is_none
