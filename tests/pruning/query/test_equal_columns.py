"""`EqualColumns`: where Spark may copy a condition of a scan's column."""

from __future__ import annotations

import pytest

from pruning.query.equal_columns import EqualColumns
from tests.pruning.plans import Plans, call, column, equal


@pytest.fixture
def plans() -> Plans:
    return Plans()


def copies(root, relation, at=0) -> set[tuple[int, int]]:
    return {(leaf.id, its) for leaf, its in EqualColumns.of(root).copies(relation, relation.output[at])}


@pytest.mark.parametrize("type_", ["Inner", "LeftSemi", "LeftOuter", "LeftAnti"])
def test_columns_of_a_join_are_copies_of_each_other(plans, type_):
    f, g = plans.table("k", "v"), plans.table("k", "v")
    root = plans.join(f, g, equal(f.output[0], g.output[0]), type_=type_)
    assert {(g.id, g.output[0])} == copies(root, f)
    assert {(f.id, f.output[0])} == copies(root, g)
    assert set() == copies(root, f, 1)


def test_copies_go_on_through_further_joins(plans):
    f, g, h = (plans.table("k") for _ in range(3))
    below = plans.join(f, g, equal(f.output[0], g.output[0]))
    root = plans.join(below, h, equal(g.output[0], h.output[0]))
    assert {(g.id, g.output[0]), (h.id, h.output[0])} == copies(root, f)


def test_casts_renamed_columns_groups_and_unions_are_passed(plans):
    f, g = plans.table("k", type_="int"), plans.table("k")
    renamed = plans.project(plans.aggregate(f, *f.output), call("Cast", column(*f.output), type_="bigint"))
    root = plans.join(renamed, g, equal(renamed.output[0], g.output[0]))
    assert {(g.id, g.output[0])} == copies(root, f)
    a, b = plans.table("k"), plans.table("k")
    both = plans.union(a, b)
    root = plans.join(both, g, equal(both.output[0], g.output[0]))
    assert {(a.id, a.output[0]), (g.id, g.output[0])} == copies(root, b)


def test_limit_keeps_a_condition_of_the_rows_below_it(plans):
    f, g = plans.table("k"), plans.table("k")
    root = plans.join(plans.limit(f, 5), g, equal(f.output[0], g.output[0]))
    assert {(g.id, g.output[0])} == copies(root, f)


def test_equal_columns_of_one_scan_are_copies(plans):
    f = plans.table("k", "m")
    assert {(f.id, f.output[1])} == copies(plans.filter(f, equal(*f.output)), f)


def test_computed_columns_and_other_comparisons_are_none(plans):
    f, g = plans.table("k"), plans.table("k")
    less = call("LessThan", column(*f.output), column(*g.output))
    assert set() == copies(plans.join(f, g, less), f)
    sum_ = call("Add", column(*f.output), column(*f.output))
    assert set() == copies(plans.join(f, g, call("EqualTo", sum_, column(*g.output))), f)


def test_rows_in_memory_are_no_copy_but_unknown_leaves_are(plans):
    f = plans.table("k")
    for kind, expected in (("LocalRelation", 0), ("LogicalRDD", 0), ("DataSourceV2ScanRelation", 1)):
        leaf = plans.other(kind, output=plans.fresh())
        assert expected == len(copies(plans.join(f, leaf, equal(f.output[0], leaf.output[0])), f))
