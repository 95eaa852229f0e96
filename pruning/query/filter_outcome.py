"""`outcome_of()`: which filters of a planned query were of use to it, and which were idle."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pruning.query.lessons import Attempt, Outcome
from pruning.query.planner_requests import PlannedScan
from pruning.query.runtime_filter import RuntimeFilter
from pruning.reasons import WITHOUT_BOUNDS, ReasonCode
from pruning.scan.scan_plan import RowFilter, ScanPlan

# Reasons against a column whose keys skip no container.
_SKIPS_NOTHING = frozenset({ReasonCode.UNCLUSTERED, ReasonCode.NO_READER_FILTER, *WITHOUT_BOUNDS})


def outcome_of(
    tried: Collection[tuple[RuntimeFilter, float]], scans: Mapping[int, PlannedScan], materialized: Collection[int]
) -> Outcome:
    """The outcome of filters whose build gave keys; one is idle if it gave no rows to join, and changed no scan.

    `tried` are the filters, each with the share of rows that was expected to have a key; `scans` the pruned scans by
    `Relation.id`; `materialized` the nodes whose rows the query joins.
    """
    used = {each.build_side.node.id for each, _ in tried if _acts(each, scans)} | set(materialized)
    attempts = {Attempt.of(each.build_side, each.probe): share for each, share in tried}
    idle = {each: share for each, share in attempts.items() if each.build not in used}
    return Outcome(idle, frozenset(attempts.keys() - idle.keys()))


def _acts(each: RuntimeFilter, scans: Mapping[int, PlannedScan]) -> bool:
    scan = scans.get(each.probe.relation.id)
    return scan is not None and (bool(each.other_operands) or not _leaves(scan.plan, each.probe.name))


def _leaves(plan: ScanPlan, column: str) -> bool:
    """True where the keys of a column skip no container of a scan, and test none of its rows."""
    is_tested = any(column in each.filter.columns and each.test is not RowFilter.NONE for each in plan.decisions)
    is_pushed = any(column == each.column for each in plan.predicates) or any(
        column in each.columns for each in plan.joint_predicates
    )
    skips_nothing = any(each.subject == column and each.code in _SKIPS_NOTHING for each in plan.reasons)
    return skips_nothing and not (is_tested or is_pushed)
