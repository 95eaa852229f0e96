"""The plan of a scan from a table's metadata and the collected keys.

`StaticPruning` gives the containers that the query's own conditions keep, against which pruning is measured.
`keys_from_statistics()` gives the keys that the files of a build side allow, if the build is not run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from connectors.base import Table
from connectors.columns import Column, quoted, resolve
from pruning.keys.summary import KeyColumn, KeySummary
from pruning.limits import Limits
from pruning.options import PruningOptions
from pruning.query.expressions import static_domains
from pruning.query.key_origins import KeyOrigin, KeyOrigins, domain_from_statistics
from pruning.query.plan import Expression, Relation
from pruning.reasons import Reason, ReasonCode
from pruning.scan.key_filter import KeyFilter
from pruning.scan.pushdown import PushdownCapabilities
from pruning.scan.scan_plan import ScanPlan, no_row_matches, plan_scan
from pruning.scan.skipping import column_domains, prune_by_filters, prune_containers, tested_columns
from pruning.scan.statistics import Containers
from pruning.values.byte_strings import IntArray
from pruning.values.domain import Domain
from pruning.values.ranges import BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class ScanDecision:
    """A plan with the containers from which it was made, and the reasons of failures.

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
    capabilities: PushdownCapabilities,
    options: PruningOptions,
) -> ScanDecision:
    """The decision from statistics of all files and of the row groups of kept files."""
    domains = column_domains(filters)
    columns = tuple(probes[name] for name in tested_columns(filters))
    files = table.files(columns)
    nothing_matches = no_row_matches(filters, domains)
    kept = prune_by_filters(files, filters).kept & (not nothing_matches)
    row_groups = _row_groups(table, kept, columns, needed, options)
    plan = plan_scan(files, row_groups, filters, capabilities, options)
    while (plan.files.kept & ~kept).any():
        # The scan cannot skip every file that the keys rule out, so row groups of these files are read, too. Their
        # footers may show values that the reader compares wrongly, which widens the pushed ranges and keeps more files.
        kept = kept | plan.files.kept
        row_groups = _row_groups(table, kept, columns, needed, options)
        plan = plan_scan(files, row_groups, filters, capabilities, options)
    reasons = []
    if row_groups is None:
        detail = f"{np.count_nonzero(kept):,} files are kept, at most {options.limits.max_footers:,} footers are read"
        reasons.append(Reason(ReasonCode.NO_ROW_GROUPS_READ, table.name, detail))
    group_columns = tuple(column for column in columns if column.name not in capabilities.file_only)
    return ScanDecision(columns, group_columns, files, row_groups, plan, tuple(reasons))


def _row_groups(
    table: Table, kept: BoolArray, columns: Sequence[Column], needed: Sequence[str] | None, options: PruningOptions
) -> Containers | None:
    """The row groups of the kept files; None if there are too many footers to read."""
    chosen = np.flatnonzero(kept)
    return table.row_groups(chosen, columns, needed) if len(chosen) <= options.limits.max_footers else None


@dataclass(frozen=True, slots=True, eq=False)
class StaticPruning:
    """The files that conditions keep, and the domains of columns under these conditions, by `Column.name`."""

    files: BoolArray
    columns: tuple[Column, ...]
    domains: Mapping[str, Domain]

    @staticmethod
    def of(
        table: Table, relation: Relation, conditions: tuple[Expression, ...], listed: BoolArray | None
    ) -> StaticPruning:
        """The files that `conditions` keep; `listed` is True for the files that the plan itself reads, None for all."""
        columns, domains = static_columns(table, relation, conditions)
        files = table.files(list(columns.values()))
        by_layout = {name: each for name, each in domains.items() if columns[name].is_partition}
        remaining = prune_containers(files, by_layout).kept
        if listed is not None:
            remaining &= listed
        return StaticPruning(remaining, tuple(columns.values()), domains)

    def row_groups(self, table: Table, files: IntArray) -> BoolArray:
        """An array: True for each row group of the files at these indexes that the conditions do not skip."""
        groups = table.row_groups(files, self.columns, ())
        remaining: BoolArray = prune_containers(groups.seen_by_reader(), self.domains).kept
        return remaining if groups.parents is None else remaining & self.files[groups.parents]


def keys_from_statistics(
    origins: KeyOrigins,
    table_of: Callable[[Relation], Table | Reason],
    kept: Mapping[int, BoolArray],
    name: str,
    limits: Limits,
) -> KeySummary | Reason:
    """A summary of every value that a key may have; a `Reason` if the statistics do not bound it.

    `kept` are the files that pruned scans read, by `Relation.id`; `name` is for messages.
    """
    if not origins:
        return Reason(ReasonCode.COMPUTED, name)
    domains: list[Domain] = []
    rows = 0
    for origin in origins:
        table = table_of(origin.relation)
        if isinstance(table, Reason):
            return table
        found = _origin_values(origin, table, kept.get(origin.relation.id), limits)
        if isinstance(found, Reason):
            return found
        domains.append(found[0])
        rows += found[1]
    domain = reduce(Domain.union, domains)
    if domain.ranges.is_all:
        return Reason(ReasonCode.NO_STATISTICS, name)
    column = KeyColumn(domain, nulls=0, nans=0)
    counted = 0 if domain.is_none else max(rows, 1)
    source = "statistics of " + ", ".join(dict.fromkeys(origin.relation.table for origin in origins))
    return KeySummary((column,), counted, 0, 0 if domain.is_none else None, None, None, (), source, 0)


def _origin_values(
    origin: KeyOrigin, table: Table, kept: BoolArray | None, limits: Limits
) -> tuple[Domain, int] | Reason:
    """The values of one scan's column, and the most rows that may have them."""
    key = plan_column(table, origin.relation, origin.column)
    if key.type is None:
        return key.refusal or Reason(ReasonCode.UNSUPPORTED_TYPE, key.name)
    columns, wanted = static_columns(table, origin.relation, origin.conditions)
    columns = {key.name: key, **columns}
    files = table.files(list(columns.values()))
    remaining = prune_containers(files, wanted).kept
    if kept is not None and len(kept) == len(remaining):
        remaining &= kept
    domain = domain_from_statistics(files, key.name, remaining, key.type)
    rows = int(files.rows[remaining].clip(0).sum())
    chosen = np.flatnonzero(remaining)
    if domain.ranges.is_all and len(chosen) <= limits.max_footers:
        groups = table.row_groups(chosen, list(columns.values()), [key.path[0]])
        domain = domain_from_statistics(groups, key.name, prune_containers(groups, wanted).kept, key.type)
        rows = int(groups.rows.clip(0).sum())
    return domain, rows


def static_columns(
    table: Table, relation: Relation, conditions: Iterable[Expression]
) -> tuple[dict[str, Column], dict[str, Domain]]:
    """The columns that a scan's own conditions bound, and the domain of each, by `Column.name`."""
    columns: dict[str, Column] = {}
    wanted: dict[str, Domain] = {}
    for at, domain in static_domains(conditions).items():
        if at not in relation.output:
            continue
        column = plan_column(table, relation, at)
        # A comparison in another type than the stored one does not bound stored values.
        if column.type == domain.type:
            columns[column.name] = column
            wanted[column.name] = domain
    return columns, wanted


def plan_column(table: Table, relation: Relation, column: int) -> Column:
    """The table's column for a column of a scan."""
    name = ".".join(map(quoted, relation.path_of(column)))
    return resolve(table.schema, name, table=table.name, case_sensitive=True, partitions=table.partition_columns)
