"""`FilterChoices`: the filters whose builds are worth it, chosen together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.cost.rates import CostRates
from pruning.options import PruningOptions
from pruning.query.build_selection import BuildSelection
from pruning.query.filter_choice import FilterChoice, FilterChoices
from pruning.query.join_graph import JoinGraph
from pruning.query.plan import Filter, Node, Relation
from pruning.query.plan_statistics import Sizes
from pruning.query.runtime_filter import RuntimeFilter
from pruning.reasons import Reason, ReasonCode
from pruning.values.functions import Function, FunctionKind
from pruning.values.types import ValueType
from tests.pruning.known import NO_COSTS, ONE_EACH, Known, Star, priced
from tests.pruning.plans import Plans, at_least, call, column, equal

# Building costs 100,000 nanoseconds, and saves 900,000 in the star.
RATES = replace(ONE_EACH, build_job=100_000.0)
SHARES = st.floats(0, 1)


def choose(candidates: Iterable[RuntimeFilter], selection: BuildSelection) -> FilterChoice:
    return FilterChoices(selection).among(candidates)


def chosen(star: Star, options: PruningOptions, **changed) -> bool:
    return bool(choose([star.runtime_filter], star.selection(options, **changed)).chosen)


@pytest.mark.parametrize(("job", "is_chosen"), [(899_000.0, True), (901_000.0, False)])
def test_filter_is_chosen_if_it_saves_more_than_it_costs(job, is_chosen):
    assert is_chosen == chosen(Star.of(few=10), priced(replace(ONE_EACH, build_job=job)))


def test_refused_filter_says_what_it_costs_and_saves():
    star = Star.of(few=10)
    found = choose([star.runtime_filter], star.selection(priced(replace(ONE_EACH, build_job=2e9))))
    assert () == found.chosen
    expected = "costs 2 s (2 to 3), saves 0.0009 s (0.0007 to 0.00097)"
    assert Reason(ReasonCode.NOT_WORTH, "day", expected) == found.why_not(found.others)


TO_DATE = Function(FunctionKind.TO_DATE, ValueType("timestamp"), ValueType("date"))


@pytest.mark.parametrize(
    ("always", "functions", "refused"), [(False, (TO_DATE,), True), (True, (TO_DATE,), False), (False, (), False)]
)
def test_ranges_of_a_column_without_bounds_are_refused_for_what_is_missing(always, functions, refused):
    star = Star.of(few=10, whole=1.0)
    star.known.missing[star.fact.output[0]] = ReasonCode.INT96
    selection = star.selection(PruningOptions(always=always))
    found = selection.why_not(star.build_side, replace(star.probe, functions=functions))
    assert (Reason(ReasonCode.INT96, "CAST(day AS DATE)") if refused else None) == found


def test_planning_a_scan_has_to_be_worth_it():
    rates = replace(RATES, planned_scan=1e6)
    assert not chosen(Star.of(few=10), priced(rates))
    assert chosen(Star.of(few=10), priced(replace(rates, planned_scan=1e5)))


# The worst case: the build costs 1.5 times as much, and the keys save 0.7 instead of 0.9 milliseconds.
@pytest.mark.parametrize(
    ("seconds", "share", "is_chosen"), [(0.0, 0.0, False), (0.0006, 0.0, True), (0.0, 1.0, True), (0.0004, 0.4, False)]
)
def test_worst_case_costs_at_most_a_part_of_the_query(seconds, share, is_chosen):
    star = Star.of(few=10)
    options = priced(
        replace(ONE_EACH, build_job=850_000.0), risked_seconds=seconds, risked_share=share, risked_gain=0.0
    )
    # 850,000 * 1.5 - 700,000 = 575,150 nanoseconds of the 1,000,100 of the query.
    assert is_chosen == chosen(star, options)


def test_always_takes_every_sound_filter():
    star = Star.of()
    found = choose([star.runtime_filter], star.selection(PruningOptions(always=True)))
    assert (star.runtime_filter,) == found.chosen
    assert () == found.others


def test_no_candidates_ask_for_nothing():
    assert FilterChoice((), ()) == choose([], Star.of().selection(PruningOptions()))


@dataclass
class Facts:
    """Facts of 1,000 rows that the same days filter, each one of 1,000,000 bytes."""

    facts: list[Relation]
    few: Filter
    root: Node
    known: Known
    sizes: Sizes

    @staticmethod
    def of(count: int, *, whole: float = 0.0) -> Facts:
        plans = Plans()
        facts = [plans.table("day")]
        root: Node = facts[0]
        for _ in range(count - 1):
            facts.append(plans.table("day"))
            root = plans.join(root, facts[-1], equal(facts[0].output[0], facts[-1].output[0]))
        days = plans.table("day", "month")
        few = plans.filter(days, at_least(days.output[1], 3))
        root = plans.join(root, few, equal(facts[0].output[0], days.output[0]))
        known = Known(
            counts={**{each.id: 1000 for each in facts}, days.id: 100},
            values={**{each.output[0]: 100.0 for each in facts}, days.output[0]: 100.0},
            matching={days.output[1]: 0.1},
            whole={each.output[0]: whole for each in facts},
            few=10,
        )
        scanned = {**{each.id: 1_000_000 for each in facts}, days.id: 100}
        return Facts(facts, few, root, known, Sizes(scanned, set(scanned), (), statistics=known, cores=1))

    def filters(self) -> list[RuntimeFilter]:
        return [
            RuntimeFilter(edge.build_side, probe)
            for edge in JoinGraph.of(self.root).edges
            for probe in edge.probes
            if edge.build_side.node is self.few
        ]

    def chosen(self, options: PruningOptions) -> list[int]:
        selection = BuildSelection.of(JoinGraph.of(self.root), self.sizes, options)
        return sorted(each.probe.relation.id for each in choose(self.filters(), selection).chosen)


@pytest.mark.parametrize(("job", "is_chosen"), [(2_690_000.0, True), (2_710_000.0, False)])
def test_one_build_for_several_scans_is_paid_once(job, is_chosen):
    """Three facts save 2,700,000 nanoseconds together, none of which is worth the build alone."""
    facts = Facts.of(3)
    assert [each.id for each in facts.facts if is_chosen] == facts.chosen(priced(replace(ONE_EACH, build_job=job)))


def test_scan_that_saves_less_than_its_planning_is_left_out():
    facts = Facts.of(2)
    facts.sizes.scanned[facts.facts[1].id] = 1000
    assert [facts.facts[0].id] == facts.chosen(priced(replace(RATES, planned_scan=1000.0)))


def test_both_ends_of_a_range_are_chosen_together():
    """The second end is expected to save nothing beyond the first; it costs nothing, either."""
    plans = Plans()
    fact, spans = plans.table("k"), plans.table("low", "high")
    between = (
        call("GreaterThanOrEqual", column(*fact.output), column(spans.output[0])),
        call("LessThanOrEqual", column(*fact.output), column(spans.output[1])),
    )
    graph = JoinGraph.of(plans.join(fact, spans, *between))
    filters = [
        RuntimeFilter(edge.build_side, probe) for edge in graph.edges for probe in edge.probes if probe.relation is fact
    ]
    sizes = Sizes({fact.id: 1_000_000, spans.id: 100}, {fact.id, spans.id}, (), cores=1)
    found = choose(filters, BuildSelection.of(graph, sizes, priced(replace(RATES, planned_scan=1000.0))))
    assert 2 == len(found.chosen) == len(filters)


def two_keys(kept_row: float, job: float = 0.0) -> list[RuntimeFilter]:
    """The filters chosen of two keys of 10 rows: `second` saves 900,000 nanoseconds, `first` a tenth of the rest."""
    plans = Plans()
    fact, table = plans.table("first", "second"), plans.table("first", "second", "month")
    few = plans.filter(table, at_least(table.output[2], 3))
    pairs = zip(fact.output, table.output, strict=False)
    graph = JoinGraph.of(plans.join(fact, few, *(equal(own, key) for own, key in pairs)))
    known = Known(
        counts={fact.id: 1000, table.id: 100},
        values=dict(zip((*fact.output, *table.output), (11.0, 100.0, 11.0, 100.0), strict=False)),
        matching={table.output[2]: 0.1},
        few=1e9,
    )
    sizes = Sizes({fact.id: 1_000_000, table.id: 100}, {fact.id, table.id}, (), statistics=known, cores=1)
    filters = [
        RuntimeFilter(edge.build_side, probe) for edge in graph.edges for probe in edge.probes if probe.relation is fact
    ]
    rates = replace(ONE_EACH, build_job=job, kept_row=kept_row)
    return list(choose(filters, BuildSelection.of(graph, sizes, priced(rates))).chosen)


def test_further_key_of_a_build_has_to_be_worth_its_rows():
    """The rows of a build are summarised once for each key."""
    # Both rows and columns: the first key takes 5,000 of 100,000 nanoseconds that it saves, then more than all.
    assert ["first", "second"] == sorted(each.probe.name for each in two_keys(500.0))
    assert ["second"] == [each.probe.name for each in two_keys(20_000.0)]


def test_each_key_that_is_used_costs_its_rows():
    both, one = two_keys(500.0, job=1000.0), two_keys(20_000.0, job=1000.0)
    # The job, the 100 bytes of the dimension, and 10 rows for each key.
    assert [pytest.approx((1000 + 100 + 2 * 5000) / 1e9)] * 2 == [each.benefit.run for each in both if each.benefit]
    assert [pytest.approx((1000 + 100 + 200_000) / 1e9)] == [each.benefit.run for each in one if each.benefit]


@dataclass
class Dimensions:
    """A fact of 1,000,000 bytes, joined with dimensions by a column each, of which a share is left."""

    fact: Relation
    builds: list[Filter]
    root: Node
    known: Known
    sizes: Sizes

    @staticmethod
    def of(*shares: float, whole: float = 0.0, size: int = 100) -> Dimensions:
        plans = Plans()
        fact = plans.table(*(f"k{at}" for at in range(len(shares))))
        root: Node = fact
        known, scanned = Known(few=1e9), {fact.id: 1_000_000}
        known.counts[fact.id] = 1000
        builds = []
        for own, share in zip(fact.output, shares, strict=True):
            table = plans.table("k", "m")
            few = plans.filter(table, at_least(table.output[1], 3))
            root = plans.join(root, few, equal(own, table.output[0]))
            known.counts[table.id] = 100
            known.values |= {own: 100.0, table.output[0]: 100.0}
            known.matching[table.output[1]] = share
            known.whole[own] = whole
            scanned[table.id] = size
            builds.append(few)
        return Dimensions(fact, builds, root, known, Sizes(scanned, set(scanned), (), statistics=known, cores=1))

    def filters(self) -> list[RuntimeFilter]:
        """The filter of each dimension, in order."""
        return [
            RuntimeFilter(edge.build_side, probe)
            for few in self.builds
            for edge in JoinGraph.of(self.root).edges
            for probe in edge.probes
            if edge.build_side.node is few and probe.relation is self.fact
        ]

    def selection(self, options: PruningOptions) -> BuildSelection:
        return BuildSelection.of(JoinGraph.of(self.root), self.sizes, options)


def test_filters_that_others_make_needless_are_left_out():
    """The first leaves 10,000 of 1,000,000 bytes, so the second saves at most these, for 100,000 nanoseconds."""
    star = Dimensions.of(0.01, 0.5)
    found = choose(star.filters(), star.selection(priced(RATES)))
    assert [star.builds[0].id] == [each.build_side.node.id for each in found.chosen]
    (other,) = found.others
    assert other.benefit is not None
    assert pytest.approx(0.5 * 0.01 * 1_000_000 / 1e9) == other.benefit.saved.expected


def test_both_are_chosen_where_both_are_worth_it():
    star = Dimensions.of(0.5, 0.5)
    found = choose(star.filters(), star.selection(priced(RATES)))
    assert {each.id for each in star.builds} == {each.build_side.node.id for each in found.chosen}
    saved = sorted(each.benefit.saved.expected for each in found.chosen if each.benefit is not None)
    assert pytest.approx([250_000 / 1e9, 500_000 / 1e9]) == saved


def test_builds_together_may_lose_no_more_than_one():
    """Each may lose 75,000 nanoseconds: a build that takes half as long again, and keys that save nothing."""
    star = Dimensions.of(*[0.8] * 6)
    for risked, count in ((70_000, 0), (80_000, 1), (152_000, 4), (190_000, 6)):
        options = priced(
            replace(ONE_EACH, build_job=50_000.0), risked_seconds=risked / 1e9, risked_share=0.0, risked_gain=0.0
        )
        found = choose(star.filters(), star.selection(options))
        assert count == len(found.chosen), risked
        assert 6 - count == len(found.risky), risked
        assert [] == [each for each in found.others if found.why_not([each]).code is not ReasonCode.RISKY]


@pytest.mark.parametrize(("share", "is_chosen"), [(0.0, False), (11.4, False), (11.6, True)])
def test_build_may_lose_a_part_of_what_it_is_expected_to_gain(share, is_chosen):
    """It is expected to gain 49,850 nanoseconds, and may lose 575,150."""
    options = priced(replace(ONE_EACH, build_job=850_000.0), risked_seconds=0.0, risked_share=0.0, risked_gain=share)
    assert is_chosen == chosen(Star.of(few=10), options)


def test_gain_is_no_more_than_the_query_takes():
    star = Star.of(few=10)
    benefits = star.selection(priced(ONE_EACH, risked_gain=0.5)).benefits
    query = benefits.surely(star.root)
    assert benefits.is_bearable(0.49 * query, 1e9, star.root)
    assert not benefits.is_bearable(0.51 * query, 1e9, star.root)
    assert not benefits.is_bearable(0.49 * query, 0.9 * query, star.root)


def test_filter_that_pays_only_if_its_rows_are_joined_must_fit():
    star = Dimensions.of(0.5, size=400_000)
    # Reading the dimension once more would take 400,000 nanoseconds more than the query has to.
    (found,) = choose(star.filters(), star.selection(priced(RATES))).chosen
    assert found.must_fit
    star = Dimensions.of(0.5, size=100_000)
    (found,) = choose(star.filters(), star.selection(priced(RATES))).chosen
    assert not found.must_fit
    # Its rows are few all the same, so they are asked for.
    assert found.brings_rows


# Laws.


@given(st.lists(SHARES, min_size=1, max_size=4), SHARES, st.sampled_from([0.0, 1e4, 1e5, 1e6]))
def test_chosen_filters_gain_and_the_order_of_candidates_is_no_matter(shares, whole, job):
    star = Dimensions.of(*shares, whole=whole)
    selection, filters = star.selection(priced(replace(ONE_EACH, build_job=job))), star.filters()
    found = {frozenset(each.id for each in choose(order, selection).chosen) for order in permutations(filters)}
    assert 1 == len(found)
    choice = choose(filters, selection)
    assert all(each.benefit is not None and each.benefit.gain > 0 for each in choice.chosen)
    assert {each.id for each in filters} == {each.id for each in (*choice.chosen, *choice.others)}
    assert len(filters) == len(choice.chosen) + len(choice.others)


@given(SHARES, SHARES, st.sampled_from([0.0, 1e4, 1e5, 1e6]))
def test_filter_with_a_gain_and_a_small_risk_is_chosen(share, whole, job):
    star = Dimensions.of(share, whole=whole)
    (each,) = star.filters()
    selection = star.selection(priced(replace(ONE_EACH, build_job=job)))
    paid = selection.benefits.paid(each.build_side.node)
    saved = selection.benefits.effect(each.build_side, each.probe).saved
    is_worth_it = saved.expected > paid.expected and saved.expected > 0
    assert is_worth_it == bool(choose([each], selection).chosen)


@given(st.lists(SHARES, min_size=1, max_size=4), st.sampled_from([CostRates(), NO_COSTS, RATES]))
def test_always_takes_all(shares, rates):
    star = Dimensions.of(*shares)
    options = replace(priced(rates), always=True)
    found = choose(star.filters(), star.selection(options)).chosen
    assert [each.id for each in star.filters()] == [each.id for each in found]


@given(st.lists(SHARES, min_size=2, max_size=3), SHARES)
def test_adding_a_filter_raises_no_saving_of_another(shares, whole):
    star = Dimensions.of(*shares, whole=whole)
    selection = star.selection(priced(ONE_EACH))
    first, *others = star.filters()
    left = selection.benefits.effect(first.build_side, first.probe).left
    for each in others:
        alone = selection.benefits.effect(each.build_side, each.probe).saved
        beside = selection.benefits.effect(each.build_side, each.probe, left).saved
        assert beside.expected <= alone.expected + 1e-15
