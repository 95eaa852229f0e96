"""Key origins: the scans that hold every value of a key, and the domain that the statistics of their files give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pruning.query.key_origins import domain_from_statistics, origins_of
from pruning.scan.statistics import ColumnStatistics, ContainerKind, Containers
from pruning.values.domain import Domain
from pruning.values.types import ValueType
from tests.pruning.plans import Plans, at_least, call, column, equal

INT, DOUBLE, STRING = ValueType("int"), ValueType("double"), ValueType("string")


@pytest.fixture
def plans() -> Plans:
    return Plans()


def found(node, key=None):
    """The place, the key column and the number of conditions of each origin."""
    origins = origins_of(node, column(node.output[0]) if key is None else key)
    return [(each.relation.id, each.column, len(each.conditions)) for each in origins]


def test_scan_below_filters_is_an_origin_with_conditions(plans):
    table = plans.table("k", "x")
    k, x = table.output
    assert [(table.id, k, 2)] == found(plans.filter(plans.filter(table, at_least(x, 3)), at_least(k, 1)))


@pytest.mark.parametrize("kind", ["GlobalLimit", "LocalLimit", "Offset", "Tail", "Sample"])
def test_limits_and_samples_keep_the_origin(plans, kind):
    table = plans.table("k")
    assert [(table.id, *table.output, 1)] == found(plans.other(kind, plans.filter(table, at_least(*table.output, 3))))


def test_aggregate_keeps_origin_without_conditions_on_sums(plans):
    table = plans.table("k", "x")
    grouped = plans.aggregate(table, table.output[0])
    above = plans.filter(grouped, at_least(grouped.output[-1], 3), at_least(table.output[0], 3))
    assert [(table.id, table.output[0], 1)] == found(above, column(table.output[0]))
    assert [] == found(grouped, column(grouped.output[-1]))


def test_condition_applies_only_to_its_own_scan(plans):
    """An engine may use the column ids of a table twice in one plan."""
    one, again = plans.table("k", "x"), plans.table("k", "x")
    again = replace(again, output=one.output)
    k, x = one.output
    renamed = plans.project(again, column(k), column(x))
    joined = plans.join(one, renamed, equal(k, renamed.output[0]))
    above = plans.filter(plans.other("GlobalLimit", joined), at_least(k, 5))
    assert [(again.id, x, 0)] == found(above, column(renamed.output[1]))
    assert [(one.id, x, 1)] == found(above, column(x))


def test_condition_on_both_join_sides_is_dropped(plans):
    one, other = plans.table("k"), plans.table("k")
    both_sides = call("Or", at_least(*one.output, 3), at_least(*other.output, 3))
    joined = plans.filter(plans.join(one, other), both_sides, at_least(*one.output, 1))
    assert [(one.id, *one.output, 1)] == found(joined, column(*one.output))


@pytest.mark.parametrize(
    "type_", ["Inner", "Cross", "LeftOuter", "RightOuter", "FullOuter", "LeftSemi", "LeftAnti", "ExistenceJoin"]
)
def test_origin_is_the_join_side_of_the_key(plans, type_):
    left, right = plans.table("k"), plans.table("k")
    joined = plans.join(left, right, equal(*left.output, *right.output), type_=type_)
    assert [(left.id, *left.output, 0)] == found(joined, column(*left.output))
    if right.output[0] in joined.output:
        assert [(right.id, *right.output, 0)] == found(joined, column(*right.output))


def test_union_has_an_origin_per_branch(plans):
    """Conditions above the union are dropped, because branches may share column ids in another order."""
    one, other = plans.table("k"), plans.table("k")
    union = plans.union(plans.filter(one, at_least(*one.output, 1)), other)
    above = plans.filter(union, at_least(union.output[0], 3))
    assert [(one.id, *one.output, 1), (other.id, *other.output, 0)] == found(above)


def test_union_with_an_unknown_branch_has_no_origin(plans):
    one, other = plans.table("k"), plans.table("k")
    assert [] == found(plans.union(one, plans.other("Deduplicate", other)))


@pytest.mark.parametrize("kind", ["Expand", "MapInArrow", "InMemoryRelation", "Deduplicate"])
def test_other_operators_have_no_origin(plans, kind):
    table = plans.table("k")
    assert [] == found(plans.other(kind, table))


def test_widened_key_has_an_origin_and_computed_key_has_none(plans):
    table = plans.table("k", type_="int")
    own = column(*table.output, "int")
    assert [] == found(table, call("Add", own, own))
    assert [(table.id, *table.output, 0)] == found(table, call("Cast", own, type_="bigint"))


# Failure catalogue 98: where a time zone skipped a day, the midnight of that day is that of the next.
def test_date_cast_to_timestamp_has_no_origin(plans):
    table = plans.table("k", type_="date")
    own = column(*table.output, "date")
    assert [(table.id, *table.output, 0)] == found(table, own)
    assert [] == found(table, call("Cast", own, type_="timestamp"))


def domain(type_, *rows, kept=None, counts=None, nan=None) -> Domain:
    statistics = ColumnStatistics.of(type_, rows, may_have_nan=nan)
    counts = np.array([10] * len(rows) if counts is None else counts, np.int64)
    containers = Containers(ContainerKind.FILE, ["f"] * len(rows), counts, counts, {"k": statistics})
    return domain_from_statistics(containers, "k", np.array([True] * len(rows) if kept is None else kept, bool), type_)


def test_domain_is_the_ranges_of_kept_files_without_null():
    assert Domain.between(INT, 1, 5).union(Domain.of(INT, 9)) == domain(INT, (1, 5, 0), (9, 9, 3))
    assert Domain.of(INT, 9) == domain(INT, (1, 5, 0), (9, 9, 3), kept=[False, True])


def test_empty_and_all_null_files_have_no_key():
    assert Domain.none(INT) == domain(INT, (None, None, 10), (1, 5, 0), counts=[10, 0])
    assert Domain.none(INT) == domain(INT)


@pytest.mark.parametrize("bounds", [(None, 5, 0), (1, None, 0), (None, None, None), (9, 7, 0)])
def test_unknown_bounds_of_one_file_give_domain_all(bounds):
    """An inverted range would be an empty one."""
    assert domain(INT, (1, 2, 0), bounds).ranges.is_all


def test_nan_bounds_give_domain_all():
    assert domain(DOUBLE, (1.0, 2.0, 0), (1.0, float("nan"), 0)).ranges.is_all


def test_nan_is_a_key_unless_known_absent():
    assert domain(DOUBLE, (1.0, 2.0, 0), nan=True).nan
    assert Domain.between(DOUBLE, 1.0, 2.0) == domain(DOUBLE, (1.0, 2.0, 0), nan=False)


def test_string_domain_keeps_its_bounds():
    assert Domain.between(STRING, "a", "b") == domain(STRING, ("a", "b", 0))
    assert domain(STRING, ("a", None, 0)).ranges.is_all


def test_column_without_statistics_gives_domain_all():
    containers = Containers(ContainerKind.FILE, ["f"], np.array([10]), np.array([1]))
    assert domain_from_statistics(containers, "k", np.array([True]), INT).ranges.is_all
    assert domain_from_statistics(containers, "k", np.array([False]), INT).is_none
