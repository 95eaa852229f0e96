"""The choice of a disjunction: its builds run together, and are worth it by what all their keys save together."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial

from pruning.cost.estimate import ZERO
from pruning.query.benefit import Benefit, Benefits
from pruning.query.build_selection import BuildSelection
from pruning.query.disjunctions import Disjunction
from pruning.query.edges import Edge
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Relation
from pruning.query.requests import Steps, with_answers
from pruning.query.runtime_filter import FilterId, RuntimeFilter
from pruning.reasons import Reason, ReasonCode

# The filters of one scan by all operands of an OR, in their order.
_Filters = tuple[RuntimeFilter, ...]


def ready_disjunction(
    selection: BuildSelection, done: Collection[FilterId]
) -> Steps[tuple[tuple[RuntimeFilter, ...], tuple[Reason, ...]]]:
    """The filters of the first disjunction that is worth its builds, and the reasons against those before it."""
    refused: list[Reason] = []
    for _, filters in _open(selection, done):
        found = yield from with_answers(partial(_outcome, filters, selection))
        if not isinstance(found, Reason):
            return found, tuple(refused)
        refused.append(found)
    return (), tuple(refused)


def unused_disjunctions(
    selection: BuildSelection, done: Collection[FilterId]
) -> Steps[tuple[tuple[Edge, ProbeColumn, Reason], ...]]:
    """The edges of disjunctions that are not used, each with the column that it reaches, and the reason."""
    unused: list[tuple[Edge, ProbeColumn, Reason]] = []
    for disjunction, filters in _open(selection, done):
        found = yield from with_answers(partial(_outcome, filters, selection))
        if isinstance(found, Reason):
            pairs = zip(disjunction.edges, filters, strict=True)
            unused += ((edge, each.probe, found) for edge, each in pairs)
    return tuple(unused)


def _open(selection: BuildSelection, done: Collection[FilterId]) -> Iterator[tuple[Disjunction, _Filters]]:
    """The disjunctions, each with the filters of a scan, without those of which a key filters the scan already."""
    for each in selection.disjunctions:
        for relation in each.relations:
            filters = _filters(each, relation, selection)
            if not any(made.id in done for made in filters):
                yield each, filters


def _filters(disjunction: Disjunction, relation: Relation, selection: BuildSelection) -> _Filters:
    """The filters of all operands, which count only together."""
    made = [
        RuntimeFilter(
            edge.build_side,
            probe,
            needs_rows=selection.needs_rows(edge.build_side),
            runs_once=selection.runs_once(edge.build_side),
            dropped_by=disjunction.filter.id,
        )
        for edge, probe in zip(disjunction.edges, disjunction.probes_of(relation), strict=True)
    ]
    ids = tuple(each.id for each in made)
    return tuple(replace(each, other_operands=tuple(id_ for id_ in ids if id_ != each.id)) for each in made)


def _outcome(filters: _Filters, selection: BuildSelection) -> _Filters | Reason:
    """The filters with their benefit; a `Reason` if they are not sound, or not worth their builds."""
    for each in filters:
        if (refused := selection.why_not(each.build_side, each.probe)) is not None:
            return refused
        if each.probe.column in selection.partitions:
            return Reason(ReasonCode.NO_READER_FILTER, each.probe.name, "an OR with a partition column")
        if selection.sizes.statistics.shared_exchanges(each.build_side, each.probe):
            return Reason(ReasonCode.RUN_ONCE, each.probe.name)
    return _weighed(filters, selection)


def _weighed(filters: _Filters, selection: BuildSelection) -> _Filters | Reason:
    benefits, root = selection.benefits, selection.root
    builds = {each.build_side.node.id: each.build_side.node for each in filters}.values()
    paid = sum((benefits.paid(each) for each in builds), ZERO)
    saved = benefits.saved_by_any([(each.build_side, each.probe) for each in filters])
    benefit = Benefit(paid, saved)
    if not selection.options.always:
        subject = " or ".join(each.probe.name for each in filters)
        if benefit.gain <= 0:
            return Reason(ReasonCode.NOT_WORTH, subject, str(benefit))
        if not benefits.is_bearable(benefit.risk, benefit.gain, root) and benefit.risk > benefits.risked(root):
            return Reason(ReasonCode.RISKY, subject, str(benefit))
    return tuple(_made(each, benefit, benefits) for each in filters)


def _made(each: RuntimeFilter, benefit: Benefit, benefits: Benefits) -> RuntimeFilter:
    """A filter with the benefit of all, and the seconds of its own build."""
    node = each.build_side.node
    return replace(
        each,
        benefit=replace(benefit, run=benefits.run(node), scans=benefits.scans(node)),
        brings_rows=each.needs_rows or benefits.may_fit(node),
        on_driver=benefits.is_on_driver(node),
    )
