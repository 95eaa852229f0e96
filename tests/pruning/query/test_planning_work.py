"""The work of planning: how often estimates are made, by the number of joins. Times are measured by `benchmarks`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pruning.options import PruningOptions
from pruning.query import filter_choice
from pruning.query.benefit import Benefits
from pruning.query.build_selection import BuildSelection
from pruning.query.cardinality import Cardinalities
from pruning.query.filter_choice import FilterChoices
from pruning.query.filter_plan import FilterPlan
from pruning.query.join_graph import JoinGraph
from pruning.query.plan_cost import PlanCost
from pruning.query.plan_statistics import Sizes
from pruning.query.requests import Unanswered, answered
from tests.golden.described import filter_plan
from tests.golden.recorded import recorded
from tests.pruning.known import ONE_EACH, Known, Star, priced
from tests.pruning.plans import Plans, at_least, equal, never_asked


class Calls(Counter[str]):
    """The calls of what planning does most, and those that ended for a missing answer."""

    def count(self, patch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        whole = getattr(owner, name)

        def counted(*args: Any) -> Any:
            self[name] += 1
            try:
                return whole(*args)
            except Unanswered:
                self[f"{name}, unanswered"] += 1
                raise

        patch.setattr(owner, name, staticmethod(counted) if owner is BuildSelection else counted)


@pytest.fixture
def calls(monkeypatch):
    found = Calls()
    found.count(monkeypatch, BuildSelection, "of")
    found.count(monkeypatch, filter_choice._Choice, "offer")
    found.count(monkeypatch, Benefits, "_effect")
    found.count(monkeypatch, Cardinalities, "_keys_of")
    found.count(monkeypatch, Cardinalities, "_share_of")
    found.count(monkeypatch, PlanCost, "row_through")
    return found


def chain(dimensions: int) -> tuple[JoinGraph, Sizes]:
    """A fact and dimensions on one key, so that the keys of each dimension reach every other table."""
    plans = Plans()
    fact = plans.table("day")
    root, tables, matching = fact, [], {}
    for at in range(dimensions):
        table = plans.table("day", "month")
        tables.append(table)
        matching[table.output[1]] = 0.1 + 0.8 * at / dimensions
        few = plans.filter(table, at_least(table.output[1], at))
        root = plans.join(root, few, equal(fact.output[0], table.output[0]))
    known = Known(
        counts={fact.id: 1_000_000, **{each.id: 1000 for each in tables}},
        values={each.output[0]: 1000.0 for each in (fact, *tables)},
        matching=matching,
    )
    scanned = {fact.id: 10**9, **{each.id: 10**6 for each in tables}}
    return JoinGraph.of(root), Sizes(scanned, frozenset(scanned), (), statistics=known)


@pytest.mark.parametrize("dimensions", [4, 19])
def test_work_of_one_moment_grows_with_builds_and_with_the_scans_that_they_reach(calls, dimensions):
    graph, sizes = chain(dimensions)
    plan = answered(FilterPlan.before_builds(graph, sizes, priced(ONE_EACH)), never_asked)
    assert len(plan.levels) + 1 == calls["of"]
    moments, reached = calls["of"], sum(len(each.probes) for each in graph.edges)
    assert reached > dimensions
    # Each condition and each key once; of a dimension, that is its own and that of the joins before it.
    assert dimensions * moments == calls["_share_of"]
    assert 2 * dimensions * moments >= calls["_keys_of"]
    # Once for a start, and again where a build before it was taken.
    assert dimensions * moments < calls["offer"] <= 2.5 * dimensions * moments
    # Each way goes on from that through the join below.
    assert 3 * reached * moments >= calls["row_through"]


@pytest.mark.parametrize("query", ["q4", "q14", "q64", "q72", "q85"])
def test_answer_has_no_build_weighed_again_with_all_of_its_scans(calls, query):
    root, used = recorded()[query].tree
    graph = JoinGraph.of(root)
    filter_plan(graph, used, PruningOptions())
    builds = {each.build_side.node.id for each in graph.edges}
    # Answers are asked for where one effect is estimated.
    assert calls["_effect, unanswered"] > 0
    assert 0 == calls["offer, unanswered"]
    assert len(builds) * calls["of"] >= calls["offer"]


def test_only_build_is_weighed_once(calls):
    star = Star.of(few=10)
    found = FilterChoices(star.selection(priced(ONE_EACH))).among([star.runtime_filter])
    assert 1 == len(found.chosen) == calls["offer"]
