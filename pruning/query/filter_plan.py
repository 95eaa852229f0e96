"""`FilterPlan`: which build sides filter which scans, in what order, decided from metadata alone.

JoinGraph, sizes --ready_filters--> filters of one level --build, prune--> smaller sizes --ready_filters--> ...
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pruning.options import PruningOptions
from pruning.query.build_selection import BuildSelection, RefusedBuild
from pruning.query.disjunction_choice import ready_disjunction, unused_disjunctions
from pruning.query.edges import Edge
from pruning.query.expected_sizes import expected_sizes
from pruning.query.filter_choice import FilterChoice, FilterChoices
from pruning.query.join_graph import JoinGraph
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import PlanNames
from pruning.query.plan_statistics import QueryFacts, Sizes
from pruning.query.requests import Steps, with_answers
from pruning.query.reuse_choice import with_shared_exchanges
from pruning.query.runtime_filter import FilterId, RuntimeFilter
from pruning.query.top_k import TopFilter
from pruning.reasons import Reason, ReasonCode

# Reasons against running a build side whose keys metadata may still bound.
_HAVE_METADATA = frozenset({ReasonCode.NOT_WORTH, ReasonCode.RISKY, ReasonCode.UNREPEATABLE_KEYS})
# Reasons against one build side of an edge that do not count if another build side filters the scan.
_OF_OTHERS = frozenset({ReasonCode.NOT_WORTH, ReasonCode.RISKY, ReasonCode.RUN_ONCE})


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An edge to a scan: the filters that would be sound, of the whole build side first, and reasons against others."""

    edge: Edge
    probe: ProbeColumn
    filters: tuple[RuntimeFilter, ...]
    reasons: tuple[Reason, ...]

    @property
    def place(self) -> tuple[int, int, int]:
        """The join and the column that it filters."""
        return self.edge.join.id, self.probe.relation.id, self.probe.column


