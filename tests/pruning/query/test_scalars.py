"""`scalars_of`, and the edges of filters that compare a column with a scalar subquery."""

from __future__ import annotations

import pytest

from pruning.keys.summary import Bound
from pruning.query.edges import Edge
from pruning.query.join_condition import fallback_build_sides, has_effect_elsewhere, is_one_row, scalars_of
from pruning.query.join_graph import JoinGraph
from pruning.query.plan import Expression, Filter, Node
from pruning.query.plan_statistics import Sizes
from pruning.reasons import Reason, ReasonCode
from pruning.values.types import ValueType
from tests.costs import FREE_BUILDS
from tests.pruning.keys.test_summary import keys
from tests.pruning.plans import Plans, at_least, both, call, column, equal, literal, ready

BIGINT = ValueType("bigint")
SUBQUERY = call("ScalarSubquery")
LITERAL_NAME = literal("a")


@pytest.fixture
def plans() -> Plans:
    return Plans()


def field(ordinal: int) -> Expression:
    return Expression("GetStructField", (SUBQUERY,), text=str(ordinal))


def filtered(plans: Plans, *kinds: str, random: bool = False) -> tuple[Filter, list[Node]]:
    """A table whose columns are each compared with the sum of another table."""
    table = plans.table(*(f"c{at}" for at in range(len(kinds))))
    totals = [plans.aggregate(plans.table("s")) for _ in kinds]
    parts = [call(kind, column(at), call("ScalarSubquery")) for kind, at in zip(kinds, table.output, strict=True)]
    return plans.filter(table, *parts, subqueries=tuple(totals), random=random), list(totals)


@pytest.mark.parametrize(
    ("kind", "bound", "mirrored"),
    [
        ("EqualTo", None, None),
        ("LessThan", Bound.AT_MOST, Bound.AT_LEAST),
        ("LessThanOrEqual", Bound.AT_MOST, Bound.AT_LEAST),
        ("GreaterThan", Bound.AT_LEAST, Bound.AT_MOST),
        ("GreaterThanOrEqual", Bound.AT_LEAST, Bound.AT_MOST),
    ],
)
def test_comparison_with_a_subquery_is_an_edge(plans, kind, bound, mirrored):
    table, total = plans.table("k"), plans.aggregate(plans.table("s"))
    k = column(*table.output)
    for part, expected in ((call(kind, k, SUBQUERY), bound), (call(kind, SUBQUERY, k), mirrored)):
        (edge,) = JoinGraph.of(plans.filter(table, part, subqueries=(total,))).edges
        assert (total, total.output[0], expected) == (
            edge.build_side.node,
            edge.build_side.key.column,
            edge.build_side.condition.bound,
        )
        assert [(table.id, *table.output)] == [(each.relation.id, each.column) for each in edge.probes]
        assert ("Scalar", ()) == (edge.type, fallback_build_sides(edge.build_side))


def test_each_subquery_has_its_own_edge(plans):
    root, (first, second) = filtered(plans, "LessThan", "EqualTo")
    edges = JoinGraph.of(root).edges
    assert [(first.id, 0), (second.id, 1)] == [(it.build_side.node.id, it.probe_key.column) for it in edges]


# A subquery without a row is NULL, which a null-safe equality matches.
def test_null_safe_comparison_is_no_edge(plans):
    root, _ = filtered(plans, "EqualNullSafe")
    graph = JoinGraph.of(root)
    assert ((), [ReasonCode.NULL_AWARE]) == (graph.edges, [each.code for each in graph.refusals])


def test_optional_comparison_is_no_edge(plans):
    table, total = plans.table("k"), plans.aggregate(plans.table("s"))
    part = call("EqualTo", column(*table.output), SUBQUERY)
    for condition in (call("Or", part, call("IsNull", column(*table.output))), call("Not", part)):
        assert () == JoinGraph.of(plans.filter(table, condition, subqueries=(total,))).edges


@pytest.mark.parametrize("other", [literal(4), call("Add", literal(1), literal(2))])
def test_constant_side_is_no_probe_column(plans, other):
    table, total = plans.table("k"), plans.aggregate(plans.table("s"))
    assert () == JoinGraph.of(plans.filter(table, call("LessThan", other, SUBQUERY), subqueries=(total,))).edges


def test_computed_side_stops_keys(plans):
    table, total = plans.table("k"), plans.aggregate(plans.table("s"))
    part = call("LessThan", call("Remainder", column(*table.output), literal(7)), SUBQUERY)
    (edge,) = JoinGraph.of(plans.filter(table, part, subqueries=(total,))).edges
    assert ((), [ReasonCode.COMPUTED]) == (edge.probes, [each.code for each in edge.stops])


def test_nondeterministic_filter_is_no_edge(plans):
    root, _ = filtered(plans, "LessThan", random=True)
    graph = JoinGraph.of(root)
    assert ((), [ReasonCode.NONDETERMINISTIC]) == (graph.edges, [each.code for each in graph.refusals])


