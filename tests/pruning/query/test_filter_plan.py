"""`ready_filters`: which key sets are built for which scans, in what order, and why others are not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from pruning.keys.summary import Bound
from pruning.options import PruningOptions
from pruning.query.build_selection import BuildSelection
from pruning.query.filter_plan import FilterId, RuntimeFilter, ready_filters, unused
from pruning.query.join_condition import BuildSide
from pruning.query.join_graph import JoinGraph
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Node, Relation
from pruning.query.plan_statistics import Cardinality, Sizes, UnknownStatistics
from pruning.reasons import ReasonCode
from tests.pruning.plans import Plans, at_least, call, column, equal

OPTIONS = PruningOptions(min_probe_bytes=100).with_limits(max_build_scan_bytes=1000)


@pytest.fixture
def plans() -> Plans:
    return Plans()


def run(filters: tuple[RuntimeFilter, ...]) -> tuple[RuntimeFilter, ...]:
    """Those whose build side is run."""
    return tuple(each for each in filters if not each.from_metadata)


@dataclass
class Planning:
    """The filters of a plan, level by level; a scan that a filter reaches reads a tenth from then on."""

    root: Node
    scanned: dict[int, int]
    files: set[int]
    pruned: set[int] = field(default_factory=set)
    done: set[FilterId] = field(default_factory=set)
    options: PruningOptions = OPTIONS

    @staticmethod
    def of(root: Node, sizes: dict[Relation, int], *, other: tuple[Relation, ...] = ()) -> Planning:
        scanned = {relation.at: size for relation, size in sizes.items()}
        return Planning(root, scanned, set(scanned) - {each.at for each in other})

    def level(self) -> tuple[tuple[RuntimeFilter, ...], list[ReasonCode]]:
        """The next level, after which its filters are done."""
        sizes = Sizes(self.scanned, self.files, self.pruned)
        filters, reasons = ready_filters(JoinGraph.of(self.root), sizes, self.done, self.options)
        assert self.done.isdisjoint(each.id for each in filters)
        assert len(filters) == len({each.id for each in filters})
        self.done |= {each.id for each in filters}
        for at in {each.probe.relation.at for each in filters}:
            self.pruned.add(at)
            self.scanned[at] //= 10
        return filters, [each.code for each in reasons]

    def levels(self) -> list[set[tuple[int, int]]]:
        """The places of builds and of the scans that they filter, for each level until there is none."""
        found = []
        while filters := self.level()[0]:
            found.append({(each.build_side.node.at, each.probe.relation.at) for each in filters})
            assert len(found) < 50
        return found


# ------------------------------------------------------------------------------------------------------------ the order


def test_a_dimension_that_leaves_out_rows_feeds_the_fact(plans):
    fact, dimension = plans.table("k"), plans.table("k", "month")
    few = plans.filter(dimension, at_least(dimension.output[1], 3))
    planning = Planning.of(
        plans.join(fact, few, equal(fact.output[0], dimension.output[0])), {fact: 5000, dimension: 50}
    )
    filters, reasons = planning.level()
    assert [(few.at, dimension.output[0], fact.at, "k")] == [
        (each.build_side.node.at, each.build_side.key.column, each.probe.relation.at, each.probe.name)
        for each in filters
    ]
    assert [ReasonCode.PROBE_TOO_SMALL] == reasons
    assert [] == planning.levels()


def test_builds_that_need_nothing_of_each_other_are_of_one_level(plans):
    fact = plans.table("a", "b")
    one, other = plans.table("k"), plans.table("k")
    first, second = (plans.filter(each, at_least(each.output[0], 3)) for each in (one, other))
    inner = plans.join(fact, first, equal(fact.output[0], *one.output))
    root = plans.join(inner, second, equal(fact.output[1], *other.output))
    planning = Planning.of(root, {fact: 5000, one: 50, other: 60})
    assert [{(first.at, fact.at), (second.at, fact.at)}] == planning.levels()


def test_a_build_that_another_makes_smaller_waits_for_it(plans):
    fact, middle, small = plans.table("k"), plans.table("k", "s"), plans.table("s")
    few = plans.filter(small, at_least(*small.output, 3))
    dimension = plans.join(middle, few, equal(middle.output[1], *small.output))
    root = plans.join(fact, dimension, equal(*fact.output, middle.output[0]))
    planning = Planning.of(root, {fact: 50_000, middle: 500, small: 50})
    assert [{(few.at, middle.at)}, {(dimension.at, fact.at)}] == planning.levels()


def test_two_builds_that_would_shrink_each_other_go_one_after_the_other(plans):
    one, other = plans.table("a", "b"), plans.table("a", "b")
    (a, b), (c, d) = one.output, other.output
    left, right = plans.filter(one, at_least(a, 1)), plans.filter(other, at_least(c, 1))
    root = plans.join(left, right, equal(a, c), equal(b, d))
    planning = Planning.of(root, {one: 900, other: 800})
    assert [{(right.at, one.at)}, {(left.at, other.at)}] == planning.levels()
    planning = Planning.of(root, {one: 900, other: 90_000})
    assert {(left.at, other.at)} == planning.levels()[0]


def test_a_fact_that_others_have_made_small_enough_feeds_another_fact(plans):
    fact, second, days = plans.table("day", "item"), plans.table("item"), plans.table("day")
    few = plans.filter(days, at_least(*days.output, 3))
    sold = plans.join(fact, few, equal(fact.output[0], *days.output))
    planning = Planning.of(
        plans.join(sold, second, equal(fact.output[1], *second.output)), {fact: 5000, second: 7000, days: 10}
    )
    assert [{(few.at, fact.at)}, {(sold.at, second.at)}] == planning.levels()[:2]


def test_scans_of_subqueries_count_as_what_a_build_reads(plans):
    fact, days, inner, small = plans.table("k"), plans.table("k"), plans.table("k"), plans.table("k")
    few = plans.filter(small, at_least(*small.output, 3))
    total = plans.aggregate(plans.join(inner, few, equal(*inner.output, *small.output)))
    chosen = plans.filter(days, at_least(*days.output, 3), subqueries=(total,))
    root = plans.join(fact, chosen, equal(*fact.output, *days.output))
    planning = Planning.of(root, {fact: 50_000, days: 10, inner: 600, small: 10})
    selection = BuildSelection(Sizes(planning.scanned, (), ()), PruningOptions(), JoinGraph.of(root).edges)
    assert {610 + 10} == {
        selection.bytes_read(each.build_side) for each in JoinGraph.of(root).edges if each.build_side.node == chosen
    }
    assert [{(few.at, inner.at)}, {(chosen.at, fact.at)}] == planning.levels()


# --------------------------------------------------------------------------------------------------- nothing done twice


def test_one_build_feeds_every_scan_that_it_can(plans):
    days, one, other = plans.table("k"), plans.table("k"), plans.table("k")
    few = plans.filter(days, at_least(*days.output, 3))
    pair = plans.join(one, other, equal(*one.output, *other.output))
    filters, _ = Planning.of(
        plans.join(pair, few, equal(*one.output, *days.output)), {one: 5000, other: 5000, days: 10}
    ).level()
    assert {one.at, other.at} == {each.probe.relation.at for each in filters}
    assert 1 == len({each.build_side.id for each in filters})


def test_an_equality_that_is_written_twice_is_one_feed(plans):
    fact, days = plans.table("k"), plans.table("k")
    few = plans.filter(days, at_least(*days.output, 3))
    same = equal(*fact.output, *days.output)
    assert 1 == len(Planning.of(plans.join(fact, few, same, same), {fact: 5000, days: 10}).level()[0])


# 3, 4
def test_two_columns_of_one_name_in_a_build_are_two_key_sets(plans):
    fact = plans.table("a", "b")
    one, other = plans.table("id", "x"), plans.table("id", "x")
    (a, b), (i, x), (j, y) = fact.output, one.output, other.output
    dimension = plans.join(plans.filter(one, at_least(x, 3)), other, equal(x, y))
    root = plans.join(fact, dimension, equal(a, i), equal(b, j))
    filters, _ = Planning.of(root, {fact: 50_000, one: 10, other: 10}).level()
    assert {(i, a), (j, b)} == {(each.build_side.key.column, each.probe.column) for each in filters}
    assert 2 == len({each.id[:2] for each in filters})


def test_two_computed_keys_of_one_text_are_two_key_sets(plans):
    fact, days = plans.table("a", "b"), plans.table("s")
    few = plans.filter(days, at_least(*days.output, 3))
    parts = [call("EqualTo", column(each), call("GetStructField", column(*days.output))) for each in fact.output]
    filters, _ = Planning.of(plans.join(fact, few, *parts), {fact: 50_000, days: 10}).level()
    assert 2 == len({each.id[:2] for each in filters})


# -------------------------------------------------------------------------------------------------- the selection rules


def star(plans: Plans, *, filtered: bool = True) -> tuple[Relation, Relation, Node, Node]:
    fact, days = plans.table("k"), plans.table("k")
    build = plans.filter(days, at_least(*days.output, 3)) if filtered else days
    return fact, days, build, plans.join(fact, build, equal(*fact.output, *days.output), type_="LeftSemi")


@pytest.mark.parametrize(("size", "is_fed"), [(100, True), (99, False)])
def test_a_scan_below_the_gate_is_left_alone(plans, size, is_fed):
    fact, days, _, root = star(plans)
    filters, reasons = Planning.of(root, {fact: size, days: 10}).level()
    assert is_fed == bool(filters)
    # Scans are named by the filtered column and their size, and the one of the days is too small too.
    assert [ReasonCode.PROBE_TOO_SMALL] * (1 if is_fed else 2) == reasons


@pytest.mark.parametrize(
    ("build", "probe", "runs"), [(1000, 50_000, True), (1001, 50_000, False), (200, 200, True), (201, 200, False)]
)
def test_a_build_reads_no_more_than_the_option_says_and_no_more_than_what_it_may_save(plans, build, probe, runs):
    fact, days, _, root = star(plans)
    planning = Planning.of(root, {fact: probe, days: build})
    filters, reasons = planning.level()
    assert runs == (fact.at in {each.probe.relation.at for each in run(filters)})
    assert [not runs] == [each.from_metadata for each in filters if each.probe.relation is fact]
    assert runs == (ReasonCode.BUILD_TOO_LARGE not in reasons)


def test_a_build_that_leaves_out_nothing_is_not_run(plans):
    fact, days, _, root = star(plans, filtered=False)
    filters, reasons = Planning.of(root, {fact: 5000, days: 10}).level()
    assert ((), [ReasonCode.UNSELECTIVE_BUILD, ReasonCode.PROBE_TOO_SMALL]) == (filters, reasons)


# Seen red where a bound had to leave out rows as an equality has to, and where its build might read as much.
@pytest.mark.parametrize(("build", "runs"), [(100, True), (101, False)])
def test_a_bound_takes_a_build_that_leaves_out_nothing_where_it_is_small_beside_the_scan(plans, build, runs):
    fact, days = plans.table("k"), plans.table("k")
    root = plans.join(fact, days, call("LessThan", column(*fact.output), column(*days.output)))
    filters, reasons = Planning.of(root, {fact: 800, days: build}).level()
    assert runs == ([(days.at, fact.at)] == [(each.build_side.node.at, each.probe.relation.at) for each in filters])
    assert runs == (reasons.count(ReasonCode.BUILD_TOO_LARGE) == 1)


# Seen red: bounds in the type of a file's column left out rows of a wider column that lie beyond the ends of that type.
@pytest.mark.parametrize("wider", [False, True])
def test_a_bound_takes_metadata_only_in_the_type_in_which_it_is_compared(plans, wider):
    fact, other = plans.table("k"), plans.table("k", type_="int")
    key = call("Cast", column(*other.output, "int"), type_="bigint") if wider else column(*other.output)
    build = plans.filter(other, at_least(*other.output, 3))
    root = plans.join(fact, build, call("LessThan", column(*fact.output), key))
    filters, _ = Planning.of(root, {fact: 50_000, other: 40_000}).level()
    assert ([] if wider else [True]) == [each.from_metadata for each in filters if each.probe.relation is fact]


def test_both_bounds_of_one_build_are_of_one_level(plans):
    fact, spans = plans.table("k"), plans.table("low", "high")
    (k,), (low, high) = fact.output, spans.output
    between = (call("GreaterThanOrEqual", column(k), column(low)), call("LessThanOrEqual", column(k), column(high)))
    filters, _ = Planning.of(plans.join(fact, spans, *between), {fact: 5000, spans: 10}).level()
    assert {(low, Bound.AT_LEAST), (high, Bound.AT_MOST)} == {
        (each.build_side.key.column, each.build_side.condition.bound) for each in filters
    }


def test_a_build_that_leaves_out_nothing_is_run_where_it_is_known_to_have_few_keys(plans):
    fact, days, _, root = star(plans, filtered=False)
    graph, asked = JoinGraph.of(root), []

    class PlanStatistics(UnknownStatistics):
        def has_few_keys(self, build_side, probe) -> bool:
            asked.append((build_side.node.at, probe.relation.at))
            return True

    for size, fed in ((1000, [fact.at]), (1001, [])):
        sizes = Sizes({fact.at: 5000, days.at: size}, {fact.at, days.at}, (), statistics=PlanStatistics())
        filters, _ = ready_filters(graph, sizes, (), OPTIONS)
        assert fed == [each.probe.relation.at for each in filters if each.build_side.node is days]
        # Metadata is not looked at for what is too large in any case.
        assert ((days.at, fact.at) in asked) == bool(fed)
        asked.clear()


def test_what_is_cached_gives_keys_where_its_rows_can_be_kept(plans):
    fact, days = plans.table("k"), plans.table("k")
    cached = plans.other("InMemoryRelation", output=days.output)
    (runtime_filter,) = Planning.of(plans.join(fact, cached, equal(*fact.output, *days.output)), {fact: 5000}).level()[
        0
    ]
    assert (cached.at, fact.at, True) == (
        runtime_filter.build_side.node.at,
        runtime_filter.probe.relation.at,
        runtime_filter.needs_rows,
    )


def test_a_build_around_cached_rows_waits_for_those_that_a_smaller_one_keeps(plans):
    """Each run may meet other cached rows; the larger build reads the ones that the smaller gave."""
    days = plans.table("k")
    cached = plans.other("InMemoryRelation", output=plans.fresh())
    around = plans.join(days, cached, equal(*days.output, *cached.output), type_="FullOuter")
    large = plans.table("k")
    root = plans.join(around, large, equal(*large.output, *cached.output))
    small = plans.table("k")
    root = plans.join(root, small, equal(*small.output, *cached.output))
    levels = Planning.of(root, {days: 500, small: 200, large: 5000}).levels()
    assert (cached.at, small.at) in levels[0]
    assert [False, True] == [(around.at, large.at) in level for level in levels[:2]]


def test_that_a_key_is_not_null_leaves_out_nothing(plans):
    fact, days = plans.table("k"), plans.table("k")
    known = plans.filter(days, call("IsNotNull", column(*days.output)))
    root = plans.join(fact, known, equal(*fact.output, *days.output))
    assert ReasonCode.UNSELECTIVE_BUILD in Planning.of(root, {fact: 5000, days: 10}).level()[1]


def test_a_build_of_which_a_scan_is_pruned_leaves_out_rows(plans):
    fact, days, _, root = star(plans, filtered=False)
    planning = Planning.of(root, {fact: 5000, days: 10})
    planning.pruned.add(days.at)
    assert [{(days.at, fact.at)}] == planning.levels()


def test_what_reads_no_known_files_is_not_filtered(plans):
    fact, days, _, root = star(plans)
    filters, reasons = Planning.of(root, {fact: 5000, days: 10}, other=(fact,)).level()
    assert () == filters
    assert ReasonCode.NOT_FILES in reasons


# 47, 48: such a table may have other rows when the query reads it.
def test_what_reads_no_known_files_gives_no_keys(plans):
    fact, days, _, root = star(plans)
    filters, reasons = Planning.of(root, {fact: 5000, days: 10}, other=(days,)).level()
    assert ((), True) == (run(filters), ReasonCode.UNREPEATABLE_KEYS in reasons)


# 41, 42, 45, 46
@pytest.mark.parametrize("kind", ["GlobalLimit", "LocalLimit", "Sample", "Deduplicate", "MapInArrow", "LogicalRDD"])
def test_what_may_give_other_rows_when_it_runs_again_gives_no_keys(plans, kind):
    fact, days = plans.table("k"), plans.table("k")
    chosen = plans.other(kind, plans.filter(days, at_least(*days.output, 3)))
    planning = Planning.of(plans.join(fact, chosen, equal(*fact.output, *days.output)), {fact: 5000, days: 10})
    filters, reasons = planning.level()
    assert ((), True) == (run(filters), ReasonCode.UNREPEATABLE_KEYS in reasons)


# 41, 46: which of the rows that tie is the first, and what a sum of doubles is, depends on the order of arrival.
@pytest.mark.parametrize("order_free", [True, False])
@pytest.mark.parametrize("make", [Plans.aggregate, Plans.window, Plans.group_limit])
def test_groups_give_keys_where_they_do_not_depend_on_the_order_of_rows(plans, make, order_free):
    fact, days = plans.table("k"), plans.table("k", "month")
    key = days.output[0]
    chosen = plans.filter(make(plans, days, key, order_free=order_free), at_least(key, 3))
    planning = Planning.of(plans.join(fact, chosen, equal(*fact.output, key)), {fact: 5000, days: 10})
    filters, reasons = planning.level()
    assert order_free == bool(run(filters))
    assert order_free == (ReasonCode.UNREPEATABLE_KEYS not in reasons)


# 41
def test_distinct_keys_do_not_depend_on_the_order_of_rows(plans):
    fact, days = plans.table("k"), plans.table("k")
    distinct = plans.aggregate(plans.filter(days, at_least(*days.output, 3)), *days.output, values=0, order_free=False)
    limited = plans.group_limit(distinct, *days.output)
    planning = Planning.of(plans.join(fact, limited, equal(*fact.output, *days.output)), {fact: 5000, days: 10})
    assert [{(limited.at, fact.at)}] == planning.levels()


# 41, 42
def test_what_is_random_gives_no_keys_even_inside_a_subquery(plans):
    fact, days, other = plans.table("k"), plans.table("k"), plans.table("k")
    random = plans.aggregate(plans.filter(other, random=True))
    chosen = plans.filter(days, at_least(*days.output, 3), subqueries=(random,))
    planning = Planning.of(
        plans.join(fact, chosen, equal(*fact.output, *days.output)), {fact: 5000, days: 10, other: 1}
    )
    filters, reasons = planning.level()
    assert ((), True) == (run(filters), ReasonCode.UNREPEATABLE_KEYS in reasons)


# 41: a subquery of the join itself runs again with the query, even where the rows of the side do not.
@pytest.mark.parametrize("kind", [None, "GlobalLimit", "InMemoryRelation"])
def test_a_key_with_a_subquery_is_built_where_that_gives_the_same_again(plans, kind):
    fact, days, other = plans.table("k"), plans.table("k"), plans.table("k")
    chosen = plans.filter(days, at_least(*days.output, 3))
    value = other if kind is None else plans.other(kind, other)
    key = call("Add", column(*days.output), call("ScalarSubquery"))
    join = replace(plans.join(fact, chosen, equal(column(*fact.output), key)), subqueries=(value,))
    filters, reasons = Planning.of(join, {fact: 5000, days: 10, other: 1}).level()
    expected = ((), True) if kind else ((fact.at,), False)
    assert expected == (tuple(it.probe.relation.at for it in run(filters)), ReasonCode.UNREPEATABLE_KEYS in reasons)


def test_a_build_that_may_not_run_gives_way_to_the_tables_that_it_joins(plans):
    fact, large, small = plans.table("k"), plans.table("k", "s"), plans.table("k")
    few = plans.filter(small, at_least(*small.output, 3))
    build = plans.join(large, few, equal(large.output[0], *small.output), type_="LeftSemi")
    root = plans.join(fact, build, equal(*fact.output, large.output[0]))
    planning = Planning.of(root, {fact: 2_000_000, large: 500_000, small: 10})
    filters, reasons = planning.level()
    assert {(few.at, fact.at), (few.at, large.at)} == {
        (each.build_side.node.at, each.probe.relation.at) for each in filters
    }
    assert ReasonCode.UNSELECTIVE_BUILD in reasons


def test_builds_that_stay_too_large_filter_by_their_metadata_one_after_the_other(plans):
    fact, other = plans.table("k"), plans.table("k")
    sides = [plans.filter(each, at_least(*each.output, 3)) for each in (fact, other)]
    planning = Planning.of(plans.join(*sides, equal(*fact.output, *other.output)), {fact: 50_000, other: 60_000})
    filters, reasons = planning.level()
    assert ((), {ReasonCode.BUILD_TOO_LARGE}) == (run(filters), set(reasons))
    assert [(sides[0].at, other.at, True)] == [
        (each.build_side.node.at, each.probe.relation.at, each.from_metadata) for each in filters
    ]
    # What is left of one is little enough to be run for the other.
    assert [{(sides[1].at, fact.at)}] == planning.levels()


def test_planning_ends_for_many_joins_that_all_shrink_each_other(plans):
    tables = [plans.table("k", "next") for _ in range(8)]
    sides = [plans.filter(each, at_least(each.output[1], 3)) for each in tables]
    root: Node = sides[0]
    for before, side, table in zip(tables, sides[1:], tables[1:], strict=False):
        root = plans.join(root, side, equal(before.output[1], table.output[0]))
    planning = Planning.of(root, {each: 200 + at for at, each in enumerate(tables)})
    assert planning.levels()
    assert () == planning.level()[0]


@dataclass
class Known(UnknownStatistics):
    """Columns all of whose values lie in each container, and scans whose rows stay where they are."""

    spread: set[int] = field(default_factory=set)
    in_place: set[int] = field(default_factory=set)

    def unprunable_fraction(self, probe: ProbeColumn) -> float:
        return float(probe.column in self.spread)

    def crosses_shuffle(self, build_side: BuildSide, probe: ProbeColumn) -> bool:  # noqa: ARG002 - of a protocol
        return probe.relation.at not in self.in_place


@pytest.mark.parametrize(("size", "is_fed"), [(799, False), (800, True)])
def test_rows_that_are_not_sent_are_worth_a_build_only_of_a_large_scan(plans, size, is_fed):
    fact, days, _, root = star(plans)
    known = Known({*fact.output}, {fact.at})
    sizes = Sizes({fact.at: size, days.at: 10}, {fact.at, days.at}, (), statistics=known)
    filters, reasons = ready_filters(JoinGraph.of(root), sizes, (), OPTIONS)
    assert is_fed == bool(filters)
    assert is_fed == (ReasonCode.SPARES_LITTLE not in [each.code for each in reasons])


@dataclass
class Narrow(UnknownStatistics):
    """Scans of so many rows, whose columns are a tenth of their files, and a share of them in which any key lies."""

    count: int
    share: float = 1.0

    def unprunable_fraction(self, probe: ProbeColumn) -> float:  # noqa: ARG002 - of a protocol
        return self.share

    def rows(self, relation: Relation) -> int:  # noqa: ARG002 - of a protocol
        return self.count

    def needed_share(self, relation: Relation) -> float:  # noqa: ARG002 - of a protocol
        return 0.1


@pytest.mark.parametrize(
    ("size", "rows", "is_fed"),
    [
        (999, 100, False),
        (1000, 100, True),
        (3200, 100, True),
        (999, 1 << 18, True),
        (999, 0, True),
        (99, 1 << 18, False),
    ],
    ids=["few bytes", "enough", "a large table", "many rows", "rows not counted", "a small table"],
)
def test_a_scan_of_few_rows_is_as_small_as_its_columns(plans, size, rows, is_fed):
    fact, days, _, root = star(plans)
    sizes = Sizes({fact.at: size, days.at: 10}, {fact.at, days.at}, (), statistics=Narrow(rows))
    filters, reasons = ready_filters(JoinGraph.of(root), sizes, (), replace(OPTIONS, min_probe_bytes=100))
    assert is_fed == bool(filters)
    assert is_fed or ReasonCode.PROBE_TOO_SMALL in [each.code for each in reasons]


def test_files_that_may_be_skipped_are_worth_a_filter_however_few_their_columns(plans):
    fact, days, _, root = star(plans)
    sizes = Sizes({fact.at: 999, days.at: 10}, {fact.at, days.at}, (), statistics=Narrow(100, 0.9))
    filters, _ = ready_filters(JoinGraph.of(root), sizes, (), replace(OPTIONS, min_probe_bytes=100))
    assert [fact.at] == [each.probe.relation.at for each in filters]


@pytest.mark.parametrize("crosses_shuffle", [False, True])
def test_a_scan_that_may_be_skipped_or_whose_rows_are_sent_is_worth_a_build(plans, crosses_shuffle):
    fact, days, _, root = star(plans)
    known = Known(spread={*fact.output}) if crosses_shuffle else Known(in_place={fact.at})
    sizes = Sizes({fact.at: 100, days.at: 10}, {fact.at, days.at}, (), statistics=known)
    filters, _ = ready_filters(JoinGraph.of(root), sizes, (), OPTIONS)
    assert [fact.at] == [each.probe.relation.at for each in filters]


@pytest.mark.parametrize(("size", "is_fed"), [(200, True), (201, False)])
def test_a_build_of_joins_reads_no_more_than_its_keys_can_spare(plans, size, is_fed):
    first, second, fact = plans.table("k", "part"), plans.table("part"), plans.table("k")
    chosen = plans.filter(second, at_least(*second.output, 3))
    parts = plans.join(first, chosen, equal(first.output[1], *second.output))
    root = plans.join(fact, parts, equal(*fact.output, first.output[0]))
    sizes = Sizes({fact.at: 1600, first.at: size - 150, second.at: 150}, {fact.at, first.at, second.at}, ())

    def build_sides(statistics: Known, held: tuple[int, ...] = ()) -> list[Node]:
        filters, _ = ready_filters(
            JoinGraph.of(root), replace(sizes, statistics=statistics, materialized=held), (), OPTIONS
        )
        return [each.build_side.node for each in run(filters) if each.probe.relation is fact]

    spread, in_place = {*fact.output}, {fact.at}
    assert ([parts] if is_fed else []) == build_sides(Known(spread, in_place)) == build_sides(Known(spread))
    # Values that some file has not and a build of one scan are worth as much as is scanned.
    assert [parts] == build_sides(Known(in_place=in_place))
    assert [parts] == build_sides(Known(spread, in_place), (second.at,))


@pytest.mark.parametrize(("size", "is_fed"), [(1549, False), (1550, True)])
def test_a_scan_whose_keys_filter_a_much_larger_one_is_worth_a_build_of_joins(plans, size, is_fed):
    """`first` is among those behind it, too: its keys come from the people."""
    first, second, people = plans.table("k", "part"), plans.table("part"), plans.table("k", "person")
    bought = plans.table("person")
    chosen = plans.filter(second, at_least(*second.output, 3))
    parts = plans.join(first, chosen, equal(first.output[1], *second.output))
    local = plans.join(people, parts, equal(people.output[0], first.output[0]))
    root = plans.join(bought, local, equal(*bought.output, people.output[1]))
    scanned = {bought.at: size, people.at: 800, first.at: 50, second.at: 150}
    known = Known({*people.output, *bought.output})
    filters, _ = ready_filters(JoinGraph.of(root), Sizes(scanned, {*scanned}, (), statistics=known), (), OPTIONS)
    assert is_fed is any(each.build_side.node is parts and each.probe.relation is people for each in run(filters))


@pytest.mark.parametrize(("rows", "is_fed"), [(None, True), (1000, True), (1001, False)])
def test_a_build_of_one_scan_with_many_rows_reads_no_more_than_its_keys_can_spare(rows, is_fed):
    """Rows that are too many to be kept are made twice: for their keys, and for the query."""
    chain = Chain(share=1.0)
    people = {} if rows is None else {chain.people.at: Cardinality(rows, 1.0)}
    scanned = {chain.bought.at: 1600, chain.people.at: 201, chain.places.at: 0}
    held = {each.at for each in chain.local.children[1].walk()}
    sizes = Sizes(scanned, set(scanned), {chain.people.at}, held, people, chain)
    first, _ = ready_filters(JoinGraph.of(chain.root), sizes, (), OPTIONS)
    filters, reasons = ready_filters(JoinGraph.of(chain.root), sizes, {each.id for each in first}, OPTIONS)
    probes = {each.probe.relation.at for each in (*first, *filters) if not each.from_metadata and not each.must_fit}
    assert is_fed is (chain.bought.at in probes)
    assert is_fed or ReasonCode.BUILD_TOO_LARGE in [each.code for each in reasons]


@dataclass
class Chain(UnknownStatistics):
    """A chosen place, the people who live there, and what they bought; as many rows as `few` are kept."""

    few: int = 1000
    people_rows: int = 100_000
    bought_rows: int = 1 << 18
    ratio: float = 0.01
    in_place: bool = False
    hashed: bool = False
    share: float = 0.0

    def __post_init__(self) -> None:
        plans = Plans()
        self.bought, self.people, self.places = plans.table("person"), plans.table("person", "place"), plans.table("p")
        person, place = self.people.output
        chosen = plans.filter(self.places, at_least(*self.places.output, 3))
        self.local = plans.join(self.people, chosen, equal(place, *self.places.output))
        self.root = plans.join(self.bought, self.local, equal(*self.bought.output, person))

    def unprunable_fraction(self, probe: ProbeColumn) -> float:  # noqa: ARG002 - of a protocol
        return self.share

    def rows(self, relation: Relation) -> int:
        return self.bought_rows if relation is self.bought else 0

    def are_few(self, node: Node, rows: float) -> bool:  # noqa: ARG002 - of a protocol
        return rows <= self.few

    def crosses_shuffle(self, build_side: BuildSide, probe: ProbeColumn) -> bool:  # noqa: ARG002 - of a protocol
        return probe.relation is not self.bought or not self.in_place

    def is_hash_build_side(self, build_side: BuildSide, probe: ProbeColumn) -> bool:  # noqa: ARG002 - of a protocol
        return self.hashed

    def second_level(
        self, size: int, *, people: int = 900, expected: dict[int, Cardinality] | None = None
    ) -> tuple[tuple[RuntimeFilter, ...], list[ReasonCode]]:
        """Of the people a test by places lets some through, and the places are held."""
        if expected is None:
            expected = {self.people.at: Cardinality(self.people_rows, self.ratio)}
        scanned = {self.bought.at: size, self.people.at: people, self.places.at: 0}
        held = {each.at for each in self.local.children[1].walk()}
        sizes = Sizes(scanned, set(scanned), {self.people.at}, held, expected, self)
        graph = JoinGraph.of(self.root)
        first, _ = ready_filters(graph, sizes, (), OPTIONS)
        assert {self.people.at} == {each.probe.relation.at for each in first}
        filters, reasons = ready_filters(graph, sizes, {each.id for each in first}, OPTIONS)
        return run(filters), [each.code for each in reasons]


@pytest.mark.parametrize("size", [10, 500], ids=["scan-of-few-bytes", "scan-of-fewer-bytes-than-the-build"])
def test_rows_that_the_query_takes_as_they_are_cost_nothing(size):
    chain = Chain()
    (runtime_filter,), _ = chain.second_level(size)
    assert (chain.local.at, True) == (runtime_filter.build_side.node.at, runtime_filter.must_fit)


def test_rows_of_a_table_that_a_join_broadcasts_are_worth_a_build_that_costs_nothing():
    (runtime_filter,), _ = Chain(in_place=True, hashed=True).second_level(10)
    assert runtime_filter.must_fit
    assert () == Chain(in_place=True).second_level(10)[0]


def test_a_build_that_is_worth_its_bytes_need_not_fit():
    (runtime_filter,), _ = Chain().second_level(5000)
    assert not runtime_filter.must_fit


@pytest.mark.parametrize(
    "chain",
    [
        pytest.param(Chain(few=999), id="too-many-rows-to-be-kept"),
        pytest.param(Chain(bought_rows=(1 << 18) - 1), id="few-rows-to-drop"),
        pytest.param(Chain(ratio=0.26, few=1 << 20), id="many-of-the-people"),
    ],
)
def test_a_scan_of_few_bytes_is_left_alone_where_a_build(chain):
    filters, reasons = chain.second_level(10)
    assert ((), True) == (filters, ReasonCode.PROBE_TOO_SMALL in reasons)


def test_rows_that_are_known_to_be_tested_are_not_tested_again():
    chain = Chain()
    known = {chain.people.at: Cardinality(100_000, 0.01), chain.bought.at: Cardinality(1 << 18, 0.5)}
    assert () == chain.second_level(10, expected=known)[0]


def test_a_free_build_reads_no_more_than_any_other_may():
    filters, reasons = Chain().second_level(10, people=1001)
    assert ((), True) == (filters, ReasonCode.PROBE_TOO_SMALL in reasons)


@pytest.mark.parametrize(("size", "waits"), [((1 << 20) - 1, False), (1 << 20, True)])
def test_keys_that_skip_nothing_wait_for_those_that_may_leave_nothing_to_do(plans, size, waits):
    fact, days, items = plans.table("day", "item"), plans.table("day"), plans.table("item")
    day, item = fact.output
    chosen = [plans.filter(each, at_least(*each.output, 3)) for each in (days, items)]
    inner = plans.join(fact, chosen[0], equal(day, *days.output))
    graph = JoinGraph.of(plans.join(inner, chosen[1], equal(item, *items.output)))
    scanned = {fact.at: 1 << 30, days.at: 10, items.at: size}
    options = PruningOptions(min_probe_bytes=2 << 20)

    def level(fact_bytes: int, done: set[FilterId]) -> tuple[RuntimeFilter, ...]:
        sizes = Sizes({**scanned, fact.at: fact_bytes}, set(scanned), (), statistics=Known({item}))
        return ready_filters(graph, sizes, done, options)[0]

    first = level(1 << 30, set())
    assert [days.at] + [items.at] * (not waits) == [_scan(each) for each in first]
    done = {each.id for each in first}
    assert ([items.at] if waits else []) == [_scan(each) for each in level(1 << 30, done)]
    assert not level(1 << 20, done)


def _scan(runtime_filter: RuntimeFilter) -> int:
    return next(each.at for each in runtime_filter.build_side.node.walk() if isinstance(each, Relation))


class Sums(UnknownStatistics):
    """Sums of facts, each joined with a dimension of its own; `others` are the places that are equal to one."""

    def __init__(self, others: dict[int, int], spread: tuple[int, ...] = ()) -> None:
        plans = Plans()
        self.others, self.spread = others, spread
        self.statistics: list[Relation] = []
        self.dimensions: list[Relation] = []
        self.sums: list[Node] = []
        joins: list[Node] = []
        for part in range(1 + max(*others, *others.values())):
            fact, dimension = plans.table("k"), plans.table("id")
            self.sums.append(plans.aggregate(fact, *fact.output))
            chosen = plans.filter(dimension, at_least(*dimension.output, part))
            joins.append(plans.join(self.sums[-1], chosen, equal(*fact.output, *dimension.output)))
            self.statistics.append(fact)
            self.dimensions.append(dimension)
        self.graph = JoinGraph.of(plans.union(*joins))

    def shared_places(self, build_side: BuildSide, probe: ProbeColumn) -> tuple[Node, ...]:  # noqa: ARG002 - of a protocol
        if probe.relation not in self.statistics:
            return ()
        other = self.others.get(self.statistics.index(probe.relation))
        return () if other is None else (self.sums[other],)

    def unprunable_fraction(self, probe: ProbeColumn) -> float:
        return float(probe.relation in self.statistics and self.statistics.index(probe.relation) in self.spread)

    def sizes(self, *dimensions: int, held: int | None = None) -> Sizes:
        scanned = {each.at: 1000 for each in self.statistics}
        scanned |= {each.at: size for each, size in zip(self.dimensions, dimensions, strict=True)}
        kept = () if held is None else {each.at for each in self.sums[held].walk()}
        return Sizes(scanned, set(scanned), (), kept, statistics=self)

    def fed(self, sizes: Sizes) -> tuple[list[int], set[ReasonCode]]:
        """Which facts are fed, by keys or by metadata; `explain` says what this says."""
        filters, reasons = ready_filters(self.graph, sizes, (), OPTIONS)
        codes = {each.code for each in reasons}
        assert codes == {each.reason.code for each in unused(self.graph, sizes, OPTIONS, sizes.scanned)}
        return sorted(self.statistics.index(each.probe.relation) for each in filters), codes


TWICE = {0: 1, 1: 0}


def test_what_is_run_once_for_two_places_is_filtered_in_both_or_in_none():
    plan = Sums(TWICE)
    found, reasons = plan.fed(plan.sizes(500, 500))
    assert [0, 1] == found
    assert ReasonCode.RUN_ONCE not in reasons
    # Metadata alone would have it run twice, too.
    found, reasons = plan.fed(plan.sizes(500, 5000))
    assert [] == found
    assert {ReasonCode.RUN_ONCE, ReasonCode.BUILD_TOO_LARGE} <= reasons


def test_what_is_run_once_is_not_run_again_for_keys_that_skip_nothing():
    # In TPC-DS q23 at SF 10 each of two places would read all of store_sales for items of its own.
    plan = Sums(TWICE, spread=(0, 1))
    found, reasons = plan.fed(plan.sizes(500, 500))
    assert [] == found
    assert ReasonCode.RUN_ONCE in reasons
    # A place that is left without keys takes those of the other one with it.
    half = Sums(TWICE, spread=(1,))
    assert [] == half.fed(half.sizes(500, 500))[0]
    # What a build has kept is not run for the query.
    assert [0] == plan.fed(plan.sizes(500, 500, held=1))[0]


def test_metadata_that_costs_nothing_may_filter_every_place():
    plan = Sums(TWICE)
    found, reasons = plan.fed(plan.sizes(5000, 5000))
    assert [0, 1] == found
    assert ReasonCode.RUN_ONCE not in reasons


def test_a_place_that_a_build_has_kept_is_not_run_again():
    plan = Sums(TWICE)
    found, reasons = plan.fed(plan.sizes(500, 500, held=1))
    assert [0] == found
    assert ReasonCode.RUN_ONCE not in reasons


def test_a_place_whose_own_keys_are_refused_has_none():
    plan = Sums({0: 1, 1: 2})
    assert [0, 1, 2] == plan.fed(plan.sizes(500, 500, 500))[0]
    found, reasons = plan.fed(plan.sizes(500, 500, 5000))
    assert [2] == found
    assert ReasonCode.RUN_ONCE in reasons


def test_what_was_filtered_is_not_told_to_be_run_once():
    plan = Sums(TWICE)
    filters, _ = ready_filters(plan.graph, plan.sizes(500, 500), (), OPTIONS)
    first = tuple(each for each in filters if each.probe.relation is plan.statistics[0])
    left = unused(plan.graph, plan.sizes(500, 5000), OPTIONS, None, [first])
    assert [] == [each.probe.relation for each in left if each.reason.code is ReasonCode.RUN_ONCE]
    left = unused(plan.graph, plan.sizes(500, 5000), OPTIONS)
    assert ReasonCode.RUN_ONCE in {each.reason.code for each in left}
