"""From a table's metadata and the collected keys to a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from connectors.base import Table
from connectors.columns import Column
from pruning.intervals import BoolArray
from pruning.key_filter import KeyFilter
from pruning.key_skipping import column_domains, prune_by
from pruning.options import PruningOptions
from pruning.reasons import Reason, ReasonCode
from pruning.scan_abilities import ScanAbilities
from pruning.scan_plan import ScanPlan, no_row_matches, plan_scan
from pruning.statistics import Containers


@dataclass(frozen=True, slots=True, eq=False)
class Decided:
    """A plan with the containers it was made from, and what went wrong on the way.

    `group_columns` are those of `columns` by which the reader can skip row groups.
    """

    columns: tuple[Column, ...]
    group_columns: tuple[Column, ...]
    files: Containers
    row_groups: Containers | None
    plan: ScanPlan
    reasons: tuple[Reason, ...]


def decide(  # noqa: PLR0913, PLR0917 - what a decision rests on, each of its own type
    table: Table,
    filters: Sequence[KeyFilter],
    probes: Mapping[str, Column],
    needed: Sequence[str] | None,
    abilities: ScanAbilities,
    options: PruningOptions,
) -> Decided:
    """Statistics of files, then of the row groups of those that are kept, then the plan."""
    domains = column_domains(filters)
    columns = tuple(probes[name] for name in domains)
    files = table.files(columns)
    nothing_matches = no_row_matches(filters, domains)
    kept = prune_by(files, filters).kept & (not nothing_matches)
    row_groups = _row_groups(table, kept, columns, needed, options)
    plan = plan_scan(files, row_groups, filters, abilities, options)
    while (plan.files.kept & ~kept).any():
        # The scan cannot skip every file that the keys rule out, so it reads row groups of these, too. What they show
        # of what their reader gets wrong may widen what is pushed, and so keep more files.
        kept = kept | plan.files.kept
        row_groups = _row_groups(table, kept, columns, needed, options)
        plan = plan_scan(files, row_groups, filters, abilities, options)
    reasons = []
    if row_groups is None:
        detail = f"{np.count_nonzero(kept):,} files are kept, at most {options.max_footers:,} footers are read"
        reasons.append(Reason(ReasonCode.NO_ROW_GROUPS_READ, table.name, detail))
    group_columns = tuple(column for column in columns if column.name not in abilities.file_only)
    return Decided(columns, group_columns, files, row_groups, plan, tuple(reasons))


def _row_groups(
    table: Table, kept: BoolArray, columns: Sequence[Column], needed: Sequence[str] | None, options: PruningOptions
) -> Containers | None:
    """Those of the kept files; None where there are too many footers to read."""
    chosen = np.flatnonzero(kept)
    return table.row_groups(chosen, columns, needed) if len(chosen) <= options.max_footers else None
