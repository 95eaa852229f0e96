"""`QueryPlanner`: all decisions of one query, from its plan to its pruned scans, without reading or running anything.

`run()` is a generator. It yields requests, and is sent the answer of each:

    at any time:                               DescribeFiles, EstimateBytes, ... as rules depend on metadata
    PinFiles, then for each level of filters:  RunBuilds -> keys,  PruneScan for every scan with new keys

A driver answers with an engine (`connectors/pipeline/query_run.py`); a test answers from a script.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pruning.keys.summary import KeySummary
from pruning.keys.union import are_known, fewest, united
from pruning.options import BroadcastStrategy, PruningOptions
from pruning.query.benefit import Benefit, Benefits
from pruning.query.broadcasts import BroadcastSide, broadcasts_kept, effective_strategy, reuses_kept, small_sides
from pruning.query.build_selection import NEEDS_ROWS, BuildSelection
from pruning.query.filter_plan import ready_filters
from pruning.query.first_rows import first_rows_filter, prove_first_rows, too_few_first_rows, worth_filtering
from pruning.query.join_condition import BuildSide, has_effect_elsewhere
from pruning.query.join_graph import JoinGraph, combined_share, key_tuple
from pruning.query.lineage import ProbeColumn
from pruning.query.metadata_filters import benefit_of_bounds
from pruning.query.plan import PlanNames, Relation
from pruning.query.plan_statistics import PlanStatistics, QueryFacts, Sizes
from pruning.query.planner_requests import (
    BuildAnswer,
    BuildRows,
    JoinRows,
    PinFiles,
    PlannedScan,
    PruneScan,
    RunBuilds,
    SummarizeTuples,
    bounds_of,
)
from pruning.query.requests import Steps, ask, with_answers
from pruning.query.runtime_filter import FilterId, RuntimeFilter, one_by_build
from pruning.query.top_k import TopFilter, TopK, top_ks
from pruning.reasons import UNFINISHED, UNREAD, WITHOUT_BOUNDS, Reason, ReasonCode
from pruning.scan.key_filter import KeyFilter, RowWorth
from pruning.values.domain import Domain

# Reasons of builds that began and gave no keys; metadata may still bound their keys.
_NOT_DONE = UNFINISHED | {ReasonCode.RESULT_TOO_LARGE}
# Reasons that leave a top-k filter without effect on the files of a scan.
_NO_FILTER = frozenset({ReasonCode.UNCLUSTERED, ReasonCode.NAN_KEYS, ReasonCode.NO_READER_FILTER, *WITHOUT_BOUNDS})


@dataclass(slots=True)
class QueryPlanner:
    """The state of one query's decisions.

    - `levels`: the filters of each level so far; `reasons`: why there were no others, in order
    - `scans`: the pruned scans by `Relation.id`
    - `materialized`: the nodes whose rows a build gave, and all below them, by `Node.id`: they are not run again
    - `row_bytes`: bytes of these rows, by `Node.id` of the build
    - `from_cache`: ids of the build sides whose keys came from the cache; `on_driver`: of those that took no job
    - `seconds`: those that builds took, by the id of the build side
    - `tried`: the filters whose builds gave keys, where somebody learns of them, each with the share of rows that was
      expected to have one
    - `found_risky`: a filter that would be expected to pay was left out, as it may lose too much
    """

    graph: JoinGraph
    options: PruningOptions
    facts: QueryFacts
    statistics: PlanStatistics
    strategy: BroadcastStrategy
    tops: tuple[TopK, ...]
    levels: list[tuple[RuntimeFilter, ...]] = field(default_factory=list)
    reasons: dict[Reason, None] = field(default_factory=dict)
    scans: dict[int, PlannedScan] = field(default_factory=dict)
    materialized: set[int] = field(default_factory=set)
    row_bytes: dict[int, int] = field(default_factory=dict)
    from_cache: set[tuple[int, str]] = field(default_factory=set)
    on_driver: set[tuple[int, str]] = field(default_factory=set)
    seconds: dict[tuple[int, str], float] = field(default_factory=dict)
    tried: dict[FilterId, tuple[RuntimeFilter, float]] = field(default_factory=dict)
    found_risky: bool = False
    keys: dict[int, dict[int, list[KeySummary]]] = field(default_factory=dict)
    tuples: dict[int, dict[tuple[int, ...], list[KeySummary]]] = field(default_factory=dict)
    _sizes: dict[int, int] = field(default_factory=dict)
    _files: set[int] = field(default_factory=set)
    _refused: dict[int, Reason] = field(default_factory=dict)
    _rows: dict[int, BuildRows] = field(default_factory=dict)
    _bounds: dict[tuple[int, str], KeySummary | Reason] = field(default_factory=dict)
    _row_counts: dict[int, int] = field(default_factory=dict)
    _unplanned: set[int] = field(default_factory=set)
    _tested: dict[int, dict[int, list[tuple[RuntimeFilter, ...]]]] = field(default_factory=dict)
    _disjunctions: dict[int, list[tuple[tuple[ProbeColumn, KeySummary], ...]]] = field(default_factory=dict)
    _first_rows: dict[int, list[tuple[ProbeColumn, KeyFilter]]] = field(default_factory=dict)
    _benefits: dict[FilterId, Benefit] = field(default_factory=dict)
    _highest: dict[int, int] = field(default_factory=dict)
    _top_outcomes: dict[tuple[int, int, int], Benefit | Reason] = field(default_factory=dict)

    @staticmethod
    def of(graph: JoinGraph, options: PruningOptions, facts: QueryFacts, statistics: PlanStatistics) -> QueryPlanner:
        """The planner of a query before any of its builds has run."""
        strategy, tops = effective_strategy(graph, options, facts), tuple(top_ks(graph)) if options.top_k else ()
        planner = QueryPlanner(graph, options, facts, statistics, strategy, tops)
        planner._sizes, planner._files = dict(facts.sizes), set(facts.files)
        return planner

    def run(self) -> Steps[None]:
        """Top-k filters, then levels of builds until no filter is left."""
        done: set[FilterId] = set()
        is_pinned = any(worth_filtering(each, self.selection()) for each in self.tops)
        if is_pinned:
            yield from self._pin()
            yield from self._filter_first_rows()
        while True:
            selection = self.selection()
            filters, refused = yield from ready_filters(selection, done)
            if not filters:
                self.found_risky = any(each.code is ReasonCode.RISKY for each in refused)
                break
            if not is_pinned:
                # Pinning lists files, which is needless if there is no filter; the pinned sizes may need fewer builds.
                yield from self._pin()
                is_pinned = True
                continue
            done |= {each.id for each in filters}
            wanted = tuple(each for each in filters if each.probe.relation.id not in self.materialized)
            self.levels.append(wanted)
            learned = wanted if self.facts.lesson is not None else ()
            passing = yield from with_answers(partial(_passing, learned, selection.benefits))
            found = yield from self._level(wanted)
            self.tried |= {id_: tried for id_, tried in passing.items() if id_ in found}
        self.reasons.update(dict.fromkeys(self.statistics.problems))

    def current_sizes(self) -> Sizes:
        """The sizes and the state of the scans at this moment."""
        remaining = ((at, scan.expected) for at, scan in self.scans.items() if at not in self.materialized)
        expected = {at: rows for at, rows in remaining if rows is not None}
        return Sizes(
            self._sizes,
            self._files,
            self.scans,
            self.materialized,
            expected,
            self.statistics,
            self._refused,
            self._row_counts,
            {at: {column: fewest(several) for column, several in keys.items()} for at, keys in self.keys.items()},
            self.facts.remote,
            self.facts.cores,
            self.facts.streams,
            self._highest,
        )

    def selection(self) -> BuildSelection:
        """The rules of build selection over the sizes of this moment."""
        return BuildSelection.of(self.graph, self.current_sizes(), self.options, self.facts)

    def top_filters(self) -> Iterator[TopFilter]:
        """The outcome of top-k filtering for each scan below a limit that takes the first rows of an order."""
        selection = self.selection()
        for top in self.tops:
            for each in top.probes:
                refused = selection.why_no_filter(each) or too_few_first_rows(each.name)
                yield TopFilter(top, each, self._top_outcomes.get(_top_id(top, each), refused))
            yield from (TopFilter(top, None, each) for each in top.stops)

    def _pin(self) -> Steps[None]:
        """Pins the files of scans; one that cannot be pinned gives no keys, since its next run may read other rows."""
        unpinned = tuple(each for each in self.graph.relations if each.id in self.facts.unpinned)
        refused = (yield from ask(PinFiles(unpinned))) if unpinned else {}
        self.reasons.update(dict.fromkeys(refused.values()))
        self._refused.update(refused)
        self._files -= refused.keys()

    # Levels of builds.

    def _level(self, filters: Sequence[RuntimeFilter]) -> Steps[Collection[FilterId]]:
        """Runs the builds of filters and plans their scans; the ids of those that have keys, and scans by them."""
        built = tuple(each for each in filters if not each.from_metadata)
        results = (yield from ask(RunBuilds(built))) if built else ()
        self.reasons.update(dict.fromkeys(reason for each in results for reason in each.reasons))
        answers = iter(results)
        found: dict[FilterId, KeySummary] = {}
        for each in filters:
            keys = yield from self._keys_of(each, answers)
            if isinstance(keys, Reason):
                self.reasons[keys] = None
            else:
                found[each.id] = keys
        used = (each for each in filters if not each.from_metadata or each.id in found)
        weighed = tuple(replace(each, benefit=self._benefits.get(each.id, each.benefit)) for each in used)
        self.levels[-1:] = [weighed] if weighed else []
        given = [each for each in filters if each.id in found]
        yield from self._apply([each for each in given if not each.other_operands], found)
        if len(given) == len(filters):
            yield from self._apply_disjunction([each for each in given if each.other_operands], found)
        return {id_ for id_ in found if id_.relation not in self._unplanned}

    def _apply(self, filters: Sequence[RuntimeFilter], found: Mapping[FilterId, KeySummary]) -> Steps[None]:
        """Plans the scans of filters anew by their keys; keys that are to be united count only if all are there."""
        changed: dict[int, Relation] = {}
        joined: dict[tuple[int, int, int], RuntimeFilter] = {}
        by_id = {each.id: each for each in filters}
        for each in filters:
            relation = each.probe.relation
            # In one order for all scans, which have to stay equal.
            ids = sorted((each.id, *each.united))
            if not found.keys() >= set(ids) or len({found[it].types for it in ids}) > 1:
                missing = "no keys of the same type are known for an equal scan"
                self.reasons[Reason(ReasonCode.RUN_ONCE, each.probe.name, missing)] = None
                continue
            union = tuple(by_id[it] for it in ids)
            keys = united([found[it] for it in ids]) if each.united else found[each.id]
            values = each.probe.values_of(keys)
            if isinstance(values, Reason):
                self.reasons[values] = None
                continue
            if not each.from_metadata and not each.united:
                joined[each.build_side.join.id, each.build_side.node.id, relation.id] = each
            self._tested.setdefault(relation.id, {}).setdefault(each.probe.column, []).append(union)
            self._highest[relation.id] = max(self._highest.get(relation.id, 0), each.top)
            known = self.keys.setdefault(relation.id, {}).setdefault(each.probe.column, [])
            if not are_known(values, known):
                known.append(values)
                changed[relation.id] = relation
        for each in joined.values():
            if each.probe.relation.id in changed:
                yield from self._add_tuple(each.build_side, each.probe.relation)
        # Scans of a union have to stay equal, so one that is smaller already does not count.
        selection = self.selection() if any(each.united for each in filters) else None
        for relation in changed.values():
            yield from self._plan_scan(relation, selection)

    def _apply_disjunction(self, filters: Sequence[RuntimeFilter], found: Mapping[FilterId, KeySummary]) -> Steps[None]:
        """Plans the scan of the operands of an OR anew, by the keys of all of them."""
        operands: list[tuple[ProbeColumn, KeySummary]] = []
        for each in filters:
            values = each.probe.values_of(found[each.id])
            if isinstance(values, Reason):
                self.reasons[values] = None
                return
            operands.append((each.probe, values))
        if operands:
            relation = filters[0].probe.relation
            self._disjunctions.setdefault(relation.id, []).append(tuple(operands))
            self._highest[relation.id] = max(self._highest.get(relation.id, 0), filters[0].top)
            yield from self._plan_scan(relation)

    def _keys_of(self, runtime_filter: RuntimeFilter, answers: Iterator[BuildAnswer]) -> Steps[KeySummary | Reason]:
        if runtime_filter.instead is not None:
            self.reasons[runtime_filter.instead] = None
            return (yield from self._bounded(runtime_filter))
        return (yield from self._from_build(runtime_filter, next(answers)))

    def _bounded(self, runtime_filter: RuntimeFilter) -> Steps[KeySummary | Reason]:
        """Keys by the statistics of the files of a build side; a `Reason` if they skip too little of the scan."""
        build_side, probe = runtime_filter.build_side, runtime_filter.probe
        if build_side.id not in self._bounds:
            kept = {at: scan.plan.files.kept for at, scan in self.scans.items()}
            self._bounds[build_side.id] = yield from bounds_of(build_side, kept)
        keys = self._bounds[build_side.id]
        if isinstance(keys, Reason):
            return keys
        benefit = yield from benefit_of_bounds(probe, keys, self.selection())
        if isinstance(benefit, Reason):
            return benefit
        if runtime_filter.from_metadata:
            self._benefits[runtime_filter.id] = benefit
        return keys

    def _from_build(self, runtime_filter: RuntimeFilter, built: BuildAnswer) -> Steps[KeySummary | Reason]:
        build_side, keys = runtime_filter.build_side, built.keys
        if built.from_cache:
            self.from_cache.add(build_side.id)
        if built.on_driver:
            self.on_driver.add(build_side.id)
        self.seconds[build_side.id] = self.seconds.get(build_side.id, 0.0) + built.seconds
        not_joined = "the build gave none"
        if built.rows is not None:
            count = built.rows.count if isinstance(keys, Reason) else keys.rows
            not_joined = yield from self._join_rows(runtime_filter, built.rows, count)
        if isinstance(keys, Reason):
            if keys.code not in _NOT_DONE or not self.selection().is_bounded(build_side):
                return keys
            self.reasons[keys] = None
            return (yield from self._bounded(runtime_filter))
        named = replace(keys, source=PlanNames(self.graph.root).expression(build_side.key))
        domain = build_side.domain(named)
        if isinstance(domain, Reason):
            return domain
        if runtime_filter.needs_rows and not_joined:
            detail = f"{NEEDS_ROWS}, but {not_joined}"
            return Reason(ReasonCode.UNREPEATABLE_KEYS, str(build_side.key), detail)
        if built.rows is not None and built.rows.is_local:
            # Not reached for rows that are not joined and that a later run may not give again.
            self._rows[build_side.node.id] = built.rows
        return domain

    def _join_rows(self, runtime_filter: RuntimeFilter, rows: BuildRows, count: int) -> Steps[str]:
        """Joins a build's rows, so that the query does not run it again; why not, if it does."""
        node = runtime_filter.build_side.node
        if self.strategy is BroadcastStrategy.NONE:
            return "joins are left as they are"
        if not runtime_filter.needs_rows and 0 <= self.facts.broadcast_limit < rows.nbytes:
            return "they are too many"
        yield from ask(JoinRows(node, rows, not rows.nbytes and has_effect_elsewhere(self.graph.root, node.id)))
        self._row_counts[node.id] = count
        if rows.is_local:
            self.row_bytes[node.id] = rows.nbytes
        for each in node.walk():
            self.materialized.add(each.id)
            if isinstance(each, Relation):
                self._sizes[each.id] = 0
        return ""

    def broadcast_sides(self) -> Steps[dict[int, BroadcastSide]]:
        """The sides to broadcast in the query with its filters, by `Join.id`; other joins stay as they are."""
        root, pruned = self.graph.root, self.scans.keys() | self.materialized
        chosen = small_sides(root, self.row_bytes, self.facts.broadcast_limit, self.strategy)
        if self.strategy is not BroadcastStrategy.NONE and self.scans:
            chosen |= reuses_kept((yield from with_answers(self.statistics.shared_shuffles)), chosen, pruned)
        kept = partial(broadcasts_kept, root, self.statistics.is_broadcast_side, self.materialized, pruned)
        return chosen | (yield from with_answers(kept))

    def _add_tuple(self, build_side: BuildSide, relation: Relation) -> Steps[None]:
        """Adds keys of several columns together, if the build's rows are materialized and the join compares several."""
        rows, found = self._rows.get(build_side.node.id), key_tuple(self.graph, build_side, relation)
        if rows is None or found is None:
            return
        keys = yield from ask(SummarizeTuples(build_side.node, rows, found))
        known = self.tuples.setdefault(relation.id, {}).setdefault(found.probe, [])
        if isinstance(keys, Reason):
            self.reasons[keys] = None
        elif not are_known(keys, known) and combined_share(keys) < 1.0:
            known.append(keys)

    # Scans.

    def _plan_scan(self, relation: Relation, selection: BuildSelection | None = None) -> Steps[PlannedScan | Reason]:
        """Plans a scan by all its filters, and uses the plan if the filters change the scan.

        Rows are worth testing by the sizes of this moment, or by those of `selection`.
        """
        keys, tuples = self.keys.get(relation.id, {}), self.tuples.get(relation.id, {})
        filters = tuple((probe.column, each) for probe, each in self._first_rows.get(relation.id, ()))
        keeps_scan = has_effect_elsewhere(self.graph.root, relation.id)
        now = self.selection()
        worth = yield from with_answers(partial(self._row_worth, relation, selection or now))
        whole_for = next(filter(None, (each.whole_for for each in self._probes_of(relation))), "")
        ors = self._disjunctions.get(relation.id, ())
        disjunctions = [[(probe.column, each) for probe, each in several] for several in ors]
        request = PruneScan(relation, dict(keys), dict(tuples), filters, keeps_scan, worth, whole_for, disjunctions)
        # A build whose rows were to be joined may have failed, so that the query calls its functions.
        scan = now.why_cut_off(relation, relation.table) or (yield from ask(request))
        if isinstance(scan, Reason):
            self.reasons[scan] = None
            self._unplanned.add(relation.id)
        elif scan.plan.acts:
            self._use(relation, scan)
        else:
            self.reasons.update(dict.fromkeys(scan.reasons))
        return scan

    def _probes_of(self, relation: Relation) -> Iterator[ProbeColumn]:
        """The columns of a scan that filters test, each with what it asks of the scan."""
        unions = (union for several in self._tested.get(relation.id, {}).values() for union in several)
        yield from (each.probe for union in unions for each in union if each.probe.relation.id == relation.id)
        yield from (probe for several in self._disjunctions.get(relation.id, ()) for probe, _ in several)
        yield from (probe for probe, _ in self._first_rows.get(relation.id, ()))

    def _row_worth(self, relation: Relation, selection: BuildSelection) -> dict[tuple[int, ...], RowWorth]:
        """The worth of testing the rows of a scan, by columns: that of the filter whose dropped rows spare most."""
        if self.options.always:
            return {}
        worth: dict[tuple[int, ...], RowWorth] = {}
        for at, unions in self._tested.get(relation.id, {}).items():
            each = [_worth_of(union, selection.benefits) for union in unions]
            worth[at,] = max(each, key=lambda one: (1.0 - one.passing) * one.spared)
        for columns, keys in self.tuples.get(relation.id, {}).items():
            spared = min((worth[at,].spared for at in columns if (at,) in worth), default=0.0)
            worth[columns] = RowWorth(min(map(combined_share, keys), default=1.0), spared)
        return worth

    def _use(self, relation: Relation, scan: PlannedScan) -> None:
        self.scans[relation.id] = scan
        self._sizes[relation.id] = min(self._sizes[relation.id], scan.planned_bytes)
        # Metadata bounds keys more narrowly when a scan reads fewer files.
        self._bounds.clear()

    def _filter_first_rows(self) -> Steps[None]:
        """Filters scans below a limit by the keys of its first rows, as far as metadata alone proves them."""
        for top in self.tops:
            if not (probes := worth_filtering(top, self.selection())):
                continue
            keys = yield from prove_first_rows(top, self.options.limits)
            if isinstance(keys, Reason) and keys.code in UNREAD:
                self.reasons[keys] = None
            for each in probes:
                found = keys if isinstance(keys, Reason) else (yield from self._filter_by_first_rows(top, each, keys))
                self._top_outcomes[_top_id(top, each)] = found

    def _filter_by_first_rows(self, top: TopK, probe: ProbeColumn, keys: Domain) -> Steps[Benefit | Reason]:
        found = yield from first_rows_filter(top, probe, keys, PlanNames(self.graph.root), self.selection().benefits)
        if isinstance(found, Reason):
            return found
        made, benefit = found
        own = self._first_rows.setdefault(probe.relation.id, [])
        own.append((probe, made))
        self._highest[probe.relation.id] = max(self._highest.get(probe.relation.id, 0), top.id)
        scan = yield from self._plan_scan(probe.relation)
        if isinstance(scan, Reason):
            own.pop()
            return scan
        if not scan.plan.acts:
            own.pop()
            said = (each for each in reversed(scan.reasons) if each.subject in made.columns)
            return next(said, Reason(ReasonCode.UNCLUSTERED, probe.name))
        refused = (each for each in scan.plan.reasons if each.subject in made.columns)
        return next((each for each in refused if each.code in _NO_FILTER), benefit)


def _passing(filters: Sequence[RuntimeFilter], benefits: Benefits) -> dict[FilterId, tuple[RuntimeFilter, float]]:
    """The filters by builds, each with the share of rows of its scan that is expected to have a key."""
    built = (each for each in filters if not each.from_metadata)
    return {each.id: (each, benefits.passing(each.build_side, each.probe)) for each in built}


def _worth_of(union: Sequence[RuntimeFilter], benefits: Benefits) -> RowWorth:
    """The worth of testing rows by united keys, the same for each of their scans."""
    worth = [benefits.row_worth(each.build_side, each.probe) for each in one_by_build(union)]
    return RowWorth(min(1.0, sum(each.passing for each in worth)), min(each.spared for each in worth))


def _top_id(top: TopK, probe: ProbeColumn) -> tuple[int, int, int]:
    return top.id, probe.relation.id, probe.column