# Fails if plans and expressions of subqueries are paired despite different counts.
def test_subquery_plans_of_other_expressions_are_ambiguous(plans):
    table, total, other = plans.table("k"), plans.aggregate(plans.table("s")), plans.table("s")
    parts = (call("Exists"), call("LessThan", column(*table.output), SUBQUERY))
    assert [] == list(scalars_of(plans.filter(table, *parts, subqueries=(other, total))))


# Spark merges several subqueries of a table into one that returns a struct of their values.
@pytest.mark.parametrize("ordinal", [0, 1])
def test_field_of_merged_subqueries_is_its_column(plans, ordinal):
    table, totals = plans.table("k"), plans.aggregate(plans.table("s"), values=2)
    low, high = map(column, totals.output)
    merged = plans.project(totals, call("CreateNamedStruct", LITERAL_NAME, low, LITERAL_NAME, high))
    part = call("GreaterThan", column(*table.output), field(ordinal))
    ((_, _, found),) = scalars_of(plans.filter(table, part, subqueries=(merged,)))
    assert (totals, totals.output[ordinal], Bound.AT_LEAST) == (found.node, found.key.column, found.condition.bound)


@pytest.mark.parametrize(
    ("made", "of"),
    [
        (lambda s: call("CreateNamedStruct", LITERAL_NAME, call("Add", s, literal(1))), field(0)),
        (lambda s: call("ScalaUDF", s), field(0)),
        (lambda s: call("CreateNamedStruct", LITERAL_NAME, s), call("GetStructField", SUBQUERY)),
        (lambda s: call("CreateNamedStruct", LITERAL_NAME, s), call("Add", SUBQUERY, literal(1))),
    ],
    ids=["computed-field", "no-struct", "no-ordinal", "no-field"],
)
def test_other_fields_are_computed_keys(plans, made, of):
    table, totals = plans.table("k"), plans.aggregate(plans.table("s"))
    merged = plans.project(totals, made(column(*totals.output)))
    part = call("GreaterThan", column(*table.output), of)
    (edge,) = JoinGraph.of(plans.filter(table, part, subqueries=(merged,))).edges
    assert (merged, ()) == (edge.build_side.node, edge.probes)
    assert [Reason(ReasonCode.COMPUTED, str(of))] == list(edge.stops)


@pytest.mark.parametrize("is_first", [True, False])
def test_cast_subquery_is_a_computed_key(plans, is_first):
    table, total = plans.table("k"), plans.aggregate(plans.table("s"))
    probe, build = column(*table.output), call("Cast", SUBQUERY, type_="bigint")
    part = call("LessThan", *((build, probe) if is_first else (probe, build)))
    (edge,) = JoinGraph.of(plans.filter(table, part, subqueries=(total,))).edges
    assert ((), (Reason(ReasonCode.COMPUTED, "CAST((subquery) AS bigint)"),)) == (edge.probes, edge.stops)


def test_two_computed_keys_of_a_filter_are_different_build_sides(plans):
    table, totals = plans.table("k", "m"), [plans.aggregate(plans.table("s")) for _ in "km"]
    casts = (call("Cast", SUBQUERY, type_="bigint"), call("Cast", call("ScalarSubquery"), type_="double"))
    parts = [call("EqualTo", column(at), cast) for at, cast in zip(table.output, casts, strict=True)]
    graph = JoinGraph.of(plans.filter(table, *parts, subqueries=tuple(totals)))
    assert 2 == len({each.build_side.id for each in graph.edges})


# A comparison that cannot become a filter has a reason; one without a column of the scan filters nothing.
def test_comparison_without_a_side_for_the_subquery_is_refused(plans):
    table, totals = plans.table("k"), [plans.aggregate(plans.table("s")) for _ in "km"]
    mixed = call("EqualTo", call("Subtract", column(*table.output), SUBQUERY), literal(1))
    constant = call("LessThan", literal(1), call("ScalarSubquery"))
    graph = JoinGraph.of(plans.filter(table, mixed, constant, subqueries=tuple(totals)))
    assert ((), (Reason(ReasonCode.COMPUTED, str(mixed)),)) == (graph.edges, graph.refusals)


