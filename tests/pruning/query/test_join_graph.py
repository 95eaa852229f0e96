"""`JoinGraph`: the scans that keys of a join may filter, and the reasons where the walk down to scans ends."""

from __future__ import annotations

import pytest

from pruning.keys.summary import Bound
from pruning.query.join_condition import BuildSide, JoinCondition, fallback_build_sides
from pruning.query.join_graph import JoinGraph
from pruning.query.lineage import ProbeColumn, trace
from pruning.query.plan import Expression, Join, Node, Relation
from pruning.reasons import Reason, ReasonCode
from tests.pruning.plans import Plans, at_least, both, call, column, equal, literal


@pytest.fixture
def plans() -> Plans:
    return Plans()


def reached(node: Node, key: int) -> tuple[list[tuple[int, int]], list[ReasonCode]]:
    """The scans and columns that keys of a column may filter, and the reason codes where the walk ended."""
    return split(trace(node, key))


def split(found) -> tuple[list[tuple[int, int]], list[ReasonCode]]:
    found = list(found)
    stops = [each.code for each in found if isinstance(each, Reason)]
    return [(each.relation.id, each.column) for each in found if not isinstance(each, Reason)], stops


def scan(relation: Relation, key: int) -> tuple[int, int]:
    return relation.id, key


def directions(graph: JoinGraph) -> list[tuple[int, int]]:
    """The places of the build side and of the probe side, for each edge."""
    return [(each.build_side.node.id, each.probe.id) for each in graph.edges]


def refused(graph: JoinGraph) -> list[ReasonCode]:
    return [each.code for each in graph.refusals]


# ------------------------------------------------------------------------------------------------------ sides of a join


@pytest.mark.parametrize(
    ("type_", "right_by_left", "left_by_right"),
    [
        ("Inner", True, True),
        ("Cross", True, True),
        ("LeftSemi", True, True),
        ("LeftOuter", True, False),
        ("LeftAnti", True, False),
        ("LeftSingle", True, False),
        ("ExistenceJoin", True, False),
        ("RightOuter", False, True),
        ("FullOuter", False, False),
        ("a type that a later engine adds", False, False),
    ],
)
def test_side_is_filtered_iff_its_rows_need_a_match(plans, type_, right_by_left, left_by_right):
    left, right = plans.table("k"), plans.table("k")
    graph = JoinGraph.of(plans.join(left, right, equal(*left.output, *right.output), type_=type_))
    expected = [(right.id, left.id)] * left_by_right + [(left.id, right.id)] * right_by_left
    assert expected == directions(graph)
    assert [ReasonCode.OUTER_SIDE] * (2 - len(expected)) == refused(graph)
    assert all(len(edge.probes) == 1 and not edge.stops for edge in graph.edges)


# Failure catalogue 6.
def test_operand_order_does_not_choose_the_build_side(plans):
    left, right = plans.table("k"), plans.table("k")
    graph = JoinGraph.of(plans.join(left, right, equal(*right.output, *left.output), type_="LeftOuter"))
    (edge,) = graph.edges
    assert (left.id, left.output[0]) == (edge.build_side.node.id, edge.build_side.key.column)
    assert [scan(right, *right.output)] == [(each.relation.id, each.column) for each in edge.probes]


# Failure catalogue 10.
def test_null_safe_equality_has_no_fallback_build_sides(plans):
    left, right = plans.table("k"), plans.table("k")
    null_safe = call("EqualNullSafe", column(*left.output), column(*right.output))
    graph = JoinGraph.of(plans.join(left, right, null_safe, type_="LeftSemi"))
    assert ([True, True], []) == ([each.build_side.condition.null_safe for each in graph.edges], refused(graph))
    assert [(), ()] == [fallback_build_sides(each.build_side) for each in graph.edges]


