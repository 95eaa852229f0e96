"""`Benefits`: the seconds that a build costs and that its keys save, with numbers that can be checked by hand.

The star's fact reads 1,000,000 bytes in 1,000 rows, a tenth of which has one of the 10 of 100 days that are left.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.cost.estimate import Estimate
from pruning.cost.rates import CostRates
from pruning.keys.summary import Bound
from pruning.limits import LIMITS
from pruning.query.benefit import Benefit, Benefits, Remaining
from pruning.query.join_graph import JoinGraph
from pruning.query.plan_statistics import Cardinality, QueryFacts
from pruning.values.functions import Function, FunctionKind
from pruning.values.types import ValueType
from tests.pruning.known import NO_COSTS, ONE_EACH, Star, priced
from tests.pruning.plans import Plans, at_least, equal

SECOND = 1e9
NEXT = Function(FunctionKind.ADD, ValueType("bigint"), ValueType("bigint"), 1)
JOINED = replace(NO_COSTS, joined_row=100.0)
SHARES = st.floats(0, 1)


def saved(star: Star, rates: CostRates, before: Remaining | None = None, **changed) -> Estimate:
    return star.benefits(rates, **changed).effect(star.build_side, star.probe, before).saved


# The cost of a build.


def test_build_whose_rows_are_joined_costs_what_the_query_does_not_do_anyway():
    star = Star.of(few=10)
    rates = replace(ONE_EACH, build_job=1000.0, kept_row=7.0)
    # The job and 10 kept rows; 100 bytes are read in the place of those of the query.
    found = star.benefits(rates).paid(star.few)
    assert pytest.approx(1070 / SECOND) == found.expected == found.low
    assert pytest.approx((1070 + 100) * LIMITS.cost_error / SECOND) == found.high


def test_build_over_a_table_of_few_rows_surely_does_not_run_twice():
    star = Star.of(few=100)
    found = star.benefits(replace(ONE_EACH, build_job=1000.0)).paid(star.few)
    assert pytest.approx(1000 / SECOND) == found.expected == found.low
    # The 100 bytes that the query does not read again are of the highest cost, too.
    assert pytest.approx((1100 * LIMITS.cost_error - 100) / SECOND) == found.high


def test_table_of_an_unknown_number_of_rows_may_be_read_twice():
    star = Star.of(few=1e9)
    star.known.counts[star.days.id] = 0
    found = star.benefits(replace(ONE_EACH, build_job=1000.0)).paid(star.few)
    assert pytest.approx(1100 * LIMITS.cost_error / SECOND) == found.high


def test_build_of_many_rows_runs_twice():
    star = Star.of(few=9)
    rates = replace(ONE_EACH, build_job=1000.0)
    assert pytest.approx(1100 / SECOND) == star.benefits(rates).paid(star.few).expected


def test_build_that_is_done_costs_nothing():
    star = Star.of(few=10)
    rates = replace(CostRates(), kept_row=0.0)
    assert Estimate.exact(0.0) == star.benefits(rates, materialized={star.few.id, star.days.id}).paid(star.few)


@pytest.mark.parametrize(
    ("size", "rows", "is_allowed", "expected"),
    [
        (100, 100, True, True),
        (100, 100, False, False),
        (LIMITS.driver_scan_bytes + 1, 100, True, False),
        (100, LIMITS.driver_scan_rows + 1, True, False),
    ],
    ids=["small", "engine cannot", "bytes", "rows"],
)
def test_small_scan_is_built_on_the_driver(size, rows, is_allowed, expected):
    star = Star.of(few=1e9)
    star.scanned[star.days.id], star.known.counts[star.days.id] = size, rows
    found = star.benefits(replace(NO_COSTS, build_job=5.0, driver_build=1.0), on_driver=is_allowed)
    assert expected == found.is_on_driver(star.few)
    assert pytest.approx((1.0 if expected else 5.0) / SECOND) == found.paid(star.few).expected


@pytest.mark.parametrize(
    ("files", "read", "limits", "expected"),
    [
        (LIMITS.driver_scan_files, 100, {}, True),
        (LIMITS.driver_scan_files + 1, 100, {}, False),
        (10 * LIMITS.driver_scan_files, 10, {}, True),
        (1, 100, {"driver_scan_files": 0}, False),
        (1, 100, {"driver_scan_seconds": 0.0}, False),
    ],
    ids=["few", "one too many", "few are left", "no files", "no time"],
)
def test_scan_of_few_files_is_built_on_the_driver(files, read, limits, expected):
    star = Star.of(opened={Star.of().days.id: files}, few=1e9)
    sizes = star.sizes(expected={star.days.id: Cardinality(read, 1.0)})
    assert expected == Benefits(sizes, replace(LIMITS, **limits), runs_on_driver=True).is_on_driver(star.few)


@pytest.mark.parametrize(
    ("kind", "rows", "expected"),
    [
        ("LocalRelation", 20, True),
        ("Range", 20, True),
        ("LocalRelation", LIMITS.joined_rows + 1, False),
        ("LogicalRDD", 20, False),
        ("InMemoryRelation", 20, False),
    ],
)
def test_rows_in_memory_are_given_on_the_driver(kind, rows, expected):
    star = Star.of(elsewhere=float(rows))
    leaf = replace(Plans().other(kind, output=(9,)), id=99, subtree_start=99)
    found = star.benefits(replace(NO_COSTS, build_job=5.0, driver_build=1.0), on_driver=True)
    assert expected == found.is_on_driver(leaf)
    assert (1.0 if expected else 5.0) / SECOND == pytest.approx(found.run(leaf))
    assert not star.benefits(NO_COSTS).is_on_driver(leaf)


def test_joins_inside_of_a_build_take_more_jobs():
    star = Star.of()
    found = star.benefits(replace(NO_COSTS, build_job=100.0), on_driver=True)
    assert not found.is_on_driver(star.root)
    assert pytest.approx(100 * (1 + LIMITS.inner_job_share) / SECOND) == found.paid(star.root).expected


def test_rows_of_a_build_on_the_driver_come_from_no_other_process():
    star = Star.of(few=10)
    rates = replace(NO_COSTS, kept_row=8.0, driver_row=2.0)
    rows = star.benefits(rates).cardinalities.rows(star.few)
    by_job, on_driver = star.benefits(rates), star.benefits(rates, on_driver=True)
    assert (False, True) == (by_job.is_on_driver(star.few), on_driver.is_on_driver(star.few))
    assert pytest.approx((rows * 8.0 / SECOND, rows * 2.0 / SECOND)) == (by_job.run(star.few), on_driver.run(star.few))


# The seconds that keys save.


def test_keys_in_one_place_or_anywhere_are_equally_likely():
    """Keys skip nine tenths of the bytes if they lie together, none if one of them is in each container."""
    star = Star.of(whole=0.0)
    assert pytest.approx(0.9 * 1_000_000 / SECOND) == saved(star, ONE_EACH).expected
    star.known.whole[star.fact.output[0]] = 1.0
    assert 0.0 == saved(star, ONE_EACH).expected
    # One key is in half of the containers: 10 of them anywhere are in all but a thousandth.
    star.known.whole[star.fact.output[0]] = 0.5
    near, scattered = 1 - (0.5 + 0.1), 0.5**10
    assert pytest.approx((near + scattered) / 2 * 1_000_000 / SECOND) == saved(star, ONE_EACH).expected


def test_dropped_rows_spare_their_way_to_the_join():
    star = Star.of(whole=1.0)
    assert pytest.approx(900 * 100 / SECOND) == saved(star, JOINED).expected
    # A test of each row costs more than 900 of them spare.
    assert pytest.approx((900 * 100 - 1000 * 80) / SECOND) == saved(star, replace(JOINED, spark_compared=80.0)).expected
    assert 0.0 == saved(star, replace(JOINED, spark_compared=91.0)).expected


def test_rows_of_a_command_are_not_dropped():
    def found(whole: float) -> float:
        star = Star.of(whole=whole)
        facts = QueryFacts(star.scanned, frozenset(), tests_rows=False)
        benefits = Benefits.of(star.sizes(), priced(JOINED).limits, facts)
        return benefits.effect(star.build_side, star.probe).saved.expected

    assert 0.0 == found(1.0)
    # Keys in one place skip nine tenths of the rows, which do not come to the join.
    assert pytest.approx(900 * 100 / SECOND) == found(0.0)


@pytest.mark.parametrize("whole", [1.0, 0.999], ids=["no container", "some containers"])
@pytest.mark.parametrize(("functions", "bound", "dropped"), [((NEXT,), None, 900), ((), Bound.AT_LEAST, 500)])
def test_ranges_test_rows_only_where_they_skip_containers(functions, bound, dropped, whole):
    star = Star.of(whole=whole)
    probe, build_side = replace(star.probe, functions=functions), star.build_side
    build_side = replace(build_side, condition=replace(build_side.condition, bound=bound))
    found = star.benefits(JOINED).effect(build_side, probe)
    tested = dropped if whole < 1 else 0
    assert pytest.approx(tested * 100 / SECOND) == found.saved.expected
    assert pytest.approx(1 - tested / 1000) == found.left.rows
    # A list of the keys tests rows wherever they are.
    assert pytest.approx(900 * 100 / SECOND) == saved(star, JOINED).expected


def test_skipped_rows_are_not_tested():
    star = Star.of(whole=0.0)
    assert pytest.approx(900 * 100 / SECOND) == saved(star, replace(JOINED, spark_compared=1e6)).expected


def test_rows_are_worth_a_test_by_what_is_spared_up_to_the_join():
    star = Star.of()
    found = star.benefits(JOINED).row_worth(star.build_side, star.probe)
    assert (pytest.approx(0.1), 100.0) == (found.passing, found.spared)
    # 75 of 100 nanoseconds are spared in the mean, so a test may take less.
    assert [True, False] == [found.pays(0.25, each) for each in (74.0, 76.0)]


def test_savings_are_bounded_by_the_shares():
    star = Star.of(whole=0.0)
    found = saved(star, ONE_EACH)
    # 3 to 30 of the 100 days, by bounds that may be wrong by three.
    assert pytest.approx((0.7e-3, 0.9e-3, (1 - 0.1 / 3) * 1e-3)) == (found.low, found.expected, found.high)


def test_other_filters_leave_less_to_save():
    star = Star.of(whole=0.0)
    before = Remaining(0.5, 0.25, {99: (0.5, 0.25)})
    assert pytest.approx(0.25 * saved(star, ONE_EACH).expected) == saved(star, ONE_EACH, before).expected


def test_keys_within_those_of_a_column_save_nothing():
    star = Star.of(whole=0.0)
    effect = star.benefits(ONE_EACH).effect(star.build_side, star.probe)
    assert 0.0 == saved(star, ONE_EACH, effect.left).expected
    assert pytest.approx((0.1, 0.1)) == effect.left.columns[star.probe.column]


def test_keys_that_filter_a_scan_leave_what_is_beyond_them():
    """Ten of a hundred days filter the scan by now, and the keys of the build are the same tenth."""
    star = Star.of(whole=0.0)
    applied = {star.fact.id: {star.fact.output[0]: 10}}
    state = {"applied": applied, "pruned": {star.fact.id}, "expected": {star.fact.id: Cardinality(100, 1.0)}}
    assert 0.0 == pytest.approx(saved(star, ONE_EACH, **state).expected)


def test_keys_of_a_column_without_bounds_are_within_those_that_filter_it():
    star = Star.of(whole=0.0)
    star.known.values.pop(star.fact.output[0])
    # 100 of the 1,000 values that as many rows may have: as many as a tenth of the days leave.
    found = star.benefits(ONE_EACH, applied={star.fact.id: {star.fact.output[0]: 100}})
    assert 0.0 == found.effect(star.build_side, star.probe).saved.expected


def test_columns_are_independent_and_keys_of_one_are_within_each_other():
    found = Remaining().under(1, 0.5, 0.5).under(2, 0.1, 0.2)
    assert pytest.approx((0.05, 0.1)) == (found.rows, found.bytes)
    assert found == found.under(1, 0.7, 0.9)
    assert pytest.approx((0.01, 0.02)) == (found.under(1, 0.1, 0.1).rows, found.under(1, 0.1, 0.1).bytes)


def test_risk_is_the_worst_case():
    found = Benefit(Estimate(1.0, 2.0, 3.0), Estimate(0.5, 4.0, 9.0))
    assert (2.0, 2.5) == (found.gain, found.risk)
    assert "costs 2 s (1 to 3), saves 4 s (0.5 to 9)" == str(found)


@given(SHARES, SHARES, SHARES, SHARES, st.booleans())
def test_more_selective_keys_save_no_less(one, other, whole, test, is_broadcast):
    star = Star.of(whole=whole, broadcast=is_broadcast)
    rates = replace(JOINED, byte=1.0, exchanged_row=500.0, spark_compared=100 * test)
    least, most = sorted((one, other))
    found = []
    for share in (least, most):
        star.known.matching = {star.days.output[1]: share}
        found.append(saved(star, rates).expected)
    assert found[0] >= found[1] - 1e-15


@given(SHARES, SHARES, SHARES, SHARES)
def test_no_filter_saves_more_beside_others(rows, kept, whole, share):
    star = Star.of(whole=whole)
    star.known.matching = {star.days.output[1]: share}
    rates = replace(JOINED, byte=1.0, spark_compared=12.0)
    before = Remaining().under(99, rows, kept)
    assert saved(star, rates, before).expected <= saved(star, rates).expected + 1e-15


NUMBERS = st.one_of(st.none(), st.sampled_from([0.0, 1.0, 1e18, 1e300]))
COUNTS = st.sampled_from([0, 1, 10**18])


@given(COUNTS, COUNTS, NUMBERS, NUMBERS, st.one_of(st.none(), SHARES, st.just(float("nan"))), SHARES)
def test_any_statistics_have_a_benefit(facts, days, values, keys, matching, whole):
    star = Star.of(whole=whole)
    star.known.counts = {star.fact.id: facts, star.days.id: days}
    star.known.values = {
        at: it for at, it in ((star.fact.output[0], values), (star.days.output[0], keys)) if it is not None
    }
    star.known.matching = {} if matching is None else {star.days.output[1]: matching}
    star.scanned = {star.fact.id: facts, star.days.id: days}
    found = star.benefits(CostRates())
    effect, paid = found.effect(star.build_side, star.probe), found.paid(star.few)
    assert 0.0 <= effect.saved.low <= effect.saved.expected <= effect.saved.high < float("inf")
    assert 0.0 <= paid.low <= paid.expected <= paid.high < float("inf")
    assert 0.0 <= effect.left.rows <= 1.0 + 1e-9
    assert 0.0 <= effect.left.bytes <= 1.0 + 1e-9


def test_scan_of_a_query_costs_what_all_its_nodes_do():
    plans = Plans()
    scan, other = plans.table("k"), plans.table("k")
    root = plans.join(scan, plans.filter(other, at_least(*other.output, 1)), equal(*scan.output, *other.output))
    star = Star.of()
    star.scanned = {scan.id: 600, other.id: 400}
    assert pytest.approx(1000 / SECOND) == star.benefits(ONE_EACH).query(root)


def test_keys_of_a_fact_that_a_dimension_has_filtered_save_nothing_of_the_dimension():
    star = Star.of(broadcast=False)
    (edge,) = (each for each in JoinGraph.of(star.root).edges if each.build_side.node.id == star.fact.id)
    (days,) = edge.probes
    rates = replace(NO_COSTS, exchanged_row=100.0)
    # 10 rows of the fact, as filters by other tables have left them, have few of the days.
    few = star.benefits(rates, expected={star.fact.id: Cardinality(10, 1.0)})
    assert 0.0 < few.effect(edge.build_side, days).saved.expected
    # 500 rows have the 10 days of the month itself.
    rows = {star.fact.id: Cardinality(500, 1.0)}
    same = star.benefits(rates, expected=rows, applied={star.fact.id: {star.fact.output[0]: 10.0}})
    assert pytest.approx(0.0) == same.effect(edge.build_side, days).saved.expected