def test_plans_of_one_row(plans):
    some, total = plans.table("k"), plans.aggregate(plans.table("s"))
    (k,), (sum_,) = some.output, total.output
    one = [
        total,
        plans.filter(total, at_least(sum_, 1)),
        plans.project(total, column(sum_)),
        plans.passing("Sort", total),
        plans.aggregate(total, sum_),
        plans.limit(some, 1),
        plans.limit(some, 0),
        plans.limit(total, 1, "Offset"),
        plans.join(total, some, equal(sum_, k), type_="LeftSemi"),
        plans.other("OneRowRelation", output=plans.fresh()),
    ]
    several = [
        some,
        plans.filter(some, at_least(k, 1)),
        plans.aggregate(some, k),
        plans.project(plans.aggregate(some, k), literal(1)),
        plans.window(some, k),
        plans.limit(some, 2),
        plans.limit(some, None),
        # A limit of each partition.
        plans.limit(some, 1, "LocalLimit"),
        plans.limit(some, 1, "Offset"),
        plans.join(total, some, equal(sum_, k)),
        plans.union(total, plans.aggregate(plans.table("s"))),
        plans.generate(total),
        plans.other("Expand", total),
    ]
    assert ([], []) == ([each for each in one if not is_one_row(each)], [each for each in several if is_one_row(each)])


def compared(plans: Plans, subquery: Node) -> tuple[JoinGraph, Edge]:
    table = plans.table("k")
    graph = JoinGraph.of(plans.filter(table, call("EqualTo", column(*table.output), SUBQUERY), subqueries=(subquery,)))
    (edge,) = graph.edges
    return graph, edge


# Bounds do not count rows, and Spark raises an error for several.
@pytest.mark.parametrize(("count", "bounded"), [(1, True), (2, False), (None, False)])
def test_metadata_bounds_only_a_subquery_of_one_row(plans, count, bounded):
    some = plans.table("s")
    graph, edge = compared(plans, plans.limit(plans.filter(some, at_least(*some.output, 1)), count))
    places = {each.id: 5000 for each in graph.relations}
    filters, reasons = ready(graph, Sizes(places, set(places), ()), set(), FREE_BUILDS)
    assert [ReasonCode.UNREPEATABLE_KEYS] == [each.code for each in reasons]
    assert [True] * bounded == [each.from_metadata for each in filters]
    assert edge.build_side.may_raise is not bounded


@pytest.mark.parametrize("cells", [(4, 5), (4, 4), (4, None), (None, None)])
def test_several_rows_are_no_key_of_a_scalar(plans, cells):
    _, edge = compared(plans, plans.table("s"))
    expected = "a scalar subquery gave 2 rows, for which Spark raises an error"
    assert Reason(ReasonCode.BUILD_FAILED, "value", expected) == edge.build_side.domain(keys(BIGINT, list(cells)))


@pytest.mark.parametrize("cells", [(), (None,), (4,)])
def test_at_most_one_row_is_a_key_of_a_scalar(plans, cells):
    _, edge = compared(plans, plans.table("s"))
    found = keys(BIGINT, list(cells))
    assert found == edge.build_side.domain(found)


def test_subquery_that_may_raise_counts_everywhere_but_below_itself(plans):
    total, k, m = plans.aggregate(plans.table("s")), plans.table("k"), plans.table("m")
    sure = plans.filter(k, call("EqualTo", column(*k.output), SUBQUERY), subqueries=(total,))
    assert not any(has_effect_elsewhere(sure, each.id) for each in sure.walk())
    other, some = plans.table("o"), plans.table("s")
    unsure = plans.filter(other, call("EqualTo", column(*other.output), SUBQUERY), subqueries=(some,))
    root = plans.join(m, unsure)
    assert {some.id} == {each.id for each in root.walk() if not has_effect_elsewhere(root, each.id)}


def test_correlated_subquery_of_several_rows_counts_everywhere_but_below_itself(plans):
    left, right = plans.table("k"), plans.table("k")
    single = plans.join(left, right, equal(left.output[0], right.output[0]), type_="LeftSingle")
    root = plans.join(single, plans.table("o"))
    found = {each.id for each in root.walk() if not has_effect_elsewhere(root, each.id)}
    assert {left.id, right.id, single.id} == found


def test_observed_rows_count_everywhere_but_below_the_observation(plans):
    seen = plans.table("k")
    observed = plans.other("CollectMetrics", seen)
    other = plans.table("o")
    root = plans.join(observed, other)
    assert {seen.id, observed.id} == {each.id for each in root.walk() if not has_effect_elsewhere(root, each.id)}


# A subquery of one row is selective, whatever its input.
@pytest.mark.parametrize("kind", ["EqualTo", "LessThan"])
def test_scalar_subquery_without_a_filter_is_run(plans, kind):
    root, (total,) = filtered(plans, kind)
    (edge,) = JoinGraph.of(root).edges
    places = {each.id: 5000 if each is edge.probes[0].relation else 10 for each in JoinGraph.of(root).relations}
    filters, reasons = ready(JoinGraph.of(root), Sizes(places, set(places), ()), set(), FREE_BUILDS)
    assert ([total.id], ()) == ([each.build_side.node.id for each in filters], reasons)


def test_filter_without_a_condition_has_no_scalars(plans):
    assert both() is None
    assert [] == list(scalars_of(plans.filter(plans.table("k"))))
