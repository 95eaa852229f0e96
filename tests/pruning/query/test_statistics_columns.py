"""`statistics_columns`: the columns whose statistics the decisions of a query need."""

from __future__ import annotations

from pruning.query.join_graph import JoinGraph
from pruning.query.key_origins import statistics_columns
from tests.pruning.plans import Plans, at_least, equal


def test_join_keys_and_condition_columns_need_statistics():
    plans = Plans()
    fact, dimension = plans.table("k", "v", "unused"), plans.table("id", "year", "name")
    (key, value, _), (id_, year, _) = fact.output, dimension.output
    chosen, some = plans.filter(dimension, at_least(year, 3)), plans.filter(fact, at_least(value, 1))
    graph = JoinGraph.of(plans.join(some, chosen, equal(key, id_)))
    assert {fact.id: {key, value}, dimension.id: {id_, year}} == statistics_columns(graph)


def test_query_without_joins_needs_only_condition_columns():
    plans = Plans()
    fact = plans.table("k", "v")
    assert {fact.id: {fact.output[1]}} == statistics_columns(
        JoinGraph.of(plans.filter(fact, at_least(fact.output[1], 1)))
    )
