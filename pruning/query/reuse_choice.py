"""`without_ended_reuses()`: filters without those for which Spark would run an exchange again that it runs once.

Filters are weighed as if each place of a shared exchange ran for itself. Ending its reuse pays if the filters of all
its places save more than the runs of the exchange that come in addition, and risk no more than other filters may.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pruning.cost.estimate import ZERO, Estimate
from pruning.query.build_selection import BuildSelection
from pruning.query.exchange_reuse import SharedExchange
from pruning.query.plan import Node
from pruning.query.runtime_filter import FilterId, RuntimeFilter


def without_ended_reuses(
    filters: Mapping[FilterId, RuntimeFilter], done: Collection[FilterId], selection: BuildSelection
) -> Mapping[FilterId, RuntimeFilter]:
    """The filters that end no exchange reuse, or one beside the filters `done` that it pays to end.

    Without one of them others may no longer pay.
    """
    remaining, applied = dict(filters), dict.fromkeys(done)
    while refused := _ending_reuses(remaining, _ReuseChoice(selection, {**remaining, **applied})):
        for each in refused:
            del remaining[each]
    return remaining


def _ending_reuses(filters: Mapping[FilterId, RuntimeFilter], choice: _ReuseChoice) -> list[FilterId]:
    return [id_ for id_, each in filters.items() if not all(choice.pays(it, each) for it in choice.changed(each))]


@dataclass(frozen=True, slots=True)
class _ReuseChoice:
    """The worth of ending reuses by the filters `beside`, None for those that are applied."""

    selection: BuildSelection
    beside: Mapping[FilterId, RuntimeFilter | None]
    _known: dict[frozenset[int], bool] = field(default_factory=dict)

    def changed(self, runtime_filter: RuntimeFilter) -> Iterable[SharedExchange]:
        """The exchanges that a filter changes, without places that are not run again since a build has their rows."""
        statistics, materialized = self.selection.sizes.statistics, self.selection.sizes.materialized
        for each in statistics.shared_exchanges(runtime_filter.build_side, runtime_filter.probe):
            others = tuple(other for other in each.others if other.id not in materialized)
            if others and each.place.id not in materialized:
                yield SharedExchange(each.place, others)

    def pays(self, shared: SharedExchange, runtime_filter: RuntimeFilter) -> bool:
        """True if the reuse has ended, or if the filters of all places save more than its end costs.

        It ends once the filters of its places differ. A filter from metadata may skip nothing, so it ends no reuse.
        """
        places = (shared.place, *shared.others)
        inside = [{id_: each for id_, each in self.beside.items() if _is_inside(id_, place)} for place in places]
        if len({_keys(id_ for id_, each in several.items() if each is None) for several in inside}) > 1:
            return True
        if runtime_filter.from_metadata or not all(inside):
            return False
        if self.selection.options.always:
            return True
        at = frozenset(each.id for each in places)
        if at not in self._known:
            self._known[at] = self._saves_all_runs(places, inside)
        return self._known[at]

    def _saves_all_runs(
        self, places: Sequence[Node], inside: Sequence[Mapping[FilterId, RuntimeFilter | None]]
    ) -> bool:
        benefits, saved = self.selection.benefits, ZERO
        for several in inside:
            effects = [
                benefits.effect(each.build_side, each.probe).saved for each in several.values() if each is not None
            ]
            saved = saved + max(effects, key=lambda effect: effect.expected, default=ZERO)
        again = (len(places) - 1) * max(map(benefits.cost.tree, places))
        gain = saved + Estimate.exact(-again)
        return gain.expected > 0 and -gain.low <= benefits.risked(self.selection.root)


def _keys(ids: Iterable[FilterId]) -> frozenset[tuple[int, str]]:
    return frozenset((each.build_node, each.key) for each in ids)


def _is_inside(id_: FilterId, place: Node) -> bool:
    """True for a filter of a scan in `place` by keys from elsewhere."""
    inside = range(place.subtree_start, place.id + 1)
    return not id_.from_metadata and id_.relation in inside and id_.build_node not in inside
