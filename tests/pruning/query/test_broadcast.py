"""The sides of joins to broadcast: by the real size of a build, and to keep shuffles and streamed expressions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pruning.options import BroadcastStrategy
from pruning.query.broadcasts import BroadcastSide, broadcasts_kept, reuses_kept, small_sides
from pruning.query.plan import Join, Node, Project, Relation

AUTO, RUNTIME_ONLY, NONE = BroadcastStrategy


def join(type_: str) -> Join:
    return Join(
        2, 0, "Join", (1, 2), (Relation(0, 0, "LogicalRelation", (1,)), Node(1, 1, "Project", (2,))), type=type_
    )


@pytest.mark.parametrize(
    ("type_", "left", "right"),
    [
        ("Inner", BroadcastSide.LEFT, BroadcastSide.RIGHT),
        ("Cross", BroadcastSide.LEFT, BroadcastSide.RIGHT),
        ("LeftOuter", BroadcastSide.NEITHER, BroadcastSide.RIGHT),
        ("RightOuter", BroadcastSide.LEFT, BroadcastSide.NEITHER),
        ("FullOuter", BroadcastSide.NEITHER, BroadcastSide.NEITHER),
        ("LeftSemi", BroadcastSide.NEITHER, BroadcastSide.RIGHT),
        ("LeftAnti", BroadcastSide.NEITHER, BroadcastSide.RIGHT),
        ("ExistenceJoin", BroadcastSide.NEITHER, BroadcastSide.RIGHT),
        ("LeftSingle", BroadcastSide.NEITHER, BroadcastSide.RIGHT),
        ("AsOf", BroadcastSide.NEITHER, BroadcastSide.NEITHER),
    ],
)
def test_broadcast_side_by_join_type(type_, left, right):
    for place, side in ((0, left), (1, right)):
        found = small_sides(join(type_), {place: 10}, 10, AUTO)
        assert ({2: side} if side is not BroadcastSide.NEITHER else {}) == found


def test_smaller_side_of_an_inner_join_is_broadcast():
    assert {2: BroadcastSide.RIGHT} == small_sides(join("Inner"), {0: 9, 1: 8}, 10, AUTO)
    assert {2: BroadcastSide.LEFT} == small_sides(join("Inner"), {0: 8, 1: 9}, 10, AUTO)


def test_side_that_cannot_be_broadcast_is_ignored():
    assert {2: BroadcastSide.RIGHT} == small_sides(join("LeftOuter"), {0: 1, 1: 9}, 10, AUTO)


def test_side_over_the_limit_is_ignored():
    assert {} == small_sides(join("Inner"), {0: 11}, 10, AUTO)
    assert {2: BroadcastSide.RIGHT} == small_sides(join("Inner"), {0: 11, 1: 10}, 10, AUTO)
    assert {} == small_sides(join("Inner"), {0: 0, 1: 0}, -1, AUTO)


def test_runtime_only_prevents_broadcasts_by_estimate():
    assert {2: BroadcastSide.NEITHER} == small_sides(join("Inner"), {}, 10, RUNTIME_ONLY)
    assert {2: BroadcastSide.LEFT} == small_sides(join("Inner"), {0: 3}, 10, RUNTIME_ONLY)


def test_strategy_none_broadcasts_no_side():
    assert {} == small_sides(join("Inner"), {0: 3}, 10, NONE)


def shuffled_twice() -> list[tuple[Join, Node]]:
    """Two joins of equal left sides with scans, which are the nodes 1 and 4."""
    left = [Node(0, 0, "Aggregate", (1,)), Node(3, 3, "Aggregate", (1,))]
    right = [Relation(1, 1, "LogicalRelation", (2,)), Relation(4, 4, "LogicalRelation", (2,))]
    joins = [Join(at.id + 1, by.id, "Join", (1, 2), (by, at), type="Inner") for by, at in zip(left, right, strict=True)]
    return list(zip(joins, left, strict=True))


def test_joins_of_equal_sides_stay_shuffled_where_keys_made_the_other_side_smaller():
    shared = shuffled_twice()
    assert {2: BroadcastSide.NEITHER, 5: BroadcastSide.NEITHER} == reuses_kept([shared], {}, {1, 4})
    # As in stock Spark, the other join may still be broadcast.
    assert {5: BroadcastSide.NEITHER} == reuses_kept([shared], {}, {4})
    assert {} == reuses_kept([shared], {}, set())
    # Keys of the equal sides are no matter of this.
    assert {} == reuses_kept([shared], {}, {0, 3})


def test_equal_sides_are_not_protected_where_only_one_join_shuffles_them():
    shared = shuffled_twice()
    assert {} == reuses_kept([shared], {5: BroadcastSide.RIGHT}, {1, 4})
    assert {} == reuses_kept([shared[:1]], {}, {1, 4})


def join_beside_an_expression(kind: str = "Project", may_raise: str = "a division") -> tuple[Join, Node, Node]:
    """A join, its left side, whose expression over the scan 0 may raise an error, and its right side, a scan."""
    made = Project if kind == "Project" else Node
    left = replace(made(1, 0, kind, (1,), (Relation(0, 0, "LogicalRelation", (1,)),)), may_raise=may_raise)
    right = Relation(2, 2, "LogicalRelation", (2,))
    return Join(3, 0, "Join", (1, 2), (left, right), type="Inner"), left, right


def kept(join: Join, broadcast: Node, materialized: set[int] = frozenset(), pruned: set[int] = frozenset([0])):
    return broadcasts_kept(join, lambda _, side: side is broadcast, materialized, materialized | pruned)


def test_side_whose_expression_may_raise_stays_streamed():
    join, left, right = join_beside_an_expression()
    assert {3: BroadcastSide.RIGHT} == kept(join, right) == kept(join, right, pruned={2})
    # Without pruning its expression is computed for all rows, too.
    assert {} == kept(join, left) == kept(join, join)
    # Nothing below the join has changed.
    assert {} == kept(join, right, pruned={7})
    # Its rows are known.
    assert {} == kept(join, right, materialized={0, 1})


def test_side_that_evaluates_all_rows_or_raises_nothing_may_be_broadcast():
    for kind, may_raise in (("Project", ""), ("Generate", "explode")):
        join, _, right = join_beside_an_expression(kind, may_raise)
        assert {} == kept(join, right)
