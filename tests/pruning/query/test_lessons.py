"""`Lessons`: idle filters are left out by some queries of a shape, and the fewest seconds of one are remembered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pruning.query import lessons
from pruning.query.lessons import NO_LESSON, Attempt, Lesson, Lessons, Outcome, shape_of
from pruning.query.plan import Expression, Filter, Join, Node, Relation

IDLE = Attempt(2, "k", 0, "k")
SHARE = 0.3
WAS_IDLE = Outcome({IDLE: SHARE})


def query(*values: str, table: str = "dims", column: int = 7, name: str = "grp", type_: str = "int") -> Node:
    """A join of facts with rows of a table where a column is one of some values."""
    facts = Relation(0, 0, "LogicalRelation", (1,), names=("k",), types=("int",), table="facts")
    dims = Relation(1, 1, "LogicalRelation", (column,), names=(name,), types=("int",), table=table)
    left = Expression("AttributeReference", (), column, type_, name)
    listed = Expression("In", (left, *(Expression("Literal", (), None, type_, each) for each in values)))
    return Join(3, 0, "Join", (1, column), (facts, Filter(2, 1, "Filter", (column,), (dims,), condition=listed)))


def never(execution: int) -> float | None:
    raise AssertionError(execution)


@pytest.mark.parametrize("other", [query("3"), query("2", column=9), query("2", "3", "5")])
def test_literals_and_ids_of_columns_do_not_change_a_shape(other):
    assert shape_of(query("2")) == shape_of(other)


def test_joins_of_other_types_have_other_shapes():
    assert shape_of(query("2")) != shape_of(replace(query("2"), type="LeftSemi"))


@pytest.mark.parametrize("other", [query("2", table="shops"), query("2", name="kind"), query("2", type_="bigint")])
def test_tables_columns_and_types_change_a_shape(other):
    assert shape_of(query("2")) != shape_of(other)


def queries_without(known: Lessons, most: int) -> int:
    """The number of queries that leave out the filter before one tries it."""
    for count in range(most + 1):
        if known.before(1, never) == NO_LESSON:
            return count
        assert Lesson({IDLE: SHARE}) == known.before(1, never)
        assert NO_LESSON == known.before(2, never)
        known.after(1, Outcome())
    raise AssertionError(most)


def test_an_idle_filter_is_left_out_by_twice_as_many_queries_each_time():
    known, found = Lessons(), []
    for _ in range(6):
        known.after(1, WAS_IDLE)
        found.append(queries_without(known, 8))
    assert [1, 2, 4, 8, 8, 8] == found


def test_a_filter_that_was_of_use_begins_anew():
    known = Lessons()
    for _ in range(3):
        known.after(1, WAS_IDLE)
        queries_without(known, 8)
    known.after(1, Outcome(useful=frozenset([IDLE])))
    assert 0 == queries_without(known, 8)
    known.after(1, WAS_IDLE)
    assert 1 == queries_without(known, 8)


@pytest.mark.parametrize(("share", "expected"), [(1.0, True), (SHARE, True), (0.15, True), (0.14, False), (0.0, False)])
def test_a_filter_that_is_expected_to_drop_far_more_rows_is_not_left_out(share, expected):
    known = Lessons()
    known.after(1, WAS_IDLE)
    lesson = known.before(1, never)
    assert expected is lesson.leaves_out(IDLE, lambda: share)
    assert not lesson.leaves_out(replace(IDLE, column="other"), lambda: share)


def test_seconds_of_the_first_execution_that_ended_count():
    known, took = Lessons(), {11: None, 12: 4.0, 13: 2.5}
    for execution, expected in ((11, 0.0), (12, 4.0), (13, 4.0)):
        known.after(1, Outcome(), execution)
        assert Lesson(seconds=expected) == known.before(1, took.__getitem__)
        # An execution is asked for once.
        assert Lesson(seconds=expected) == known.before(1, never)


def test_the_latest_shapes_are_remembered(monkeypatch):
    monkeypatch.setattr(lessons, "_MOST_SHAPES", 2)
    known = Lessons()
    for shape in (1, 2, 1, 3):
        known.after(shape, WAS_IDLE)
    assert [True, False, True] == [known.before(shape, never) != NO_LESSON for shape in (1, 2, 3)]
