"""The input of the choice between Spark's reader and pyarrow: the work of each reader for a scan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from connectors.arrow_scan.partition import task_count
from connectors.base import Table
from connectors.columns import Column
from connectors.scan.decision import ScanDecision
from connectors.spark.files import local_path
from pruning.keys.membership import is_searched
from pruning.limits import Limits
from pruning.options import PruningOptions
from pruning.scan.estimates import pass_ratio
from pruning.scan.reader_cost import KeyWork, ReaderCase, RowGroupWork
from pruning.scan.scan_plan import RowFilter
from pruning.scan.skipping import column_domains, prune_by_filters
from pruning.scan.statistics import Containers
from pruning.values.byte_strings import IntArray
from pruning.values.domain import Domain
from pruning.values.ranges import BoolArray
from pruning.values.types import INTEGER_BITS, TEMPORAL

_AS_STORED = frozenset({*INTEGER_BITS, *TEMPORAL})


def reader_case(
    table: Table, decided: ScanDecision, needed: Sequence[str] | None, cores: int, options: PruningOptions
) -> ReaderCase | None:
    """The work of either reader; None if it is little, or no footers were read.

    `needed` are the top-level columns that the scan reads, None for all.
    """
    groups, plan = decided.row_groups, decided.plan
    if groups is None or groups.parents is None or plan.row_groups is None:
        return None
    by_ranges = plan.row_groups.kept & plan.files.kept[groups.parents]
    if int(groups.sizes[by_ranges].sum()) < options.limits.costs.least_bytes(cores):
        return None
    filters = [each.filter for each in plan.decisions]
    by_keys = prune_by_filters(groups, filters).kept & prune_by_filters(decided.files, filters).kept[groups.parents]
    keys = _key_work(table, groups, by_keys, column_domains(filters), decided.columns, options.limits)
    if keys is None:
        return None
    count = len(table.schema.fields if needed is None else needed)
    is_remote = any(local_path(each) is None for each in decided.files.names[:1])
    arrow = RowGroupWork(groups.rows[by_keys], groups.sizes[by_keys], count, is_remote)
    return ReaderCase(
        RowGroupWork(groups.rows[by_ranges], groups.sizes[by_ranges], count, is_remote),
        [each.ratio for each in plan.decisions if each.test is not RowFilter.NONE],
        arrow,
        keys,
        task_count(len(arrow.rows), int(arrow.bytes.sum()), cores, options.limits.arrow_task_bytes),
        options.limits.costs,
        options.limits.reader_factor,
    )


def _key_work(  # noqa: PLR0913, PLR0917 - row groups, and what is tested in them
    table: Table,
    groups: Containers,
    kept: BoolArray,
    domains: Mapping[str, Domain],
    columns: Sequence[Column],
    limits: Limits,
) -> list[KeyWork] | None:
    found: list[KeyWork] = []
    for column in columns:
        sizes = _sizes(table, groups, column)
        if sizes is None:
            return None
        statistics = groups.columns.get(column.name)
        domain = domains[column.name]
        ratio = 1.0 if statistics is None else pass_ratio(statistics, groups.rows, kept, domain)
        found.append(KeyWork(ratio, sizes[kept], is_dense=_is_dense(domain, limits)))
    return found


def _is_dense(domain: Domain, limits: Limits) -> bool:
    """True if numbers are tested in their stored form; decimals, floats and texts are not, however few they are."""
    return domain.type.name in _AS_STORED and not is_searched(domain, limits)


def _sizes(table: Table, groups: Containers, column: Column) -> IntArray | None:
    """Bytes of one column in each row group; None if the row groups have changed since they were examined."""
    assert groups.parents is not None  # noqa: S101
    alone = table.row_groups(np.unique(groups.parents), [], [column.path[0]])
    return alone.sizes if np.array_equal(alone.rows, groups.rows) else None