@dataclass(frozen=True, slots=True)
class _Weighed:
    """All candidates of one moment, the choice among their filters, and those that would end an exchange reuse."""

    candidates: tuple[_Candidate, ...]
    choice: FilterChoice
    ending: tuple[RuntimeFilter, ...]

    def refusals(self, done: Collection[FilterId]) -> dict[Reason, None]:
        """The reasons against all filters that are neither chosen nor `done`."""
        refusals = dict.fromkeys(reason for each in self.candidates for reason in each.reasons)
        refusals |= dict.fromkeys(map(_run_once, self.ending))
        return refusals | dict.fromkeys(self._against({*done, *(each.id for each in self.ending)}))

    def _against(self, done: Collection[FilterId]) -> Iterator[Reason]:
        """The reasons against edges of which no filter is chosen: the benefit of the best one."""
        taken = {*(each.id for each in self.choice.chosen), *done}
        weighed = {each.id: each for each in self.choice.others}
        for candidate in self.candidates:
            others = [weighed[each.id] for each in candidate.filters if each.id in weighed]
            if others and not any(each.id in taken for each in candidate.filters):
                yield self.choice.why_not(others)


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
    def before_builds(
        graph: JoinGraph, sizes: Sizes, options: PruningOptions, facts: QueryFacts | None = None
    ) -> Steps[FilterPlan]:
        """The plan before any build: each is taken to give the keys, and to shrink the scans, as it is expected to."""
        done = set[FilterId]()
        levels: list[tuple[RuntimeFilter, ...]] = []
        while True:
            selection = BuildSelection.of(graph, sizes, options, facts)
            weighed = yield from _weighed(selection, done)
            filters, refused = yield from _ready(weighed, selection, done)
            if not filters:
                remaining = yield from _unused(weighed, selection, done)
                return FilterPlan(graph, tuple(levels), tuple(dict.fromkeys(refused)), remaining)
            levels.append(filters)
            done |= {each.id for each in filters}
            sizes = yield from with_answers(partial(expected_sizes, selection, filters))

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
    so there is always one that waits for none. The filters of a union run together. Those of an OR come after all
    others, and metadata bounds keys once no build is worth running.
    """
    weighed = yield from _weighed(selection, done)
    return (yield from _ready(weighed, selection, done))


def _ready(
    weighed: _Weighed, selection: BuildSelection, done: Collection[FilterId]
) -> Steps[tuple[tuple[RuntimeFilter, ...], tuple[Reason, ...]]]:
    candidates, chosen = weighed.candidates, weighed.choice.chosen
    refusals = weighed.refusals(done)
    ordered = sorted(chosen, key=lambda each: (selection.bytes_read(each.build_side), each.id))
    ready = _with_all_of_unions([each for at, each in enumerate(ordered) if not _waits(each, ordered[:at])])
    if not ready and ordered:
        # Builds of one union wait for each other, so none of them can be made smaller first.
        first = {ordered[0].id, *ordered[0].united}
        ready = tuple(each for each in ordered if each.id in first)
        ready = () if any(each.needs_rows for each in ready) else ready
    if not ready:
        ready, against = yield from ready_disjunction(selection, done)
        refusals |= dict.fromkeys(against)
    if not ready:
        filtered = {(each.join, each.relation, each.column) for each in done}
        bounded = yield from with_answers(lambda: tuple(_bounded(candidates, selection, filtered)))
        wanted = {each.id: each for each in bounded if each.id not in done}
        remaining = yield from with_answers(lambda: with_shared_exchanges(wanted, done, selection))
        refusals |= dict.fromkeys(_run_once(each) for id_, each in wanted.items() if id_ not in remaining)
        ready = tuple(remaining.values())
    return ready, tuple(refusals)


def _with_all_of_unions(filters: Sequence[RuntimeFilter]) -> tuple[RuntimeFilter, ...]:
    """The filters without unions of which one is missing."""
    ids = {each.id for each in filters}
    return tuple(each for each in filters if ids.issuperset(each.united))


def _candidates(selection: BuildSelection) -> Steps[tuple[_Candidate, ...]]:
    """The sound filters, and the reasons against others, of each edge and each scan that it reaches."""
    found: list[_Candidate] = []
    for edge in selection.edges:
        for probe in edge.probes:
            candidate = yield from with_answers(partial(_candidate, edge, probe, selection))
            found.append(candidate)
    return tuple(found)


def _candidate(edge: Edge, probe: ProbeColumn, selection: BuildSelection) -> _Candidate:
    filters: dict[FilterId, RuntimeFilter] = {}
    reasons: list[Reason] = []
    for each in selection.sound(edge.build_side, probe):
        if isinstance(each, RefusedBuild):
            reasons.append(each.reason)
            continue
        sides = (each,) if selection.options.always else (each, *selection.parts(each, probe))
        for side in sides:
            once = selection.runs_once(side)
            made = RuntimeFilter(side, probe, needs_rows=selection.needs_rows(side), runs_once=once)
            filters.setdefault(made.id, made)
    return _Candidate(edge, probe, tuple(filters.values()), tuple(reasons))


def _weighed(selection: BuildSelection, done: Collection[FilterId]) -> Steps[_Weighed]:
    """The choice among filters that are not `done`.

    Build sides that keep all rows of their tables come last: filters by others may leave less of every scan.
    """
    candidates = yield from _candidates(selection)
    wanted = {each.id: each for candidate in candidates for each in candidate.filters if each.id not in done}
    first = {id_: each for id_, each in wanted.items() if selection.leaves_out(each.build_side)}
    choices = FilterChoices(selection)
    choice, ending = yield from _choice_among(first, choices, done)
    if not choice.chosen and len(first) < len(wanted):
        choice, ending = yield from _choice_among(wanted, choices, done)
    return _Weighed(candidates, choice, ending)


def _choice_among(
    candidates: Mapping[FilterId, RuntimeFilter], choices: FilterChoices, done: Collection[FilterId]
) -> Steps[tuple[FilterChoice, tuple[RuntimeFilter, ...]]]:
    wanted, ending = dict(candidates), list[RuntimeFilter]()
    yield from choices.look_up(wanted.values())
    while True:
        choice = yield from with_answers(lambda: choices.among(wanted.values()))
        chosen = {each.id: each for each in choice.chosen}
        remaining = yield from with_answers(partial(with_shared_exchanges, chosen, done, choices.selection))
        refused = [each for id_, each in chosen.items() if id_ not in remaining]
        if not refused:
            return replace(choice, chosen=tuple(remaining.values())), tuple(ending)
        # A build may not be worth its other filters alone.
        ending += refused
        for each in refused:
            del wanted[each.id]


def _bounded(
    candidates: Sequence[_Candidate], selection: BuildSelection, filtered: Collection[tuple[int, int, int]]
) -> Iterator[RuntimeFilter]:
    """Filters by the statistics of build sides that are not run, for scans whose containers a key may skip."""
    for each in candidates:
        build_side, probe = each.edge.build_side, each.probe
        unrepeatable = next((it for it in each.reasons if it.code in _HAVE_METADATA), None)
        if each.place in filtered or (unrepeatable is None and not each.filters):
            continue
        if selection.options.always and unrepeatable is None:
            continue
        if selection.why_no_filter(probe) is not None:
            continue
        if selection.is_bounded(build_side) and selection.may_skip(probe):
            instead = unrepeatable or Reason(ReasonCode.NOT_WORTH, str(build_side.key))
            yield RuntimeFilter(build_side, probe, instead)


def _run_once(runtime_filter: RuntimeFilter) -> Reason:
    return Reason(ReasonCode.RUN_ONCE, runtime_filter.probe.name)


def unused(
    selection: BuildSelection, levels: Sequence[Sequence[RuntimeFilter]] = ()
) -> Steps[tuple[UnusedFilter, ...]]:
    """Every edge that is refused for a scan that it reaches, after `levels` of filters.

    The reasons NOT_WORTH, RISKY and RUN_ONCE do not count for an edge that has filtered the scan by another build side.
    """
    done = {each.id for filters in levels for each in filters}
    weighed = yield from _weighed(selection, done)
    return (yield from _unused(weighed, selection, done))


def _unused(found: _Weighed, selection: BuildSelection, done: Collection[FilterId]) -> Steps[tuple[UnusedFilter, ...]]:
    choice = found.choice
    filtered = {(it.join, it.relation, it.column) for it in done}
    ended = {each.id for each in found.ending}
    weighed = {each.id: each for each in (*choice.chosen, *choice.others)}
    remaining: list[UnusedFilter] = []
    for each in found.candidates:
        repeated = [_run_once(it) for it in each.filters if it.id in ended]
        others = [weighed[it.id] for it in each.filters if it.id in weighed]
        against = () if repeated or not others else (choice.why_not(others),)
        remaining += (
            UnusedFilter(each.edge, each.probe, reason)
            for reason in dict.fromkeys((*each.reasons, *repeated, *against))
            if reason.code not in _OF_OTHERS or each.place not in filtered
        )
    operands = yield from unused_disjunctions(selection, done)
    return (*remaining, *(UnusedFilter(*each) for each in operands))


def _waits(runtime_filter: RuntimeFilter, earlier: Sequence[RuntimeFilter]) -> bool:
    """True where an earlier filter of another build side makes this build smaller, or materializes a part of it."""
    inside = range(runtime_filter.build_side.node.subtree_start, runtime_filter.build_side.node.id + 1)
    others = [each for each in earlier if each.build_side != runtime_filter.build_side]
    # Two runs of a cached plan may differ, so the larger build reads the rows of the smaller one.
    is_split = any(
        each.needs_rows and runtime_filter.build_side.node.id != each.build_side.node.id in inside for each in others
    )
    return is_split or any(each.probe.relation.id in inside for each in others)
