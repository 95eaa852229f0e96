"""What keys may spare a scan before any key is known."""

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


def test_a_key_of_even_parts_keeps_one_of_them():
    assert share(EVEN) == 0.25


def test_containers_with_nearly_all_values_are_read_whatever_the_keys_are():
    assert share(ALL) == 1.0


def test_bytes_count_not_containers():
    assert share([(1, 40, 0), (1, 20, 0), (21, 40, 0)], sizes=[80, 10, 10]) == pytest.approx(0.9)


@pytest.mark.parametrize(
    "rows",
    [[(None, None, None)] * 3, [(1, None, 0)], [(None, 9, 0), (1, None, 0)]],
    ids=["nothing", "no end", "one end each"],
)
def test_what_has_no_bounds_may_be_skipped(rows):
    assert share(rows) == 0.0


def test_what_has_no_bounds_counts_as_skipped_beside_others():
    assert share([*ALL, (None, None, None)]) == 0.75


def test_extreme_integers_do_not_overflow():
    least, most = -(2**63), 2**63 - 1
    assert share([(least, most, 0), (least, most, 0)], "bigint") == 1.0
    assert share([(least, -1, 0), (0, most, 0)], "bigint") == pytest.approx(0.5)


def test_texts_have_no_density():
    assert share([("a", "z", 0), ("a", "z", 0)], "string") == 0.0


def test_one_container_is_read_where_any_key_matches():
    assert share([("a", "z", 0)], "string") == share([(1, 40, 0)]) == 1.0


def test_no_container_is_no_byte():
    assert share([]) == 0.0


class Star:
    """A fact joined with a filtered dimension; `above` lies between the two."""

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


def test_rows_are_sent_to_a_join_that_is_not_broadcast():
    star = Star()
    assert star.crosses_shuffle(broadcast=False)
    assert not star.crosses_shuffle(broadcast=True)


def test_a_filter_leaves_rows_where_they_are():
    assert not Star(lambda plans, node: plans.filter(node, at_least(*node.output, 1))).crosses_shuffle(broadcast=True)


@pytest.mark.parametrize("kind", ["Sort", "Repartition"])
def test_rows_are_sent_where_they_are_put_in_order_or_dealt_out(kind):
    assert Star(lambda plans, node: plans.passing(kind, node)).crosses_shuffle(broadcast=True)


def test_rows_are_sent_to_an_aggregate():
    assert Star(lambda plans, node: plans.window(node, *node.output)).crosses_shuffle(broadcast=True)


def test_every_join_on_the_way_counts():
    def joined(plans, node):
        other = plans.table("k")
        return plans.join(node, other, equal(*node.output, *other.output), type_="LeftSemi")

    star = Star(joined)
    assert crosses_shuffle(star.build_side, star.probe, lambda join: join is star.root)
    assert not star.crosses_shuffle(broadcast=True)


def test_rows_are_hashed_where_their_side_of_a_join_on_the_way_is_broadcast():
    star = Star()
    assert is_hash_build_side(star.build_side, star.probe, lambda join, side: (join, side) == (star.root, star.fact))
    assert not is_hash_build_side(star.build_side, star.probe, lambda _, side: side is star.root.right)
