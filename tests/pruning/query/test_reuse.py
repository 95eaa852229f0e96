"""Exchange reuse: equal parts of a plan that Spark runs once, and the filters that would end the reuse."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pruning.query.edges import Edge
from pruning.query.exchange_reuse import ExchangeReuse
from pruning.query.join_graph import JoinGraph
from pruning.query.plan import Join, Node
from tests.pruning.plans import Plans, at_least, equal


class Twice:
    """A fact in two places, each joined with a filtered dimension."""

    def __init__(self, *, is_grouped: bool = True) -> None:
        plans = Plans()
        self.parts: list[Node] = []
        self.sums: list[Node] = []
        self.statistics: list[Node] = []
        for part in range(2):
            fact = plans.table("k", "other")
            made = plans.aggregate(fact, fact.output[0]) if is_grouped else fact
            dimension = plans.table("id")
            some = plans.filter(dimension, at_least(*dimension.output, part))
            self.parts.append(plans.join(made, some, equal(made.output[0], *dimension.output)))
            self.sums.append(made)
            self.statistics.append(fact)
        self.root = plans.union(*self.parts)
        self.graph = JoinGraph.of(self.root)

    def edge(self, part: int) -> Edge:
        return next(
            each for each in self.graph.edges if each.probes and each.probes[0].relation is self.statistics[part]
        )

    def others(self, part: int, equal_nodes: Mapping[int, int], *, is_shuffled: bool = False) -> list[int]:
        reuse = ExchangeReuse.of(self.root, equal_nodes, lambda _, side: is_shuffled and side in self.sums)
        edge = self.edge(part)
        return [it.id for each in reuse.changed(edge.build_side, edge.probes[0]) for it in each.others]


def same(*pairs: tuple[Node, Node]) -> dict[int, int]:
    return {each.id: one.id for one, other in pairs for each in (one, other)}


def test_equal_aggregates_share_an_exchange():
    plan = Twice()
    pairs = same(tuple(plan.statistics), tuple(plan.sums))
    assert [plan.sums[1].id] == plan.others(0, pairs)
    assert [plan.sums[0].id] == plan.others(1, pairs)


def test_different_aggregates_share_no_exchange():
    plan = Twice()
    assert [] == plan.others(0, same(tuple(plan.statistics)))
    assert [] == plan.others(0, {})


def test_equal_aggregates_below_equal_joins_share_an_exchange():
    plan = Twice()
    pairs = same(tuple(plan.statistics), tuple(plan.sums), tuple(plan.parts))
    assert [plan.sums[1].id] == plan.others(0, pairs)


def test_filter_on_a_scan_ends_reuse_of_its_join():
    plans = Plans()
    sides: list[Node] = []
    scans: list[Node] = []
    joins: list[Node] = []
    for part in range(2):
        scan, fact = plans.table("k", "other"), plans.table("k")
        sums = plans.aggregate(fact, *fact.output)
        sides.append(plans.join(scan, sums, equal(scan.output[0], sums.output[0]), type_="LeftSemi"))
        dimension = plans.table("id")
        chosen = plans.filter(dimension, at_least(*dimension.output, part))
        joins.append(plans.join(sides[-1], chosen, equal(scan.output[1], *dimension.output)))
        scans.append(scan)
    root = plans.union(*joins)
    reuse = ExchangeReuse.of(root, same(tuple(sides)), lambda _, side: side in sides)
    (edge,) = [
        each for each in JoinGraph.of(root).edges if each.join is joins[0] and each.build_side.node is not sides[0]
    ]
    assert [scans[0]] == [each.relation for each in edge.probes]
    (changed,) = reuse.changed(edge.build_side, edge.probes[0])
    assert (sides[0], (sides[1],)) == (changed.place, changed.others)


def test_shuffled_scan_without_aggregate_is_not_protected():
    plan = Twice(is_grouped=False)
    assert [] == plan.others(0, same(tuple(plan.statistics)), is_shuffled=True)


def test_shuffled_aggregates_share_an_exchange():
    plan = Twice()
    assert [plan.sums[1].id] == plan.others(0, same(tuple(plan.sums)), is_shuffled=True)


def reused_places(key: int) -> list[int]:
    """The other places of equal aggregates of two columns in two joins; the second joins by the column at `key`."""
    plans = Plans()
    joins: list[Join] = []
    sums: list[Node] = []
    for part in range(2):
        fact = plans.table("a", "b")
        # The join shuffles by its keys. Below the generator no exchange is reused.
        inner = plans.generate(plans.aggregate(fact, *fact.output))
        dimension = plans.table("id")
        joins.append(plans.join(inner, dimension, equal(inner.output[key * part], *dimension.output)))
        sums.append(inner)
    root = plans.union(*joins)
    reuse = ExchangeReuse.of(root, same(tuple(sums)), lambda _, side: side in sums)
    edge = next(each for each in JoinGraph.of(root).edges if each.probes and each.join is joins[0])
    return [sums.index(it) for each in reuse.changed(edge.build_side, edge.probes[0]) for it in each.others]


def test_exchanges_by_different_keys_are_not_shared():
    assert [1] == reused_places(0)
    assert [] == reused_places(1)


@pytest.mark.parametrize(
    ("type_", "copied"),
    [("Inner", True), ("LeftSemi", True), ("LeftOuter", True), ("LeftAnti", True), ("ExistenceJoin", False)],
)
def test_a_condition_that_spark_copies_to_an_equal_column_ends_a_reuse(type_, copied):
    """Keys of a scan become keys of the sums that are joined with it, which are one exchange in two places."""
    plans = Plans()
    parts: list[Node] = []
    sums: list[Node] = []
    for part in range(2):
        scan, fact = plans.table("k", "other"), plans.table("k")
        sums.append(plans.aggregate(fact, *fact.output))
        joined = plans.join(scan, sums[-1], equal(scan.output[0], sums[-1].output[0]), type_=type_)
        dimension = plans.table("id")
        chosen = plans.filter(dimension, at_least(*dimension.output, part))
        parts.append(plans.join(joined, chosen, equal(scan.output[0], *dimension.output)))
    root = plans.union(*parts)
    reuse = ExchangeReuse.of(root, same(tuple(sums)), lambda *_: False)
    edge = next(each for each in JoinGraph.of(root).edges if each.join is parts[0] and each.probes)
    probe = edge.probes[0]
    assert "k" == probe.name
    found = [(each.place, each.others) for each in reuse.changed(edge.build_side, probe)]
    assert ([(sums[0], (sums[1],))] if copied else []) == found
