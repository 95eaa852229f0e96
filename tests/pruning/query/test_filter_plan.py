"""`ready_filters`: runtime filters of each level, and reasons against the others."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from pruning.keys.summary import Bound
from pruning.options import PruningOptions
from pruning.query.build_selection import BuildSelection
from pruning.query.exchange_reuse import ExchangeReuse, SharedExchange
from pruning.query.filter_plan import FilterId, RuntimeFilter
from pruning.query.join_condition import BuildSide
from pruning.query.join_graph import JoinGraph
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Node, Relation
from pruning.query.plan_statistics import PlanStatistics, QueryFacts, Sizes, UnknownStatistics
from pruning.query.reuse_choice import with_shared_exchanges
from pruning.reasons import ReasonCode
from pruning.values.domain import Domain
from tests.costs import FREE_BUILDS
from tests.pruning.plans import ManyValues, Plans, at_least, call, column, equal, left_out, literal, ready

OPTIONS = FREE_BUILDS
SOUND = replace(OPTIONS, always=True)


@pytest.fixture
def plans() -> Plans:
    return Plans()


def run(filters: tuple[RuntimeFilter, ...]) -> tuple[RuntimeFilter, ...]:
    """The filters whose build side is run."""
    return tuple(each for each in filters if not each.from_metadata)


EVERY = PruningOptions(always=True)


@dataclass
class Planning:
    """The filters of a plan, level by level; a filtered scan reads a tenth of its bytes from then on."""

    root: Node
    scanned: dict[int, int]
    files: set[int]
    pruned: set[int] = field(default_factory=set)
    done: set[FilterId] = field(default_factory=set)
    options: PruningOptions = OPTIONS
    statistics: PlanStatistics = field(default_factory=UnknownStatistics)

    @staticmethod
    def of(
        root: Node, sizes: dict[Relation, int], *, other: tuple[Relation, ...] = (), options: PruningOptions = OPTIONS
    ) -> Planning:
        scanned = {relation.id: size for relation, size in sizes.items()}
        return Planning(root, scanned, set(scanned) - {each.id for each in other}, options=options)

    def level(self) -> tuple[tuple[RuntimeFilter, ...], list[ReasonCode]]:
        """The filters of the next level, which count as done afterwards."""
        sizes = Sizes(self.scanned, self.files, self.pruned, statistics=self.statistics)
        filters, reasons = ready(JoinGraph.of(self.root), sizes, self.done, self.options)
        assert self.done.isdisjoint(each.id for each in filters)
        assert len(filters) == len({each.id for each in filters})
        self.done |= {each.id for each in filters}
        for at in {each.probe.relation.id for each in filters}:
            self.pruned.add(at)
            self.scanned[at] //= 10
        return filters, [each.code for each in reasons]

    def levels(self) -> list[set[tuple[int, int]]]:
        """The places of builds that run and of the scans that they filter, for each level until there is none."""
        found = []
        while filters := run(self.level()[0]):
            found.append({(each.build_side.node.id, each.probe.relation.id) for each in filters})
            assert len(found) < 50
        return found


def sound_filters(root: Node, sizes: dict[Relation, int], probed: Relation) -> list[RuntimeFilter]:
    """Every sound filter of a scan, of all levels."""
    planning, found = Planning.of(root, sizes, options=SOUND), list[RuntimeFilter]()
    while filters := planning.level()[0]:
        found += (each for each in filters if each.probe.relation is probed)
    return found


# ------------------------------------------------------------------------------------------------------ order of builds


def test_filtered_dimension_filters_the_fact(plans):
    fact, dimension = plans.table("k"), plans.table("k", "month")
    few = plans.filter(dimension, at_least(dimension.output[1], 3))
    planning = Planning.of(
        plans.join(fact, few, equal(fact.output[0], dimension.output[0])), {fact: 50_000, dimension: 50}
    )
    filters, reasons = planning.level()
    assert [(few.id, dimension.output[0], fact.id, "k")] == [
        (each.build_side.node.id, each.build_side.key.column, each.probe.relation.id, each.probe.name)
        for each in filters
    ]
    assert [ReasonCode.UNSELECTIVE_BUILD] == reasons
    assert [] == planning.levels()


def test_independent_builds_are_one_level(plans):
    fact, one = plans.table("a", "b"), plans.table("k")
    first = plans.filter(one, at_least(*one.output, 3))
    inner = plans.join(fact, first, equal(fact.output[0], *one.output))
    other = plans.table("k")
    second = plans.filter(other, at_least(*other.output, 3))
    root = plans.join(inner, second, equal(fact.output[1], *other.output))
    planning = Planning.of(root, {fact: 50_000, one: 50, other: 60})
    assert [{(first.id, fact.id), (second.id, fact.id)}] == planning.levels()


def test_build_waits_for_the_filter_that_shrinks_it(plans):
    fact, middle, small = plans.table("k"), plans.table("k", "s"), plans.table("s")
    few = plans.filter(small, at_least(*small.output, 3))
    dimension = plans.join(middle, few, equal(middle.output[1], *small.output))
    root = plans.join(fact, dimension, equal(*fact.output, middle.output[0]))
    planning = Planning.of(root, {fact: 50_000, middle: 500, small: 50})
    assert [{(few.id, middle.id)}, {(dimension.id, fact.id)}] == planning.levels()[:2]


def test_builds_that_shrink_each_other_run_in_turn(plans):
    one = plans.table("a", "b")
    (a, b), left = one.output, plans.filter(one, at_least(one.output[0], 1))
    other = plans.table("a", "b")
    (c, d), right = other.output, plans.filter(other, at_least(other.output[0], 1))
    root = plans.join(left, right, equal(a, c), equal(b, d))
    planning = Planning.of(root, {one: 900, other: 800}, options=EVERY)
    assert [{(right.id, one.id)}, {(left.id, other.id)}] == planning.levels()
    planning = Planning.of(root, {one: 900, other: 90_000}, options=EVERY)
    assert {(left.id, other.id)} == planning.levels()[0]


def test_pruned_fact_filters_another_fact(plans):
    fact, days = plans.table("day", "item"), plans.table("day")
    few = plans.filter(days, at_least(*days.output, 3))
    sold, second = plans.join(fact, few, equal(fact.output[0], *days.output)), plans.table("item")
    planning = Planning.of(
        plans.join(sold, second, equal(fact.output[1], *second.output)), {fact: 5000, second: 7000, days: 10}
    )
    assert [{(few.id, fact.id)}, {(sold.id, second.id)}] == planning.levels()[:2]


def test_build_bytes_include_scans_of_subqueries(plans):
    fact, days, inner, small = plans.table("k"), plans.table("k"), plans.table("k"), plans.table("k")
    few = plans.filter(small, at_least(*small.output, 3))
    total = plans.aggregate(plans.join(inner, few, equal(*inner.output, *small.output)))
    chosen = plans.filter(days, at_least(*days.output, 3), subqueries=(total,))
    root = plans.join(fact, chosen, equal(*fact.output, *days.output))
    planning = Planning.of(root, {fact: 50_000, days: 10, inner: 600, small: 10})
    selection = BuildSelection.of(JoinGraph.of(root), Sizes(planning.scanned, (), ()), OPTIONS)
    assert {610 + 10} == {
        selection.bytes_read(each.build_side) for each in JoinGraph.of(root).edges if each.build_side.node == chosen
    }
    assert [{(few.id, inner.id)}, {(chosen.id, fact.id)}] == planning.levels()[:2]


# ------------------------------------------------------------------------------------------------- no duplicate filters


def test_one_build_filters_every_reachable_scan(plans):
    days, one, other = plans.table("k"), plans.table("k"), plans.table("k")
    few = plans.filter(days, at_least(*days.output, 3))
    pair = plans.join(one, other, equal(*one.output, *other.output))
    filters, _ = Planning.of(
        plans.join(pair, few, equal(*one.output, *days.output)), {one: 5000, other: 5000, days: 10}
    ).level()
    assert {one.id, other.id} == {each.probe.relation.id for each in filters}
    assert 1 == len({each.build_side.id for each in filters})


def test_duplicate_equality_is_one_filter(plans):
    fact, days = plans.table("k"), plans.table("k")
    few = plans.filter(days, at_least(*days.output, 3))
    same = equal(*fact.output, *days.output)
    assert 1 == len(Planning.of(plans.join(fact, few, same, same), {fact: 5000, days: 10}).level()[0])


# Failure catalogue 3, 4.
def test_columns_of_one_name_are_two_key_sets(plans):
    fact = plans.table("a", "b")
    one, other = plans.table("id", "x"), plans.table("id", "x")
    (a, b), (i, x), (j, y) = fact.output, one.output, other.output
    dimension = plans.join(one, plans.filter(other, at_least(y, 3)), equal(x, y))
    root = plans.join(fact, dimension, equal(a, i), equal(b, j))
    filters = sound_filters(root, {fact: 50_000, one: 10, other: 10}, fact)
    assert {(i, a), (j, b)} == {(each.build_side.key.column, each.probe.column) for each in filters}
    assert 2 == len({each.build_side.id for each in filters})


def test_computed_keys_of_one_text_are_two_key_sets(plans):
    fact, days = plans.table("a", "b"), plans.table("s")
    few = plans.filter(days, at_least(*days.output, 3))
    parts = [call("EqualTo", column(each), call("GetStructField", column(*days.output))) for each in fact.output]
    filters = sound_filters(plans.join(fact, few, *parts), {fact: 50_000, days: 10}, fact)
    assert 2 == len({each.build_side.id for each in filters})


# ------------------------------------------------------------------------------------------------------ build selection


def star(plans: Plans, *, filtered: bool = True) -> tuple[Relation, Relation, Node, Node]:
    fact, days = plans.table("k"), plans.table("k")
    build = plans.filter(days, at_least(*days.output, 3)) if filtered else days
    return fact, days, build, plans.join(fact, build, equal(*fact.output, *days.output), type_="LeftSemi")


def test_unselective_build_is_not_run(plans):
    fact, days, _, root = star(plans, filtered=False)
    filters, reasons = Planning.of(root, {fact: 5000, days: 10}).level()
    assert ((), [ReasonCode.UNSELECTIVE_BUILD]) == (filters, reasons)


# Bounds in the type of a file's column would drop rows of a wider column that lie beyond the range of the narrower
# type.
@pytest.mark.parametrize("wider", [False, True])
def test_range_join_uses_metadata_only_without_a_cast(plans, wider):
    fact, other = plans.table("k"), plans.table("k", type_="int")
    key = call("Cast", column(*other.output, "int"), type_="bigint") if wider else column(*other.output)
    build = plans.other("GlobalLimit", plans.filter(other, at_least(*other.output, 3)))
    root = plans.join(fact, build, call("LessThan", column(*fact.output), key))
    filters, _ = Planning.of(root, {fact: 50_000, other: 40_000}).level()
    assert ([] if wider else [True]) == [each.from_metadata for each in filters if each.probe.relation is fact]


def test_both_bounds_of_one_build_are_one_level(plans):
    fact, spans = plans.table("k"), plans.table("low", "high")
    (k,), (low, high) = fact.output, spans.output
    between = (call("GreaterThanOrEqual", column(k), column(low)), call("LessThanOrEqual", column(k), column(high)))
    filters, _ = Planning.of(plans.join(fact, spans, *between), {fact: 5000, spans: 10}).level()
    assert {(low, Bound.AT_LEAST), (high, Bound.AT_MOST)} == {
        (each.build_side.key.column, each.build_side.condition.bound) for each in filters
    }


# A second run of a random function, but not of cached rows, may do what the first has done.
@pytest.mark.parametrize("is_fixed", [True, False])
def test_cached_build_needs_its_rows(plans, is_fixed):
    fact, days = plans.table("k"), plans.table("k")
    cached = replace(plans.other("InMemoryRelation", output=days.output), is_deterministic=is_fixed)
    (runtime_filter,) = sound_filters(plans.join(fact, cached, equal(*fact.output, *days.output)), {fact: 5000}, fact)
    assert (cached.id, fact.id) == (runtime_filter.build_side.node.id, runtime_filter.probe.relation.id)
    assert (True, not is_fixed) == (runtime_filter.needs_rows, runtime_filter.runs_once)


def test_build_around_cached_rows_waits_for_the_smaller_build(plans):
    """Each run may read other cached rows, so the larger build reads the rows that the smaller build materialized."""
    days, cached = plans.table("k"), plans.other("InMemoryRelation", output=plans.fresh())
    around = plans.join(days, cached, equal(*days.output, *cached.output), type_="FullOuter")
    large = plans.table("k")
    root = plans.join(around, large, equal(*large.output, *cached.output))
    small = plans.table("k")
    root = plans.join(root, small, equal(*small.output, *cached.output))
    planning = Planning.of(root, {days: 500, small: 20_000, large: 50_000})
    planning.statistics = ManyValues()
    levels = planning.levels()
    assert (cached.id, small.id) in levels[0]
    assert [False, True] == [(around.id, large.id) in level for level in levels[:2]]


def test_is_not_null_is_not_selective(plans):
    fact, days = plans.table("k"), plans.table("k")
    known = plans.filter(days, call("IsNotNull", column(*days.output)))
    root = plans.join(fact, known, equal(*fact.output, *days.output))
    assert ReasonCode.UNSELECTIVE_BUILD in Planning.of(root, {fact: 5000, days: 10}).level()[1]


def test_build_with_a_pruned_scan_is_selective(plans):
    fact, days, _, root = star(plans, filtered=False)
    planning = Planning.of(root, {fact: 5000, days: 10})
    planning.pruned.add(days.id)
    (found,), reasons = planning.level()
    assert (days.id, fact.id) == (found.build_side.node.id, found.probe.relation.id)
    # Only the fact keeps all of its rows.
    assert [ReasonCode.UNSELECTIVE_BUILD, ReasonCode.NOT_WORTH] == reasons


def test_scan_without_known_files_is_not_filtered(plans):
    fact, days, _, root = star(plans)
    filters, reasons = Planning.of(root, {fact: 5000, days: 10}, other=(fact,)).level()
    assert () == filters
    assert ReasonCode.NOT_FILES in reasons


# Failure catalogue 47, 48: such a table may have other rows when the query reads it.
def test_scan_without_known_files_gives_no_keys(plans):
    fact, days, _, root = star(plans)
    filters, reasons = Planning.of(root, {fact: 5000, days: 10}, other=(days,)).level()
    assert ((), True) == (run(filters), ReasonCode.UNREPEATABLE_KEYS in reasons)


# Failure catalogue 41, 42, 45, 46.
@pytest.mark.parametrize("kind", ["GlobalLimit", "LocalLimit", "Sample", "MapInArrow", "BatchEvalPython"])
def test_keys_of_an_unrepeatable_operator_need_its_rows(plans, kind):
    fact, days = plans.table("k"), plans.table("k")
    chosen = plans.other(kind, plans.filter(days, at_least(*days.output, 3)))
    (found,) = sound_filters(plans.join(fact, chosen, equal(*fact.output, *days.output)), {fact: 5000, days: 10}, fact)
    assert (chosen.id, True, True) == (found.build_side.node.id, found.needs_rows, found.runs_once)


@pytest.mark.parametrize("kind", ["CTERelationRef", "RelationV2", "EventTimeWatermark"])
def test_unknown_operator_gives_no_keys(plans, kind):
    fact, days = plans.table("k"), plans.table("k")
    chosen = plans.other(kind, plans.filter(days, at_least(*days.output, 3)))
    planning = Planning.of(plans.join(fact, chosen, equal(*fact.output, *days.output)), {fact: 5000, days: 10})
    filters, reasons = planning.level()
    assert ((), True) == (run(filters), ReasonCode.UNREPEATABLE_KEYS in reasons)


def test_rows_of_an_rdd_are_needed_unless_they_are_a_checkpoint(plans):
    fact, days = plans.table("k"), plans.table("k")
    for repeats in (True, False):
        chosen = replace(plans.other("LogicalRDD", output=days.output), is_deterministic=repeats)
        (found,) = sound_filters(plans.join(fact, chosen, equal(*fact.output, *days.output)), {fact: 5000}, fact)
        assert repeats is not found.needs_rows
        assert repeats is not found.runs_once


def test_rows_of_an_operator_that_spark_runs_once_for_two_places_give_no_keys(plans):
    """The other place would read rows of another run."""
    fact, days, other = plans.table("k"), plans.table("k"), plans.table("k")
    few = plans.filter(days, at_least(*days.output, 3))
    sampled = plans.other("Sample", few)
    root = plans.join(fact, sampled, equal(*fact.output, *days.output))
    again = plans.other("Sample", plans.filter(other, at_least(*other.output, 3)))
    root = plans.join(root, again, equal(*fact.output, *other.output), type_="LeftOuter")
    graph, files = JoinGraph.of(root), (fact.id, days.id, other.id)
    (edge,) = (each for each in graph.edges if each.build_side.node.id == sampled.id)
    (probe,) = (each for each in edge.probes if each.relation.id == fact.id)
    for equal_nodes, expected in (({}, [sampled.id]), (dict.fromkeys((sampled.id, again.id), sampled.id), [])):
        facts = QueryFacts({}, frozenset(files), equal=equal_nodes)
        selection = BuildSelection.of(graph, Sizes(dict.fromkeys(files, 10), files, ()), SOUND, facts)
        sides = [each for each in selection.sound(edge.build_side, probe) if isinstance(each, BuildSide)]
        assert expected == [each.node.id for each in sides]


# Failure catalogue 41, 46: the first of tied rows and a sum of doubles depend on the order of arrival.
@pytest.mark.parametrize("order_free", [True, False])
@pytest.mark.parametrize("make", [Plans.aggregate, Plans.window, Plans.group_limit])
def test_groups_that_depend_on_an_order_need_their_rows(plans, make, order_free):
    fact, days = plans.table("k"), plans.table("k", "month")
    key = days.output[0]
    chosen = plans.filter(make(plans, days, key, order_free=order_free), at_least(key, 3))
    (found,) = sound_filters(plans.join(fact, chosen, equal(*fact.output, key)), {fact: 5000, days: 10}, fact)
    assert order_free is not found.needs_rows


# Failure catalogue 41.
def test_distinct_keys_are_order_free(plans):
    fact, days = plans.table("k"), plans.table("k")
    distinct = plans.aggregate(plans.filter(days, at_least(*days.output, 3)), *days.output, values=0, order_free=False)
    limited = plans.group_limit(distinct, *days.output)
    planning = Planning.of(plans.join(fact, limited, equal(*fact.output, *days.output)), {fact: 5000, days: 10})
    assert [{(limited.id, fact.id)}] == planning.levels()


# Failure catalogue 41, 42.
def test_nondeterministic_subquery_gives_no_keys(plans):
    fact, days, other = plans.table("k"), plans.table("k"), plans.table("k")
    random = plans.aggregate(plans.filter(other, random=True))
    chosen = plans.filter(days, at_least(*days.output, 3), subqueries=(random,))
    planning = Planning.of(
        plans.join(fact, chosen, equal(*fact.output, *days.output)), {fact: 5000, days: 10, other: 1}
    )
    filters, reasons = planning.level()
    assert ((), True) == (run(filters), ReasonCode.UNREPEATABLE_KEYS in reasons)


# Failure catalogue 41: a subquery of the join itself runs again with the query, even if the rows of the side do not.
@pytest.mark.parametrize("kind", [None, "GlobalLimit", "InMemoryRelation"])
def test_key_with_a_subquery_is_built_only_if_repeatable(plans, kind):
    fact, days, other = plans.table("k"), plans.table("k"), plans.table("k")
    chosen = plans.filter(days, at_least(*days.output, 3))
    value = other if kind is None else plans.other(kind, other)
    key = call("Add", column(*days.output), call("ScalarSubquery"))
    join = replace(plans.join(fact, chosen, equal(column(*fact.output), key)), subqueries=(value,))
    filters, reasons = Planning.of(join, {fact: 5000, days: 10, other: 1}, options=SOUND).level()
    expected = ((), True) if kind else ((fact.id,), False)
    assert expected == (tuple(it.probe.relation.id for it in run(filters)), ReasonCode.UNREPEATABLE_KEYS in reasons)


def test_refused_build_falls_back_to_its_joined_tables(plans):
    fact, large, small = plans.table("k"), plans.table("k", "s"), plans.table("k")
    few = plans.filter(small, at_least(*small.output, 3))
    build = plans.join(large, few, equal(large.output[0], *small.output), type_="LeftSemi")
    root = plans.join(fact, build, equal(*fact.output, large.output[0]))
    planning = Planning.of(root, {fact: 2_000_000, large: 500_000, small: 10})
    filters, reasons = planning.level()
    assert {(few.id, fact.id), (few.id, large.id)} == {
        (each.build_side.node.id, each.probe.relation.id) for each in filters
    }
    assert ReasonCode.UNSELECTIVE_BUILD in reasons


def test_planning_ends_for_joins_that_shrink_each_other(plans):
    tables = [plans.table("k", "next")]
    root: Node = plans.filter(tables[0], at_least(tables[0].output[1], 3))
    for _ in range(7):
        before, table = tables[-1], plans.table("k", "next")
        side = plans.filter(table, at_least(table.output[1], 3))
        root = plans.join(root, side, equal(before.output[1], table.output[0]))
        tables.append(table)
    planning = Planning.of(root, {each: 200 + at for at, each in enumerate(tables)})
    assert planning.levels()
    assert () == planning.level()[0]


class Sums(UnknownStatistics):
    """Sums of facts, each joined with its own dimension; `others` maps a place to the place equal to it."""

    def __init__(self, others: dict[int, int], unclustered: tuple[int, ...] = ()) -> None:
        plans = Plans()
        self.others, self.unclustered = others, unclustered
        # The share of each dimension's rows that its condition lets pass.
        self.share: float | None = None
        self.fact_bytes = 1000
        self.statistics: list[Relation] = []
        self.dimensions: list[Relation] = []
        self.sums: list[Node] = []
        joins: list[Node] = []
        for part in range(1 + max(*others, *others.values())):
            fact = plans.table("k")
            self.sums.append(plans.aggregate(fact, *fact.output))
            dimension = plans.table("id")
            chosen = plans.filter(dimension, at_least(*dimension.output, part))
            joins.append(plans.join(self.sums[-1], chosen, equal(*fact.output, *dimension.output)))
            self.statistics.append(fact)
            self.dimensions.append(dimension)
        self.graph = JoinGraph.of(plans.union(*joins))

    def shared_exchanges(self, build_side: BuildSide, probe: ProbeColumn) -> tuple[SharedExchange, ...]:  # noqa: ARG002 - of a protocol
        if probe.relation not in self.statistics:
            return ()
        own = self.statistics.index(probe.relation)
        other = self.others.get(own)
        return () if other is None else (SharedExchange(self.sums[own], (self.sums[other],)),)

    def matching_share(self, relation: Relation, column: int, domain: Domain) -> float | None:  # noqa: ARG002 - of a protocol
        return self.share

    def unprunable_fraction(self, probe: ProbeColumn) -> float:
        return float(probe.relation in self.statistics and self.statistics.index(probe.relation) in self.unclustered)

    def sizes(self, *dimensions: int, materialized: int | None = None, no_files: tuple[int, ...] = ()) -> Sizes:
        scanned = {each.id: self.fact_bytes for each in self.statistics}
        scanned |= {each.id: size for each, size in zip(self.dimensions, dimensions, strict=True)}
        kept = () if materialized is None else {each.id for each in self.sums[materialized].walk()}
        files = set(scanned) - {self.dimensions[each].id for each in no_files}
        return Sizes(scanned, files, (), kept, statistics=self)

    def filtered_facts(self, sizes: Sizes) -> tuple[list[int], set[ReasonCode]]:
        """The facts that are filtered, by keys or by metadata, and the reasons, among them those of `explain`."""
        filters, reasons = ready(self.graph, sizes, (), OPTIONS)
        codes = {each.code for each in reasons}
        assert codes >= {each.reason.code for each in left_out(self.graph, sizes, OPTIONS, [filters])}
        return sorted(self.statistics.index(each.probe.relation) for each in filters), codes


TWICE = {0: 1, 1: 0}


def test_reused_exchange_is_filtered_in_both_places_or_none():
    plan = Sums(TWICE)
    found, reasons = plan.filtered_facts(plan.sizes(500, 500))
    assert [0, 1] == found
    assert ReasonCode.RUN_ONCE not in reasons
    # A filter of one place ends the reuse, by a build or by metadata.
    found, reasons = plan.filtered_facts(plan.sizes(500, 500, no_files=(1,)))
    assert [] == found
    assert {ReasonCode.RUN_ONCE, ReasonCode.UNREPEATABLE_KEYS} <= reasons
    # Metadata may skip nothing of a place, so it filters none where only one is worth a build.
    found, reasons = plan.filtered_facts(plan.sizes(500, 5000))
    assert [] == found
    assert {ReasonCode.RUN_ONCE, ReasonCode.NOT_WORTH} <= reasons


def test_filters_of_all_places_are_united():
    plan = Sums(TWICE, unclustered=(0, 1))
    plan.fact_bytes, plan.share = 10**9, 0.01
    filters, _ = ready(plan.graph, plan.sizes(500, 500), (), OPTIONS)
    of = {plan.statistics.index(each.probe.relation): each for each in filters}
    assert (of[1].id,) == of[0].united
    assert (of[0].id,) == of[1].united
    assert {each.build_side.id for each in (of[0], of[1])} == of[0].id.union == of[1].id.union


def test_scans_with_united_keys_are_equal():
    plan = Sums(TWICE)
    sizes = plan.sizes(500, 500)
    filters, _ = ready(plan.graph, sizes, (), OPTIONS)
    first, second = sorted(filters, key=lambda each: each.probe.relation.id)
    selection = BuildSelection.of(plan.graph, sizes, OPTIONS)
    other = RuntimeFilter(second.build_side, first.probe)
    # It would end the reuse of an exchange, unless this has ended by other filters.
    assert {} == with_shared_exchanges({other.id: other}, {first.id, second.id}, selection)
    apart = {replace(each, united=()).id for each in filters}
    assert {other.id: other} == with_shared_exchanges({other.id: other}, apart, selection)


def test_best_filter_of_a_column_is_united_in_each_place():
    plan = Sums(TWICE)
    sizes = plan.sizes(500, 500)
    filters, _ = ready(plan.graph, sizes, (), OPTIONS)
    first, second = (replace(each, united=()) for each in sorted(filters, key=lambda each: each.probe.relation.id))
    other = RuntimeFilter(second.build_side, first.probe)
    several = {each.id: each for each in (first, second, other)}
    found = with_shared_exchanges(several, (), BuildSelection.of(plan.graph, sizes, OPTIONS))
    assert {first.id: (second.id,), second.id: (first.id,)} == {id_: each.united for id_, each in found.items()}


class Joined(UnknownStatistics):
    """Sums of a fact in several places, joined with each other and with days."""

    def __init__(self, places: int, share: float) -> None:
        plans, self.share = Plans(), share
        self.facts: list[Relation] = []
        root, sums = None, list[Node]()
        for _ in range(places):
            self.facts.append(plans.table("k"))
            sums.append(plans.aggregate(self.facts[-1], *self.facts[-1].output))
            on = equal(sums[0].output[0], sums[-1].output[0])
            root = sums[0] if root is None else plans.join(root, sums[-1], on)
        self.days = plans.table("id")
        few = plans.filter(self.days, at_least(*self.days.output, 7))
        self.root = plans.join(root, few, equal(sums[0].output[0], *self.days.output))
        equal_nodes = {each.id: sums[0].id for each in sums} | {each.id: self.facts[0].id for each in self.facts}
        self.reuse = ExchangeReuse.of(self.root, equal_nodes, lambda *_: True)

    def shared_exchanges(self, build_side: BuildSide, probe: ProbeColumn) -> tuple[SharedExchange, ...]:
        return self.reuse.changed(build_side, probe)

    def matching_share(self, relation: Relation, column: int, domain: Domain) -> float | None:  # noqa: ARG002 - of a protocol
        return self.share

    def domain_size(self, relation: Relation, column: int) -> float | None:  # noqa: ARG002 - of a protocol
        return 10_000.0


@pytest.mark.parametrize("places", [2, 4])
@pytest.mark.parametrize("share", [0.01, 0.4])
def test_keys_of_one_build_for_all_places_count_once(places, share):
    # Spark copies each filter to the other places, which have the same.
    plan = Joined(places, share)
    scanned = dict.fromkeys((each.id for each in plan.facts), 10**9) | {plan.days.id: 50_000}
    sizes = Sizes(scanned, set(scanned), (), statistics=plan)
    filters, _ = ready(JoinGraph.of(plan.root), sizes, (), FREE_BUILDS)
    assert {each.id for each in plan.facts} == {each.probe.relation.id for each in filters}
    assert {places - 1} == {len(each.united) for each in filters}
    assert {1} == {len(each.id.union) for each in filters}
    assert {"days"} == {each.described("days") for each in filters}


def test_filters_that_spark_copies_to_a_shared_exchange_are_united():
    # As in TPC-DS q64, where the items of two years filter sales, and sums of other sales that are joined by item.
    plans, plan = Plans(), Sums(TWICE)
    facts, others, sums, days, joins = [], [], [], [], []
    for part in range(2):
        facts.append(plans.table("k", "m"))
        others.append(plans.table("k"))
        sums.append(plans.aggregate(others[-1], *others[-1].output))
        one = plans.join(facts[-1], sums[-1], equal(facts[-1].output[0], sums[-1].output[0]))
        days.append(plans.table("id"))
        few = plans.filter(days[-1], at_least(*days[-1].output, part))
        joins.append(plans.join(one, few, equal(facts[-1].output[0], days[-1].output[0])))
    root = plans.union(*joins)
    equal_nodes = {each.id: sums[0].id for each in sums} | {each.id: others[0].id for each in others}
    plan.shared_exchanges = ExchangeReuse.of(root, equal_nodes, lambda *_: True).changed  # type: ignore[method-assign]
    scanned = dict.fromkeys((each.id for each in (*facts, *others)), 10**9) | {each.id: 50_000 for each in days}
    sizes, plan.share = Sizes(scanned, set(scanned), (), statistics=plan), 0.01
    filters, _ = ready(JoinGraph.of(root), sizes, (), OPTIONS)
    assert {each.id for each in (*facts, *others)} == {each.probe.relation.id for each in filters}
    of = {each.probe.relation.id: each for each in filters}
    for first, second in ((facts[0], facts[1]), (others[0], others[1])):
        assert (of[second.id].id,) == of[first.id].united
        assert (of[first.id].id,) == of[second.id].united


def test_builds_of_a_union_that_contain_each_others_scans_run_together():
    plans = Plans()
    fact = plans.table("week")
    sums = plans.aggregate(fact, *fact.output)
    days = plans.table("week", "month")
    one = plans.join(sums, plans.filter(days, at_least(days.output[1], 3)), equal(sums.output[0], days.output[0]))
    later = plans.project(one, *one.output, call("Add", column(sums.output[0]), literal(52)))
    other = plans.table("week")
    same = plans.aggregate(other, *other.output)
    root = plans.join(later, same, equal(later.output[-1], same.output[0]))
    plan = Sums(TWICE)
    reuse = ExchangeReuse.of(
        root, {sums.id: sums.id, same.id: sums.id, fact.id: fact.id, other.id: fact.id}, lambda *_: True
    )
    plan.shared_exchanges = reuse.changed  # type: ignore[method-assign]
    scanned = {fact.id: 10**9, other.id: 10**9, days.id: 100_000}
    sizes = Sizes(scanned, set(scanned), (), statistics=plan)
    filters, _ = ready(JoinGraph.of(root), sizes, (), replace(OPTIONS, always=True))
    assert {fact.id, other.id} == {each.probe.relation.id for each in filters}
    assert {1} == {len(each.united) for each in filters}


def test_scans_of_both_places_count_where_keys_skip_no_file():
    # In TPC-DS q64 at scale factor 10, 72 of 102,000 items filter both places of a join of sales with returns.
    plan = Sums(TWICE, unclustered=(0, 1))
    plan.fact_bytes, plan.share = 10**9, 0.01
    found, reasons = plan.filtered_facts(plan.sizes(500, 500))
    assert [0, 1] == found
    assert ReasonCode.RUN_ONCE not in reasons
    # The query does not run a materialized build.
    assert [0] == plan.filtered_facts(plan.sizes(500, 500, materialized=1))[0]


def test_metadata_filters_no_place_of_a_reused_exchange():
    plan = Sums(TWICE)
    found, reasons = plan.filtered_facts(plan.sizes(5000, 5000))
    assert [] == found
    assert ReasonCode.RUN_ONCE in reasons


def test_places_that_together_keep_more_than_one_run_are_not_filtered():
    plan = Sums(TWICE)
    plan.fact_bytes, plan.share = 10**9, 0.6
    found, reasons = plan.filtered_facts(plan.sizes(500, 500))
    assert [] == found
    assert ReasonCode.RUN_ONCE in reasons


def test_materialized_place_does_not_run_again():
    plan = Sums(TWICE)
    found, reasons = plan.filtered_facts(plan.sizes(500, 500, materialized=1))
    assert [0] == found
    assert ReasonCode.RUN_ONCE not in reasons


def test_place_with_refused_keys_is_not_filtered():
    plan = Sums({0: 1, 1: 2})
    assert [0, 1, 2] == plan.filtered_facts(plan.sizes(500, 500, 500))[0]
    found, reasons = plan.filtered_facts(plan.sizes(500, 500, 500, no_files=(2,)))
    assert [] == found
    assert ReasonCode.RUN_ONCE in reasons


def test_filtered_scan_has_no_run_once_reason():
    plan = Sums(TWICE)
    filters, _ = ready(plan.graph, plan.sizes(500, 500), (), OPTIONS)
    first = tuple(each for each in filters if each.probe.relation is plan.statistics[0])
    left = left_out(plan.graph, plan.sizes(500, 5000), OPTIONS, [first])
    assert [] == [each.probe.relation for each in left if each.reason.code is ReasonCode.RUN_ONCE]
    left = left_out(plan.graph, plan.sizes(500, 5000), OPTIONS)
    assert ReasonCode.RUN_ONCE in {each.reason.code for each in left}


# A later plan of a scan may read rows again that a build did not have; an expression would meet them without a match.
@pytest.mark.parametrize("type_", ["Inner", "LeftOuter"])
@pytest.mark.parametrize(
    ("may_raise", "pruned", "is_joined"),
    [("a division", True, True), ("", True, False), ("a division", False, False)],
)
def test_keys_of_a_pruned_scan_need_its_rows_below_an_expression_that_may_raise(
    plans, type_, may_raise, pruned, is_joined
):
    sales, returns, days = plans.table("day", "k"), plans.table("k"), plans.table("day")
    both = plans.join(sales, returns, equal(sales.output[1], returns.output[0]), type_=type_)
    ratio = replace(
        plans.project(both, *sales.output, call("Divide", *map(column, both.output[1:]))), may_raise=may_raise
    )
    root = plans.join(ratio, plans.filter(days, at_least(days.output[0], 1)), equal(ratio.output[0], days.output[0]))
    files = {each.id for each in (sales, returns, days)}
    pruned_by = {sales.id: root.id} if pruned else {}
    sizes = Sizes(dict.fromkeys(files, 10), files, pruned_by.keys(), highest=pruned_by)
    selection = BuildSelection.of(JoinGraph.of(root), sizes, SOUND)
    (side,) = (each.build_side for each in selection.edges if each.build_side.node is sales)
    assert (is_joined, not is_joined and pruned) == (selection.needs_rows(side), selection.is_bounded(side))
