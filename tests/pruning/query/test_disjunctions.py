"""`Disjunction`: which ORs of marks become filters, which scans they reach, and when their builds are worth running."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from pruning.options import PruningOptions
from pruning.query.filter_plan import unused
from pruning.query.join_graph import JoinGraph
from pruning.query.plan import Expression, Filter, Node, Relation
from pruning.query.plan_statistics import QueryFacts, UnknownStatistics
from pruning.query.planner import QueryPlanner
from pruning.query.planner_requests import PruneScan
from pruning.query.requests import answered
from pruning.reasons import Reason, ReasonCode
from tests.costs import FREE_BUILDS
from tests.pruning.plans import Plans, at_least, call, checked, column, equal, never_asked
from tests.pruning.query.test_planner import Built, Scan, Script, some_keys


class Marked:
    """fact.a IN (...) OR fact.b IN (...): `one` and `other` are the build sides."""

    def __init__(self, between: Callable[[Plans, Node], Node] | None = None, kind: str = "EqualTo") -> None:
        self.plans = Plans()
        self.fact = self.plans.table("a", "b", "c")
        self.marks: list[Expression] = []
        self.sides: list[Node] = []
        node: Node = self.fact
        for at in (0, 1):
            node, side = self.marked(node, self.fact.output[at], kind)
            node = node if between is None else between(self.plans, node)
            self.sides.append(side)
        self.node = node

    def marked(self, node: Node, key: int, kind: str = "EqualTo") -> tuple[Node, Node]:
        keys = self.plans.table("k", "n")
        side = self.plans.filter(keys, at_least(keys.output[1], 3))
        join = self.plans.join(node, side, call(kind, column(key), column(keys.output[0])), type_="ExistenceJoin")
        self.marks.append(column(join.output[-1]))
        return join, side

    def either(self, *operands: Expression) -> Filter:
        return self.plans.filter(self.node, call("Or", *(operands or self.marks)))


def graph_of(root: Node) -> JoinGraph:
    return JoinGraph.of(root)


def reached(root: Node) -> list[list[tuple[int, int]]]:
    """The scan and the column that each operand of each OR reaches."""
    return [
        [(each.relation.id, each.column) for each in found.probes_of(relation)]
        for found in graph_of(root).disjunctions
        for relation in found.relations
    ]


def columns(*ats: int) -> list[list[tuple[int, int]]]:
    return [[(0, at) for at in ats]]


def test_both_operands_reach_the_scan():
    marked = Marked()
    assert columns(0, 1) == reached(marked.either())
    graph = graph_of(marked.either())
    # The marks say no more that rows without a match are kept.
    assert () == graph.refusals
    assert () == graph.against(marked.fact)


@pytest.mark.parametrize(
    "between",
    [
        lambda plans, node: plans.project(node, *reversed(node.output)),
        lambda plans, node: plans.filter(node, at_least(node.output[0], 0)),
        lambda plans, node: plans.passing("Sort", node),
    ],
    ids=["projection", "filter", "sort"],
)
def test_operators_that_keep_the_marks_are_passed(between):
    assert columns(0, 1) == reached(Marked(between).either())


@pytest.mark.parametrize(
    "between",
    [
        lambda plans, node: plans.other("GlobalLimit", node),
        lambda plans, node: plans.aggregate(node, *node.output, values=0),
        lambda plans, node: plans.project(node, *node.output, random=True),
        lambda plans, node: plans.generate(node),
    ],
    ids=["limit", "aggregate", "random", "generate"],
)
def test_other_operators_between_the_marks_end_the_walk(between):
    marked = Marked(between)
    assert [] == reached(marked.either())
    assert ReasonCode.OUTER_SIDE in {each.code for each in graph_of(marked.either()).refusals}


def test_operands_may_have_further_conditions():
    marked = Marked()
    more = call("And", at_least(2, 1), call("And", marked.marks[1], at_least(0, 1)))
    assert columns(0, 1) == reached(marked.either(marked.marks[0], more))


def test_three_operands_of_two_columns():
    marked = Marked()
    marked.node, _ = marked.marked(marked.node, 0)
    assert columns(0, 1, 0) == reached(marked.either(marked.marks[0], call("Or", *marked.marks[1:])))


@pytest.mark.parametrize(
    "other",
    [
        lambda marks: call("Not", marks[1]),
        lambda _: at_least(2, 1),
        lambda marks: call("And", at_least(2, 1), call("Not", marks[1])),
    ],
    ids=["not", "a condition of its own", "and not"],
)
def test_operand_that_holds_without_a_key_leaves_the_scan(other):
    marked = Marked()
    root = marked.either(marked.marks[0], other(marked.marks))
    assert [] == reached(root)
    (reason,) = {each for each in graph_of(root).against(marked.fact) if each.code is not ReasonCode.OUTER_SIDE}
    assert ReasonCode.KEYLESS_OPERAND is reason.code
    assert str(other(marked.marks)) == reason.subject


def test_null_safe_keys_are_no_operand():
    assert [] == reached(Marked(kind="EqualNullSafe").either())


def test_bounds_are_operands():
    assert columns(0, 1) == reached(Marked(kind="GreaterThanOrEqual").either())


def test_computed_key_has_a_reason():
    marked = Marked()
    side = marked.plans.table("k")
    upper = call("Upper", column(2))
    marked.node = marked.plans.join(marked.node, side, equal(upper, column(side.output[0])), type_="ExistenceJoin")
    root = marked.either(marked.marks[0], column(marked.node.output[-1]))
    assert [] == reached(root)
    assert ReasonCode.COMPUTED in {each.code for each in graph_of(root).against(marked.fact)}


def test_group_of_one_of_the_columns_ends_the_walk():
    plans = Plans()
    fact = plans.table("a", "b")
    node: Node = plans.aggregate(fact, fact.output[0])
    marks = []
    for key in node.output:
        small = plans.table("k")
        node = plans.join(node, small, equal(key, small.output[0]), type_="ExistenceJoin")
        marks.append(column(node.output[-1]))
    assert [] == reached(plans.filter(node, call("Or", *marks)))


def test_rows_that_may_raise_between_a_mark_and_the_filter():
    """Rows of an outer join that lose their matches, and are dropped by the OR above, would meet the expression."""
    plans = Plans()
    fact, other = plans.table("a", "b"), plans.table("a", "b")
    pairs = [equal(one, two) for one, two in zip(fact.output, other.output, strict=True)]
    node: Node = plans.join(fact, other, *pairs, type_="LeftOuter")
    marks = []
    for key in fact.output:
        small = plans.table("k")
        node = plans.join(node, small, equal(key, small.output[0]), type_="ExistenceJoin")
        marks.append(column(node.output[-1]))
    quiet = plans.filter(node, call("Or", *marks))
    assert [0, 1] == [probes[0][0] for probes in reached(quiet)]
    raising = plans.project(node, *node.output, checked(column(other.output[0]), None))
    assert [0] == [probes[0][0] for probes in reached(plans.filter(raising, call("Or", *marks)))]


def planner_of(marked: Marked, root: Node, options: PruningOptions) -> QueryPlanner:
    tables = [each for each in root.walk() if isinstance(each, Relation)]
    sizes = {each.id: 5000 if each.id == marked.fact.id else 10 for each in tables}
    facts = QueryFacts(sizes, frozenset(sizes), broadcast_limit=1000)
    return QueryPlanner.of(JoinGraph.of(root), options, facts, UnknownStatistics())


def script_of(marked: Marked, *built: Built, seen: list[PruneScan] | None = None) -> Script:
    def scan(request: PruneScan) -> Scan:
        if seen is not None:
            seen.append(request)
        return Scan.of(2)

    return Script(
        {each.id: found for each, found in zip(marked.sides, built, strict=True)}, scans={marked.fact.id: scan}
    )


def test_builds_of_all_operands_filter_the_scan_together():
    marked, seen = Marked(), list[PruneScan]()
    planner = planner_of(marked, marked.either(), FREE_BUILDS)
    found = script_of(marked, Built(some_keys(1, 2)), Built(some_keys(3)), seen=seen).run(planner)
    one, other = (each.id for each in marked.sides)
    assert f"RunBuilds [{one}, {other}]" in found
    (request,) = seen
    assert {} == request.keys
    ((first, second),) = request.disjunctions
    assert [(0, 2), (1, 1)] == [(at, keys.rows) for at, keys in (first, second)]
    assert [2] == [len(each) for each in planner.levels]
    assert {marked.fact.id} == planner.scans.keys()


@pytest.mark.parametrize("failed", [0, 1])
def test_failed_build_of_an_operand_leaves_the_scan(failed):
    marked, seen = Marked(), list[PruneScan]()
    planner = planner_of(marked, marked.either(), FREE_BUILDS)
    built = [Built(some_keys(1)), Built(some_keys(3))]
    built[failed] = Built(Reason(ReasonCode.BUILD_FAILED, "k"))
    script_of(marked, *built, seen=seen).run(planner)
    assert [] == seen
    assert ReasonCode.BUILD_FAILED in {each.code for each in planner.reasons}


def test_builds_that_cost_more_than_they_save_are_not_run():
    marked = Marked()
    planner = planner_of(marked, marked.either(), PruningOptions())
    requests = script_of(marked, Built(some_keys(1)), Built(some_keys(3))).run(planner)
    assert not any("RunBuilds" in each for each in requests)
    found = answered(unused(planner.selection()), never_asked)
    of_fact = [each.reason.code for each in found if each.probe.relation.id == marked.fact.id]
    assert [ReasonCode.NOT_WORTH] * 2 == of_fact


def test_key_that_filters_the_scan_by_itself_makes_the_or_needless():
    marked = Marked()
    (first,) = (each.edges[0] for each in JoinGraph.of(marked.either()).disjunctions)
    root = marked.plans.join(
        marked.either(), first.build_side.node, equal(marked.fact.output[0], first.build_side.key), type_="LeftSemi"
    )
    planner = planner_of(marked, root, FREE_BUILDS)
    seen: list[PruneScan] = []
    script_of(marked, Built(some_keys(1)), Built(some_keys(3)), seen=seen).run(planner)
    assert [[0]] == [[*each.keys] for each in seen]
    assert not any(each.disjunctions for each in seen)


def test_scan_of_a_command_gets_no_or():
    assert () == JoinGraph.of(Marked().either(), by_file=True).disjunctions


def test_random_filter_is_no_or_of_keys():
    marked = Marked()
    root = replace(marked.either(), is_deterministic=False)
    assert [] == reached(root)