# Failure catalogue 11, 12.
@pytest.mark.parametrize("swaps", [False, True])
@pytest.mark.parametrize("type_", ["LeftAnti", "ExistenceJoin"])
def test_not_in_filters_the_side_whose_rows_have_no_null(plans, type_, swaps):
    left, right = plans.table("k"), plans.table("k")
    same = equal(*right.output, *left.output) if swaps else equal(*left.output, *right.output)
    for parts in ((same, call("IsNull", same)), (call("IsNull", same), same)):
        graph = JoinGraph.of(plans.join(left, right, call("Or", *parts), type_=type_))
        if type_ == "ExistenceJoin":
            assert ((), [ReasonCode.NULL_AWARE]) == (graph.edges, refused(graph))
            continue
        (edge,) = graph.edges
        assert (left.id, column(*left.output)) == (edge.build_side.node.id, edge.build_side.key)
        assert [scan(right, *right.output)] == [(each.relation.id, each.column) for each in edge.probes]
        condition = edge.build_side.condition
        assert (True, False) == (condition.null_aware, condition.is_equality)
        key = graph.root.condition
        for place in condition.path:
            key = key.children[place]
        assert edge.build_side.key == key
        assert () == fallback_build_sides(edge.build_side)


# Failure catalogue 11: an outer join pads its rows with NULL, of which no statistics tell.
@pytest.mark.parametrize(
    "below",
    [
        lambda plans, side: plans.join(
            plans.table("k"), side, equal(*plans.table("k").output, *side.output), type_="LeftOuter"
        ),
        lambda plans, side: plans.union(side, plans.table("k")),
        lambda plans, side: plans.project(side, call("Add", column(*side.output), literal(1))),
        lambda plans, side: plans.aggregate(side, *side.output),
    ],
    ids=["outer join", "union", "computed", "groups"],
)
def test_rows_of_not_in_that_are_not_those_of_one_scan_are_not_filtered(plans, below):
    left, table = plans.table("k"), plans.table("k")
    right = below(plans, table)
    same = equal(left.output[0], right.output[-1] if right.output != table.output else table.output[0])
    graph = JoinGraph.of(plans.join(left, right, call("Or", same, call("IsNull", same)), type_="LeftAnti"))
    assert not [each for each in graph.edges if each.build_side.condition.null_aware]
    assert ReasonCode.NULL_AWARE in refused(graph)


# Failure catalogue 11.
def test_correlation_of_not_in_filters_its_subquery(plans):
    left, right = plans.table("k", "group"), plans.table("k", "group")
    same = equal(left.output[0], right.output[0])
    condition = (call("Or", same, call("IsNull", same)), equal(left.output[1], right.output[1]))
    graph = JoinGraph.of(plans.join(left, right, *condition, type_="LeftAnti"))
    assert [(left.id, right.id)] * 2 == directions(graph)
    assert [*right.output] == [each.probes[0].column for each in graph.edges]
    assert [True, False] == [each.build_side.condition.null_aware for each in graph.edges]
    assert [ReasonCode.OUTER_SIDE] * 2 == refused(graph)


def test_reasons_against_a_scan_are_those_of_comparisons_above_it(plans):
    big, small = plans.table("k"), plans.table("k")
    computed = call("ScalaUDF", column(*big.output))
    inner = plans.join(big, small, call("EqualTo", computed, column(*small.output)))
    other = plans.table("k")
    graph = JoinGraph.of(plans.join(inner, other, equal(*small.output, *other.output), type_="LeftOuter"))
    assert [ReasonCode.OUTER_SIDE, ReasonCode.COMPUTED] == [each.code for each in graph.against(big)]
    # Keys of the other scans reach it, but for those of the outer join.
    assert [ReasonCode.OUTER_SIDE] == [each.code for each in graph.against(small)]
    assert () == graph.against(other)


# Failure catalogue 8.
def test_each_equality_is_an_edge_with_the_path_to_its_key(plans):
    left, right = plans.table("a", "b"), plans.table("a", "b")
    (a, b), (c, d) = left.output, right.output
    graph = JoinGraph.of(plans.join(left, right, equal(a, c), at_least(a, 3), equal(d, b), type_="LeftSemi"))
    found = {
        (each.build_side.key.column, each.probes[0].column, each.build_side.condition.path) for each in graph.edges
    }
    assert {(c, a, (0, 0, 1)), (a, c, (0, 0, 0)), (d, b, (1, 0)), (b, d, (1, 1))} == found
    assert isinstance(graph.root, Join)
    for each in graph.edges:
        expression = graph.root.condition
        for place in each.build_side.condition.path:
            assert expression is not None
            expression = expression.children[place]
        assert each.build_side.key == expression


