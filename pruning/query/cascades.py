"""`effect_with_later()`: the effect of a filter with what a later build gains by the fewer keys of the filtered scan.

The weeks of one table of dates filter another one, which then gives the few dates of a fact: to read less of a table of
dates saves nothing by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pruning.cost.estimate import Estimate
from pruning.query.benefit import Effect, Remaining
from pruning.query.build_selection import BuildSelection
from pruning.query.join_condition import BuildSide
from pruning.query.lineage import ProbeColumn
from pruning.query.runtime_filter import RuntimeFilter
from pruning.reasons import ReasonCode


def effect_with_later(each: RuntimeFilter, selection: BuildSelection, left: Mapping[int, Remaining]) -> Effect:
    """The effect of a filter; where its scan alone is not worth planning anew, with the gain of the best later build.

    `left` is what the filters that are chosen leave of each scan, by `Relation.id`.
    """
    benefits = selection.benefits
    effect = benefits.effect(each.build_side, each.probe, left.get(each.probe.relation.id))
    if effect.saved.expected > benefits.planning:
        return effect
    later = _saved_later(each, selection, left)
    return replace(effect, saved=effect.saved + Estimate(0.0, later, later))


def _saved_later(each: RuntimeFilter, selection: BuildSelection, left: Mapping[int, Remaining]) -> float:
    """Seconds that the best later build is expected to gain by rows that a filter drops; 0 if there is none."""
    share = selection.benefits.passing(each.build_side, each.probe)
    if share >= 1.0:
        return 0.0
    gained = (_gained(side, probe, selection, share, left) for side, probe in _later(each, selection))
    return max(gained, default=0.0)


def _later(each: RuntimeFilter, selection: BuildSelection) -> Iterator[tuple[BuildSide, ProbeColumn]]:
    """The build sides that keep all keys of the filtered scan, above which the join drops rows, each with its scans."""
    at, top, read = each.probe.relation.id, each.top, each.build_side.node
    for edge in selection.edges:
        node = edge.build_side.node
        if node.contains(at) and not node.contains(top) and not selection.leaves_out(edge.build_side):
            # The build has read its own scans by then.
            scans = ((probe, probe.relation.id) for probe in edge.probes)
            beyond = (probe for probe, scan in scans if not (node.contains(scan) or read.contains(scan)))
            yield from ((edge.build_side, probe) for probe in beyond if _may_run(edge.build_side, probe, selection))


def _may_run(build_side: BuildSide, probe: ProbeColumn, selection: BuildSelection) -> bool:
    """True for a sound build; one that leaves out no row does so once its scan is filtered."""
    refused = selection.why_not(build_side, probe)
    return refused is None or refused.code is ReasonCode.UNSELECTIVE_BUILD


def _gained(
    build_side: BuildSide,
    probe: ProbeColumn,
    selection: BuildSelection,
    share: float,
    left: Mapping[int, Remaining],
) -> float:
    """Seconds that a build gains if it gives a share of its keys, beyond what it gains with all of them."""
    benefits, before = selection.benefits, left.get(probe.relation.id)
    paid = benefits.paid(build_side.node).expected
    alone = benefits.effect(build_side, probe, before).saved.expected - paid
    fewer = benefits.saved_by_share(build_side, probe, share, before) - paid
    return max(0.0, fewer) - max(0.0, alone)
