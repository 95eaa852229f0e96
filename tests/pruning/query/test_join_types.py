"""The table of join types, compared with the rows that an interpreter gives for all small tables."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from pruning.query.join_types import JOIN_TYPES, JoinSide, JoinType
from pruning.query.plan import Join
from tests.pruning.plan_interpreter import Lake, Row, rows_of
from tests.pruning.plans import Plans, equal

# Rows with a key and a number of their own, so that no two are equal.
ROWS = ((1, 10), (1, 11), (2, 12))
TABLES = [tuple(row for row, there in zip(ROWS, chosen, strict=True) if there) for chosen in product((0, 1), repeat=3)]
SIDES = ("left", "right")


class Joined:
    """The rows that a join of a type gives for two tables."""

    def __init__(self, type_: str) -> None:
        plans = Plans()
        self.left, self.right = plans.table("a", "b"), plans.table("a", "b")
        condition = equal(self.left.output[0], self.right.output[0])
        self.join: Join = plans.join(self.left, self.right, condition, type_=type_)

    def rows(self, side: str, own: tuple[Row, ...], other: tuple[Row, ...]) -> Counter[Row]:
        left, right = (own, other) if side == "left" else (other, own)
        return Counter(rows_of(self.join, Lake({self.left.id: left, self.right.id: right})))

    def of_row(self, side: str, row: Row, result: Counter[Row]) -> int | None:
        """The number of rows of a result that come from a row of a side; None if the result does not show the side."""
        columns = (self.left if side == "left" else self.right).output
        if columns[1] not in self.join.output:
            return None
        place = self.join.output.index(columns[1])
        return sum(count for each, count in result.items() if each[place] == row[1])


def known_rules(type_: str, side: str) -> JoinSide:
    return getattr(JoinType.of(type_), side)


every_side = pytest.mark.parametrize(("type_", "side"), list(product(JOIN_TYPES, SIDES)))


@every_side
def test_row_that_needs_a_match_gives_nothing_without_one(type_, side):
    joined = Joined(type_)
    lost = []
    for own, other in product(TABLES, TABLES):
        matched = tuple(row for row in own if any(row[0] == key for key, _ in other))
        lost.append(joined.rows(side, own, other) == joined.rows(side, matched, other))
    assert known_rules(type_, side).needs_match == all(lost)


@every_side
def test_row_that_stands_alone_changes_no_result_of_another(type_, side):
    joined = Joined(type_)
    same = []
    for own, other in product(TABLES, TABLES):
        alone = sum((joined.rows(side, (row,), other) for row in own), Counter())
        same.append(joined.rows(side, own, other) == alone)
    # A second match of a left row raises an error, which the interpreter does not.
    assert known_rules(type_, side).stands_alone == (all(same) and not JoinType.of(type_).is_scalar)


@every_side
def test_rows_are_kept_and_repeated_as_the_table_says(type_, side):
    joined = Joined(type_)
    counts = [
        joined.of_row(side, row, joined.rows(side, own, other)) for own, other in product(TABLES, TABLES) for row in own
    ]
    known = [each for each in counts if each is not None]
    rules = known_rules(type_, side)
    assert rules.keeps_every_row == (bool(known) and min(known) >= 1)
    assert rules.at_most_once == (bool(known) and max(known) <= 1)


@every_side
def test_padded_side_is_null_for_rows_without_a_match(type_, side):
    joined = Joined(type_)
    columns = (joined.left if side == "left" else joined.right).output
    padded = [
        row[joined.join.output.index(columns[0])] is None
        for own, other in product(TABLES, TABLES)
        for row in joined.rows(side, own, other)
        if columns[0] in joined.join.output
    ]
    assert known_rules(type_, side).is_padded == any(padded)


# Spark's own rules are canBuildBroadcastLeft, canBuildBroadcastRight, InferFiltersFromConstraints.
@pytest.mark.parametrize(
    ("type_", "broadcast", "conditions"),
    [
        ("Inner", ("left", "right"), ("left", "right")),
        ("Cross", ("left", "right"), ("left", "right")),
        ("LeftOuter", ("right",), ("right",)),
        ("RightOuter", ("left",), ("left",)),
        ("FullOuter", (), ()),
        ("LeftSemi", ("right",), ("left", "right")),
        ("LeftAnti", ("right",), ("right",)),
        ("ExistenceJoin", ("right",), ()),
        ("LeftSingle", ("right",), ("right",)),
    ],
)
def test_sides_that_spark_broadcasts_and_copies_conditions_to(type_, broadcast, conditions):
    assert broadcast == tuple(side for side in SIDES if known_rules(type_, side).may_be_broadcast)
    assert conditions == tuple(side for side in SIDES if known_rules(type_, side).gets_conditions)


def test_nothing_is_known_of_another_type():
    assert JoinType(is_late=True) == JoinType.of("AsOf")


def test_joins_of_subqueries_are_late():
    assert {"LeftSemi", "LeftAnti", "ExistenceJoin"} == {name for name, each in JOIN_TYPES.items() if each.is_late}