def test_other_conditions_are_no_edges(plans):
    left, right = plans.table("a", "b"), plans.table("k")
    (a, b), (k,) = left.output, right.output
    conditions = [
        call("Or", equal(a, k), equal(b, k)),
        call("Not", equal(a, k)),
        call("Not", call("LessThan", column(a), column(k))),
        call("Or", call("LessThan", column(a), column(k)), equal(b, k)),
        equal(a, b),
        call("LessThan", column(a), column(b)),
        call("LessThan", column(a), literal(4)),
        call("EqualTo", column(a), literal(4)),
        call("EqualTo", call("Add", column(a), column(k)), column(b)),
        # Two conditions that resemble NOT IN.
        call("Or", equal(a, k), call("IsNull", equal(b, k))),
        call("Or", equal(a, b), call("IsNull", equal(a, b))),
    ]
    graph = JoinGraph.of(plans.join(left, right, *conditions))
    assert ((), ()) == (graph.edges, graph.refusals)


# Fails if the second child of a comparison gets the bound of the first.
@pytest.mark.parametrize(
    ("kind", "of_first", "of_second"),
    [
        ("LessThan", Bound.AT_MOST, Bound.AT_LEAST),
        ("LessThanOrEqual", Bound.AT_MOST, Bound.AT_LEAST),
        ("GreaterThan", Bound.AT_LEAST, Bound.AT_MOST),
        ("GreaterThanOrEqual", Bound.AT_LEAST, Bound.AT_MOST),
    ],
)
@pytest.mark.parametrize("is_mirrored", [False, True])
def test_comparison_bounds_each_side_by_the_other(plans, kind, of_first, of_second, is_mirrored):
    first, second = plans.table("k"), plans.table("k")
    compared = call(kind, column(*first.output), column(*second.output))
    sides = (second, first) if is_mirrored else (first, second)
    graph = JoinGraph.of(plans.join(*sides, compared))
    found = {(each.probes[0].relation.id, each.build_side.node.id): each.build_side for each in graph.edges}
    assert {(first.id, second.id): of_first, (second.id, first.id): of_second} == {
        places: build_side.condition.bound for places, build_side in found.items()
    }
    assert [(1,), (0,)] == [found[each].condition.path for each in [(first.id, second.id), (second.id, first.id)]]


@pytest.mark.parametrize(
    ("type_", "right_by_left", "left_by_right"),
    [
        ("Cross", True, True),
        ("LeftSemi", True, True),
        ("LeftOuter", True, False),
        ("LeftAnti", True, False),
        ("ExistenceJoin", True, False),
        ("RightOuter", False, True),
        ("FullOuter", False, False),
    ],
)
def test_comparison_bounds_a_side_iff_its_rows_need_a_match(plans, type_, right_by_left, left_by_right):
    left, right = plans.table("k"), plans.table("k")
    graph = JoinGraph.of(plans.join(left, right, call("LessThan", column(0), column(1)), type_=type_))
    assert [(right.id, left.id)] * left_by_right + [(left.id, right.id)] * right_by_left == directions(graph)
    assert [ReasonCode.OUTER_SIDE] * (2 - len(graph.edges)) == refused(graph)


def test_bound_follows_equalities_but_not_comparisons(plans):
    one, same, other, keys = (plans.table("k") for _ in range(4))
    (k,), (m,), (n,), (low,) = (each.output for each in (one, same, other, keys))
    pair = plans.join(plans.join(one, same, equal(k, m)), other, call("LessThan", column(k), column(n)))
    graph = JoinGraph.of(plans.join(pair, keys, call("GreaterThanOrEqual", column(k), column(low))))
    edge = next(each for each in graph.edges if each.build_side.node is keys)
    assert [scan(one, k), scan(same, m)] == [(each.relation.id, each.column) for each in edge.probes]


def test_nondeterministic_join_is_no_edge(plans):
    left, right = plans.table("k"), plans.table("k")
    graph = JoinGraph.of(plans.join(left, right, equal(*left.output, *right.output), random=True))
    assert ((), [ReasonCode.NONDETERMINISTIC] * 2) == (graph.edges, refused(graph))


