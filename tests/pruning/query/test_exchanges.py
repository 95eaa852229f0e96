"""Savings of a filter before any key is known: unprunable bytes, shuffled rows and hash build sides."""

from __future__ import annotations

import numpy as np
import pytest

from pruning.query.exchanges import crosses_shuffle, is_hash_build_side, unprunable_fraction
from pruning.query.join_graph import JoinGraph
from pruning.scan.statistics import ColumnStatistics
from pruning.values.types import ValueType
from tests.pruning.plans import Plans, at_least, equal

EVEN = [(1, 10, 0), (11, 20, 0), (21, 30, 0), (31, 40, 0)]
ALL = [(1, 40, 0), (2, 40, 0), (1, 39, 0)]


def share(rows, type_="int", sizes=None) -> float:
    return unprunable_fraction(
        ColumnStatistics.of(ValueType(type_), rows), np.array(sizes or [10] * len(rows), np.int64)
    )


def test_disjoint_containers_keep_one_per_key():
    assert share(EVEN) == 0.25


def test_containers_with_nearly_all_values_are_unprunable():
    assert share(ALL) == 1.0


def test_fraction_counts_bytes_not_containers():
    assert share([(1, 40, 0), (1, 20, 0), (21, 40, 0)], sizes=[80, 10, 10]) == pytest.approx(0.9)


@pytest.mark.parametrize(
    "rows",
    [[(None, None, None)] * 3, [(1, None, 0)], [(None, 9, 0), (1, None, 0)]],
    ids=["nothing", "no end", "one end each"],
)
def test_containers_without_bounds_are_prunable(rows):
    assert share(rows) == 0.0


def test_container_without_bounds_is_prunable_beside_others():
    assert share([*ALL, (None, None, None)]) == 0.75


def test_extreme_integers_do_not_overflow():
    least, most = -(2**63), 2**63 - 1
    assert share([(least, most, 0), (least, most, 0)], "bigint") == 1.0
    assert share([(least, -1, 0), (0, most, 0)], "bigint") == pytest.approx(0.5)


def test_string_containers_are_prunable():
    assert share([("a", "z", 0), ("a", "z", 0)], "string") == 0.0


def test_single_container_is_unprunable():
    assert share([("a", "z", 0)], "string") == share([(1, 40, 0)]) == 1.0


def test_no_containers_have_no_unprunable_bytes():
    assert share([]) == 0.0


class Star:
    """A fact joined with a filtered dimension; `above` puts a node between the fact and the join."""

    def __init__(self, above=lambda _, node: node):
        self.plans = Plans()
        fact, days = self.plans.table("k"), self.plans.table("k")
        self.fact, build = above(self.plans, fact), self.plans.filter(days, at_least(*days.output, 3))
        self.root = self.plans.join(self.fact, build, equal(self.fact.output[0], *days.output))
        ((self.build_side, self.probe),) = [
            (edge.build_side, probe)
            for edge in JoinGraph.of(self.root).edges
            for probe in edge.probes
            if edge.join is self.root and probe.relation is fact
        ]

    def crosses_shuffle(self, *, broadcast: bool) -> bool:
        return crosses_shuffle(self.build_side, self.probe, lambda _: broadcast)


def test_join_without_broadcast_shuffles_rows():
    star = Star()
    assert star.crosses_shuffle(broadcast=False)
    assert not star.crosses_shuffle(broadcast=True)


def test_filter_shuffles_no_rows():
    assert not Star(lambda plans, node: plans.filter(node, at_least(*node.output, 1))).crosses_shuffle(broadcast=True)


@pytest.mark.parametrize("kind", ["Sort", "Repartition"])
def test_sort_and_repartition_shuffle_rows(kind):
    assert Star(lambda plans, node: plans.passing(kind, node)).crosses_shuffle(broadcast=True)


def test_aggregate_shuffles_rows():
    assert Star(lambda plans, node: plans.window(node, *node.output)).crosses_shuffle(broadcast=True)


def test_each_join_on_the_path_may_shuffle():
    def joined(plans, node):
        other = plans.table("k")
        return plans.join(node, other, equal(*node.output, *other.output), type_="LeftSemi")

    star = Star(joined)
    assert crosses_shuffle(star.build_side, star.probe, lambda join: join is star.root)
    assert not star.crosses_shuffle(broadcast=True)


def test_broadcast_probe_side_is_a_hash_build_side():
    star = Star()
    assert is_hash_build_side(star.build_side, star.probe, lambda join, side: (join, side) == (star.root, star.fact))
    assert not is_hash_build_side(star.build_side, star.probe, lambda _, side: side is star.root.right)
