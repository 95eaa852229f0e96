"""`RuntimeFilter` and `FilterPlan`: which build side filters which scan, in what order, decided from sizes alone.

JoinGraph, sizes --ready_filters--> filters of one level --build, prune--> smaller sizes --ready_filters--> ...
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from pruning.options import PruningOptions
from pruning.query.build_selection import BuildSelection
from pruning.query.join_condition import BuildSide
from pruning.query.join_graph import Edge, JoinGraph
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Node, PlanNames
from pruning.query.plan_statistics import Sizes
from pruning.query.requests import Steps, with_answers
from pruning.query.top_k import TopFilter
from pruning.reasons import Reason, ReasonCode

# Reasons against running a build side whose keys metadata may still bound.
_HAVE_METADATA = frozenset({ReasonCode.BUILD_TOO_LARGE, ReasonCode.UNREPEATABLE_KEYS})
# Reasons against one build side of an edge that do not count if another build side filters the scan.
_OF_OTHERS = frozenset({ReasonCode.PROBE_TOO_SMALL, ReasonCode.RUN_ONCE})
FilterId: TypeAlias = tuple[int, str, int, int, bool]


@dataclass(frozen=True, slots=True)
class RuntimeFilter:
    """One key set that filters one column of one scan.

    - `instead`: why the build side is not run; then its keys are all values that the statistics of its files allow
    - `needs_rows`: a later run of the build side may give other rows, so its keys count only where the query takes the
      rows that the build gave
    - `must_fit`: the build yields keys only when its rows are few enough to be joined as a local relation
    """

    build_side: BuildSide
    probe: ProbeColumn
    instead: Reason | None = None
    needs_rows: bool = False
    must_fit: bool = False

    @property
    def from_metadata(self) -> bool:
        """True where statistics of files give the keys, and the build side is not run."""
        return self.instead is not None

    @property
    def id(self) -> FilterId:
        """Equal for two filters that do the same."""
        return *self.build_side.id, self.probe.relation.id, self.probe.column, self.from_metadata

    def described(self, build_name: str) -> str:
        """The name `build_name` of the build side, with the origin of the keys if the build side is not run."""
        return f"{build_name} by the statistics of its files" if self.from_metadata else build_name


Candidates: TypeAlias = list[tuple[Edge, ProbeColumn, tuple[RuntimeFilter | Reason, ...]]]


@dataclass(frozen=True, slots=True)
class UnusedFilter:
    """An edge that reaches a scan but does not filter it, or filters it only by a fallback build side."""

    edge: Edge
    probe: ProbeColumn
    reason: Reason


@dataclass(frozen=True, slots=True)
class FilterPlan:
    """The filters of each level, which waits for the levels before it, and the reasons against all others."""

    graph: JoinGraph
    levels: tuple[tuple[RuntimeFilter, ...], ...]
    refusals: tuple[Reason, ...]
    unused: tuple[UnusedFilter, ...] = ()
    tops: tuple[TopFilter, ...] = ()

    @staticmethod
    def before_builds(graph: JoinGraph, sizes: Sizes, options: PruningOptions) -> Steps[FilterPlan]:
        """The plan before any build: every build is assumed to drop some keys, and no scan to shrink."""
        pruned, done = set(sizes.pruned), set[FilterId]()
        levels: list[tuple[RuntimeFilter, ...]] = []
        refusals: dict[Reason, None] = {}
        while True:
            last = replace(sizes, pruned=pruned)
            filters, refused = yield from ready_filters(BuildSelection.of(graph, last, options), done)
            refusals = dict.fromkeys(refused)
            if not filters:
                remaining = yield from unused(graph, last, options)
                return FilterPlan(graph, tuple(levels), tuple(refusals), remaining)
            levels.append(filters)
            done |= {each.id for each in filters}
            # A filter from metadata may skip nothing; only planning the scan tells.
            pruned |= {each.probe.relation.id for each in filters if not each.from_metadata}

    def __str__(self) -> str:
        """The text of the plan: a line for each filter below its level, then the refusals."""
        names = PlanNames(self.graph.root)
        lines = []
        for number, filters in enumerate(self.levels, start=1):
            lines.append(f"level {number}")
            lines += sorted(
                f"  {each.described(each.build_side.described(names))} -> {names.column(each.probe.column)}"
                for each in filters
            )
        return "\n".join([*lines, *(f"no filter: {each}" for each in self.refusals)])


def ready_filters(
    selection: BuildSelection, done: Collection[FilterId]
) -> Steps[tuple[tuple[RuntimeFilter, ...], tuple[Reason, ...]]]:
    """The filters that wait for no other, without those that are `done`, and why others are left out.

    A build waits for a filter that makes it smaller. If two builds would wait for each other, the smaller runs first,
    so there is always one that waits for none. A filter that only drops rows waits for those that skip files.
    """
    candidates = yield from _candidates(selection)
    return (yield from with_answers(lambda: _ready(candidates, selection, done)))


def _candidates(selection: BuildSelection) -> Steps[Candidates]:
    """The filters, and the reasons against others, of each edge and each scan that it reaches."""
    found: Candidates = []
    for edge in selection.edges:
        for probe in edge.probes:
            rule = partial(_filters_of, edge, probe, selection)
            found.append((edge, probe, (yield from with_answers(rule))))
    return found


def _ready(
    candidates: Candidates, selection: BuildSelection, done: Collection[FilterId]
) -> tuple[tuple[RuntimeFilter, ...], tuple[Reason, ...]]:
    found = [each for _, _, several in candidates for each in several]
    refusals = dict.fromkeys(each for each in found if isinstance(each, Reason))
    wanted: dict[FilterId, RuntimeFilter] = {}
    for each in found:
        if isinstance(each, RuntimeFilter) and each.id not in done:
            wanted.setdefault(each.id, each)
    remaining = _preserving_reuse(wanted, done, selection)
    refusals |= dict.fromkeys(_run_once(each) for id_, each in wanted.items() if id_ not in remaining)
    ordered = sorted(remaining.values(), key=lambda each: (selection.bytes_read(each.build_side), each.id))
    ready = [each for at, each in enumerate(ordered) if not _waits(each, ordered[:at])]
    return tuple(each for each in ready if not _may_become_needless(each, ready, selection)), tuple(refusals)


def _preserving_reuse(
    filters: Mapping[FilterId, RuntimeFilter], done: Collection[FilterId], selection: BuildSelection
) -> Mapping[FilterId, RuntimeFilter]:
    """The filters without those that would end an exchange reuse; removing one may make others end it, too."""
    remaining = dict(filters)
    while refused := [id_ for id_, each in remaining.items() if _ends_reuse(each, {*remaining, *done}, selection)]:
        for id_ in refused:
            del remaining[id_]
    return remaining


def _ends_reuse(runtime_filter: RuntimeFilter, ids: Collection[FilterId], selection: BuildSelection) -> bool:
    """True for a filter that ends an exchange reuse without enough benefit.

    Ending it pays if the filter may skip something and each place of the exchange gets some filter of `ids`; else the
    one shared run reads no more. Materialized nodes are not run again.
    """
    found = selection.sizes.statistics.shared_places(runtime_filter.build_side, runtime_filter.probe)
    places = [each for each in found if each.id not in selection.sizes.materialized]
    return bool(places) and (
        not selection.may_skip(runtime_filter.probe)
        or not all(_is_filtered(each, runtime_filter, ids) for each in places)
    )


def _is_filtered(place: Node, runtime_filter: RuntimeFilter, ids: Collection[FilterId]) -> bool:
    """True if some filter of `ids` with a build side outside of `place` filters a scan in `place`.

    A filter from metadata may skip nothing, so it counts only beside another filter from metadata.
    """
    inside = range(place.subtree_start, place.id + 1)
    return any(
        at in inside and build_side not in inside and (runtime_filter.from_metadata or not by_metadata)
        for build_side, _, at, _, by_metadata in ids
    )


def _run_once(runtime_filter: RuntimeFilter) -> Reason:
    return Reason(ReasonCode.RUN_ONCE, runtime_filter.probe.name)


def _may_become_needless(
    runtime_filter: RuntimeFilter, ready: Sequence[RuntimeFilter], selection: BuildSelection
) -> bool:
    """True for a filter that cannot skip containers, if another ready filter may leave little of the same scan."""
    if (
        runtime_filter.from_metadata
        or selection.bytes_read(runtime_filter.build_side) < selection.options.limits.small_build_bytes
        or selection.may_skip(runtime_filter.probe)
    ):
        return False
    others = (each.probe for each in ready if each.probe.relation.id == runtime_filter.probe.relation.id)
    return any(selection.may_skip(each) for each in others)


def unused(
    graph: JoinGraph,
    sizes: Sizes,
    options: PruningOptions,
    whole: Mapping[int, int] | None = None,
    levels: Sequence[Sequence[RuntimeFilter]] = (),
) -> Steps[tuple[UnusedFilter, ...]]:
    """Every edge that is refused for a scan that it reaches.

    `whole` are the bytes of scans without filters, by `Relation.id`: a scan that other filters have made small is
    refused for the reason that held before, if there was one. If `levels` have filtered a scan by an edge, the reasons
    PROBE_TOO_SMALL and RUN_ONCE do not count for that edge.
    """
    now = BuildSelection.of(graph, sizes, options)
    found = yield from _candidates(now)
    before = now if whole is None else BuildSelection.of(graph, replace(sizes, scanned=whole), options)
    filtered = {(it.build_side.join.id, it.probe.relation.id, it.probe.column) for each in levels for it in each}
    done = {each.id for filters in levels for each in filters}
    wanted = {each.id: each for _, _, several in found for each in several if isinstance(each, RuntimeFilter)}
    ids = {*(yield from with_answers(lambda: _preserving_reuse(wanted, done, now))), *done}
    remaining: list[UnusedFilter] = []
    for edge, probe, several in found:
        refused = yield from with_answers(partial(_refused, several, now, ids))
        if not refused:
            continue
        several_before = yield from with_answers(partial(_filters_of, edge, probe, before))
        refused_before = yield from with_answers(partial(_refused, several_before, before, ids))
        remaining += (
            UnusedFilter(edge, probe, reason)
            for reason in _first_refused(refused_before, refused)
            if reason.code not in _OF_OTHERS or (edge.join.id, probe.relation.id, probe.column) not in filtered
        )
    return tuple(remaining)


def _first_refused(before: tuple[Reason, ...], now: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """The reasons from before other filters made scans small, if any; RUN_ONCE is judged by the final state."""
    is_run_once = any(each.code is ReasonCode.RUN_ONCE for each in now)
    return now if is_run_once else before or now


def _refused(
    found: Sequence[RuntimeFilter | Reason], selection: BuildSelection, ids: Collection[FilterId]
) -> tuple[Reason, ...]:
    refused = (each for each in found if isinstance(each, Reason))
    repeated = (
        _run_once(each) for each in found if isinstance(each, RuntimeFilter) and _ends_reuse(each, ids, selection)
    )
    return *refused, *repeated


def _waits(runtime_filter: RuntimeFilter, earlier: Sequence[RuntimeFilter]) -> bool:
    """True where an earlier filter of another build side makes this build smaller, or materializes a part of it."""
    inside = range(runtime_filter.build_side.node.subtree_start, runtime_filter.build_side.node.id + 1)
    others = [each for each in earlier if each.build_side != runtime_filter.build_side]
    # Two runs of a cached plan may differ, so the larger build reads the rows of the smaller one.
    is_split = any(
        each.needs_rows and runtime_filter.build_side.node.id != each.build_side.node.id in inside for each in others
    )
    return is_split or any(each.probe.relation.id in inside for each in others)


def _filters_of(edge: Edge, probe: ProbeColumn, selection: BuildSelection) -> tuple[RuntimeFilter | Reason, ...]:
    found: list[RuntimeFilter | Reason] = []
    for each in selection.chosen(edge.build_side, probe):
        if isinstance(each, BuildSide):
            needs_rows, must_fit = selection.needs_rows(each), selection.must_fit(each, probe)
            found.append(RuntimeFilter(each, probe, needs_rows=needs_rows, must_fit=must_fit))
            continue
        found.append(each.reason)
        if each.reason.code in _HAVE_METADATA and selection.is_bounded(each.build_side, probe):
            found.append(RuntimeFilter(each.build_side, probe, each.reason))
    return tuple(found)
