"""Filters whose keys metadata tells, without a build: what they cost and save, and if that is enough."""

from __future__ import annotations

from functools import partial

from pruning.cost.estimate import Estimate
from pruning.keys.summary import KeySummary
from pruning.query.benefit import Benefit, Benefits
from pruning.query.build_selection import BuildSelection
from pruning.query.lineage import ProbeColumn
from pruning.query.requests import DescribeFiles, Steps, ask, with_answers
from pruning.reasons import Reason, ReasonCode
from pruning.scan.key_filter import key_filter
from pruning.scan.skipping import skipped_share

# Said of keys that no build gives: nothing that a user can change.
BY_STATISTICS = "by the statistics of the build side"


def benefit_of_skipping(probe: ProbeColumn, skipped: float, benefits: Benefits) -> Steps[Benefit]:
    """Seconds that known keys cost and save, which skip a share of the bytes of a table's files.

    Other conditions may skip the same files, and row groups of other files may be skipped besides.
    """
    scan = yield from with_answers(partial(benefits.cost.scan, probe.relation))
    return Benefit(Estimate.exact(benefits.planning), Estimate(0.0, skipped * scan, scan))


def benefit_of_bounds(probe: ProbeColumn, keys: KeySummary, selection: BuildSelection) -> Steps[Benefit | Reason]:
    """Seconds that the bounds of a build side's files cost and save as keys; a `Reason` if that is not worth it."""
    files = yield from ask(DescribeFiles(probe.relation, probe.column))
    if isinstance(files, Reason):
        return files
    values = probe.values_of(keys)
    if isinstance(values, Reason):
        return values
    skipped = skipped_share(key_filter([files], values), files.containers)
    if not skipped:
        return Reason(ReasonCode.UNCLUSTERED, probe.name, BY_STATISTICS)
    benefit = yield from benefit_of_skipping(probe, skipped, selection.benefits)
    if selection.options.always or benefit.gain > 0:
        return benefit
    return Reason(ReasonCode.NOT_WORTH, probe.name, f"{BY_STATISTICS}: {benefit}")
