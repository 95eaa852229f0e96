"""Keys of a build side that is not run: what the statistics of its files allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

import numpy as np

from connectors.base import Table
from connectors.columns import Column, quoted, resolve
from pruning.domain import Domain
from pruning.intervals import BoolArray
from pruning.key_filter import key_filter
from pruning.key_summary import KeyColumn, KeySummary
from pruning.options import PruningOptions
from pruning.query_plan import Expression, Relation
from pruning.reasons import Reason, ReasonCode
from pruning.skipping import prune
from pruning.static_filters import static_domains
from pruning.statistics import UNKNOWN
from pruning.zones import Zone, Zones, zone_domain

Kept = Callable[[Relation], BoolArray | None]


def zone_keys(
    zones: Zones, table_of: Callable[[Relation], Table | Reason], kept_of: Kept, name: str, options: PruningOptions
) -> KeySummary | Reason:
    """A summary of every value that a key may have; a `Reason` where the statistics do not bound it.

    `kept_of` gives for a scan that is pruned already which of its table's files it reads; `name` is for messages.
    """
    if not zones:
        return Reason(ReasonCode.COMPUTED, name)
    domains: list[Domain] = []
    rows = 0
    for zone in zones:
        table = table_of(zone.relation)
        if isinstance(table, Reason):
            return table
        found = _zone(zone, table, kept_of(zone.relation), options)
        if isinstance(found, Reason):
            return found
        domains.append(found[0])
        rows += found[1]
    domain = reduce(Domain.union, domains)
    if domain.ranges.is_all:
        return Reason(ReasonCode.NO_STATISTICS, name)
    column = KeyColumn(domain, nulls=0, nans=0)
    counted = 0 if domain.is_none else max(rows, 1)
    source = "statistics of " + ", ".join(dict.fromkeys(zone.relation.table for zone in zones))
    return KeySummary((column,), counted, 0, 0 if domain.is_none else None, None, None, (), source, 0)


def _zone(zone: Zone, table: Table, kept: BoolArray | None, options: PruningOptions) -> tuple[Domain, int] | Reason:
    """The values of one scan's column, and at most how many rows have them."""
    key = plan_column(table, zone.relation, zone.column)
    if key.type is None:
        return key.refusal or Reason(ReasonCode.UNSUPPORTED_TYPE, key.name)
    columns, wanted = static_columns(table, zone.relation, zone.conditions)
    columns = {key.name: key, **columns}
    files = table.files(list(columns.values()))
    left = prune(files, wanted).kept
    if kept is not None and len(kept) == len(left):
        left &= kept
    domain = zone_domain(files, key.name, left, key.type)
    rows = int(files.rows[left].clip(0).sum())
    chosen = np.flatnonzero(left)
    if domain.ranges.is_all and len(chosen) <= options.max_footers:
        groups = table.row_groups(chosen, list(columns.values()), [key.path[0]])
        domain = zone_domain(groups, key.name, prune(groups, wanted).kept, key.type)
        rows = int(groups.rows.clip(0).sum())
    return domain, rows


def leaves_out(table: Table, column: Column, keys: KeySummary) -> bool:
    """True where some file of a table holds none of the keys."""
    filter_ = key_filter([column], keys)
    files = table.files([column])
    kept = prune(files, filter_.domains).kept
    return filter_.is_empty or not bool(kept[files.rows != 0].all())


def has_few_keys(
    zones: Zones,
    table_of: Callable[[Relation], Table | Reason],
    probe: Table,
    column: Column,
    options: PruningOptions,
) -> bool:
    """True where metadata counts few rows behind a key beside the values that a column of the probe side may have.

    That is the filter ratio `1 - keys / values` before the build has run.
    """
    if column.type is None or not column.type.has_density or not zones:
        return False
    rows = 0
    for zone in zones:
        table = table_of(zone.relation)
        if isinstance(table, Reason):
            return False
        counts = table.files([]).rows
        if (counts == UNKNOWN).any():
            return False
        rows += int(counts.sum())
    files = probe.files([column])
    ranges = zone_domain(files, column.name, files.rows != 0, column.type).ranges
    values = None if ranges.is_all else ranges.point_count()
    if values is None or (files.rows == UNKNOWN).any():
        return False
    return rows <= (1 - options.min_filter_ratio) * min(values, int(files.rows.sum()))


def static_columns(
    table: Table, relation: Relation, conditions: Iterable[Expression]
) -> tuple[dict[str, Column], dict[str, Domain]]:
    """The columns that a scan's own conditions bound, and what they leave of each, by `Column.name`."""
    columns: dict[str, Column] = {}
    wanted: dict[str, Domain] = {}
    for at, domain in static_domains(conditions).items():
        if at not in relation.output:
            continue
        column = plan_column(table, relation, at)
        # What is compared in another form than it is stored in says nothing of what is stored.
        if column.type == domain.type:
            columns[column.name] = column
            wanted[column.name] = domain
    return columns, wanted


def plan_column(table: Table, relation: Relation, column: int) -> Column:
    """A column of a scan as its table knows it."""
    name = quoted(relation.names[relation.output.index(column)])
    return resolve(table.schema, name, table=table.name, case_sensitive=True, partitions=table.partition_columns)
