from __future__ import annotations

import pytest

from pruning.query.plan import columns_by_place
from tests.pruning.plans import Plans, at_least, equal


@pytest.fixture
def plans() -> Plans:
    return Plans()


def test_projection_and_aggregate_use_only_named_columns(plans):
    table = plans.table("a", "b")
    assert frozenset() == columns_by_place(plans.project(table, table.output[0]))
    assert frozenset() == columns_by_place(plans.aggregate(table, table.output[0]))


def test_union_uses_columns_by_position(plans):
    first, second, third = (plans.table("a", "b") for _ in range(3))
    branches = [
        plans.filter(first, at_least(first.output[0], 3)),
        plans.passing("Sort", second),
        plans.project(third, third.output[0], third.output[0]),
    ]
    union = plans.union(*branches)
    above = plans.project(union, union.output[0])
    assert {*first.output, *second.output} == columns_by_place(above)


def test_filters_pass_columns_and_other_operators_use_them(plans):
    left, right = (plans.table("a", "b") for _ in range(2))
    joined = plans.join(left, plans.project(right, right.output[0]), equal(left.output[0], right.output[0]))
    windowed = plans.window(plans.filter(joined, at_least(left.output[0], 3)), left.output[0])
    assert {*left.output} == columns_by_place(plans.project(windowed, left.output[0]))


def test_unknown_operators_and_subqueries_use_all_columns(plans):
    below, inside = plans.table("a", "b"), plans.table("c")
    opaque = plans.other("Mystery", below, subqueries=(inside,))
    assert {*below.output, *inside.output} == columns_by_place(plans.project(opaque, below.output[0]))
