"""`QueryPlanner`: whole runs of a query without an engine; a script answers each request."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from pruning.keys.summary import KeySummary
from pruning.options import PruningOptions
from pruning.query.build_selection import BuildSelection
from pruning.query.exchange_reuse import SharedExchange
from pruning.query.filter_outcome import outcome_of
from pruning.query.filter_plan import unused
from pruning.query.join_condition import BuildSide
from pruning.query.join_graph import JoinGraph
from pruning.query.known_statistics import KnownStatistics
from pruning.query.lessons import NO_LESSON
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Field, Join, Limit, Node, PlanNames, Relation, Sort, SortKey, relations_of
from pruning.query.plan_statistics import Cardinality, QueryFacts, Sizes, UnknownStatistics
from pruning.query.planner import QueryPlanner
from pruning.query.planner_requests import (
    BoundKeys,
    JoinRows,
    PinFiles,
    PruneScan,
    RunBuilds,
    SummarizeTuples,
)
from pruning.query.requests import (
    DescribeFiles,
    DescribeRowGroups,
    DescribeRows,
    EstimateBytes,
    Request,
    RowShape,
    ScanContainers,
    TrustStatistics,
    answered,
    with_answers,
)
from pruning.reasons import Reason, ReasonCode
from pruning.scan.key_filter import RowWorth
from pruning.scan.scan_plan import ScanPlan
from pruning.scan.skipping import PruningResult, SkipReason
from pruning.scan.statistics import UNKNOWN, ColumnStatistics, ContainerKind, Containers
from pruning.values.domain import Domain
from pruning.values.types import ValueType
from tests.costs import FREE_BUILDS, NO_FIXED_COSTS
from tests.pruning.keys.test_summary import keys, summary
from tests.pruning.plans import ManyValues, Plans, at_least, call, column, equal, never_asked

# A scan of fewer than 55 bytes is not worth planning by metadata.
OPTIONS = FREE_BUILDS.with_limits(costs=replace(NO_FIXED_COSTS, planned_scan=100.0))
BIGINT = ValueType("bigint")
FILES = 10


@dataclass(frozen=True)
class Rows:
    nbytes: int
    count: int = 1
    is_local: bool = True


@dataclass(frozen=True)
class Built:
    keys: KeySummary | Reason
    rows: Rows | None = None
    from_cache: bool = False
    on_driver: bool = False
    reasons: tuple[Reason, ...] = ()
    seconds: float = 0.25


@dataclass(frozen=True)
class Scan:
    """A scan that reads some of ten files of ten bytes each."""

    plan: ScanPlan
    reasons: tuple[Reason, ...] = ()
    expected: Cardinality | None = None

    @property
    def planned_bytes(self) -> int:
        return 10 * self.plan.files.kept_count

    @staticmethod
    def of(kept: int, *reasons: Reason) -> Scan:
        mask = np.arange(FILES) < kept
        causes = np.where(mask, SkipReason.KEPT, SkipReason.STATISTICS).astype(np.int8)
        return Scan(ScanPlan(PruningResult(mask, causes), None, (), (), ()), reasons)


def files(*bounds: tuple[int, int], rows: int = 100, type_: ValueType | None = BIGINT) -> ScanContainers:
    """Files of ten bytes, with the least and the greatest value of the column `k` in each."""
    known = {} if type_ is None else {"k": ColumnStatistics.of(type_, [(*each, 0) for each in bounds])}
    count = len(bounds)
    names = [f"file {at}" for at in range(count)]
    containers = Containers(
        ContainerKind.FILE, names, np.full(count, rows, np.int64), np.full(count, 10, np.int64), known
    )
    return ScanContainers(containers, "k", type_)


@dataclass
class Script:
    """Answers by the type of a request and the place of its node or scan; an unknown request is an error."""

    builds: Mapping[int, Built] = field(default_factory=dict)
    bounds: Mapping[int, KeySummary | Reason] = field(default_factory=dict)
    scans: Mapping[int, Callable[[PruneScan], Scan | Reason]] = field(default_factory=dict)
    others: Mapping[type, Any] = field(default_factory=dict)
    log: list[Request] = field(default_factory=list)

    def run(self, planner: QueryPlanner) -> list[str]:
        """Each request as a word and its places."""
        answered(planner.run(), self.answer)
        return [_described(each) for each in self.log]

    def answer(self, request: Request[Any]) -> Any:
        self.log.append(request)
        match request:
            case RunBuilds(filters):
                return [self.builds[each.build_side.node.id] for each in filters]
            case BoundKeys(build_side):
                return self.bounds.get(build_side.node.id, Reason(ReasonCode.NO_STATISTICS, "k"))
            case PruneScan(relation):
                return self.scans[relation.id](request) if relation.id in self.scans else Scan.of(2)
            case JoinRows():
                return None
            case _:
                found = self.others[type(request)]
                return found(request) if callable(found) else found


def _described(request: Request[Any]) -> str:
    match request:
        case PinFiles(relations):
            return f"PinFiles {[each.id for each in relations]}"
        case RunBuilds(filters):
            return f"RunBuilds {[each.build_side.node.id for each in filters]}"
        case BoundKeys(build_side):
            return f"BoundKeys {build_side.node.id}"
        case SummarizeTuples(node) | JoinRows(node):
            return f"{type(request).__name__} {node.id}"
        case TrustStatistics(probe):
            return f"TrustStatistics {probe.relation.id}"
        case EstimateBytes(nodes):
            return f"EstimateBytes {[each.id for each in nodes]}"
        case DescribeRows(node):
            return f"DescribeRows {node.id}"
        case PruneScan(relation):
            return f"{type(request).__name__} {relation.id}"
        case DescribeFiles(relation, column=at) | DescribeRowGroups(relation, column=at):
            return f"{type(request).__name__} {relation.id}{'' if at is None else f' #{at}'}"
        case _:
            raise TypeError(request)


def some_keys(*items: int | None) -> KeySummary:
    return keys(BIGINT, list(items))


@dataclass
class Star:
    """fact.day = days.day and month >= 3: `few` is the build side."""

    fact: Relation
    days: Relation
    few: Node
    root: Node

    @staticmethod
    def of(kind: str = "EqualTo", *, table: str = "day") -> Star:
        plans = Plans()
        fact, days = plans.table(table, "item"), plans.table("day", "month")
        few = plans.filter(days, at_least(days.output[1], 3))
        root = plans.join(fact, few, call(kind, column(fact.output[0]), column(days.output[0])))
        return Star(fact, days, few, root)

    @staticmethod
    def without_condition() -> Star:
        """All days are the build side."""
        plans = Plans()
        fact, days = plans.table("day"), plans.table("day")
        return Star(fact, days, days, plans.join(fact, days, equal(*fact.output, *days.output)))

    def planner(self, options: PruningOptions = OPTIONS, **facts: Any) -> QueryPlanner:
        sizes = {self.fact.id: 5000, self.days.id: 10}
        known = QueryFacts(sizes, frozenset(sizes), **{"broadcast_limit": 1000, **facts})
        return QueryPlanner.of(JoinGraph.of(self.root), options, known, UnknownStatistics())


@pytest.fixture
def star() -> Star:
    return Star.of()


class Twice(UnknownStatistics):
    """The sums of a fact in two places, which the engine makes once, each joined with its own days."""

    def __init__(self) -> None:
        plans = Plans()
        self.worth: list[RowWorth] = []
        self.facts: list[Relation] = []
        self.sums: list[Node] = []
        self.few: list[Node] = []
        joins: list[Node] = []
        for part in range(2):
            fact = plans.table("day")
            self.facts.append(fact)
            self.sums.append(plans.aggregate(fact, *fact.output))
            days = plans.table("day", "month")
            self.few.append(plans.filter(days, at_least(days.output[1], part)))
            both = self.sums[-1], self.few[-1]
            joins.append(plans.join(*both, equal(*(each.output[0] for each in both))))
        self.root = plans.union(*joins)

    def shared_exchanges(self, build_side: BuildSide, probe: ProbeColumn) -> tuple[SharedExchange, ...]:  # noqa: ARG002 - of a protocol
        if probe.relation not in self.facts:
            return ()
        own = self.facts.index(probe.relation)
        return (SharedExchange(self.sums[own], (self.sums[1 - own],)),)

    def matching_share(self, relation: Relation, column: int, domain: Domain) -> float:  # noqa: ARG002 - of a protocol
        return 0.2

    def domain_size(self, relation: Relation, column: int) -> float:  # noqa: ARG002 - of a protocol
        return 30.0

    def run(self, *builds: Built, expected: Cardinality | None = None) -> tuple[QueryPlanner, list[str]]:
        sizes = {each.id: 5000 if each in self.facts else 10 for each in relations_of(self.root)}
        facts = QueryFacts(sizes, frozenset(sizes), broadcast_limit=1000)
        planner = QueryPlanner.of(JoinGraph.of(self.root), OPTIONS, facts, self)
        script = Script({few.id: built for few, built in zip(self.few, builds, strict=True)})
        script.scans = {each.id: partial(self._pruned, expected) for each in self.facts}
        return planner, script.run(planner)

    def _pruned(self, expected: Cardinality | None, request: PruneScan) -> Scan:
        self.worth.append(request.worth[request.relation.output[0],])
        return replace(Scan.of(2), expected=expected)


def test_keys_of_all_places_filter_each_scan_of_a_shared_exchange():
    plan = Twice()
    planner, log = plan.run(Built(some_keys(3, 4), Rows(10)), Built(some_keys(4, 9), Rows(10)))
    first, second = (planner.keys[each.id][each.output[0]] for each in plan.facts)
    assert first == second
    assert [str(Domain.of(BIGINT, 3, 4, 9))] == [str(each.domains[0]) for each in first]
    assert [f"PruneScan {each.id}" for each in plan.facts] == [each for each in log if each.startswith("PruneScan")]
    # Keys of several columns would be those of one place.
    assert {} == planner.tuples
    assert [] == codes(planner)


def test_rows_of_united_scans_are_tested_alike():
    plan = Twice()
    plan.run(Built(some_keys(3, 4)), Built(some_keys(4, 9)), expected=Cardinality(2, 0.5))
    first, second = plan.worth
    assert first == second
    assert first.spared > 0


@pytest.mark.parametrize(
    ("other", "code"),
    [(Reason(ReasonCode.BUILD_FAILED, "k"), ReasonCode.BUILD_FAILED), (keys(ValueType("int"), [4]), None)],
    ids=["failed", "other type"],
)
def test_keys_of_one_place_alone_filter_no_scan_of_a_shared_exchange(other, code):
    plan = Twice()
    planner, log = plan.run(Built(some_keys(3, 4)), Built(other))
    assert ({}, []) == (planner.keys, [each for each in log if each.startswith("PruneScan")])
    assert {ReasonCode.RUN_ONCE, code} - {None} <= set(codes(planner))


class Counted(UnknownStatistics):
    """Tables of a hundred rows, each with its own value in each column."""

    def rows(self, relation: Relation) -> int:  # noqa: ARG002 - of a protocol
        return 100

    def domain_size(self, relation: Relation, column: int) -> float | None:  # noqa: ARG002 - of a protocol
        return 100.0


def codes(planner: QueryPlanner) -> list[ReasonCode]:
    return [each.code for each in planner.reasons]


def test_keys_of_a_build_filter_the_scan(star):
    planner, script = star.planner(), Script({star.few.id: Built(some_keys(3, 4))})
    assert script.run(planner) == [
        f"RunBuilds [{star.few.id}]",
        f"PruneScan {star.fact.id}",
    ]
    keys = replace(some_keys(3, 4), source=PlanNames(star.root).column(star.few.output[0]))
    assert {star.fact.output[0]: [keys]} == script.log[1].keys == planner.keys[star.fact.id]
    assert {planner.levels[0][0].build_side.id: 0.25} == planner.seconds
    assert (20, {}) == (planner.current_sizes().scanned[star.fact.id], planner.reasons)
    assert [1] == [len(level) for level in planner.levels]


def test_few_rows_replace_the_build_side(star):
    planner = star.planner()
    script = Script({star.few.id: Built(some_keys(3), Rows(1000))})
    assert f"JoinRows {star.few.id}" == script.run(planner)[1]
    assert ({star.few.id, star.days.id}, {star.few.id: 1000}) == (planner.materialized, planner.row_bytes)
    assert 0 == planner.current_sizes().scanned[star.days.id]


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        (OPTIONS, {"broadcast_limit": 999}),
        (replace(OPTIONS, broadcast_strategy="NONE"), {}),
        # Spark prunes partitions of the fact by a column that no key reaches.
        (OPTIONS, {"partitions": frozenset({77})}),
    ],
    ids=["too-large", "off", "partitions"],
)
def test_rows_do_not_replace_the_build_side(star, options, facts):
    planner = star.planner(options, **facts)
    script = Script({star.few.id: Built(some_keys(3), Rows(1000))})
    assert not [each for each in script.run(planner) if each.startswith("JoinRows")]
    assert (set(), {}) == (planner.materialized, planner.row_bytes)
    assert {star.fact.id} == planner.scans.keys()


def test_unchanged_scan_keeps_its_reasons(star):
    why = Reason(ReasonCode.UNCLUSTERED, "day")
    planner = star.planner(lesson=NO_LESSON)
    script = Script({star.few.id: Built(some_keys(3))}, scans={star.fact.id: lambda _: Scan.of(FILES, why)})
    script.run(planner)
    assert ({}, [why], 5000) == (planner.scans, list(planner.reasons), planner.current_sizes().scanned[star.fact.id])
    outcome = outcome_of(planner.tried.values(), planner.scans, planner.materialized)
    assert ([star.few.id], frozenset()) == ([each.build for each in outcome.idle], outcome.useful)


def test_unplannable_scan_keeps_its_reason(star):
    why = Reason(ReasonCode.STATISTICS_FAILED, "fact")
    planner = star.planner(lesson=NO_LESSON)
    Script({star.few.id: Built(some_keys(3))}, scans={star.fact.id: lambda _: why}).run(planner)
    assert ({}, [why]) == (planner.scans, list(planner.reasons))
    # Nobody knows what the keys would have done.
    assert {} == planner.tried


def test_empty_build_filters_the_scan(star):
    planner = star.planner()
    # The scan of no row is a build for the days.
    builds = {star.few.id: Built(some_keys()), star.fact.id: Built(some_keys())}
    Script(builds, scans={star.fact.id: lambda _: Scan.of(0)}).run(planner)
    assert (0, True) == (
        planner.current_sizes().scanned[star.fact.id],
        planner.keys[star.fact.id][star.fact.output[0]][0].is_none,
    )


@pytest.mark.parametrize("code", [ReasonCode.BUILD_FAILED, ReasonCode.BUILD_TIMED_OUT])
@pytest.mark.parametrize("is_bounded", [True, False])
def test_failed_build_is_bounded_by_statistics(star, code, is_bounded):
    why, unclustered = Reason(code, "day"), Reason(ReasonCode.UNCLUSTERED, "day", "by the statistics of the build side")
    others = {DescribeFiles: files((0, 9), (10, 19) if is_bounded else (0, 9))}
    planner = star.planner(lesson=NO_LESSON)
    script = Script({star.few.id: Built(why)}, {star.few.id: some_keys(1, 2)}, others=others)
    requests = script.run(planner)
    assert [f"RunBuilds [{star.few.id}]", f"BoundKeys {star.few.id}"] == requests[:2]
    assert (f"PruneScan {star.fact.id}" in requests) == is_bounded == (star.fact.id in planner.scans)
    assert [why, *([] if is_bounded else [unclustered])] == list(planner.reasons)
    outcome = outcome_of(planner.tried.values(), planner.scans, planner.materialized)
    assert not outcome.idle


@pytest.mark.parametrize("planned_scan", [5000.0, 12_000.0])
def test_statistics_of_a_build_have_to_skip_more_than_planning_costs(star, planned_scan):
    """Half of the 5,000 bytes take 9,000 nanoseconds."""
    why, others = Reason(ReasonCode.BUILD_FAILED, "day"), {DescribeFiles: files((0, 9), (10, 19))}
    planner = star.planner(FREE_BUILDS.with_limits(costs=replace(NO_FIXED_COSTS, planned_scan=planned_scan)))
    requests = Script({star.few.id: Built(why)}, {star.few.id: some_keys(1, 2)}, others=others).run(planner)
    is_used = planned_scan < 9000
    assert (f"PruneScan {star.fact.id}" in requests) == is_used
    assert [ReasonCode.BUILD_FAILED, *([] if is_used else [ReasonCode.NOT_WORTH])] == codes(planner)


def test_build_of_too_many_rows_gives_no_keys(star):
    why = Reason(ReasonCode.TOO_MANY_ROWS, "day")
    planner, script = star.planner(), Script({star.few.id: Built(why)})
    assert [f"RunBuilds [{star.few.id}]"] == script.run(planner)
    assert ({}, [why]) == (planner.scans, list(planner.reasons))


@pytest.mark.parametrize(("items", "is_used"), [((3, None), False), ((3,), True)])
def test_null_key_of_a_null_safe_join_filters_nothing(items, is_used):
    star = Star.of("EqualNullSafe")
    planner = star.planner()
    script = Script({star.few.id: Built(some_keys(*items), Rows(10))})
    requests = script.run(planner)
    assert (f"PruneScan {star.fact.id}" in requests, f"JoinRows {star.few.id}" in requests) == (is_used, True)
    assert ([] if is_used else [ReasonCode.NULL_SAFE]) == codes(planner)


@dataclass
class SomeNulls(UnknownStatistics):
    """Columns that may hold NULL."""

    columns: Collection[int]

    def may_have_nulls(self, relation: Relation, column: int) -> bool:  # noqa: ARG002 - of a protocol
        return column in self.columns


# Failure catalogue 11: one NULL on either side of NOT IN changes every row.
@pytest.mark.parametrize(
    ("nulls", "items", "runs", "is_used"),
    [
        ((), (3, 5), True, True),
        ((), (3, None), True, False),
        (("fact",), (3, 5), False, False),
        (("days",), (3, 5), False, False),
    ],
    ids=["no null", "a null key", "a null row", "perhaps a null key"],
)
def test_not_in_filters_where_neither_side_has_a_null(nulls, items, runs, is_used):
    star = Star.of()
    same = equal(star.days.output[0], star.fact.output[0])
    condition = call("Or", same, call("IsNull", same))
    root = Join(star.root.id, 0, "Join", star.few.output, (star.few, star.fact), type="LeftAnti", condition=condition)
    sizes = {star.fact.id: 5000, star.days.id: 10}
    columns = {each.output[0] for name, each in (("fact", star.fact), ("days", star.days)) if name in nulls}
    known = QueryFacts(sizes, frozenset(sizes), broadcast_limit=1000)
    planner = QueryPlanner.of(JoinGraph.of(root), OPTIONS, known, SomeNulls(columns))
    requests = Script({star.few.id: Built(some_keys(*items))}).run(planner)
    assert (runs, is_used) == (f"RunBuilds [{star.few.id}]" in requests, f"PruneScan {star.fact.id}" in requests)
    explained = answered(unused(planner.selection()), never_asked)
    found = {*codes(planner), *(each.reason.code for each in explained)}
    assert is_used or ReasonCode.NULL_AWARE in found


def test_keys_of_a_range_join_become_a_bound():
    star = Star.of("GreaterThanOrEqual")
    planner = star.planner()
    Script({star.few.id: Built(some_keys(3, 9, None))}).run(planner)
    (found,) = planner.keys[star.fact.id][star.fact.output[0]]
    assert ("{[3, 9223372036854775807]}", False) == (str(found.domains[0]), found.exact)


@pytest.mark.parametrize(
    "rows",
    [None, Rows(1001), Rows(1000), Rows(1000, is_local=False)],
    ids=["none", "too large to broadcast", "few", "stored"],
)
def test_keys_of_cached_rows_need_materialized_rows(rows):
    """Spark may evict cached rows and compute them again from a table that has changed.

    They are joined even if there are too many to broadcast them.
    """
    plans = Plans()
    fact, cached = plans.table("day"), plans.other("InMemoryRelation", output=plans.fresh())
    root = plans.join(fact, cached, equal(fact.output[0], cached.output[0]))
    facts = QueryFacts({fact.id: 5000}, frozenset({fact.id}), broadcast_limit=1000)
    planner = QueryPlanner.of(JoinGraph.of(root), OPTIONS, facts, ManyValues())
    requests = Script({cached.id: Built(some_keys(3), rows)}).run(planner)
    is_used = rows is not None
    assert (f"JoinRows {cached.id}" in requests, f"PruneScan {fact.id}" in requests) == (is_used, is_used)
    assert ([] if is_used else [ReasonCode.UNREPEATABLE_KEYS]) == codes(planner)
    assert (rows == Rows(1000)) is any(size <= facts.broadcast_limit for size in planner.row_bytes.values())


@pytest.mark.parametrize("is_local", [True, False])
def test_rows_that_another_run_may_not_give_are_joined_without_keys(is_local):
    """The side would run again, with its side effects, if its keys alone failed."""
    plans = Plans()
    fact, drawn = plans.table("day"), plans.other("LogicalRDD", output=plans.fresh())
    root = plans.join(fact, drawn, equal(fact.output[0], drawn.output[0]))
    facts = QueryFacts({fact.id: 5000, drawn.id: 10}, frozenset({fact.id}), broadcast_limit=1000)
    planner = QueryPlanner.of(JoinGraph.of(root), OPTIONS, facts, ManyValues())
    why = Reason(ReasonCode.BUILD_TIMED_OUT, "day")
    requests = Script({drawn.id: Built(why, Rows(10, is_local=is_local))}).run(planner)
    assert [f"RunBuilds [{drawn.id}]", f"JoinRows {drawn.id}"] == requests
    assert ({}, [why], {drawn.id}) == (planner.scans, list(planner.reasons), planner.materialized)


def test_planner_records_builds_from_the_cache(star):
    planner = star.planner()
    Script({star.few.id: Built(some_keys(3), from_cache=True)}).run(planner)
    assert {planner.levels[0][0].build_side.id} == planner.from_cache
    assert set() == planner.on_driver


def test_planner_records_builds_on_the_driver(star):
    planner = star.planner()
    Script({star.few.id: Built(some_keys(3), on_driver=True)}).run(planner)
    assert {planner.levels[0][0].build_side.id} == planner.on_driver


def test_level_waits_for_the_scan_pruned_before():
    plans = Plans()
    fact, middle, small = plans.table("k"), plans.table("k", "s"), plans.table("s")
    few = plans.filter(small, at_least(*small.output, 3))
    dimension = plans.join(middle, few, equal(middle.output[1], *small.output))
    root = plans.join(fact, dimension, equal(*fact.output, middle.output[0]))
    sizes = {fact.id: 50_000, middle.id: 500, small.id: 10}
    facts = QueryFacts(sizes, frozenset(sizes))
    planner = QueryPlanner.of(JoinGraph.of(root), OPTIONS, facts, Counted())
    builds = {each.id: Built(some_keys(3)) for each in (few, dimension, fact, middle)}
    script = Script(builds)
    requests = script.run(planner)
    # The dimension, or only the table in it, is run for the fact.
    for_fact = next(it for it in requests if it.startswith((f"RunBuilds [{middle.id}", f"RunBuilds [{dimension.id}")))
    expected = [f"RunBuilds [{few.id}]", f"PruneScan {middle.id}", for_fact, f"PruneScan {fact.id}"]
    assert sorted(expected, key=requests.index) == expected


def test_key_tuples_filter_if_rows_are_materialized():
    plans = Plans()
    fact, days = plans.table("day", "shop"), plans.table("day", "shop")
    few = plans.filter(days, at_least(days.output[1], 3))
    root = plans.join(fact, few, equal(fact.output[0], days.output[0]), equal(fact.output[1], days.output[1]))
    sizes = {fact.id: 5000, days.id: 50}
    facts = QueryFacts(sizes, frozenset(sizes), broadcast_limit=100)
    planner = QueryPlanner.of(JoinGraph.of(root), OPTIONS, facts, UnknownStatistics())
    tuples = summary([BIGINT, BIGINT], [(at, at) for at in range(9)])
    others = {SummarizeTuples: tuples}
    script = Script({few.id: Built(some_keys(*range(9)), Rows(100))}, others=others)
    assert f"SummarizeTuples {few.id}" in script.run(planner)
    assert {fact.output: [tuples]} == planner.tuples[fact.id] == script.log[-1].tuples


@pytest.mark.parametrize("is_pinned", [True, False])
def test_unversioned_files_are_pinned_before_builds(star, is_pinned):
    why = Reason(ReasonCode.STATISTICS_FAILED, "days")
    planner = star.planner(unpinned=frozenset({star.days.id}))
    others = {PinFiles: {} if is_pinned else {star.days.id: why}}
    requests = Script({star.few.id: Built(some_keys(3))}, others=others).run(planner)
    assert f"PinFiles [{star.days.id}]" == requests[0]
    # A scan that cannot be pinned gives no keys.
    assert (f"RunBuilds [{star.few.id}]" in requests) == is_pinned
    assert ([] if is_pinned else [why]) == list(planner.reasons)


def test_no_request_without_a_worthwhile_filter(star):
    planner = star.planner(PruningOptions(), unpinned=frozenset({star.days.id}))
    assert [] == Script().run(planner)
    assert ([], {}) == (planner.levels, planner.scans)


@dataclass
class Ordered:
    """ORDER BY k LIMIT 5 over one scan."""

    scan: Relation
    root: Node

    @staticmethod
    def of() -> Ordered:
        plans = Plans()
        scan = plans.table("k")
        order = (SortKey(column(*scan.output), is_descending=False, nulls_first=True),)
        sort = Sort(*plans.place((scan,)), "Sort", scan.output, (scan,), order=order, is_global=True)
        root = Limit(*plans.place((sort,)), "GlobalLimit", scan.output, (sort,), count=5)
        return Ordered(scan, root)

    def planner(self) -> QueryPlanner:
        facts = QueryFacts({self.scan.id: 5000}, frozenset({self.scan.id}))
        return QueryPlanner.of(JoinGraph.of(self.root), OPTIONS, facts, UnknownStatistics())


def test_first_rows_filter_a_scan_by_metadata():
    ordered = Ordered.of()
    others = {TrustStatistics: True, DescribeFiles: files((0, 9), (10, 19))}
    planner, script, at = (
        ordered.planner(),
        Script(others={**others, DescribeRowGroups: files((0, 9))}),
        ordered.scan.id,
    )
    assert script.run(planner) == [
        f"TrustStatistics {at}",
        f"DescribeFiles {at} #0",
        f"DescribeRowGroups {at} #0",
        f"DescribeFiles {at} #0",
        f"PruneScan {at}",
    ]
    ((column_, made),) = script.log[4].first_rows
    assert (ordered.scan.output[0], "{[-9223372036854775808, 9]}") == (column_, str(made.domains["k"]))
    # One of two files, and the scan may lose all of its row groups.
    (found,) = (each.found for each in planner.top_filters())
    assert (0.0, found.saved.high / 2, True) == (found.saved.low, found.saved.expected, found.saved.high > 0)


@pytest.mark.parametrize(
    ("trusted", "described", "kept", "code"),
    [
        (False, None, 2, ReasonCode.TOO_FEW_FIRST_ROWS),
        (True, files((0, 9), rows=4), 2, ReasonCode.TOO_FEW_FIRST_ROWS),
        (True, files((0, 9), type_=ValueType("int")), 2, ReasonCode.TOO_FEW_FIRST_ROWS),
        (True, files((0, 9), type_=None), 2, ReasonCode.TOO_FEW_FIRST_ROWS),
        (True, Reason(ReasonCode.STATISTICS_FAILED, "t"), 2, ReasonCode.STATISTICS_FAILED),
        (True, files((0, 9)), FILES, ReasonCode.UNCLUSTERED),
    ],
    ids=["distrusted", "few", "other type", "no type", "failed", "unclustered"],
)
def test_first_rows_without_a_filter_have_a_reason(trusted, described, kept, code):
    ordered = Ordered.of()
    planner = ordered.planner()
    others = {TrustStatistics: trusted, DescribeFiles: described, DescribeRowGroups: described}
    Script(scans={ordered.scan.id: lambda _: Scan.of(kept)}, others=others).run(planner)
    assert ({}, [code]) == (planner.scans, [each.found.code for each in planner.top_filters()])
    assert ([code] if code is ReasonCode.STATISTICS_FAILED else []) == codes(planner)


def test_unplannable_scan_refuses_its_first_rows():
    """The reason is that of the scan, though a column of another scan has the same name."""
    ordered = Ordered.of()
    planner, why = ordered.planner(), Reason(ReasonCode.STATISTICS_FAILED, "t")
    found = files((0, 9), (10, 19))
    others = {TrustStatistics: True, DescribeFiles: found, DescribeRowGroups: found}
    Script(scans={ordered.scan.id: lambda _: why}, others=others).run(planner)
    assert ([why], [why]) == ([each.found for each in planner.top_filters()], list(planner.reasons))


@dataclass
class Asked:
    """A star of two scans whose statistics are asked for; bytes by `Relation.id`."""

    star: Star
    sizes: Mapping[int, int]
    options: PruningOptions = OPTIONS

    def planner(self, **facts: Any) -> QueryPlanner:
        graph = JoinGraph.of(self.star.root)
        known = QueryFacts(self.sizes, frozenset(self.sizes), **{"broadcast_limit": 1000, **facts})
        return QueryPlanner.of(graph, self.options, known, KnownStatistics(self.star.root, known, self.options))


def tens(request: EstimateBytes) -> list[int]:
    return [10] * len(request.nodes)


def metadata(log: list[str]) -> list[str]:
    return [each for each in log if each.startswith(("Describe", "Estimate", "Trust"))]


def test_estimates_of_all_joins_over_equal_nodes_are_one_request():
    """With a request for each join, the plan would be walked as often as it has joins."""
    plans = Plans()
    sides = [(plans.window(left := plans.table("k"), *left.output), plans.table("k")) for _ in range(20)]
    joins = [plans.join(left, right, equal(left.output[0], *right.output)) for left, right in sides]
    root = plans.union(*joins)
    found = {each.id: joins[0].left.id for join in joins for each in join.children}
    facts = QueryFacts({}, frozenset(), equal=found, broadcast_limit=1000)
    script = Script(others={EstimateBytes: tens})
    edge = next(each for each in JoinGraph.of(root).edges)
    known = _Answering(KnownStatistics(root, facts, OPTIONS), script)
    (changed,) = known.shared_exchanges(edge.build_side, edge.probes[0])
    assert 19 == len(changed.others)
    assert [41] == [len(each.nodes) for each in script.log]


def test_unreadable_statistics_of_a_build_are_a_reason():
    """By its bytes a build side without a condition has more rows than the column has values, so it filters nothing."""
    star = Star.without_condition()
    why = Reason(ReasonCode.STATISTICS_FAILED, "days")
    planner = Asked(star, {star.fact.id: 5000, star.days.id: 900}).planner()
    described = {DescribeFiles: lambda it: why if it.relation is star.days else files((0, 9)), DescribeRowGroups: why}
    script = Script(others=described)
    assert not [each for each in script.run(planner) if each.startswith(("RunBuilds", "PruneScan"))]
    assert [why] == list(planner.reasons)


def test_unpinned_scan_is_refused_for_its_own_reason(star):
    why = Reason(ReasonCode.SKIPPING_DISABLED, "facts")
    planner = star.planner(unpinned=frozenset({star.fact.id}))
    Script({star.few.id: Built(some_keys(3))}, others={PinFiles: {star.fact.id: why}}).run(planner)
    assert why == planner.selection().why_no_filter(probe_of(star))


@pytest.mark.parametrize("has_error", [True, False])
def test_build_without_rows_stays_a_scan_where_a_constant_would_hide_an_error(has_error):
    plans = Plans()
    fact, days = plans.table("day"), plans.table("day", "month")
    few = plans.filter(days, at_least(days.output[1], 3))
    root: Node = plans.join(fact, few, equal(fact.output[0], days.output[0]))
    if has_error:
        several = plans.table("m")
        root = plans.filter(root, equal(column(fact.output[0]), call("ScalarSubquery")), subqueries=(several,))
    sizes = {fact.id: 5000, days.id: 50}
    facts = QueryFacts(sizes, frozenset(sizes), broadcast_limit=1000)
    planner = QueryPlanner.of(JoinGraph.of(root), OPTIONS, facts, UnknownStatistics())
    script = Script(
        {few.id: Built(some_keys(), Rows(0)), fact.id: Built(some_keys())},
        scans={each.id: lambda _: Scan.of(0) for each in (fact, days)},
    )
    script.run(planner)
    assert [(few, has_error)] == [(each.node, each.keeps_scan) for each in script.log if isinstance(each, JoinRows)]
    assert [has_error] == [
        each.keeps_scan for each in script.log if isinstance(each, PruneScan) and each.relation is fact
    ]


@pytest.mark.parametrize(
    "fact_files",
    [
        files(*((at, at + 9) for at in range(0, 100, 10))),
        files((0, 19), (0, 19)),
        Reason(ReasonCode.STATISTICS_FAILED, "t"),
    ],
    ids=["clustered", "unclustered", "unreadable"],
)
def test_rules_ask_each_question_once(star, fact_files):
    planner = Asked(star, {star.fact.id: 150, star.days.id: 50}).planner()
    others = {
        DescribeFiles: fact_files,
        DescribeRowGroups: fact_files,
        EstimateBytes: lambda it: [10] * len(it.nodes),
        DescribeRows: RowShape(8, has_long_values=False),
    }
    script = Script({star.few.id: Built(some_keys(3))}, others=others)
    asked = metadata(script.run(planner))
    assert len(asked) == len(set(asked)) > 0
    # Row groups of the largest files tell which rows of a value stand together.
    is_readable = isinstance(fact_files, ScanContainers)
    assert is_readable == (f"DescribeRowGroups {star.fact.id} #{star.fact.output[0]}" in asked)


@dataclass(frozen=True)
class Facts:
    """`KnownStatistics` of a star whose files and estimates are given."""

    star: Star
    known: KnownStatistics

    @staticmethod
    def of(star: Star, answers: Mapping[type, Any], **facts: Any) -> Facts:
        known = KnownStatistics(star.root, QueryFacts({}, frozenset(), **facts), OPTIONS)
        return Facts(star, _Answering(known, Script(others=answers)))


class _Answering:
    """Asks the script for each missing answer."""

    def __init__(self, known: KnownStatistics, script: Script) -> None:
        self._known, self._script = known, script

    def __getattr__(self, name: str) -> Callable[..., Any]:
        rule = getattr(self._known, name)
        return lambda *args: answered(with_answers(lambda: rule(*args)), self._script.answer)


@pytest.mark.parametrize(
    ("probe", "build", "build_rows", "expected"),
    [
        (files((0, 999)), files((0, 998)), 999, True),
        (files((0, 999)), files((0, 999)), 1000, False),
        (files((0, 999)), files((0, 4999)), 5000, False),
        # Where nothing tells of values, each row may have another.
        (files((0, 999), type_=None), files((0, 9)), 1, True),
        (files((0, 999), type_=None), files((0, 999)), 1000, False),
        (files((0, 999)), files((0, 9)), UNKNOWN, True),
    ],
)
def test_build_side_without_a_condition_filters_where_it_has_fewer_keys(probe, build, build_rows, expected):
    star = Star.without_condition()

    def described(request: DescribeFiles) -> ScanContainers:
        return rows_of(probe, 1000) if request.relation is star.fact else rows_of(build, build_rows)

    def rows_of(found: ScanContainers, rows: int) -> ScanContainers:
        counted = np.full(len(found.containers), rows, np.int64)
        return replace(found, containers=replace(found.containers, rows=counted))

    graph = JoinGraph.of(star.root)
    (edge,) = [each for each in graph.edges if each.probes[0].relation is star.fact]
    known = KnownStatistics(star.root, QueryFacts({}, frozenset()), OPTIONS)
    sizes = Sizes({star.fact.id: 1000, star.few.id: 640}, {star.fact.id, star.few.id}, (), statistics=known)
    selection = BuildSelection.of(graph, sizes, OPTIONS)
    script = Script(others={DescribeFiles: described, DescribeRowGroups: Reason(ReasonCode.STATISTICS_FAILED, "k")})
    asked = with_answers(lambda: list(selection.sound(edge.build_side, edge.probes[0])))
    (found,) = answered(asked, script.answer)
    assert found == edge.build_side if expected else found.reason.code is ReasonCode.UNSELECTIVE_BUILD


def test_values_of_the_columns_that_a_query_uses_are_decoded():
    plans = Plans()
    types = {"a": "int", "b": "string", "c": "timestamp", "d": "decimal(20,2)", "s": "", "e": "int"}
    table = replace(plans.table(*types), types=tuple(types.values()))
    fields = (Field(-1, table.output[4], ("s", "x"), "date"),)
    table = replace(table, output=(*table.output, -1), fields=fields)
    facts = QueryFacts({}, frozenset(), used=frozenset(table.output[:5]))
    # A text takes as long as four numbers, a timestamp as three, a decimal of 128 bits as fifteen.
    assert 1 + 4 + 3 + 15 + 1 == KnownStatistics(table, facts, OPTIONS).decoded_values(table)
    assert 1 == KnownStatistics(table, QueryFacts({}, frozenset()), OPTIONS).decoded_values(table)


@pytest.mark.parametrize(
    ("in_files", "in_groups", "rows", "expected"),
    [
        ((0, 0), None, 100, False),
        # Footers are not asked for where files tell of NULL.
        ((0, 2), (), 100, True),
        ((0, None), (0, 0), 100, False),
        ((None, None), (0, None), 100, True),
        ((None, None), None, 100, True),
        # Files without a row have no NULL.
        ((None, None), None, 0, False),
    ],
)
def test_nulls_are_excluded_by_counts_of_all_containers(star, in_files, in_groups, rows, expected):
    def counted(nulls: tuple[int | None, ...]) -> ScanContainers:
        found = files(*[(0, 9)] * len(nulls), rows=rows)
        column_ = ColumnStatistics.of(BIGINT, [(0, 9, each) for each in nulls])
        return replace(found, containers=replace(found.containers, columns={"k": column_}))

    failed = Reason(ReasonCode.STATISTICS_FAILED, "k")
    answers: dict[type, Any] = {DescribeFiles: counted(in_files)}
    if in_groups != ():
        answers[DescribeRowGroups] = counted(in_groups) if in_groups else failed
    found = Facts.of(star, answers).known
    assert expected is found.may_have_nulls(star.fact, star.fact.output[0])
    # Writers differ in whether a NULL struct counts for its fields.
    assert Facts.of(star, {}).known.may_have_nulls(star.fact, -1)
    unlisted = replace(counted((0, 0)).containers, is_listed=False)
    whole = Facts.of(star, {DescribeFiles: replace(counted((0, 0)), containers=unlisted)}).known
    assert whole.may_have_nulls(star.fact, star.fact.output[0])


@pytest.mark.parametrize(
    ("in_files", "in_groups", "expected"),
    [
        # INT96, and a log that tells nothing of the column.
        (ReasonCode.INT96, ReasonCode.INT96, ReasonCode.INT96),
        (ReasonCode.NO_STATISTICS, ReasonCode.INT96, ReasonCode.NO_STATISTICS),
        # Row groups may be skipped all the same; some files have bounds; nothing could be read.
        (ReasonCode.NO_STATISTICS, None, None),
        (None, ReasonCode.INT96, None),
        (ReasonCode.INT96, "failed", None),
        ("failed", ReasonCode.INT96, None),
    ],
)
def test_bounds_are_missing_where_no_level_has_one(star, in_files, in_groups, expected):
    def described(missing: ReasonCode | str | None) -> ScanContainers | Reason:
        if missing == "failed":
            return Reason(ReasonCode.STATISTICS_FAILED, "k")
        known = ColumnStatistics.of(BIGINT, [(None, None, 0) if missing else (0, 9, 0)] * 2)
        known = replace(known, missing=missing or known.missing)
        found = files((0, 9), (10, 19))
        return replace(found, containers=replace(found.containers, columns={"k": known}))

    known = Facts.of(star, {DescribeFiles: described(in_files), DescribeRowGroups: described(in_groups)}).known
    assert expected is known.missing_bounds(probe_of(star))


@pytest.mark.parametrize(
    ("limit", "left", "right", "is_broadcast"),
    [(100, 500, 100, True), (99, 500, 100, False), (-1, 0, 0, False), (100, 100, 500, True)],
)
def test_join_is_broadcast_if_a_side_is_small(star, limit, left, right, is_broadcast):
    sizes = {star.fact.id: left, star.few.id: right}
    found = Facts.of(
        star, {EstimateBytes: lambda it: [sizes[each.id] for each in it.nodes]}, broadcast_limit=limit
    ).known
    assert is_broadcast is found.is_broadcast(star.root)
    assert (is_broadcast and left < right) == found.is_broadcast_side(star.root, star.fact)


@pytest.mark.parametrize(
    ("rows", "shape", "limit", "expected"),
    [
        (10, RowShape(8, has_long_values=False), 100_000, True),
        (10, RowShape(8, has_long_values=False), 100, False),
        (60_000, RowShape(8, has_long_values=False), 1 << 40, True),
        (60_000, RowShape(8, has_long_values=True), 1 << 40, False),
        (10, RowShape(8, has_long_values=False), -1, True),
    ],
    ids=["few", "above the broadcast limit", "many", "many long", "no broadcast"],
)
def test_rows_are_few_by_number_and_bytes(star, rows, shape, limit, expected):
    found = Facts.of(star, {DescribeRows: shape}, broadcast_limit=limit).known
    assert expected == found.are_few(star.few, rows)


def test_share_of_needed_columns_is_estimated_from_the_largest_files(star):
    groups = files((0, 9), rows=100)
    described = {DescribeFiles: files((0, 9), (10, 19), (20, 29)), DescribeRowGroups: groups}
    assert (0.5, 300) == (
        Facts.of(star, described).known.needed_share(star.fact),
        Facts.of(star, described).known.rows(star.fact),
    )
    failed = Reason(ReasonCode.STATISTICS_FAILED, "t")
    unknown = Facts.of(star, {DescribeFiles: failed}).known
    assert (1.0, 0, 1.0) == (
        unknown.needed_share(star.fact),
        unknown.rows(star.fact),
        unknown.unprunable_fraction(probe_of(star)),
    )


def probe_of(star: Star) -> Any:
    return next(each.probes[0] for each in JoinGraph.of(star.root).edges if each.probes[0].relation is star.fact)


STRING = ValueType("string")


def texts(*bounds: tuple[str, str], distinct: Sequence[int] | None = None, rows: int = 100) -> ScanContainers:
    """Containers of a column of texts with bounds, and the different values that their dictionaries tell."""
    found = files(*[(0, 9)] * len(bounds), rows=rows)
    known = ColumnStatistics.of(STRING, [(*each, 0) for each in bounds])
    known = replace(known, distinct=None if distinct is None else np.array(distinct, np.int64))
    return ScanContainers(replace(found.containers, columns={"k": known}), "k", STRING)


SORTED, MIXED = [("a", "b"), ("c", "d"), ("e", "f"), ("g", "h")], [("a", "h")] * 4


@pytest.mark.parametrize(
    ("bounds", "groups", "expected"),
    [
        # Each value is in one of four sorted files, or in all of them.
        (SORTED, texts(*SORTED[:2], distinct=[5, 7]), 24.0),
        # Or in one of two row groups of such a file.
        (SORTED, texts(("a", "a"), ("b", "b"), ("c", "c"), ("d", "d"), distinct=[5, 7, 5, 7]), 48.0),
        (MIXED, texts(*MIXED[:2], distinct=[5, 7]), 6.0),
        (MIXED, texts(*MIXED[:2], distinct=[UNKNOWN, 7]), 7.0),
        # Dictionaries may tell a fourth of the values: then each row may have another one.
        (MIXED, texts(*MIXED[:2], distinct=[100, 100]), 400.0),
        (SORTED, texts(*SORTED[:2], distinct=[25, 25]), 400.0),
        (MIXED, texts(*MIXED[:2], distinct=[24, 24]), 24.0),
        (MIXED, texts(*MIXED[:2], distinct=[UNKNOWN, UNKNOWN]), None),
        (MIXED, texts(*MIXED[:2], distinct=[0, 0], rows=0), None),
        (MIXED, texts(*MIXED[:2]), None),
        (MIXED, texts(), None),
        (MIXED, Reason(ReasonCode.STATISTICS_FAILED, "t"), None),
    ],
)
def test_dictionaries_tell_the_values_of_a_column_of_texts(star, bounds, groups, expected):
    found = Facts.of(star, {DescribeFiles: texts(*bounds), DescribeRowGroups: groups})
    relation, column = probe_of(star).relation, probe_of(star).column
    assert pytest.approx(expected) == found.known.domain_size(relation, column)
    # Values repeat from row group to row group, or nothing tells how often.
    assert (expected == 400.0) == found.known.is_sparse(relation, column)
    least = found.known.least_values(relation, column)
    assert (expected is None) == (least is None)
    assert least is None or 0 < least <= expected


def test_partitions_tell_their_values(star):
    found = texts(("a", "a"), ("b", "b"), ("b", "b"), ("c", "c"))
    columns = {"k": replace(found.containers.columns["k"], is_partition=True)}
    by_partition = ScanContainers(replace(found.containers, columns=columns), "k", STRING)
    known = Facts.of(star, {DescribeFiles: by_partition}).known
    relation, column = probe_of(star).relation, probe_of(star).column
    assert (3.0, 3.0) == (known.domain_size(relation, column), known.least_values(relation, column))
    assert not known.is_sparse(relation, column)


def test_a_row_group_without_a_dictionary_has_ten_thousand_values_at_least(star):
    many = texts(*MIXED, distinct=[1_000_000] * 4, rows=1_000_000)
    known = Facts.of(star, {DescribeFiles: texts(*MIXED, rows=1_000_000), DescribeRowGroups: many}).known
    relation, column = probe_of(star).relation, probe_of(star).column
    assert (10_000.0, 4e6) == (known.least_values(relation, column), known.domain_size(relation, column))


def test_row_groups_are_asked_for_the_values_of_a_column_once(star):
    script = Script(others={DescribeFiles: texts(*MIXED), DescribeRowGroups: texts(*MIXED, distinct=[5] * 4)})
    known = _Answering(KnownStatistics(star.root, QueryFacts({}, frozenset()), OPTIONS), script)
    relation, column = probe_of(star).relation, probe_of(star).column
    assert {5.0} == {known.domain_size(relation, column) for _ in range(3)}
    assert [DescribeFiles, DescribeFiles, DescribeRowGroups] == [type(each) for each in script.log]


def test_texts_of_an_unreadable_table_have_no_known_values(star):
    known = Facts.of(star, {DescribeFiles: Reason(ReasonCode.STATISTICS_FAILED, "t")}).known
    probe = probe_of(star)
    assert None is known.domain_size(probe.relation, probe.column)


@pytest.mark.parametrize(
    ("distinct", "expected"),
    [
        # 100 rows of 10 of 1,000 values; at random, 100 rows would have 95.
        ([10], 9.95),
        ([10, 10], 9.95),
        ([95], 1.0),
        # A group that holds most values tells nothing, nor does one whose values are not known.
        ([501], 1.0),
        ([10, UNKNOWN], 1.0),
        ([], 1.0),
        (None, 1.0),
    ],
)
def test_rows_of_a_value_that_stand_together_are_told_by_row_groups(star, distinct, expected):
    groups = files(*[(0, 999)] * len(distinct or [1]) if distinct != [] else ())
    told = None if distinct is None else np.array(distinct, np.int64)
    known = {"k": replace(groups.containers.columns["k"], distinct=told)}
    described = {
        DescribeFiles: files((0, 999), rows=5000),
        DescribeRowGroups: replace(groups, containers=replace(groups.containers, columns=known)),
    }
    probe = probe_of(star)
    assert pytest.approx(expected, rel=0.01) == Facts.of(star, described).known.rows_together(
        probe.relation, probe.column
    )
