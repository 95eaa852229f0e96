"""Filters for ORDER BY ... LIMIT: metadata proves that enough rows reach a key, so scans skip rows with worse keys."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np

from connectors.base import Table
from connectors.columns import Column
from connectors.keys.sources import Collected, KeySource
from connectors.pipeline.plan_metadata import PlanMetadata
from connectors.scan.capabilities import lenient_settings, skipping_switched_off
from connectors.spark.jvm import one_line
from pruning.query.build_selection import BuildSelection
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Node, PlanNames
from pruning.query.planner import BY_STATISTICS, too_few_first_rows, worth_filtering
from pruning.query.top_k import TopFilter, TopK, held, surely_first, top_ks
from pruning.reasons import Reason, ReasonCode
from pruning.scan.key_filter import KeyFilter
from pruning.scan.skipping import prune
from pruning.scan.statistics import Containers
from pruning.values.byte_strings import IntArray
from pruning.values.coercion import coerce
from pruning.values.domain import Domain

logger = logging.getLogger("scanprune")


def expected(root: Node, metadata: PlanMetadata, selection: BuildSelection) -> Iterator[TopFilter]:
    """The outcome of top-k filtering for each scan below a limit by metadata, without changing any plan."""
    for top in top_ks(root) if metadata.options.top_k else ():
        known = TopKMetadata(metadata).sure(top) if worth_filtering(top, selection) else None
        for each in top.probes:
            how = BY_STATISTICS if known is not None else too_few_first_rows(each.name)
            yield TopFilter(top, each, selection.why_no_filter(each) or how)
        yield from (TopFilter(top, None, each) for each in top.stops)


@dataclass(frozen=True, slots=True, eq=False)
class TopKMetadata:
    """Proofs about the first rows of an order by the metadata of a plan's tables."""

    metadata: PlanMetadata

    def sure(self, top: TopK) -> Domain | None:
        """Keys, in the type of the order, that at least as many rows as the limit have; None if unknown.

        Each scan alone may prove a set of keys; their intersection is enough.
        """
        found = [each for probe in top.sure if (each := self._sure(top, probe)) is not None]
        return reduce(Domain.intersect, found) if found else None

    def sure_or_reason(self, top: TopK) -> Domain | Reason | None:
        """The result of `sure`; a `Reason` if reading the statistics fails."""
        try:
            return self.sure(top)
        except Exception as error:
            subject = str(top.first.key)
            logger.debug("Reading the statistics of the first rows by %s failed", subject, exc_info=True)
            return Reason(ReasonCode.STATISTICS_FAILED, subject, one_line(error))

    def filter_of(self, top: TopK, probe: ProbeColumn, keys: Domain) -> Collected | Reason:
        """The filter of a scan from `keys`, which are in the type of the order."""
        opened = self._opened(probe)
        if isinstance(opened, Reason):
            return opened
        table, column = opened
        assert column.type is not None  # noqa: S101 - or it is refused above
        found = coerce(keys, column.type, column.name)
        if isinstance(found, Reason):
            return found
        left = held(found.domain, table.files([column]), column.name)
        return collected(top, column, left, PlanNames(self.metadata.plan.root))

    def _opened(self, probe: ProbeColumn) -> tuple[Table, Column] | Reason:
        table = self.metadata.table(probe.relation)
        if isinstance(table, Reason):
            return table
        column = self.metadata.column(table, probe)
        if column.type is None:
            return column.refusal or Reason(ReasonCode.UNSUPPORTED_TYPE, probe.name)
        return table, column

    def _sure(self, top: TopK, probe: ProbeColumn) -> Domain | None:
        opened = self._opened(probe)
        if isinstance(opened, Reason):
            return None
        table, column = opened
        # No row is proved if files may be missing or corrupt, or if the session distrusts their statistics.
        spark = self.metadata.plan.spark
        if str(column.type) != top.first.key.type or skipping_switched_off(spark, table, [column]) is not None:
            return None
        if lenient_settings(table.read(None)):
            return None
        files = table.files([column])
        found = surely_first(top, files, column.name)
        wanted = {} if found is None else {column.name: found}
        chosen = np.flatnonzero(prune(files, wanted).kept)
        if not files.is_listed or len(chosen) > self.metadata.options.limits.max_footers:
            return found
        groups = surely_first(top, self._row_groups(table, column, chosen), column.name)
        both = [each for each in (found, groups) if each is not None]
        return reduce(Domain.intersect, both) if both else None

    @staticmethod
    def _row_groups(table: Table, column: Column, files: IntArray) -> Containers:
        return table.row_groups(files, [column], None)


def collected(top: TopK, column: Column, keys: Domain, names: PlanNames) -> Collected:
    """A filter from `keys` of a column, which are in the column's own type."""
    filter_ = KeyFilter(
        (column.name,),
        {column.name: keys},
        rows=top.rows,
        distinct=None,
        is_exact=True,
        is_empty=keys.is_none,
        has_bloom=False,
        source=top.worded(names),
        is_order=True,
    )
    return Collected(KeySource((column,), None), filter_, None, None)
