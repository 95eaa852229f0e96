"""`PlanCost`: seconds of scans and operators, in rates of one nanosecond for what is counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pruning.cost.rates import CostRates
from pruning.limits import LIMITS
from pruning.query.cardinality import Cardinalities
from pruning.query.plan import Node, Sort
from pruning.query.plan_cost import PlanCost
from pruning.query.plan_statistics import Cardinality, Sizes
from tests.pruning.known import NO_COSTS, ONE_EACH, Known, Star
from tests.pruning.plans import Plans, at_least, equal

RATES = replace(
    NO_COSTS, joined_row=30.0, hashed_row=150.0, exchanged_row=500.0, sorted_row=200.0, grouped_row=60.0, row=5.0
)


def cost(star: Star, rates: CostRates, **changed) -> PlanCost:
    sizes = star.sizes(**changed)
    return PlanCost(sizes, rates, Cardinalities(sizes, LIMITS))


def through(node: Node, known: Known | None = None, child: int = 0, rates: CostRates = RATES) -> float:
    sizes = Sizes({}, (), (), statistics=known or Known())
    return PlanCost(sizes, rates, Cardinalities(sizes, LIMITS)).row_through(node, node.children[child])


@pytest.fixture
def plans() -> Plans:
    return Plans()


def test_scan_takes_its_bytes_and_rows():
    star = Star.of()
    rates = replace(NO_COSTS, byte=2.0, decoded_byte=3.0, row=7.0)
    assert pytest.approx((1_000_000 * 5 + 1000 * 7) / 1e9) == cost(star, rates).scan(star.fact)


@pytest.mark.parametrize("is_remote", [False, True])
@pytest.mark.parametrize(("rows", "read"), [(None, 1000), (400, 400)])
def test_scan_takes_its_values(is_remote, rows, read):
    star = Star.of(decoded={0: 3.0})
    rates = replace(NO_COSTS, byte=2.0, remote_byte=2.0, decoded_value=11.0)
    expected = {} if rows is None else {star.fact.id: Cardinality(rows, 0.5)}
    found = cost(star, rates, remote={star.fact.id} if is_remote else (), expected=expected)
    assert pytest.approx((1_000_000 * 2 + read * 3 * 11) / 1e9) == found.scan(star.fact)


def test_scan_of_a_store_has_its_own_byte():
    star = Star.of()
    rates = replace(NO_COSTS, byte=2.0, remote_byte=10.0)
    assert pytest.approx(0.01) == cost(star, rates, remote={star.fact.id}).scan(star.fact)


def test_only_needed_columns_of_an_unfiltered_scan_count():
    star = Star.of(needed={0: 0.25})
    assert 0 == star.fact.id
    assert 250_000 == cost(star, ONE_EACH).needed_bytes(star.fact)
    assert 1_000_000 == cost(star, ONE_EACH, pruned={star.fact.id}).needed_bytes(star.fact)


@pytest.mark.parametrize(("size", "cores"), [(LIMITS.task_bytes, 1), (LIMITS.task_bytes + 1, 4)])
def test_small_scan_uses_one_core(size, cores):
    star = Star.of()
    star.scanned[star.fact.id] = size
    assert pytest.approx(size / cores / 1e9) == cost(star, ONE_EACH, cores=4).scan(star.fact)


@pytest.mark.parametrize(("is_broadcast", "fact_row", "day_row"), [(True, 30.0, 150.0), (False, 730.0, 730.0)])
def test_broadcast_join_shuffles_no_row(is_broadcast, fact_row, day_row):
    star = Star.of(broadcast=is_broadcast)
    found = cost(star, RATES)
    assert (fact_row, day_row) == tuple(found.row_through(star.root, each) for each in star.root.children)


def test_rows_of_a_build_are_broadcast():
    star = Star.of(broadcast=False)
    found = cost(star, RATES, materialized={star.few.id, star.days.id})
    assert (30.0, 150.0) == tuple(found.row_through(star.root, each) for each in star.root.children)


def test_operators_have_the_rates_of_their_work(plans):
    scan = plans.table("k")
    known = Known({scan.id: 1000}, {scan.output[0]: 10.0})
    assert (5.0, 5.0) == (
        through(plans.filter(scan, at_least(*scan.output, 1))),
        through(plans.project(scan, *scan.output)),
    )
    assert 60.0 == through(plans.aggregate(scan), known)
    # One of a hundred rows is a new group, which is hashed and shuffled.
    assert pytest.approx(60 + 0.01 * (150 + 500), rel=1e-3) == through(plans.aggregate(scan, *scan.output), known)
    assert 700.0 == through(plans.window(scan, *scan.output), known)
    assert 500.0 == through(plans.passing("Repartition", scan))
    assert 0.0 == through(plans.passing("SubqueryAlias", scan))
    for is_global, expected in ((True, 700.0), (False, 200.0)):
        assert expected == through(Sort(*plans.place((scan,)), "Sort", scan.output, (scan,), is_global=is_global))


def test_row_of_a_group_is_compared_by_the_width_of_its_key(plans):
    known = Known()
    scan = plans.table("k", "m")
    known.counts[scan.id] = 10**9
    known.values.update(dict.fromkeys(scan.output, 1.0))
    one, two = (through(plans.aggregate(scan, *scan.output[:count]), known) for count in (1, 2))
    assert pytest.approx((60.0, 90.0), rel=1e-3) == (one, two)


def test_wide_rows_take_longer_through_exchanges_and_sorts(plans):
    class Wide(Known):
        def row_width(self, node: Node) -> float:  # noqa: ARG002 - of a protocol
            return 3.0

    scan, other = plans.table("k"), plans.table("k")
    join = plans.join(scan, other, equal(*scan.output, *other.output))
    assert 3 * (500.0 + 200.0) + 30.0 == through(join, Wide())
    assert 3 * 500.0 == through(plans.passing("RepartitionByExpression", scan), Wide())


def test_only_rows_that_are_left_reach_the_operators_above(plans):
    scan = plans.table("k", "m")
    kept = plans.filter(scan, at_least(scan.output[1], 1))
    other = plans.table("k")
    root = plans.join(plans.passing("Repartition", kept), other, equal(scan.output[0], *other.output))
    known = Known({scan.id: 1000, other.id: 10}, matching={scan.output[1]: 0.1}, broadcast={root.id})
    sizes = Sizes({}, (), (), statistics=known)
    found = PlanCost(sizes, RATES, Cardinalities(sizes, LIMITS))
    # Each row is filtered; a tenth of the rows is shuffled and joined.
    assert pytest.approx(5 + 0.1 * (500 + 30)) == found.way(root, scan)


def test_row_of_a_dimension_is_several_rows_above_its_join(plans):
    fact, dimension, other = plans.table("f", "m"), plans.table("k"), plans.table("o")
    joined = plans.join(fact, dimension, equal(fact.output[0], *dimension.output))
    root = plans.join(plans.passing("Repartition", joined), other, equal(fact.output[1], *other.output))
    values = {fact.output[0]: 10.0, dimension.output[0]: 10.0}
    known = Known({fact.id: 1000, dimension.id: 10, other.id: 10}, values, broadcast={joined.id, root.id})
    sizes = Sizes({}, (), (), statistics=known)
    found = PlanCost(sizes, RATES, Cardinalities(sizes, LIMITS))
    # Each of ten rows is hashed, and finds a hundred rows, which are shuffled and joined.
    assert pytest.approx(150 + 100 * (500 + 30)) == found.way(root, dimension)
    assert pytest.approx(30 + 500 + 30) == found.way(root, fact)


def test_join_without_keys_makes_no_more_rows_than_its_largest_scan(plans):
    few, many, other = plans.table("f"), plans.table("m"), plans.table("o")
    joined = plans.join(few, many)
    root = plans.join(plans.passing("Repartition", joined), other, equal(few.output[0], *other.output))
    known = Known({few.id: 10, many.id: 1000, other.id: 10}, broadcast={joined.id, root.id})
    sizes = Sizes({}, (), (), statistics=known)
    found = PlanCost(sizes, RATES, Cardinalities(sizes, LIMITS))
    assert 10_000.0 == Cardinalities(sizes, LIMITS).rows(joined)
    assert pytest.approx(found.row_through(joined, few) + 100 * (500 + 30)) == found.way(root, few)


def test_rows_of_a_union_are_not_those_of_one_scan(plans):
    first, second, other = plans.table("f"), plans.table("s"), plans.table("o")
    union = plans.union(first, second)
    root = plans.join(plans.passing("Repartition", union), other, equal(union.output[0], *other.output))
    known = Known({first.id: 10, second.id: 1000, other.id: 10}, broadcast={root.id})
    sizes = Sizes({}, (), (), statistics=known)
    found = PlanCost(sizes, RATES, Cardinalities(sizes, LIMITS))
    assert pytest.approx(5 + 500 + 30) == found.way(root, first)


def test_tree_adds_up_its_parts():
    star = Star.of()
    found = cost(star, replace(RATES, byte=1.0))
    scans = (1_000_000 + 1000 * 5) + (100 + 100 * 5)
    operators = 100 * 5 + 1000 * 30 + 10 * 150
    assert pytest.approx((scans + operators) / 1e9) == found.tree(star.root)


def test_bounded_seconds_are_those_of_the_tree_where_no_join_makes_rows():
    star = Star.of()
    found = cost(star, replace(RATES, byte=1.0))
    assert pytest.approx(found.tree(star.root)) == found.bounded(star.root)
    assert 0.0 == cost(star, RATES, materialized={star.few.id, star.days.id}).bounded(star.few)


@pytest.mark.parametrize("rows", [1e6, 1e17])
def test_rows_in_no_file_bound_no_seconds(plans, rows):
    scan, other = plans.table("k"), plans.other("LogicalRDD", output=plans.fresh())
    root = plans.project(plans.join(scan, other), *scan.output)
    known = Known({scan.id: 1000}, elsewhere=rows)
    sizes = Sizes({scan.id: 0}, {scan.id}, (), statistics=known, cores=1)
    found = PlanCost(sizes, RATES, Cardinalities(sizes, LIMITS))
    # Both sides of the join are shuffled, sorted and joined, and its pairs projected: a thousand rows of each.
    assert pytest.approx((1000 * 5 + 2 * 1000 * 730 + 1000 * 5) / 1e9) == found.bounded(root)
    assert found.tree(root) > 1000 * found.bounded(root)


def test_rows_of_a_build_take_no_time():
    star = Star.of()
    assert 0.0 == cost(star, RATES, materialized={star.few.id, star.days.id}).tree(star.few)


def test_subqueries_count(plans):
    scan, inner = plans.table("k"), plans.table("s")
    root = plans.filter(scan, at_least(*scan.output, 1), subqueries=(plans.aggregate(inner),))
    sizes = Sizes(
        {scan.id: 100, inner.id: 900}, (), (), expected={each.id: Cardinality(0, 1.0) for each in (scan, inner)}
    )
    assert pytest.approx(1000 / 1e9) == PlanCost(sizes, ONE_EACH, Cardinalities(sizes, LIMITS)).tree(root)