# ----------------------------------------------------------------------------------------------------------------- keys


# Failure catalogue 16, 17, 20, 21, 22.
@pytest.mark.parametrize(
    "made",
    [
        lambda k: call("Greatest", column(k), literal(0)),
        lambda k: call("CreateNamedStruct", literal(1), column(k)),
        lambda k: call("ScalaUDF", column(k)),
        lambda k: call("Cast", column(k, "string"), type_="int"),
    ],
    ids=["greatest", "struct", "function", "cast"],
)
def test_computed_keys_filter_only_the_other_side(plans, made):
    left, right = plans.table("k"), plans.table("k")
    key = made(*left.output)
    graph = JoinGraph.of(plans.join(left, right, call("EqualTo", key, column(*right.output))))
    to_left, to_right = graph.edges
    assert ((), [ReasonCode.COMPUTED]) == (to_left.probes, [each.code for each in to_left.stops])
    assert (key, (0,)) == (to_right.build_side.key, to_right.build_side.condition.path)
    assert [right.id] == [each.relation.id for each in to_right.probes]


# --------------------------------------------------------------------------------------------------- walk down to scans


@pytest.mark.parametrize("kind", ["Sort", "Repartition", "RepartitionByExpression", "RebalancePartitions"])
def test_sort_and_repartition_pass_keys(plans, kind):
    table = plans.table("k")
    assert ([scan(table, *table.output)], []) == reached(plans.passing(kind, table), *table.output)


def test_filters_and_renamed_columns_pass_keys(plans):
    table = plans.table("a", "b")
    a, b = table.output
    renamed = plans.project(plans.filter(table, at_least(b, 3)), b, column(a))
    assert ([scan(table, a)], []) == reached(renamed, renamed.output[1])
    assert ([scan(table, b)], []) == reached(renamed, b)


# Fails if casts of either direction are passed.
def test_only_widening_cast_of_a_project_passes_keys(plans):
    table = plans.table("k")
    k = column(*table.output, "int")
    wider, narrower = call("Cast", k, type_="bigint"), call("Cast", k, type_="smallint")
    node = plans.project(table, wider, narrower)
    assert ([scan(table, *table.output)], []) == reached(node, node.output[0])
    assert ([], [ReasonCode.COMPUTED]) == reached(node, node.output[1])


def test_widened_branch_of_a_union_passes_keys(plans):
    first, second = plans.table("k"), plans.table("k", type_="int")
    widened = plans.project(second, call("Cast", column(*second.output, "int"), type_="bigint"))
    node = plans.union(first, widened)
    assert ([scan(first, *first.output), scan(second, *second.output)], []) == reached(node, *first.output)


# Failure catalogue 20.
@pytest.mark.parametrize("made", [literal(4), call("Add", column(0), literal(1)), call("Rand")])
def test_computed_column_stops_keys(plans, made):
    node = plans.project(plans.table("k"), made)
    assert ([], [ReasonCode.COMPUTED]) == reached(node, *node.output)


# Failure catalogue 42, 43.
def test_nondeterministic_operator_stops_keys(plans):
    table = plans.table("k")
    for node in (
        plans.project(table, *table.output, random=True),
        plans.filter(table, random=True),
        plans.aggregate(table, *table.output, random=True),
        plans.generate(table, random=True),
    ):
        assert ([], [ReasonCode.NONDETERMINISTIC]) == reached(node, *table.output)


# Failure catalogue 1, 2, 19.
@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("GlobalLimit", ReasonCode.LIMITED),
        ("LocalLimit", ReasonCode.LIMITED),
        ("Offset", ReasonCode.LIMITED),
        ("Tail", ReasonCode.LIMITED),
        ("Sample", ReasonCode.SAMPLED),
        ("Expand", ReasonCode.GROUPING_SETS),
        ("Deduplicate", ReasonCode.OPAQUE),
        ("MapInArrow", ReasonCode.OPAQUE),
        ("ArrowEvalPython", ReasonCode.OPAQUE),
        ("LateralJoin", ReasonCode.OPAQUE),
    ],
)
def test_limiting_or_unknown_operator_stops_keys(plans, kind, code):
    table = plans.table("k")
    assert ([], [code]) == reached(plans.other(kind, table), *table.output)


