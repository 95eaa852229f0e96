"""`ready_filters`: runtime filters of each level, and reasons against the others."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from pruning.keys.summary import Bound
from pruning.options import PruningOptions
from pruning.query.build_selection import BuildSelection
from pruning.query.filter_plan import FilterId, RuntimeFilter
from pruning.query.join_condition import BuildSide
from pruning.query.join_graph import JoinGraph
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Node, Relation
from pruning.query.plan_statistics import Cardinality, Sizes, UnknownStatistics
from pruning.reasons import ReasonCode
from tests.costs import FREE_BUILDS
from tests.pruning.plans import Plans, at_least, call, column, equal, left_out, ready

OPTIONS = FREE_BUILDS
SOUND = replace(OPTIONS, always=True)


@pytest.fixture
def plans() -> Plans:
    return Plans()


def run(filters: tuple[RuntimeFilter, ...]) -> tuple[RuntimeFilter, ...]:
    """The filters whose build side is run."""
    return tuple(each for each in filters if not each.from_metadata)


@dataclass
class Planning:
    """The filters of a plan, level by level; a filtered scan reads a tenth of its bytes from then on."""

    root: Node
    scanned: dict[int, int]
    files: set[int]
    pruned: set[int] = field(default_factory=set)
    done: set[FilterId] = field(default_factory=set)
    options: PruningOptions = OPTIONS

    @staticmethod
    def of(root: Node, sizes: dict[Relation, int], *, other: tuple[Relation, ...] = ()) -> Planning:
        scanned = {relation.id: size for relation, size in sizes.items()}
        return Planning(root, scanned, set(scanned) - {each.id for each in other})

    def level(self) -> tuple[tuple[RuntimeFilter, ...], list[ReasonCode]]:
        """The filters of the next level, which count as done afterwards."""
        sizes = Sizes(self.scanned, self.files, self.pruned)
        filters, reasons = ready(JoinGraph.of(self.root), sizes, self.done, self.options)
        assert self.done.isdisjoint(each.id for each in filters)
        assert len(filters) == len({each.id for each in filters})
        self.done |= {each.id for each in filters}
        for at in {each.probe.relation.id for each in filters}:
            self.pruned.add(at)
            self.scanned[at] //= 10
        return filters, [each.code for each in reasons]

    def levels(self) -> list[set[tuple[int, int]]]:
        """The places of builds and of the scans that they filter, for each level until there is none."""
        found = []
        while filters := self.level()[0]:
            found.append({(each.build_side.node.id, each.probe.relation.id) for each in filters})
            assert len(found) < 50
        return found


# ------------------------------------------------------------------------------------------------------ order of builds


def test_filtered_dimension_filters_the_fact(plans):
    fact, dimension = plans.table("k"), plans.table("k", "month")
    few = plans.filter(dimension, at_least(dimension.output[1], 3))
    planning = Planning.of(
        plans.join(fact, few, equal(fact.output[0], dimension.output[0])), {fact: 5000, dimension: 50}
    )
    filters, reasons = planning.level()
    assert [(few.id, dimension.output[0], fact.id, "k")] == [
        (each.build_side.node.id, each.build_side.key.column, each.probe.relation.id, each.probe.name)
        for each in filters
    ]
    assert [ReasonCode.PROBE_TOO_SMALL] == reasons
    assert [] == planning.levels()


def test_independent_builds_are_one_level(plans):
    fact = plans.table("a", "b")
    one, other = plans.table("k"), plans.table("k")
    first, second = (plans.filter(each, at_least(each.output[0], 3)) for each in (one, other))
    inner = plans.join(fact, first, equal(fact.output[0], *one.output))
    root = plans.join(inner, second, equal(fact.output[1], *other.output))
    planning = Planning.of(root, {fact: 5000, one: 50, other: 60})
    assert [{(first.id, fact.id), (second.id, fact.id)}] == planning.levels()


def test_build_waits_for_the_filter_that_shrinks_it(plans):
    fact, middle, small = plans.table("k"), plans.table("k", "s"), plans.table("s")
    few = plans.filter(small, at_least(*small.output, 3))
    dimension = plans.join(middle, few, equal(middle.output[1], *small.output))
    root = plans.join(fact, dimension, equal(*fact.output, middle.output[0]))
    planning = Planning.of(root, {fact: 50_000, middle: 500, small: 50})
    assert [{(few.id, middle.id)}, {(dimension.id, fact.id)}] == planning.levels()


def test_builds_that_shrink_each_other_run_in_turn(plans):
    one, other = plans.table("a", "b"), plans.table("a", "b")
    (a, b), (c, d) = one.output, other.output
    left, right = plans.filter(one, at_least(a, 1)), plans.filter(other, at_least(c, 1))
    root = plans.join(left, right, equal(a, c), equal(b, d))
    planning = Planning.of(root, {one: 900, other: 800})
    assert [{(right.id, one.id)}, {(left.id, other.id)}] == planning.levels()
    planning = Planning.of(root, {one: 900, other: 90_000})
    assert {(left.id, other.id)} == planning.levels()[0]


def test_pruned_fact_filters_another_fact(plans):
    fact, second, days = plans.table("day", "item"), plans.table("item"), plans.table("day")
    few = plans.filter(days, at_least(*days.output, 3))
    sold = plans.join(fact, few, equal(fact.output[0], *days.output))
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
    selection = BuildSelection(Sizes(planning.scanned, (), ()), PruningOptions(), JoinGraph.of(root).edges)
    assert {610 + 10} == {
        selection.bytes_read(each.build_side) for each in JoinGraph.of(root).edges if each.build_side.node == chosen
    }
    assert [{(few.id, inner.id)}, {(chosen.id, fact.id)}] == planning.levels()


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
    dimension = plans.join(plans.filter(one, at_least(x, 3)), other, equal(x, y))
    root = plans.join(fact, dimension, equal(a, i), equal(b, j))
    filters, _ = Planning.of(root, {fact: 50_000, one: 10, other: 10}).level()
    assert {(i, a), (j, b)} == {(each.build_side.key.column, each.probe.column) for each in filters}
    assert 2 == len({each.id[:2] for each in filters})


def test_computed_keys_of_one_text_are_two_key_sets(plans):
    fact, days = plans.table("a", "b"), plans.table("s")
    few = plans.filter(days, at_least(*days.output, 3))
    parts = [call("EqualTo", column(each), call("GetStructField", column(*days.output))) for each in fact.output]
    filters, _ = Planning.of(plans.join(fact, few, *parts), {fact: 50_000, days: 10}).level()
    assert 2 == len({each.id[:2] for each in filters})


# ------------------------------------------------------------------------------------------------------ build selection


def star(plans: Plans, *, filtered: bool = True) -> tuple[Relation, Relation, Node, Node]:
    fact, days = plans.table("k"), plans.table("k")
    build = plans.filter(days, at_least(*days.output, 3)) if filtered else days
    return fact, days, build, plans.join(fact, build, equal(*fact.output, *days.output), type_="LeftSemi")


@pytest.mark.parametrize(("size", "is_filtered"), [(100, True), (99, False)])
def test_scan_below_min_probe_bytes_is_not_filtered(plans, size, is_filtered):
    fact, days, _, root = star(plans)
    filters, reasons = Planning.of(root, {fact: size, days: 10}).level()
    assert is_filtered == bool(filters)
    # Reasons name scans by the filtered column and their size; the scan of the days is too small, too.
    assert [ReasonCode.PROBE_TOO_SMALL] * (1 if is_filtered else 2) == reasons


@pytest.mark.parametrize(
    ("build", "probe", "runs"), [(1000, 50_000, True), (1001, 50_000, False), (200, 200, True), (201, 200, False)]
)
def test_build_reads_at_most_the_limit_and_the_saving(plans, build, probe, runs):
    fact, days, _, root = star(plans)
    planning = Planning.of(root, {fact: probe, days: build})
    filters, reasons = planning.level()
    assert runs == (fact.id in {each.probe.relation.id for each in run(filters)})
    assert [not runs] == [each.from_metadata for each in filters if each.probe.relation is fact]
    assert runs == (ReasonCode.BUILD_TOO_LARGE not in reasons)


def test_unselective_build_is_not_run(plans):
    fact, days, _, root = star(plans, filtered=False)
    filters, reasons = Planning.of(root, {fact: 5000, days: 10}).level()
    assert ((), [ReasonCode.UNSELECTIVE_BUILD, ReasonCode.PROBE_TOO_SMALL]) == (filters, reasons)


# Fails if a bound must be as selective as an equality, or if its build may read as many bytes.
@pytest.mark.parametrize(("build", "runs"), [(100, True), (101, False)])
def test_unselective_build_of_a_range_join_runs_if_small(plans, build, runs):
    fact, days = plans.table("k"), plans.table("k")
    root = plans.join(fact, days, call("LessThan", column(*fact.output), column(*days.output)))
    filters, reasons = Planning.of(root, {fact: 800, days: build}).level()
    assert runs == ([(days.id, fact.id)] == [(each.build_side.node.id, each.probe.relation.id) for each in filters])
    assert runs == (reasons.count(ReasonCode.BUILD_TOO_LARGE) == 1)


# Bounds in the type of a file's column would drop rows of a wider column that lie beyond the range of the narrower
# type.
@pytest.mark.parametrize("wider", [False, True])
def test_range_join_uses_metadata_only_without_a_cast(plans, wider):
    fact, other = plans.table("k"), plans.table("k", type_="int")
    key = call("Cast", column(*other.output, "int"), type_="bigint") if wider else column(*other.output)
    build = plans.filter(other, at_least(*other.output, 3))
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


def test_unselective_build_with_few_keys_is_run(plans):
    fact, days, _, root = star(plans, filtered=False)
    graph, queried = JoinGraph.of(root), []

    class PlanStatistics(UnknownStatistics):
        def has_few_keys(self, build_side, probe) -> bool:
            queried.append((build_side.node.id, probe.relation.id))
            return True

    for size, probes in ((1000, [fact.id]), (1001, [])):
        sizes = Sizes({fact.id: 5000, days.id: size}, {fact.id, days.id}, (), statistics=PlanStatistics())
        filters, _ = ready(graph, sizes, (), OPTIONS)
        assert probes == [each.probe.relation.id for each in filters if each.build_side.node is days]
        # Metadata is not read for a build that is too large anyway.
        assert ((days.id, fact.id) in queried) == bool(probes)
        queried.clear()


def test_cached_build_needs_its_rows(plans):
    fact, days = plans.table("k"), plans.table("k")
    cached = plans.other("InMemoryRelation", output=days.output)
    (runtime_filter,) = Planning.of(plans.join(fact, cached, equal(*fact.output, *days.output)), {fact: 5000}).level()[
        0
    ]
    assert (cached.id, fact.id, True) == (
        runtime_filter.build_side.node.id,
        runtime_filter.probe.relation.id,
        runtime_filter.needs_rows,
    )


def test_build_around_cached_rows_waits_for_the_smaller_build(plans):
    """Each run may read other cached rows, so the larger build reads the rows that the smaller build materialized."""
    days = plans.table("k")
    cached = plans.other("InMemoryRelation", output=plans.fresh())
    around = plans.join(days, cached, equal(*days.output, *cached.output), type_="FullOuter")
    large = plans.table("k")
    root = plans.join(around, large, equal(*large.output, *cached.output))
    small = plans.table("k")
    root = plans.join(root, small, equal(*small.output, *cached.output))
    levels = Planning.of(root, {days: 500, small: 200, large: 5000}).levels()
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
    assert [{(days.id, fact.id)}] == planning.levels()


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
@pytest.mark.parametrize("kind", ["GlobalLimit", "LocalLimit", "Sample", "Deduplicate", "MapInArrow", "LogicalRDD"])
def test_unrepeatable_operator_gives_no_keys(plans, kind):
    fact, days = plans.table("k"), plans.table("k")
    chosen = plans.other(kind, plans.filter(days, at_least(*days.output, 3)))
    planning = Planning.of(plans.join(fact, chosen, equal(*fact.output, *days.output)), {fact: 5000, days: 10})
    filters, reasons = planning.level()
    assert ((), True) == (run(filters), ReasonCode.UNREPEATABLE_KEYS in reasons)


# Failure catalogue 41, 46: the first of tied rows and a sum of doubles depend on the order of arrival.
@pytest.mark.parametrize("order_free", [True, False])
@pytest.mark.parametrize("make", [Plans.aggregate, Plans.window, Plans.group_limit])
def test_groups_give_keys_only_if_order_free(plans, make, order_free):
    fact, days = plans.table("k"), plans.table("k", "month")
    key = days.output[0]
    chosen = plans.filter(make(plans, days, key, order_free=order_free), at_least(key, 3))
    planning = Planning.of(plans.join(fact, chosen, equal(*fact.output, key)), {fact: 5000, days: 10})
    filters, reasons = planning.level()
    assert order_free == bool(run(filters))
    assert order_free == (ReasonCode.UNREPEATABLE_KEYS not in reasons)


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
    filters, reasons = Planning.of(join, {fact: 5000, days: 10, other: 1}).level()
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


def test_too_large_builds_filter_by_metadata_in_turn(plans):
    fact, other = plans.table("k"), plans.table("k")
    sides = [plans.filter(each, at_least(*each.output, 3)) for each in (fact, other)]
    planning = Planning.of(plans.join(*sides, equal(*fact.output, *other.output)), {fact: 50_000, other: 60_000})
    filters, reasons = planning.level()
    assert ((), {ReasonCode.BUILD_TOO_LARGE}) == (run(filters), set(reasons))
    assert [(sides[0].id, other.id, True)] == [
        (each.build_side.node.id, each.probe.relation.id, each.from_metadata) for each in filters
    ]
    # The pruned scan is small enough to be run for the other one.
    assert [{(sides[1].id, fact.id)}] == planning.levels()


def test_planning_ends_for_joins_that_shrink_each_other(plans):
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
    """Columns whose values lie in every container, and scans whose rows are not shuffled."""

    unclustered: set[int] = field(default_factory=set)
    in_place: set[int] = field(default_factory=set)

    def unprunable_fraction(self, probe: ProbeColumn) -> float:
        return float(probe.column in self.unclustered)

    def crosses_shuffle(self, build_side: BuildSide, probe: ProbeColumn) -> bool:  # noqa: ARG002 - of a protocol
        return probe.relation.id not in self.in_place


@pytest.mark.parametrize(("size", "is_filtered"), [(799, False), (800, True)])
def test_unshuffled_rows_need_a_large_scan(plans, size, is_filtered):
    fact, days, _, root = star(plans)
    known = Known({*fact.output}, {fact.id})
    sizes = Sizes({fact.id: size, days.id: 10}, {fact.id, days.id}, (), statistics=known)
    filters, reasons = ready(JoinGraph.of(root), sizes, (), OPTIONS)
    assert is_filtered == bool(filters)
    assert is_filtered == (ReasonCode.SPARES_LITTLE not in [each.code for each in reasons])


@dataclass
class Narrow(UnknownStatistics):
    """Scans of `count` rows whose columns are a tenth of their files; the share `share` of each is unprunable."""

    count: int
    share: float = 1.0

    def unprunable_fraction(self, probe: ProbeColumn) -> float:  # noqa: ARG002 - of a protocol
        return self.share

    def rows(self, relation: Relation) -> int:  # noqa: ARG002 - of a protocol
        return self.count

    def needed_share(self, relation: Relation) -> float:  # noqa: ARG002 - of a protocol
        return 0.1


@pytest.mark.parametrize(
    ("size", "rows", "is_filtered"),
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
def test_scan_of_few_rows_is_sized_by_its_columns(plans, size, rows, is_filtered):
    fact, days, _, root = star(plans)
    sizes = Sizes({fact.id: size, days.id: 10}, {fact.id, days.id}, (), statistics=Narrow(rows))
    filters, reasons = ready(JoinGraph.of(root), sizes, (), replace(OPTIONS, min_probe_bytes=100))
    assert is_filtered == bool(filters)
    assert is_filtered or ReasonCode.PROBE_TOO_SMALL in [each.code for each in reasons]


def test_prunable_files_get_a_filter_despite_few_columns(plans):
    fact, days, _, root = star(plans)
    sizes = Sizes({fact.id: 999, days.id: 10}, {fact.id, days.id}, (), statistics=Narrow(100, 0.9))
    filters, _ = ready(JoinGraph.of(root), sizes, (), replace(OPTIONS, min_probe_bytes=100))
    assert [fact.id] == [each.probe.relation.id for each in filters]


@pytest.mark.parametrize("crosses_shuffle", [False, True])
def test_prunable_or_shuffled_scan_gets_a_filter(plans, crosses_shuffle):
    fact, days, _, root = star(plans)
    known = Known(unclustered={*fact.output}) if crosses_shuffle else Known(in_place={fact.id})
    sizes = Sizes({fact.id: 100, days.id: 10}, {fact.id, days.id}, (), statistics=known)
    filters, _ = ready(JoinGraph.of(root), sizes, (), OPTIONS)
    assert [fact.id] == [each.probe.relation.id for each in filters]


@pytest.mark.parametrize(("size", "is_filtered"), [(200, True), (201, False)])
def test_build_of_joins_reads_at_most_its_saving(plans, size, is_filtered):
    first, second, fact = plans.table("k", "part"), plans.table("part"), plans.table("k")
    chosen = plans.filter(second, at_least(*second.output, 3))
    parts = plans.join(first, chosen, equal(first.output[1], *second.output))
    root = plans.join(fact, parts, equal(*fact.output, first.output[0]))
    sizes = Sizes({fact.id: 1600, first.id: size - 150, second.id: 150}, {fact.id, first.id, second.id}, ())

    def build_sides(statistics: Known, materialized: tuple[int, ...] = ()) -> list[Node]:
        filters, _ = ready(
            JoinGraph.of(root), replace(sizes, statistics=statistics, materialized=materialized), (), OPTIONS
        )
        return [each.build_side.node for each in run(filters) if each.probe.relation is fact]

    unclustered, in_place = {*fact.output}, {fact.id}
    assert (
        ([parts] if is_filtered else []) == build_sides(Known(unclustered, in_place)) == build_sides(Known(unclustered))
    )
    # If some file lacks a value, or the build reads one scan, a filter is worth all scanned bytes.
    assert [parts] == build_sides(Known(in_place=in_place))
    assert [parts] == build_sides(Known(unclustered, in_place), (second.id,))


@pytest.mark.parametrize(("size", "is_filtered"), [(1549, False), (1550, True)])
def test_build_of_joins_is_run_for_a_chain_to_a_large_scan(plans, size, is_filtered):
    """The chain includes `first`, because its keys come from the people."""
    first, second, people = plans.table("k", "part"), plans.table("part"), plans.table("k", "person")
    bought = plans.table("person")
    chosen = plans.filter(second, at_least(*second.output, 3))
    parts = plans.join(first, chosen, equal(first.output[1], *second.output))
    local = plans.join(people, parts, equal(people.output[0], first.output[0]))
    root = plans.join(bought, local, equal(*bought.output, people.output[1]))
    scanned = {bought.id: size, people.id: 800, first.id: 50, second.id: 150}
    known = Known({*people.output, *bought.output})
    filters, _ = ready(JoinGraph.of(root), Sizes(scanned, {*scanned}, (), statistics=known), (), OPTIONS)
    assert is_filtered is any(each.build_side.node is parts and each.probe.relation is people for each in run(filters))


@pytest.mark.parametrize(("rows", "is_filtered"), [(None, True), (1000, True), (1001, False)])
def test_build_of_one_large_scan_reads_at_most_its_saving(rows, is_filtered):
    """Rows too many to be materialized are computed twice: for their keys, and for the query."""
    chain = Chain(share=1.0)
    people = {} if rows is None else {chain.people.id: Cardinality(rows, 1.0)}
    scanned = {chain.bought.id: 1600, chain.people.id: 201, chain.places.id: 0}
    materialized = {each.id for each in chain.local.children[1].walk()}
    sizes = Sizes(scanned, set(scanned), {chain.people.id}, materialized, people, chain)
    first, _ = ready(JoinGraph.of(chain.root), sizes, (), OPTIONS)
    filters, reasons = ready(JoinGraph.of(chain.root), sizes, {each.id for each in first}, OPTIONS)
    probes = {each.probe.relation.id for each in (*first, *filters) if not each.from_metadata and not each.must_fit}
    assert is_filtered is (chain.bought.id in probes)
    assert is_filtered or ReasonCode.BUILD_TOO_LARGE in [each.code for each in reasons]


@dataclass
class Chain(UnknownStatistics):
    """A filtered place, the people who live there, and their purchases; up to `few` rows are materialized."""

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
        """The second level: the places are materialized, and a row filter by places passes some of the people."""
        if expected is None:
            expected = {self.people.id: Cardinality(self.people_rows, self.ratio)}
        scanned = {self.bought.id: size, self.people.id: people, self.places.id: 0}
        materialized = {each.id for each in self.local.children[1].walk()}
        sizes = Sizes(scanned, set(scanned), {self.people.id}, materialized, expected, self)
        graph = JoinGraph.of(self.root)
        first, _ = ready(graph, sizes, (), OPTIONS)
        assert {self.people.id} == {each.probe.relation.id for each in first}
        filters, reasons = ready(graph, sizes, {each.id for each in first}, OPTIONS)
        return run(filters), [each.code for each in reasons]


@pytest.mark.parametrize("size", [10, 500], ids=["scan-of-few-bytes", "scan-of-fewer-bytes-than-the-build"])
def test_materialized_build_is_free(size):
    chain = Chain()
    (runtime_filter,), _ = chain.second_level(size)
    assert (chain.local.id, True) == (runtime_filter.build_side.node.id, runtime_filter.must_fit)


def test_free_build_filters_a_broadcast_table():
    (runtime_filter,), _ = Chain(in_place=True, hashed=True).second_level(10)
    assert runtime_filter.must_fit
    assert () == Chain(in_place=True).second_level(10)[0]


def test_build_worth_its_bytes_need_not_fit():
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
def test_small_scan_is_not_filtered_by_a_costly_build(chain):
    filters, reasons = chain.second_level(10)
    assert ((), True) == (filters, ReasonCode.PROBE_TOO_SMALL in reasons)


def test_rows_with_a_row_filter_get_no_second_one():
    chain = Chain()
    known = {chain.people.id: Cardinality(100_000, 0.01), chain.bought.id: Cardinality(1 << 18, 0.5)}
    assert () == chain.second_level(10, expected=known)[0]


def test_free_build_reads_at_most_the_limit():
    filters, reasons = Chain().second_level(10, people=1001)
    assert ((), True) == (filters, ReasonCode.PROBE_TOO_SMALL in reasons)


@pytest.mark.parametrize(("size", "waits"), [((1 << 20) - 1, False), (1 << 20, True)])
def test_unclustered_filter_waits_for_a_skipping_filter(plans, size, waits):
    fact, days, items = plans.table("day", "item"), plans.table("day"), plans.table("item")
    day, item = fact.output
    chosen = [plans.filter(each, at_least(*each.output, 3)) for each in (days, items)]
    inner = plans.join(fact, chosen[0], equal(day, *days.output))
    graph = JoinGraph.of(plans.join(inner, chosen[1], equal(item, *items.output)))
    scanned = {fact.id: 1 << 30, days.id: 10, items.id: size}
    options = PruningOptions(min_probe_bytes=2 << 20)

    def level(fact_bytes: int, done: set[FilterId]) -> tuple[RuntimeFilter, ...]:
        sizes = Sizes({**scanned, fact.id: fact_bytes}, set(scanned), (), statistics=Known({item}))
        return ready(graph, sizes, done, options)[0]

    first = level(1 << 30, set())
    assert [days.id] + [items.id] * (not waits) == [_scan(each) for each in first]
    done = {each.id for each in first}
    assert ([items.id] if waits else []) == [_scan(each) for each in level(1 << 30, done)]
    assert not level(1 << 20, done)


def _scan(runtime_filter: RuntimeFilter) -> int:
    return next(each.id for each in runtime_filter.build_side.node.walk() if isinstance(each, Relation))


class Sums(UnknownStatistics):
    """Sums of facts, each joined with its own dimension; `others` maps a place to the place equal to it."""

    def __init__(self, others: dict[int, int], unclustered: tuple[int, ...] = ()) -> None:
        plans = Plans()
        self.others, self.unclustered = others, unclustered
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
        return float(probe.relation in self.statistics and self.statistics.index(probe.relation) in self.unclustered)

    def sizes(self, *dimensions: int, materialized: int | None = None) -> Sizes:
        scanned = {each.id: 1000 for each in self.statistics}
        scanned |= {each.id: size for each, size in zip(self.dimensions, dimensions, strict=True)}
        kept = () if materialized is None else {each.id for each in self.sums[materialized].walk()}
        return Sizes(scanned, set(scanned), (), kept, statistics=self)

    def filtered_facts(self, sizes: Sizes) -> tuple[list[int], set[ReasonCode]]:
        """The facts that are filtered, by keys or by metadata, and the reasons, which are those of `explain`."""
        filters, reasons = ready(self.graph, sizes, (), OPTIONS)
        codes = {each.code for each in reasons}
        assert codes == {each.reason.code for each in left_out(self.graph, sizes, OPTIONS, sizes.scanned)}
        return sorted(self.statistics.index(each.probe.relation) for each in filters), codes


TWICE = {0: 1, 1: 0}


def test_reused_exchange_is_filtered_in_both_places_or_none():
    plan = Sums(TWICE)
    found, reasons = plan.filtered_facts(plan.sizes(500, 500))
    assert [0, 1] == found
    assert ReasonCode.RUN_ONCE not in reasons
    # A filter by metadata alone would end the reuse, too.
    found, reasons = plan.filtered_facts(plan.sizes(500, 5000))
    assert [] == found
    assert {ReasonCode.RUN_ONCE, ReasonCode.BUILD_TOO_LARGE} <= reasons


def test_unclustered_filter_does_not_end_exchange_reuse():
    # In TPC-DS q23 at scale factor 10, both places would read all of store_sales for items of their own.
    plan = Sums(TWICE, unclustered=(0, 1))
    found, reasons = plan.filtered_facts(plan.sizes(500, 500))
    assert [] == found
    assert ReasonCode.RUN_ONCE in reasons
    # If one place has no keys, the filter of the other place is dropped.
    half = Sums(TWICE, unclustered=(1,))
    assert [] == half.filtered_facts(half.sizes(500, 500))[0]
    # The query does not run a materialized build.
    assert [0] == plan.filtered_facts(plan.sizes(500, 500, materialized=1))[0]


def test_metadata_filters_every_place_of_a_reused_exchange():
    plan = Sums(TWICE)
    found, reasons = plan.filtered_facts(plan.sizes(5000, 5000))
    assert [0, 1] == found
    assert ReasonCode.RUN_ONCE not in reasons


def test_materialized_place_does_not_run_again():
    plan = Sums(TWICE)
    found, reasons = plan.filtered_facts(plan.sizes(500, 500, materialized=1))
    assert [0] == found
    assert ReasonCode.RUN_ONCE not in reasons


def test_place_with_refused_keys_is_not_filtered():
    plan = Sums({0: 1, 1: 2})
    assert [0, 1, 2] == plan.filtered_facts(plan.sizes(500, 500, 500))[0]
    found, reasons = plan.filtered_facts(plan.sizes(500, 500, 5000))
    assert [2] == found
    assert ReasonCode.RUN_ONCE in reasons


def test_filtered_scan_has_no_run_once_reason():
    plan = Sums(TWICE)
    filters, _ = ready(plan.graph, plan.sizes(500, 500), (), OPTIONS)
    first = tuple(each for each in filters if each.probe.relation is plan.statistics[0])
    left = left_out(plan.graph, plan.sizes(500, 5000), OPTIONS, None, [first])
    assert [] == [each.probe.relation for each in left if each.reason.code is ReasonCode.RUN_ONCE]
    left = left_out(plan.graph, plan.sizes(500, 5000), OPTIONS)
    assert ReasonCode.RUN_ONCE in {each.reason.code for each in left}
