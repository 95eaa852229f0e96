"""Rows that are observed and functions of the user beside a scan: the scan stays whole, unless a build has run them."""

from __future__ import annotations

import pytest

from pruning.query.build_selection import BuildSelection, RefusedBuild
from pruning.query.effects import effect_beside, effects
from pruning.query.join_graph import JoinGraph
from pruning.query.plan_statistics import Sizes
from pruning.reasons import ReasonCode
from tests.costs import ALWAYS, FREE_BUILDS
from tests.pruning.plans import Plans, call, column, equal


class Beside:
    """Facts that join an observed table, or one of a function, and a small table with a condition."""

    def __init__(self, kind: str, *, chosen: bool = False) -> None:
        plans = Plans()
        self.fact, self.few, self.other = plans.table("k"), plans.table("k"), plans.table("k")
        other = plans.filter(self.other, call("GreaterThan", column(*self.other.output), column(*self.other.output)))
        self.seen = plans.other(kind, other if chosen else self.other)
        few = plans.filter(self.few, call("GreaterThan", column(*self.few.output), column(*self.few.output)))
        inner = plans.join(self.fact, self.seen, equal(self.fact.output[0], self.seen.output[0]))
        self.root = plans.join(inner, few, equal(self.fact.output[0], few.output[0]))

    def refusal(self, *done: int) -> ReasonCode | None:
        """The reason why no build may filter the facts."""
        graph = JoinGraph.of(self.root)
        places = {each.id: 10_000 for each in graph.relations}
        selection = BuildSelection.of(graph, Sizes(places, set(places), (), set(done)), FREE_BUILDS)
        (probe, *_) = [each for edge in graph.edges for each in edge.probes if each.relation is self.fact]
        found = selection.why_unsound(probe)
        return None if found is None else found.code


FUNCTIONS = ["ArrowEvalPython", "BatchEvalPython", "MapInPandas", "FlatMapCoGroupsInPandas", "MapElements"]


@pytest.mark.parametrize("kind", ["CollectMetrics", *FUNCTIONS])
def test_scan_beside_an_effect_stays_whole(kind):
    star = Beside(kind)
    assert ReasonCode.EFFECT_BESIDE == star.refusal()
    assert star.refusal(star.seen.id) is None


def test_scan_beside_other_operators_is_filtered():
    assert Beside("Repartition").refusal() is None


@pytest.mark.parametrize(("kind", "code"), [("BatchEvalPython", None), ("CollectMetrics", ReasonCode.EFFECT_BESIDE)])
def test_function_that_a_build_is_to_run_once_is_no_effect_of_the_query(kind, code):
    assert code == Beside(kind, chosen=True).refusal()


def test_effect_above_a_scan_sees_the_rows_of_the_join():
    star = Beside("CollectMetrics")
    found = [*effects(star.root)]
    assert [star.seen] == found
    assert effect_beside(found, star.other.id) is None
    assert star.seen is effect_beside(found, star.few.id)


@pytest.mark.parametrize(("kind", "is_run"), [("Repartition", True), ("UnionLoop", False)])
def test_rows_that_differ_from_run_to_run_are_no_build_of_a_recursion(kind, is_run):
    plans = Plans()
    fact, few = plans.table("k"), plans.table("k")
    chosen = plans.filter(few, call("GreaterThan", column(*few.output), column(*few.output)))
    drawn = plans.other("Sample", chosen)
    step = plans.other(kind, plans.join(fact, drawn, equal(fact.output[0], drawn.output[0])))
    graph = JoinGraph.of(step)
    places = {each.id: 10_000 for each in graph.relations}
    selection = BuildSelection.of(graph, Sizes(places, set(places), ()), ALWAYS)
    built = [each for each in graph.edges if each.build_side.node is drawn]
    found = [one for each in built for one in selection.sound(each.build_side, each.probes[0])]
    assert is_run is any(not isinstance(each, RefusedBuild) for each in found)