# Failure catalogue 1.
def test_limit_between_other_operators_stops_keys(plans):
    table = plans.table("k")
    node = plans.project(plans.passing("Sort", plans.other("GlobalLimit", table)), *table.output)
    assert ([], [ReasonCode.LIMITED]) == reached(node, *table.output)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("InMemoryRelation", ReasonCode.CACHED),
        ("LocalRelation", ReasonCode.NOT_FILES),
        ("Range", ReasonCode.NOT_FILES),
        ("LogicalRDD", ReasonCode.NOT_FILES),
        ("DataSourceV2ScanRelation", ReasonCode.OPAQUE),
    ],
)
def test_leaves_without_files_stop_keys(plans, kind, code):
    (key,) = plans.fresh()
    assert ([], [code]) == reached(plans.other(kind, output=(key,)), key)


# Failure catalogue 2.
def test_aggregate_passes_only_grouping_keys(plans):
    table = plans.table("a", "b")
    a = table.output[0]
    grouped = plans.aggregate(table, a)
    total = grouped.output[1]
    assert ([scan(table, a)], []) == reached(grouped, a)
    assert ([], [ReasonCode.NOT_GROUPED]) == reached(grouped, total)
    assert ([], [ReasonCode.NOT_GROUPED]) == reached(plans.aggregate(table), plans.columns - 1)


@pytest.mark.parametrize("make", [Plans.window, Plans.group_limit])
def test_window_passes_only_partition_keys(plans, make):
    table = plans.table("a", "b")
    a, b = table.output
    assert ([scan(table, a)], []) == reached(make(plans, table, a), a)
    assert ([], [ReasonCode.NOT_GROUPED]) == reached(make(plans, table, a), b)
    assert ([], [ReasonCode.NOT_GROUPED]) == reached(make(plans, table), a)


def test_generator_passes_keys_of_its_input_columns(plans):
    table = plans.table("k")
    node = plans.generate(table)
    assert ([scan(table, *table.output)], []) == reached(node, table.output[0])
    assert ([], [ReasonCode.COMPUTED]) == reached(node, node.output[1])


# Failure catalogue 9, 20.
def test_union_passes_keys_to_each_branch_by_position(plans):
    first, second, third = plans.table("a", "b"), plans.table("b", "a"), plans.table("b", "c")
    labelled = plans.project(third, third.output[1], literal(4))
    node = plans.union(first, second, labelled)
    expected = [scan(first, first.output[1]), scan(second, second.output[1])]
    assert (expected, [ReasonCode.COMPUTED]) == reached(node, first.output[1])
    expected = [scan(first, first.output[0]), scan(second, second.output[0]), scan(third, third.output[1])]
    assert (expected, []) == reached(node, first.output[0])


# Failure catalogue 14.
@pytest.mark.parametrize(
    ("type_", "left", "right"),
    [
        ("Inner", True, True),
        ("Cross", True, True),
        ("LeftOuter", True, False),
        ("LeftSingle", False, False),
        ("RightOuter", False, True),
        ("FullOuter", False, False),
        ("LeftSemi", True, None),
        ("LeftAnti", True, None),
        ("ExistenceJoin", True, None),
    ],
)
def test_join_passes_keys_of_sides_that_it_does_not_pad(plans, type_, left, right):
    tables = plans.table("a", "k"), plans.table("a", "k")
    (one, k), (other, m) = (each.output for each in tables)
    join = plans.join(*tables, equal(k, m), type_=type_)
    assert (([scan(tables[0], one)], []) if left else ([], [ReasonCode.OUTER_SIDE])) == reached(join, one)
    if right is not None:
        assert (([scan(tables[1], other)], []) if right else ([], [ReasonCode.OUTER_SIDE])) == reached(join, other)


@pytest.mark.parametrize("fails", ["", "Divide"])
def test_groups_over_a_union_are_never_parts_below_an_expression_that_may_raise(plans, fails):
    first, second = plans.table("k", "v"), plans.table("k", "v")
    k = first.output[0]
    grouped = plans.aggregate(plans.union(first, second), k, may_raise=fails)
    assert ((["", ""], []) if not fails else ([], [ReasonCode.MAY_RAISE])) == whole(grouped, k)
    # A scan of its own gives all rows of a key or none.
    grouped = plans.aggregate(first, k, may_raise=fails)
    assert ([fails], []) == whole(grouped, k)


