"""`EqualColumns`: where Spark may copy a condition of a scan's column."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pruning.query.equal_columns import EqualColumns
from pruning.query.join_graph import JoinGraph
from pruning.reasons import ReasonCode
from tests.pruning.plans import Plans, at_least, call, column, equal, literal


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


@pytest.mark.parametrize(
    ("from_type", "may_raise", "spared", "is_cast"),
    [
        ("string", "a cast", True, True),
        ("string", "", True, False),
        ("int", "a division", True, False),
        ("string", "a cast", False, False),
    ],
    ids=["of a text", "that gives NULL", "without loss", "of every row"],
)
def test_column_equal_to_a_cast_that_may_raise_is_known(plans, from_type, may_raise, spared, is_cast):
    f, g, t = plans.table("k"), plans.table("k"), plans.table("s", type_=from_type)
    below = plans.join(f, g, equal(f.output[0], g.output[0]))
    key = call("Cast", column(*t.output, from_type), type_="bigint")
    some = plans.filter(t, at_least(t.output[0], 1) if spared else call("IsNotNull", column(*t.output)))
    found = EqualColumns.of(replace(plans.join(below, some, equal(g.output[0], key)), may_raise=may_raise))
    assert [is_cast] * 3 == [found.is_cast(each.output[0]) for each in (f, g, t)]


@pytest.mark.parametrize("type_", ["LeftSemi", "LeftAnti", "Inner"])
def test_cast_of_rows_that_a_join_leaves_gets_no_condition(plans, type_):
    f, t, good = plans.table("k"), plans.table("s", "n", type_="string"), plans.table("n")
    some = plans.join(t, good, equal(t.output[1], good.output[0]), type_=type_)
    key = call("Cast", column(t.output[0], "string"), type_="bigint")
    root = replace(plans.join(f, some, equal(column(f.output[0]), key)), may_raise="a cast")
    (edge,) = (each for each in JoinGraph.of(root).edges if each.build_side.node is some)
    assert ((), [ReasonCode.MAY_RAISE]) == (edge.probes, [each.code for each in edge.stops])


# A row with NULL in another column, or in one of two, may have a value that the cast refuses.
@pytest.mark.parametrize(
    ("key", "tests", "refuses"),
    [
        ("cast", (0,), False),
        ("cast", (0, 1), True),
        ("cast", (1,), True),
        ("coalesce", (0,), True),
        ("sum", (0, 1), True),
        ("sum", (), False),
    ],
)
@pytest.mark.parametrize("place", ["join", "projection", "limit"])
def test_test_for_null_spares_a_key_the_rows_with_null_in_another_column(plans, place, key, tests, refuses):
    f, t = plans.table("k"), plans.table("s", "b", type_="string")
    cast = call("Cast", column(t.output[0], "string"), type_="bigint")
    keys = {"cast": cast, "coalesce": call("Coalesce", cast, literal(0)), "sum": call("Add", cast, column(t.output[1]))}
    some = plans.filter(t, *(call("IsNotNull", column(t.output[at])) for at in tests)) if tests else t
    some = plans.limit(some, 5) if place == "limit" else some
    if place == "join":
        root = replace(plans.join(f, some, equal(f.output[0], keys[key])), may_raise="a cast")
    else:
        made = replace(plans.project(some, keys[key]), may_raise="a cast")
        root = plans.join(f, made, equal(f.output[0], made.output[0]))
    # A sum or `coalesce` as the key of a join is equal to no column.
    is_copied = place == "projection" or (place == "join" and key == "cast")
    assert (refuses and is_copied) == EqualColumns.of(root).is_cast(f.output[0])


# `try_cast` is a cast in the tree; the filter raises on no value then, or has two tests.
@pytest.mark.parametrize(
    ("guards", "may_raise", "refuses"),
    [
        (("bigint",), "a cast", False),
        (("bigint",), "", True),
        (("int",), "", True),
        (("bigint", "bigint"), "a cast", True),
        (("int", "bigint"), "a cast", True),
    ],
)
@pytest.mark.parametrize("type_", ["Inner", "LeftSemi"])
def test_test_of_a_try_cast_spares_the_cast_a_value(plans, type_, guards, may_raise, refuses):
    f, t, d = plans.table("k"), plans.table("s", type_="string"), plans.table("k")
    casts = {name: call("Cast", column(t.output[0], "string"), type_=name) for name in ("int", "bigint")}
    tests = (call("IsNotNull", casts[each]) for each in guards)
    some = replace(plans.filter(t, call("IsNotNull", column(t.output[0])), *tests), may_raise=may_raise)
    made = replace(plans.project(some, casts["bigint"]), may_raise="a cast")
    joined = plans.join(f, made, equal(f.output[0], made.output[0]), type_=type_)
    graph = JoinGraph.of(plans.join(joined, d, equal(f.output[0], d.output[0])))
    assert refuses != any(probe.relation is f for edge in graph.edges for probe in edge.probes)


# Generated code computes the column only for the rows that the lower join leaves.
@pytest.mark.parametrize("is_deferred", [False, True])
@pytest.mark.parametrize("type_", ["Inner", "LeftSemi"])
def test_computed_key_of_a_join_above_another_one_is_spared_rows(plans, type_, is_deferred):
    f, t, good = plans.table("k"), plans.table("s", "n", type_="string"), plans.table("n")
    cast = call("Coalesce", call("Cast", column(t.output[0], "string"), type_="bigint"), literal(0))
    made = replace(plans.project(t, cast, t.output[1]), may_raise="a cast")
    side = plans.join(made, good, equal(t.output[1], good.output[0]), type_=type_) if is_deferred else made
    root = plans.join(f, side, equal(f.output[0], made.output[0]))
    assert is_deferred == EqualColumns.of(root).is_cast(f.output[0])


# Spark adds no test for NULL of a column that is never NULL, so nothing but a copy is tested below the join.
@pytest.mark.parametrize("is_tested", [False, True])
@pytest.mark.parametrize("kind", ["Cast", "Coalesce", "Add"])
def test_computed_column_of_rows_that_a_join_leaves_gets_no_condition(plans, kind, is_tested):
    f, t, good = plans.table("k"), plans.table("s", "n", type_="string"), plans.table("n")
    cast = call("Cast", column(t.output[0], "string"), type_="bigint")
    expression = {"Cast": cast, "Coalesce": call("Coalesce", cast, literal(0)), "Add": call("Add", cast, literal(1))}
    tested = replace(plans.filter(t, call("IsNotNull", expression[kind])), may_raise="a cast") if is_tested else t
    some = plans.join(tested, good, equal(t.output[1], good.output[0]), type_="LeftSemi")
    made = replace(plans.project(some, expression[kind]), may_raise="a cast")
    root = plans.join(f, made, equal(f.output[0], made.output[0]))
    assert is_tested != EqualColumns.of(root).is_cast(f.output[0])


# `IN` and `EXISTS` become joins, and outer joins inner ones, after Spark has inferred its conditions.
@pytest.mark.parametrize(
    ("type_", "above", "is_tested", "refuses"),
    [
        ("LeftSemi", "join", False, True),
        ("LeftAnti", "join", False, True),
        ("ExistenceJoin", "join", False, True),
        ("LeftSemi", "join", True, False),
        ("LeftSemi", "scan", False, True),
        ("LeftSemi", "groups", False, True),
        ("LeftSemi", "Expand", False, True),
        ("LeftSemi", "limit", False, False),
        ("LeftSemi", "random", False, False),
        ("Inner", "join", False, True),
        ("Inner", "join", True, False),
        ("Inner", "scan", False, True),
        ("Inner", "scan", True, False),
        ("LeftOuter", "join", True, False),
    ],
)
def test_plan_with_a_late_condition_that_may_raise_gets_no_filter(plans, type_, above, is_tested, refuses):
    f, t, good, d = plans.table("k"), plans.table("s", "n", type_="string"), plans.table("n"), plans.table("k")
    cast = call("Cast", column(t.output[0], "string"), type_="bigint")
    condition = call("IsNotNull", cast) if is_tested else at_least(t.output[1], 1)
    tested = replace(plans.filter(t, condition), may_raise="a cast" if is_tested else "")
    some = tested if above == "scan" else plans.join(tested, good, equal(t.output[1], good.output[0]))
    if above == "groups":
        made = plans.aggregate(some, t.output[0])
        made = replace(made, may_raise="a cast", groups={made.output[0]: cast})
    else:
        made = replace(plans.project(some, cast), may_raise="a cast", is_deterministic=above != "random")
    key = made.output[0]
    top = {"Expand": lambda: plans.other("Expand", made, output=made.output), "limit": lambda: plans.limit(made, 5)}
    late = plans.join(f, top.get(above, lambda: made)(), equal(f.output[0], key), type_=type_)
    graph = JoinGraph.of(plans.join(late, d, equal(f.output[0], d.output[0])))
    refused = [stop for edge in graph.edges for stop in edge.stops if stop.code is ReasonCode.MAY_MOVE]
    assert refuses == bool(refused)
    assert not (refuses and any(each.probes for each in graph.edges))


LATE = ["LeftSemi", "LeftAnti", "ExistenceJoin"]


# The condition `f.n = cast(t.s)`, and others; a filter leaves out rows of one side, for which its operand may raise.
@pytest.mark.parametrize(
    ("type_", "condition", "filtered", "refuses"),
    [
        *((type_, "key", "t", True) for type_ in LATE),
        *((type_, "key", "f", False) for type_ in LATE),
        *((type_, "key", "", False) for type_ in LATE),
        ("Inner", "key", "t", False),
        ("LeftSemi", "null-safe", "t", True),
        ("LeftSemi", "null-safe", "", False),
        ("LeftSemi", "less", "", True),
        ("LeftSemi", "or", "", True),
        ("LeftSemi", "both sides", "", True),
        ("LeftSemi", "beside columns", "", False),
    ],
)
def test_condition_of_a_late_join_that_may_raise_on_rows_it_drops_refuses_all_filters(
    plans, type_, condition, filtered, refuses
):
    f, t, d = plans.table("k", "n"), plans.table("n", "s"), plans.table("k")
    cast = call("Cast", column(t.output[1], "string"), type_="bigint")
    key = equal(column(f.output[1]), cast)
    parts = {
        "null-safe": (call("EqualNullSafe", column(f.output[1]), cast),),
        "less": (call("LessThan", column(f.output[1]), cast),),
        "or": (call("Or", key, equal(f.output[0], t.output[0])),),
        "both sides": (equal(column(f.output[1]), call("Add", column(f.output[0]), cast)),),
        "beside columns": (key, call("LessThan", column(f.output[0]), column(t.output[0]))),
    }
    sides = [
        plans.filter(each, at_least(each.output[0], 1)) if name == filtered else each
        for name, each in zip("ft", (f, t), strict=True)
    ]
    late = replace(plans.join(*sides, *parts.get(condition, (key,)), type_=type_), may_raise="a cast")
    graph = JoinGraph.of(plans.join(late, d, equal(f.output[0], d.output[0])))
    assert refuses == any(stop.code is ReasonCode.MAY_MOVE for edge in graph.edges for stop in edge.stops)
    assert refuses != any(probe.relation is f for edge in graph.edges for probe in edge.probes)


# Each row of the subquery has its key computed, but a column that is no key is computed for rows that match alone.
@pytest.mark.parametrize(
    ("compares", "below", "refuses"),
    [
        ("EqualTo", "scan", False),
        ("EqualTo", "no null", False),
        ("EqualTo", "projection", False),
        ("EqualTo", "filter", True),
        ("EqualTo", "join", True),
        ("LessThan", "scan", True),
    ],
)
@pytest.mark.parametrize("type_", LATE)
def test_computed_key_of_every_row_keeps_all_filters(plans, type_, compares, below, refuses):
    f, t, good, d = plans.table("k", "n"), plans.table("s", "n"), plans.table("n"), plans.table("k")
    rows = {
        "no null": lambda: plans.filter(t, call("IsNotNull", column(t.output[0]))),
        "projection": lambda: plans.project(t, *t.output),
        "filter": lambda: plans.filter(t, at_least(t.output[1], 1)),
        "join": lambda: plans.join(t, good, equal(t.output[1], good.output[0])),
    }
    some = rows.get(below, lambda: t)()
    made = replace(plans.project(some, call("Cast", column(t.output[0], "string"))), may_raise="a cast")
    part = call(compares, column(f.output[1]), column(made.output[0]))
    late = plans.join(f, made, part, type_=type_)
    graph = JoinGraph.of(plans.join(late, d, equal(f.output[0], d.output[0])))
    assert refuses == any(stop.code is ReasonCode.MAY_MOVE for edge in graph.edges for stop in edge.stops)
    assert refuses != any(probe.relation is f for edge in graph.edges for probe in edge.probes)


# Spark puts a copy before the conditions of a filter, one of which may spare the cast a value.
def test_column_equal_to_a_cast_in_a_filter_gets_no_condition(plans):
    f = plans.table("k", "s", type_="string")
    key = call("Cast", column(f.output[1], "string"), type_="bigint")
    found = EqualColumns.of(replace(plans.filter(f, equal(column(f.output[0]), key)), may_raise="a cast"))
    assert found.is_cast(f.output[0])


# An inner join that was one from the start has copies of conditions on the other column.
@pytest.mark.parametrize(("is_limited", "is_copied", "refuses"), [(1, 0, True), (1, 1, False), (0, 0, False)])
def test_join_that_may_have_been_an_outer_one_refuses_all_filters(plans, is_limited, is_copied, refuses):
    f, t, d = plans.table("k", "n"), plans.table("s", type_="string"), plans.table("k")
    cast = call("Cast", column(t.output[0], "string"), type_="bigint")
    some = plans.filter(f, at_least(f.output[0], 3)) if is_limited else f
    small = plans.filter(t, call("GreaterThan", cast, literal(3))) if is_copied else t
    joined = replace(plans.join(small, some, equal(cast, column(f.output[0]))), may_raise="a cast")
    graph = JoinGraph.of(plans.join(joined, d, equal(f.output[1], d.output[0])))
    assert refuses == any(stop.code is ReasonCode.MAY_MOVE for edge in graph.edges for stop in edge.stops)


# A MERGE gets a list of files and no condition, so nothing that may raise moves.
@pytest.mark.parametrize("type_", LATE)
def test_scan_that_gets_files_alone_keeps_filters_beside_an_expression_that_may_raise(plans, type_):
    f, t = plans.table("k", "n"), plans.table("s", "n")
    made = plans.project(t, call("Add", column(t.output[0]), literal(1)), t.output[1])
    residual = call("LessThan", column(f.output[1]), call("Subtract", column(made.output[1]), literal(1)))
    root = plans.join(made, f, equal(made.output[0], f.output[0]), residual, type_=type_)
    root = replace(root, may_raise="an addition")
    probes = {
        by_file: {each.relation.id for edge in JoinGraph.of(root, by_file=by_file).edges for each in edge.probes}
        for by_file in (False, True)
    }
    assert probes[False] == set()
    assert f.id in probes[True]
