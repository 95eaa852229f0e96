"""The first rows of an order by metadata: keys that as many rows surely have, and where such rows probably lie."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from connectors.abilities import skipping_switched_off
from connectors.columns import Column
from connectors.key_sources import Collected, KeySource
from connectors.plan_metadata import PlanMetadata
from connectors.plan_tables import OpenedTable
from connectors.reader_settings import lenient_settings
from connectors.static_scan import StaticScan
from pruning.byte_strings import IntArray
from pruning.coerce import coerce
from pruning.domain import Domain
from pruning.intervals import BoolArray
from pruning.key_filter import KeyFilter
from pruning.lineage import Target
from pruning.query_plan import PlanNames
from pruning.reasons import Reason, ReasonCode
from pruning.skipping import prune
from pruning.statistics import Containers
from pruning.top_k import TopK, first_within, held, surely_first
from pruning.zones import conditions_of

# Of so many files a part is fine enough; of fewer, row groups are looked at.
_MANY_FILES = 64


@dataclass(frozen=True, slots=True, eq=False)
class FirstRows:
    """What the metadata of a plan's tables tells of first rows."""

    metadata: PlanMetadata

    def sure(self, top: TopK) -> Domain | None:
        """Keys, in the type of the order, of which as many rows as are asked for surely have one; None if unknown.

        Each scan alone may tell, and the fewest keys that any of them tells are enough.
        """
        found = [each for target in top.sure if (each := self._sure(top, target)) is not None]
        return reduce(Domain.intersect, found) if found else None

    def guess(self, top: TopK, target: Target, kept: BoolArray | None, most: float) -> Domain | Reason:
        """The first keys of the order, in the column's type, that lie in a share of at most `most` of a scan's bytes.

        `kept` are the files that a pruned scan still reads.
        """
        opened = self._opened(target)
        if isinstance(opened, Reason):
            return opened
        table, column = opened
        found = self.metadata.scan(target.relation)
        if isinstance(found, Reason):
            return found
        conditions = conditions_of(self.metadata.plan.root, target.relation)
        static = StaticScan.of(table, target.relation, conditions, found.listed(self.metadata.plan.spark))
        left = static.files if kept is None else static.files & kept
        for containers, among in self._levels(table, column, left):
            domain = first_within(top, containers, column.name, among, int(containers.sizes[among].sum() * most))
            if domain is not None:
                return held(domain, table.files([column]), column.name)
        return Reason(ReasonCode.UNCLUSTERED, target.name, "the first rows")

    def filter_of(self, top: TopK, target: Target, keys: Domain, names: PlanNames) -> Collected | Reason:
        """`keys`, in the type of the order, as the filter of a scan."""
        opened = self._opened(target)
        if isinstance(opened, Reason):
            return opened
        table, column = opened
        assert column.type is not None  # noqa: S101 - or it is refused above
        found = coerce(keys, column.type, column.name)
        if isinstance(found, Reason):
            return found
        return collected(top, column, held(found.domain, table.files([column]), column.name), names)

    def column(self, target: Target) -> Column | Reason:
        """The column of a scan as its table knows it; a `Reason` where it cannot be pruned by."""
        opened = self._opened(target)
        return opened if isinstance(opened, Reason) else opened[1]

    def _opened(self, target: Target) -> tuple[OpenedTable, Column] | Reason:
        table = self.metadata.table(target.relation)
        if isinstance(table, Reason):
            return table
        column = self.metadata.column(table, target)
        if column.type is None:
            return column.refusal or Reason(ReasonCode.UNSUPPORTED_TYPE, target.name)
        return table, column

    def _sure(self, top: TopK, target: Target) -> Domain | None:
        opened = self._opened(target)
        if isinstance(opened, Reason):
            return None
        table, column = opened
        # Where files may be gone or broken, or their statistics are not to be trusted, no row is sure.
        spark = self.metadata.plan.spark
        if str(column.type) != top.first.key.type or skipping_switched_off(spark, table, [column]) is not None:
            return None
        if lenient_settings(table.read(None)):
            return None
        files = table.files([column])
        found = surely_first(top, files, column.name)
        wanted = {} if found is None else {column.name: found}
        chosen = np.flatnonzero(prune(files, wanted).kept)
        if not files.is_listed or len(chosen) > self.metadata.options.max_footers:
            return found
        groups = surely_first(top, self._row_groups(table, column, chosen), column.name)
        both = [each for each in (found, groups) if each is not None]
        return reduce(Domain.intersect, both) if both else None

    def _levels(self, table: OpenedTable, column: Column, left: BoolArray) -> list[tuple[Containers, BoolArray]]:
        files, chosen = table.files([column]), np.flatnonzero(left)
        levels = [(files, left)]
        if len(chosen) < _MANY_FILES and files.is_listed and len(chosen) <= self.metadata.options.max_footers:
            groups = self._row_groups(table, column, chosen)
            levels.insert(0, (groups, np.ones(len(groups), bool)))
        return levels

    @staticmethod
    def _row_groups(table: OpenedTable, column: Column, files: IntArray) -> Containers:
        return table.row_groups(files, [column], None)


def collected(top: TopK, column: Column, keys: Domain, names: PlanNames) -> Collected:
    """Keys of a column, in its own type, as a filter."""
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