def whole(node: Node, key: int) -> tuple[list[str], list[ReasonCode]]:
    """The expressions for which scans give all rows of a key or none, and the reason codes where the walk ended."""
    reached = list(trace(node, key))
    return [each.whole_for for each in reached if isinstance(each, ProbeColumn)], split(reached)[1]


# Failure catalogue 3, 4, 5: columns are identified by id; here all of them have one name.
def test_columns_of_one_name_are_distinguished(plans):
    first, second, third = plans.table("id"), plans.table("id", "id"), plans.table("id")
    (a,), (b, c), (d,) = first.output, second.output, third.output
    join = plans.join(plans.join(first, second, equal(a, b)), third, equal(c, d))
    graph = JoinGraph.of(join)
    into = {
        (each.build_side.key.column, probe.relation.id, probe.column) for each in graph.edges for probe in each.probes
    }
    outer = {(d, second.id, c), (c, third.id, d)}
    assert outer | {(b, first.id, a), (a, second.id, b)} == into


# Failure catalogue 16.
def test_outer_join_stops_keys_of_its_padded_side(plans):
    left, right, keys = plans.table("k"), plans.table("k"), plans.table("k")
    (k,), (m,), (n,) = left.output, right.output, keys.output
    outer = plans.join(left, right, equal(k, m), type_="LeftOuter")
    made = call("Coalesce", column(m), literal(0))
    graph = JoinGraph.of(plans.join(outer, keys, call("EqualTo", made, column(n)), type_="LeftSemi"))
    edge = next(each for each in graph.edges if each.build_side.node is keys)
    assert ((), [ReasonCode.OUTER_SIDE]) == (edge.probes, [each.code for each in edge.stops])
    assert ([], [ReasonCode.OUTER_SIDE]) == reached(outer, m)


# ---------------------------------------------------------------------------------------------------------- equivalence


@pytest.mark.parametrize(
    ("type_", "from_left", "from_right"),
    [
        ("Inner", True, True),
        ("LeftSemi", True, None),
        ("LeftOuter", True, None),
        ("LeftAnti", True, None),
        ("ExistenceJoin", True, None),
        ("RightOuter", None, True),
        ("FullOuter", None, None),
    ],
)
def test_keys_follow_equality_iff_that_side_needs_a_match(plans, type_, from_left, from_right):
    left, right = plans.table("k"), plans.table("k")
    (k,), (m,) = left.output, right.output
    join = plans.join(left, right, equal(m, k), type_=type_)
    assert bool(from_left) == (scan(right, m) in reached(join, k)[0])
    if type_ in {"Inner", "RightOuter", "FullOuter"}:
        assert bool(from_right) == (scan(left, k) in reached(join, m)[0])


def test_keys_follow_a_chain_of_equalities(plans):
    tables = [plans.table("k") for _ in range(4)]
    a, b, c, d = (each.output[0] for each in tables)
    chain = plans.join(plans.join(plans.join(*tables[:2], equal(a, b)), tables[2], equal(b, c)), tables[3], equal(c, d))
    assert {(each.id, each.output[0]) for each in tables} == set(reached(chain, d)[0])


# Fails if the walk without equivalence still follows equal columns.
def test_without_equivalence_keys_reach_only_the_probe_column(plans):
    days, one, other = plans.table("k"), plans.table("k"), plans.table("k")
    pair = plans.join(one, other, equal(*one.output, *other.output))
    root = plans.join(pair, plans.filter(days, at_least(*days.output, 3)), equal(*one.output, *days.output))
    found = {
        wide: {
            (each.build_side.key.column, probe.column)
            for each in JoinGraph.of(root, equivalence=wide).edges
            for probe in each.probes
        }
        for wide in (True, False)
    }
    (d,), (k,), (m,) = days.output, one.output, other.output
    assert {(d, k), (k, d), (k, m), (m, k)} == found[False]
    assert found[False] | {(d, m)} == found[True]


