"""The plan of a scan that tests rows by the keys themselves, instead of by literal ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pruning.reasons import Reason, ReasonCode
from pruning.scan.key_filter import KeyFilter
from pruning.scan.pushdown import skips
from pruning.scan.scan_plan import FilterDecision, RowFilter, ScanPlan
from pruning.scan.skipping import PruningResult, SkipReason, column_domains, prune_by_filters, prune_containers
from pruning.scan.statistics import Containers
from pruning.values.domain import Domain
from pruning.values.ranges import BoolArray

# Reasons that do not hold for a scan by keys, or that are computed again for it.
_OF_PREDICATES = frozenset(
    {
        ReasonCode.NOT_VECTORISED,
        ReasonCode.NO_READER_FILTER,
        ReasonCode.NAN_KEYS,
        ReasonCode.UNCLUSTERED,
        ReasonCode.NO_STATISTICS,
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class OwnConditions:
    """The files, and the examined row groups, that the query's own conditions keep."""

    files: BoolArray
    row_groups: BoolArray


def plan_key_scan(
    files: Containers, row_groups: Containers, plan: ScanPlan, own: OwnConditions | None = None
) -> ScanPlan:
    """The `plan` of a scan by predicates, changed to a scan by keys; `row_groups` are those of all files with keys.

    A file is kept if one of its row groups is. The query's conditions stay above the scan, and the scan also skips by
    them, since Spark does not push them to it. The reasons of `plan` that hold for keys, too, are carried over.
    """
    if row_groups.parents is None:
        msg = "Cannot plan a scan by keys: found row groups of no known files"
        raise ValueError(msg)
    filters = [each.filter for each in plan.decisions]
    by_file, by_group = prune_by_filters(files, filters), prune_by_filters(row_groups, filters)
    kept = by_group.kept & by_file.kept[row_groups.parents]
    if own is not None:
        kept &= own.row_groups & own.files[row_groups.parents]
    is_open = np.zeros(len(files), bool)
    is_open[row_groups.parents[kept]] = True
    file_causes = np.where(by_file.kept & ~is_open, np.int8(SkipReason.STATISTICS), by_file.causes)
    with_files = np.where(by_file.kept, np.int8(SkipReason.STATISTICS), by_file.causes)[row_groups.parents]
    group_causes = np.where(by_group.kept & ~kept, with_files, by_group.causes)
    return ScanPlan(
        PruningResult(is_open, file_causes),
        PruningResult(kept, group_causes),
        (),
        tuple(_by_keys(each) for each in plan.decisions),
        (
            *(each for each in plan.reasons if each.code not in _OF_PREDICATES),
            *_why_not_skipped(_alone(filters, files, row_groups), files, row_groups),
        ),
        plan.choice,
    )


def _alone(filters: Sequence[KeyFilter], *levels: Containers) -> dict[str, Domain]:
    """The domains of columns, without columns of key tuples that skip more than each column alone."""
    together = {name for each in filters if each.points is not None and _skip(each, levels) for name in each.columns}
    return {name: each for name, each in column_domains(filters).items() if name not in together}


def _skip(filter_: KeyFilter, levels: Sequence[Containers]) -> bool:
    """True if keys of several columns skip containers that each column alone keeps."""
    by_column = (prune_containers(level, filter_.domains).kept_count for level in levels)
    return any(
        prune_by_filters(level, [filter_]).kept_count < kept for level, kept in zip(levels, by_column, strict=True)
    )


def _by_keys(decision: FilterDecision) -> FilterDecision:
    test = RowFilter.KEYS if decision.filter.domains else RowFilter.NONE
    return replace(decision, test=test, reasons=decision.filter.reasons)


def _why_not_skipped(domains: Mapping[str, Domain], *levels: Containers) -> tuple[Reason, ...]:
    reasons = []
    for name, domain in domains.items():
        columns = [level.columns[name] for level in levels if name in level.columns]
        if not any(skips(level, name, domain).any() for level in levels):
            is_known = any((each.has_low & each.has_high).any() for each in columns)
            reasons.append(Reason(ReasonCode.UNCLUSTERED if is_known else ReasonCode.NO_STATISTICS, name))
    return tuple(reasons)
