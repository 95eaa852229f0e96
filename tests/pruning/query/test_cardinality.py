"""`Cardinalities`: rows of nodes, and the share of a scan's rows that have a partner."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.limits import LIMITS
from pruning.query.cardinality import Cardinalities, distinct
from pruning.query.join_graph import JoinGraph
from pruning.query.plan import Node, RankLimit
from pruning.query.plan_statistics import Cardinality, Sizes
from tests.pruning.known import Known, Star
from tests.pruning.plans import Plans, at_least, call, column, equal, literal

JOINS = ("Inner", "LeftSemi", "LeftAnti", "LeftOuter", "RightOuter", "FullOuter", "ExistenceJoin", "LeftSingle")


@pytest.fixture
def plans() -> Plans:
    return Plans()


def rows(node: Node, known: Known, **state) -> float:
    return Cardinalities(Sizes({}, (), (), statistics=known, **state), LIMITS).rows(node)


def test_scan_has_the_rows_of_its_table(plans):
    scan = plans.table("k")
    assert 1000.0 == rows(scan, Known({scan.id: 1000}))
    # Where rows are not counted, 64 bytes are taken to be one.
    assert 10.0 == Cardinalities(Sizes({scan.id: 640}, (), ()), LIMITS).rows(scan)
    assert 0.0 == rows(scan, Known())


def test_filtered_scan_has_the_rows_that_pass(plans):
    scan = plans.table("k")
    known = Known({scan.id: 1000}, {scan.output[0]: 100.0})
    assert 50.0 == rows(scan, known, expected={scan.id: Cardinality(500, 0.1)})
    # Five of a hundred values pass.
    assert 50.0 == rows(scan, known, applied={scan.id: {scan.output[0]: 5}})


def test_rows_of_a_finished_build_are_known(plans):
    scan = plans.table("k")
    assert 7.0 == rows(plans.filter(scan, at_least(*scan.output, 1)), Known({scan.id: 1000}), rows={1: 7})


def test_condition_keeps_its_share(plans):
    scan = plans.table("k")
    assert 250.0 == rows(
        plans.filter(scan, at_least(*scan.output, 1)), Known({scan.id: 1000}, matching={scan.output[0]: 0.25})
    )


def test_a_limit_of_ranks_gives_its_rows(plans):
    scan = plans.table("k")
    known = Known({scan.id: 1000})
    numbered = replace(plans.group_limit(scan), most=10)
    ranked = RankLimit(*plans.place((scan,)), "WindowGroupLimit", scan.output, (scan,), (), True, {}, True, count=7)  # noqa: FBT003
    assert (10.0, 7.0) == (rows(numbered, known), rows(ranked, known))
    assert 1000.0 == rows(replace(numbered, most=2000), known)


def test_operators_keep_group_or_limit_rows(plans):
    scan = plans.table("k", "m")
    known = Known({scan.id: 1000}, {scan.output[0]: 10.0})
    assert 1000.0 == rows(plans.passing("Sort", plans.window(plans.project(scan, *scan.output), *scan.output)), known)
    assert 1.0 == rows(plans.aggregate(scan), known)
    assert pytest.approx(10.0) == rows(plans.aggregate(scan, scan.output[0]), known)
    # A column without bounds may have a value in each row.
    assert 1000.0 == rows(plans.aggregate(scan, scan.output[1]), known)
    assert (5.0, 1000.0) == (rows(plans.limit(scan, 5), known), rows(plans.limit(scan, None), known))
    assert 2000.0 == rows(plans.union(scan, scan), known)


def test_groups_by_columns_of_one_table_are_no_more_than_its_rows(plans):
    fact, dimension = plans.table("f"), plans.table("k", "a", "b")
    joined = plans.join(fact, dimension, equal(fact.output[0], dimension.output[0]))
    values = dict.fromkeys((fact.output[0], *dimension.output), 50.0)
    known = Known({fact.id: 1e6, dimension.id: 60}, values)
    assert pytest.approx(50.0) == rows(plans.aggregate(joined, dimension.output[1]), known)
    assert pytest.approx(60.0) == rows(plans.aggregate(joined, *dimension.output), known)
    assert pytest.approx(60.0 * 50.0) == rows(plans.aggregate(joined, fact.output[0], *dimension.output), known)


@pytest.mark.parametrize("values", [5.0, 50.0])
def test_groups_by_columns_of_one_table_are_no_more_than_its_rows_with_a_partner(plans, values):
    fact, dimension = plans.table("f"), plans.table("k", "a")
    joined = plans.join(fact, dimension, equal(fact.output[0], dimension.output[0]))
    known = Known({fact.id: 1000, dimension.id: 60}, {fact.output[0]: values, dimension.output[0]: 60.0})
    assert pytest.approx(values, abs=1) == rows(plans.aggregate(joined, *dimension.output), known)


def test_groups_are_those_of_values_that_conditions_leave(plans):
    scan = plans.table("k", "m")
    kept = plans.filter(scan, at_least(scan.output[0], 1))
    known = Known({scan.id: 1e6}, {scan.output[0]: 100.0}, matching={scan.output[0]: 0.1})
    assert pytest.approx(10.0) == rows(plans.aggregate(kept, scan.output[0]), known)


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        ("Inner", 100.0),
        ("LeftSemi", 100.0),
        ("LeftAnti", 900.0),
        ("LeftOuter", 1000.0),
        ("RightOuter", 100.0),
        ("FullOuter", 1000.0),
        ("ExistenceJoin", 1000.0),
        ("LeftSingle", 1000.0),
    ],
)
def test_join_with_a_tenth_of_the_keys(type_, expected):
    star = Star.of()
    join = replace(star.root, type=type_)
    found = Cardinalities(star.sizes(), LIMITS)
    assert pytest.approx(expected) == found.rows(join)
    assert 10.0 == found.rows(star.few)


def test_join_on_values_that_repeat_on_both_sides(plans):
    one, other = plans.table("k"), plans.table("k")
    join = plans.join(one, other, equal(*one.output, *other.output))
    known = Known({one.id: 1000, other.id: 500}, {one.output[0]: 10.0, other.output[0]: 10.0})
    # Each value has 100 rows on one side and 50 on the other.
    assert pytest.approx(10 * 100 * 50) == rows(join, known)


def test_join_without_keys_has_pairs(plans):
    one, other = plans.table("k"), plans.table("k")
    known = Known({one.id: 100, other.id: 10})
    assert 1000.0 == rows(plans.join(one, other), known)
    less = call("LessThan", column(*one.output), column(*other.output))
    assert pytest.approx(330.0) == rows(plans.join(one, other, less), known)


def test_join_by_several_columns_keeps_the_smaller_product(plans):
    one, other = plans.table("a", "b"), plans.table("a", "b")
    few = plans.filter(other, at_least(other.output[0], 1))
    join = plans.join(one, few, *(equal(*each) for each in zip(one.output, other.output, strict=True)))
    known = Known({one.id: 1000, other.id: 100}, matching={other.output[0]: 0.1})
    # A tenth of the other table is left, so a tenth of the rows finds a partner.
    assert pytest.approx(min(1000 * 0.1, 10)) == rows(join, known)


def test_keys_that_filter_a_scan_do_not_count_twice():
    star = Star.of()
    state = {"expected": {star.fact.id: Cardinality(1000, 0.1)}, "applied": {star.fact.id: {star.fact.output[0]: 10}}}
    assert pytest.approx(100.0) == Cardinalities(star.sizes(**state), LIMITS).rows(star.root)


# Shares with a partner.


def partners(star: Star, **state):
    return Cardinalities(star.sizes(**state), LIMITS).partner_share(star.build_side, star.probe)


def test_tenth_of_the_keys_are_those_of_a_tenth_of_the_rows():
    found = partners(Star.of())
    # The share by bounds may be wrong by three.
    assert pytest.approx((0.1 / 3, 0.1, 0.3)) == (found.low, found.expected, found.high)


def test_known_rows_of_a_build_count():
    star = Star.of()
    assert pytest.approx(0.5) == partners(star, rows={star.few.id: 50}).expected


def test_keys_of_a_table_with_more_values_lie_between_two_shares():
    """Days of ten years of sales among those of a hundred years: a year is a tenth of the sales, a month a twelfth."""
    star = Star.of()
    star.known.values[star.fact.output[0]] = 20.0
    found = partners(star)
    # 10 of 100 keys: half of the 20 values, if they are all among them; a tenth, if they lie anywhere.
    assert pytest.approx((0.1 * 0.5) ** 0.5) == found.expected
    assert found.low <= 0.1 <= found.expected <= 0.5 <= found.high


def test_most_rows_may_pass_where_numbers_between_the_bounds_are_no_values():
    """Dates as numbers such as 20261231 leave out most numbers of a year."""
    star = Star.of()
    star.known.values[star.fact.output[0]] = 500.0
    found = Cardinalities(star.sizes(rows={star.few.id: 90}), LIMITS)
    assert pytest.approx((0.9 * 0.18) ** 0.5) == found.partner_share(star.build_side, star.probe).expected
    assert pytest.approx(0.9) == found.most_passing(star.build_side, star.probe)
    # A list without a condition has keys for some rows alone.
    whole = Cardinalities(star.sizes(rows={star.few.id: 100}), LIMITS)
    assert pytest.approx(0.2**0.5) == whole.most_passing(star.build_side, star.probe)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_random_numbers_may_be_those_of_all_keys(is_sparse):
    """100 keys among 1,000 random numbers in as many rows: these may be 1,000 values, or be the 100 keys."""
    star = Star.of()
    star.known.counts |= {star.fact.id: 1000, star.days.id: 100}
    star.known.values |= {star.fact.output[0]: 1000.0, star.days.output[0]: 100.0}
    star.known.sparse = {star.fact.output[0]} if is_sparse else set()
    found = Cardinalities(star.sizes(), LIMITS).partner_share(star.build_side, star.probe)
    # A condition leaves a tenth of the keys.
    assert pytest.approx((0.01 * 0.1) ** 0.5 if is_sparse else 0.01) == found.expected
    assert (found.high >= 0.1) == is_sparse


@pytest.mark.parametrize(
    ("together", "expected"),
    [
        # 1,200 of 12,000 rows hold 699 of 1,000 customers, if each row has one at random.
        ({}, 699),
        # Twelve rows of an order have one customer, and one day: 100 orders of 95 customers.
        ({"customer": 12.0, "day": 1000.0}, 95),
        # A tenth of all items leaves 718 of 1,000 orders, of 512 customers.
        ({"customer": 12.0}, 512),
    ],
)
@pytest.mark.parametrize("is_joined", [False, True])
def test_rows_of_one_value_that_stand_together_have_fewer_values(plans, together, expected, is_joined):
    returns, sales, few = plans.table("customer"), plans.table("customer", "day"), plans.table("day")
    customer, day = sales.output
    known = Known(
        {returns.id: 1000, sales.id: 12_000, few.id: 10},
        {returns.output[0]: 1000.0, customer: 1000.0, day: 100.0, few.output[0]: 100.0},
        {day: 0.1},
        together={{"customer": customer, "day": day}[name]: rows_ for name, rows_ in together.items()},
    )
    left = plans.join(sales, few, equal(day, few.output[0])) if is_joined else plans.filter(sales, at_least(day, 1))
    semi = plans.join(returns, left, equal(returns.output[0], customer), type_="LeftSemi")
    assert pytest.approx(expected, abs=1) == rows(semi, known)


def test_unknown_values_leave_the_share_of_the_keys():
    star = Star.of()
    star.known.values.pop(star.fact.output[0])
    assert pytest.approx(0.1) == partners(star).expected


def test_unknown_keys_have_wide_bounds(plans):
    fact, days = plans.table("day"), plans.table("day")
    key = call("Add", column(*days.output), literal(1))
    root = plans.join(fact, days, call("EqualTo", column(*fact.output), key))
    known = Known({fact.id: 1000, days.id: 10}, {fact.output[0]: 100.0})
    ((side, probe),) = [
        (edge.build_side, probe) for edge in JoinGraph.of(root).edges for probe in edge.probes if probe.relation is fact
    ]
    found = Cardinalities(Sizes({}, (), (), statistics=known), LIMITS).partner_share(side, probe)
    assert pytest.approx((0.01, 0.1, 1.0)) == (found.low, found.expected, found.high)


@pytest.mark.parametrize(
    ("counted", "known_values", "shares", "most"),
    [
        # Each row of the scan may have another value, or all the same one.
        (10_000, {}, (0.001, 0.1, 1.0), 0.001),
        (5, {}, (1.0, 1.0, 1.0), 1.0),
        (0, {}, (0.1, 1.0, 1.0), 1.0),
        (10_000, {"values": 1000.0}, (0.001, 0.01, 0.1), 0.01),
        (10_000, {"values": 1000.0, "least": 500.0}, (0.001, 0.01, 0.1), 0.01),
        (10_000, {"values": 10_000.0, "least": 100.0, "sparse": True}, (0.001, 0.01, 0.1), 0.001),
        (10_000, {"values": 10_000.0, "least": 1.0, "sparse": True}, (0.001, 0.1, 1.0), 0.001),
    ],
)
def test_unknown_keys_are_no_more_than_rows_of_the_build(plans, counted, known_values, shares, most):
    fact, days = plans.table("day", type_="string"), plans.table("day", type_="string")
    key = call("Concat", column(*days.output, "string"), literal("a"))
    root = plans.join(fact, days, call("EqualTo", column(*fact.output, "string"), key))
    at = fact.output[0]
    known = Known(
        {fact.id: counted, days.id: 10},
        {at: known_values["values"]} if "values" in known_values else {},
        least={at: known_values["least"]} if "least" in known_values else {},
        sparse={at} if "sparse" in known_values else set(),
    )
    (edge,) = (each for each in JoinGraph.of(root).edges if each.probes and each.probes[0].relation is fact)
    found = Cardinalities(Sizes({}, (), (), statistics=known), LIMITS)
    share = found.partner_share(edge.build_side, *edge.probes)
    assert pytest.approx(shares) == (share.low, share.expected, share.high)
    assert pytest.approx(most) == found.most_partners(edge.build_side, *edge.probes)


@pytest.mark.parametrize("values", [None, 50.0])
def test_scalar_is_one_of_the_values_and_a_bound_half_of_them(plans, values):
    table, total = plans.table("k"), plans.aggregate(plans.table("s"))
    known = Known({table.id: 100}, {} if values is None else {table.output[0]: values})
    found = {}
    for kind in ("EqualTo", "LessThan"):
        part = call(kind, column(*table.output), call("ScalarSubquery"))
        (edge,) = JoinGraph.of(plans.filter(table, part, subqueries=(total,))).edges
        shares = Cardinalities(Sizes({}, (), (), statistics=known), LIMITS).partner_share(edge.build_side, *edge.probes)
        found[kind] = shares.expected
    assert found == {"EqualTo": 0.1 if values is None else 0.02, "LessThan": 0.5}


NUMBERS = st.sampled_from([0.0, 1.0, 10.0, 1e6, 1e18, 1e300])
COUNTS = st.sampled_from([0, 1, 1000, 10**18])


@given(
    COUNTS, COUNTS, st.one_of(st.none(), NUMBERS), st.one_of(st.none(), NUMBERS), st.one_of(st.none(), st.floats(0, 1))
)
def test_shares_and_rows_are_numbers_for_any_statistics(facts, days, values, keys, matching):
    star = Star.of()
    star.known.counts = {star.fact.id: facts, star.days.id: days}
    star.known.values = {
        at: it for at, it in ((star.fact.output[0], values), (star.days.output[0], keys)) if it is not None
    }
    star.known.matching = {} if matching is None else {star.days.output[1]: matching}
    found = partners(star)
    assert 0.0 <= found.low <= found.expected <= found.high <= 1.0
    for type_ in JOINS:
        assert 0.0 <= Cardinalities(star.sizes(), LIMITS).rows(replace(star.root, type=type_)) < float("inf")


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_selective_keys_have_fewer_partners(one, other):
    star = Star.of()
    least, most = sorted((one, other))
    star.known.matching = {star.days.output[1]: least}
    fewer = partners(star)
    star.known.matching = {star.days.output[1]: most}
    assert fewer.expected <= partners(star).expected


@given(st.floats(0, 1e18), st.floats(0, 1e18))
def test_distinct_values_are_no_more_than_rows_and_values(rows_, values):
    assert 0.0 <= distinct(rows_, values) <= min(rows_, values) * (1 + 1e-9)


def test_products_of_rows_stay_numbers(plans):
    root: Node = plans.table("k")
    known = Known({root.id: 10**18})
    for _ in range(40):
        other = plans.table("k")
        known.counts[other.id] = 10**18
        root = plans.join(root, other)
    assert 1e18 < rows(root, known) < float("inf")