def test_columns_of_many_equalities_are_walked_once(plans):
    node: Node = plans.table("x", "y")
    tables = [node]
    for _ in range(20):
        table = plans.table("x", "y")
        tables.append(table)
        pairs = [equal(one, other) for one in table.output for other in node.output[:2]]
        node = plans.join(table, node, *pairs)
    probes, stops = reached(node, node.output[0])
    # The first table is reached only by the column of the keys, because no equality names its other column.
    expected = {(each.id, key) for each in tables for key in each.output} - {(tables[-1].id, tables[-1].output[1])}
    assert (len(expected), expected, []) == (len(probes), set(probes), stops)


@pytest.mark.parametrize(
    "condition",
    [
        lambda k, m: call("EqualNullSafe", column(k), column(m)),
        lambda k, m: call("Or", equal(k, m), at_least(k, 3)),
        lambda k, m: equal(column(k), call("Add", column(m), literal(1))),
        lambda k, m: equal(column(k, "int"), call("Cast", column(m, "bigint"), type_="int")),
        lambda k, m: equal(call("Cast", column(k, "int"), type_="bigint"), column(m)),
    ],
    ids=["null-safe", "or", "computed", "narrower", "made-wider-itself"],
)
def test_keys_do_not_follow_other_conditions(plans, condition):
    left, right = plans.table("k"), plans.table("k")
    join = plans.join(left, right, condition(*left.output, *right.output))
    assert [scan(left, *left.output)] == reached(join, *left.output)[0]


def test_keys_follow_equality_with_a_widened_column(plans):
    left, right = plans.table("k"), plans.table("k", type_="int")
    wider = call("Cast", column(*right.output, "int"), type_="bigint")
    join = plans.join(left, right, equal(wider, column(*left.output)))
    assert {scan(left, *left.output), scan(right, *right.output)} == set(reached(join, *left.output)[0])


# A fallback build side gives keys of its own type, whose range is not that of the wider type.
def test_widened_column_is_no_fallback_build_side(plans):
    left, right = plans.table("k"), plans.table("k", type_="int")
    join = plans.join(left, right, equal(column(*left.output), call("Cast", column(*right.output), type_="bigint")))
    assert [(left.id, *left.output)] == parts(build_side_of(plans, join, *left.output))


def test_nondeterministic_join_stops_keys(plans):
    left, right = plans.table("k"), plans.table("k")
    join = plans.join(left, right, equal(*left.output, *right.output), random=True)
    assert ([], [ReasonCode.NONDETERMINISTIC]) == reached(join, *left.output)


def test_existence_column_stops_keys(plans):
    left, right = plans.table("k"), plans.table("k")
    join = plans.join(left, right, equal(*left.output, *right.output), type_="ExistenceJoin")
    assert ([], [ReasonCode.COMPUTED]) == reached(join, join.output[1])


# --------------------------------------------------------------------------------------------- subqueries and relations


def test_subquery_plans_have_edges(plans):
    left, right = plans.table("k"), plans.table("k")
    inner = plans.aggregate(plans.join(left, right, equal(*left.output, *right.output)))
    outer = plans.table("k")
    graph = JoinGraph.of(plans.filter(outer, at_least(*outer.output, 0), subqueries=(inner,)))
    assert [(right.id, left.id), (left.id, right.id)] == directions(graph)
    assert (left, right, outer) == graph.relations


# Failure catalogue 51: a table that is read twice is two scans.
def test_scans_of_one_table_are_filtered_separately(plans):
    first, second = plans.table("k", "v"), plans.table("k", "v")
    graph = JoinGraph.of(plans.join(first, second, equal(first.output[0], second.output[1])))
    probes = [(each.probes[0].relation.id, each.probes[0].name) for each in graph.edges]
    assert [(first.id, "k"), (second.id, "v")] == probes


# ------------------------------------------------------------------------------------------------- fallback build sides


def build_side_of(plans: Plans, node: Node, key: int) -> BuildSide:
    probe = plans.table("p")
    join = plans.join(probe, node, equal(*probe.output, key))
    return next(each.build_side for each in JoinGraph.of(join).edges if each.build_side.node is node)


