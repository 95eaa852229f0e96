"""`with_shared_exchanges()`: filters that leave each exchange shared which Spark runs once for several places.

A filter of one place alone would make Spark run the exchange again for the others. Where each place has a filter of
the same column of equal scans, the keys of all of them filter each scan: the scans stay equal, and the exchange runs
once on the rows that some place needs. All other filters of a shared exchange are refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pruning.cost.estimate import Estimate
from pruning.query.benefit import Benefits
from pruning.query.build_selection import BuildSelection
from pruning.query.exchange_reuse import SharedExchange
from pruning.query.plan import Node, Relation
from pruning.query.runtime_filter import FilterId, RuntimeFilter, one_by_build


def with_shared_exchanges(
    filters: Mapping[FilterId, RuntimeFilter], done: Collection[FilterId], selection: BuildSelection
) -> Mapping[FilterId, RuntimeFilter]:
    """The filters that end no exchange reuse, beside the filters `done`; those of several places are united.

    Without one of them others may no longer have a partner in its place.
    """
    remaining, applied = dict(filters), dict.fromkeys(done)
    while True:
        choice = _ReuseChoice(selection, {**remaining, **applied})
        partners = {id_: choice.partners(each) for id_, each in remaining.items()}
        refused = [id_ for id_, found in partners.items() if found is None]
        if not refused:
            return {id_: replace(each, united=partners[id_] or ()) for id_, each in remaining.items()}
        for each in refused:
            del remaining[each]


@dataclass(frozen=True, slots=True)
class _ReuseChoice:
    """The unions of filters of shared exchanges among the filters `beside`, None for those that are applied."""

    selection: BuildSelection
    beside: Mapping[FilterId, RuntimeFilter | None]
    _known: dict[frozenset[FilterId], bool] = field(default_factory=dict)
    _shared: dict[FilterId, tuple[SharedExchange, ...]] = field(default_factory=dict)

    def partners(self, runtime_filter: RuntimeFilter) -> tuple[FilterId, ...] | None:
        """The filters of other places whose keys are united with those of a filter; None if it is refused."""
        found: dict[FilterId, None] = {}
        united: set[frozenset[int]] = set()
        # Conditions that Spark copies to an equal column are in other places, so the filter's own place comes first.
        changed = sorted(self._changed(runtime_filter), key=lambda each: not _contains(each.place, runtime_filter))
        for shared in changed:
            places = frozenset(each.id for each in (shared.place, *shared.others))
            if self._has_ended(shared) or places in united:
                continue
            partners = None if runtime_filter.from_metadata else self._in_each_place(shared, runtime_filter)
            if partners is None or not self._pays((runtime_filter, *partners)):
                return () if self.selection.options.always and self._reaches_all(shared) else None
            united.add(places)
            found |= dict.fromkeys(each.id for each in partners)
        return tuple(found)

    def _changed(self, runtime_filter: RuntimeFilter) -> tuple[SharedExchange, ...]:
        """The exchanges that a filter changes, without places that are not run again since a build has their rows."""
        at = runtime_filter.id
        if at not in self._shared:
            statistics, materialized = self.selection.sizes.statistics, self.selection.sizes.materialized
            changed = statistics.shared_exchanges(runtime_filter.build_side, runtime_filter.probe)
            kept = ((each.place, tuple(it for it in each.others if it.id not in materialized)) for each in changed)
            self._shared[at] = tuple(
                SharedExchange(place, others) for place, others in kept if others and place.id not in materialized
            )
        return self._shared[at]

    def _has_ended(self, shared: SharedExchange) -> bool:
        """True where the applied filters of the places differ."""
        applied = [id_ for id_, each in self.beside.items() if each is None]
        places = (shared.place, *shared.others)
        return len({frozenset(_keys(id_) for id_ in applied if _is_inside(id_, each)) for each in places}) > 1

    def _reaches_all(self, shared: SharedExchange) -> bool:
        return all(any(_is_inside(id_, each) for id_ in self.beside) for each in (shared.place, *shared.others))

    def _in_each_place(self, shared: SharedExchange, runtime_filter: RuntimeFilter) -> tuple[RuntimeFilter, ...] | None:
        """The best filter of the same column of the equal scan in each other place; None unless each has one.

        A place has no second filter of the column, as its scan would no longer be equal to the others. Spark may also
        copy a filter from another scan into a place; then that scan has to be equal to one with such a copy for each
        other place.
        """
        is_inside = _contains(shared.place, runtime_filter)
        at = runtime_filter.probe.relation.id - shared.place.subtree_start
        alike, found = self._alike(runtime_filter), list[RuntimeFilter | None]()
        for place in (shared.place, *shared.others):
            if is_inside:
                each = [it for it in alike if it.id.relation == place.subtree_start + at and _is_inside(it.id, place)]
            else:
                each = [it for it in alike if self._is_copied(it, place)]
            found.append(max(each, key=lambda it: (it.gain, it.id), default=None))
        own, *others = found
        known = tuple(each for each in others if each is not None)
        return known if own is runtime_filter and len(known) == len(others) else None

    def _alike(self, runtime_filter: RuntimeFilter) -> list[RuntimeFilter]:
        """The filters by builds of the same column of scans of the same table."""
        relation = runtime_filter.probe.relation
        column = relation.path_of(runtime_filter.probe.column)
        return [
            each
            for each in self.beside.values()
            if each is not None
            and not each.from_metadata
            and _scanned(each.probe.relation) == _scanned(relation)
            and each.probe.relation.path_of(each.probe.column) == column
            and each.probe.functions == runtime_filter.probe.functions
        ]

    def _is_copied(self, runtime_filter: RuntimeFilter, place: Node) -> bool:
        changed = self._changed(runtime_filter)
        return any(each.place.id == place.id and not _contains(place, runtime_filter) for each in changed)

    def _pays(self, union: tuple[RuntimeFilter, ...]) -> bool:
        """True if the united keys save more than their builds, and the builds risk no more than those of other filters.

        The exchange runs once, so its rows count once.
        """
        if self.selection.options.always:
            return True
        at = frozenset(each.id for each in union)
        if at not in self._known:
            benefits = self.selection.benefits
            nodes = [each.build_side.node for each in one_by_build(union)]
            keys, gain = Counter(each.id for each in nodes), _saved(union, benefits)
            for each in {each.id: each for each in nodes}.values():
                gain = gain - benefits.paid(each, keys[each.id])
            root, risk = self.selection.root, -gain.low
            is_bearable = risk <= benefits.risked(root) or benefits.is_bearable(risk, gain.expected, root)
            self._known[at] = gain.expected > 0 and is_bearable
        return self._known[at]


def _saved(union: tuple[RuntimeFilter, ...], benefits: Benefits) -> Estimate:
    """The seconds that united keys save of one run: the shares of rows that the keys of each build let pass add up."""
    shares = [benefits.cardinalities.partner_share(each.build_side, each.probe) for each in one_by_build(union)]
    saved = min((benefits.effect(each.build_side, each.probe).saved for each in union), key=lambda each: each.expected)
    expected = _left_of([each.expected for each in shares])
    return Estimate.around(
        saved.low * _left_of([each.high for each in shares]), saved.expected * expected, saved.high * expected
    )


def _left_of(shares: Sequence[float]) -> float:
    """The part of what keys of one share save that keys of all shares save."""
    dropped = 1.0 - min(shares)
    return max(0.0, 1.0 - sum(shares)) / dropped if dropped > 0 else 0.0


def _scanned(relation: Relation) -> tuple[object, ...]:
    return relation.table, relation.names, relation.types


def _keys(id_: FilterId) -> frozenset[tuple[int, str]]:
    return id_.union or frozenset({(id_.build_node, id_.key)})


def _contains(place: Node, runtime_filter: RuntimeFilter) -> bool:
    return place.contains(runtime_filter.probe.relation.id)


def _is_inside(id_: FilterId, place: Node) -> bool:
    """True for a filter of a scan in `place` by keys from elsewhere."""
    inside = range(place.subtree_start, place.id + 1)
    return not id_.from_metadata and id_.relation in inside and id_.build_node not in inside
