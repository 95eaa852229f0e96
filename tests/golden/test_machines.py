"""Filters of TPC-DS on machines of other speeds and with more cores."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from pruning import PruningOptions
from pruning.query.join_graph import JoinGraph
from pruning.query.runtime_filter import RuntimeFilter
from tests.golden import warehouse
from tests.golden.described import filter_plan
from tests.golden.recorded import RecordedPlan, recorded

# Seconds that a filter gains by the rates of the other machine, if it is planned on one of two machines alone.
NEARLY_NOTHING = 0.2
QUERIES = tuple(f"q{number}" for number in range(1, 100))


@pytest.fixture(scope="module")
def plans():
    return recorded()


def filters(plan: RecordedPlan, options: PruningOptions) -> dict[str, RuntimeFilter]:
    """The filters of a query, each by what it does."""
    root, used = plan.tree
    levels = filter_plan(JoinGraph.of(root), used, options).levels
    return {str(each.id): each for level in levels for each in level}


def of_speed(times: float) -> PruningOptions:
    """Options for a machine on which everything takes so many times as long."""
    options = PruningOptions()
    costs = options.limits.costs
    return options.with_limits(
        costs=replace(costs, **{each.name: getattr(costs, each.name) * times for each in fields(costs)})
    )


@pytest.mark.parametrize("times", [0.25, 4.0])
def test_filters_do_not_depend_on_the_speed_of_a_machine(plans, times):
    usual, other = PruningOptions(), of_speed(times)
    alone, planned = list[tuple[str, float]](), 0
    for query in QUERIES:
        here, there = filters(plans[query], usual), filters(plans[query], other)
        planned += len(here)
        alone += ((query, here[each].gain) for each in here.keys() - there.keys())
        alone += ((query, there[each].gain / times) for each in there.keys() - here.keys())
    assert planned > 300
    assert len(alone) <= planned / 50
    assert [] == [each for each in alone if each[1] > NEARLY_NOTHING]


@pytest.mark.parametrize("cores", [1, 2, 4, 8, 64])
def test_a_small_scan_whose_keys_filter_a_large_one_is_filtered(plans, monkeypatch, cores):
    monkeypatch.setattr(warehouse, "CORES", cores)
    # Weeks of one table of dates filter another one, which takes less time to read than to plan on more than two cores.
    found = {
        (each.build_side.key.text, each.probe.relation.table, each.probe.name)
        for each in filters(plans["q72"], PruningOptions()).values()
    }
    assert {("d_week_seq", "golden.date_dim", "d_week_seq"), ("d_date_sk", "golden.inventory", "inv_date_sk")} <= found