def parts(build_side: BuildSide) -> list[tuple[int, int | None]]:
    return [(each.node.id, each.key.column) for each in fallback_build_sides(build_side)]


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        ("Inner", "both"),
        ("LeftSemi", "both"),
        ("LeftOuter", "own"),
        ("FullOuter", "own"),
        ("LeftAnti", "own"),
        ("ExistenceJoin", "own"),
    ],
)
def test_fallbacks_of_a_join_are_the_sides_that_rows_need(plans, type_, expected):
    left, right = plans.table("k"), plans.table("k")
    join = plans.join(left, right, equal(*left.output, *right.output), type_=type_)
    build_side = build_side_of(
        plans, plans.aggregate(plans.filter(join, at_least(*left.output, 1)), *left.output), *left.output
    )
    own, other = (left.id, *left.output), (right.id, *right.output)
    assert ([own, other] if expected == "both" else [own]) == parts(build_side)


def test_padded_nulls_of_an_outer_join_need_no_key(plans):
    left, right = plans.table("k"), plans.table("k")
    join = plans.join(left, right, equal(*left.output, *right.output), type_="LeftOuter")
    assert [(right.id, *right.output)] == parts(build_side_of(plans, join, *right.output))


def test_keys_without_a_join_have_no_fallback(plans):
    table = plans.table("k")
    assert [] == parts(build_side_of(plans, table, *table.output))
    assert [] == parts(build_side_of(plans, plans.other("GlobalLimit", table), *table.output))
    made = plans.project(table, call("Add", column(*table.output), literal(1)))
    assert [] == parts(build_side_of(plans, made, *made.output))
    total = plans.aggregate(table)
    assert [] == parts(build_side_of(plans, total, *total.output))


def test_computed_keys_of_a_join_have_no_fallback(plans):
    left, right = plans.table("k"), plans.table("k")
    join = plans.join(left, right, equal(*left.output, *right.output))
    made = plans.project(join, call("Add", column(*left.output), literal(1)), column(*left.output))
    computed, renamed = made.output
    assert [] == parts(build_side_of(plans, made, computed))
    assert [(left.id, *left.output), (right.id, *right.output)] == parts(build_side_of(plans, made, renamed))


def test_id_of_a_build_side_is_its_column_or_expression(plans):
    probe, build = plans.table("p", "q"), plans.table("id", "id")
    (p, q), (a, b) = probe.output, build.output
    one, other = (call("Add", column(each), literal(1)) for each in (a, b))
    join = plans.join(probe, build, equal(p, a), equal(q, b), equal(column(p), one), equal(column(q), other))
    build_sides = [each.build_side for each in JoinGraph.of(join).edges if each.build_side.node is build]
    assert len(build_sides) == len({each.id for each in build_sides})
    again = BuildSide(build, Expression("AttributeReference", (), a, "int", "other"), JoinCondition(join, ()))
    assert build_sides[0].id == again.id


# Fails if the id of a build side lacks its bound.
def test_bounds_and_equality_are_separate_build_sides(plans):
    probe, build = plans.table("p", "q", "r"), plans.table("k")
    kinds = ("LessThan", "GreaterThan", "EqualTo")
    parts = [call(kind, column(each), column(*build.output)) for kind, each in zip(kinds, probe.output, strict=True)]
    build_sides = [
        each.build_side for each in JoinGraph.of(plans.join(probe, build, *parts)).edges if each.probe is probe
    ]
    assert 3 == len({each.id for each in build_sides})
    assert {Bound.AT_MOST, Bound.AT_LEAST, None} == {each.condition.bound for each in build_sides}


# Fails if the fallbacks of a bounded build side are those of an equality.
def test_fallback_build_side_keeps_the_bound(plans):
    probe, left, right = plans.table("p"), plans.table("k"), plans.table("k")
    build = plans.join(left, right, equal(*left.output, *right.output))
    root = plans.join(probe, build, call("LessThan", column(*probe.output), column(*left.output)))
    (build_side,) = (each.build_side for each in JoinGraph.of(root).edges if each.probe is probe)
    assert [Bound.AT_MOST] * 2 == [each.condition.bound for each in fallback_build_sides(build_side)]


def test_conjunction_without_parts_is_none():
    assert both() is None
