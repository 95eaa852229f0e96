"""Filters for ORDER BY ... LIMIT: metadata proves that enough rows have a key, so scans need no worse ones."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Protocol

import numpy as np

from connectors.columns import Column
from connectors.jobs.progress import one_line
from connectors.keys.sources import Collected, KeySource
from connectors.pipeline.plan_metadata import PlanMetadata
from connectors.pipeline.registry import OpenedTable
from connectors.pipeline.scan_record import PrunedScan
from connectors.scan.capabilities import lenient_settings, skipping_switched_off
from pruning.options import PREDICATE, PruningOptions
from pruning.query.build_selection import BuildSelection
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Node, PlanNames, Relation
from pruning.query.top_k import TopFilter, TopK, held, surely_first, top_ks
from pruning.reasons import Reason, ReasonCode
from pruning.scan.key_filter import KeyFilter
from pruning.scan.skipping import prune
from pruning.scan.statistics import Containers
from pruning.values.byte_strings import IntArray
from pruning.values.coercion import coerce
from pruning.values.domain import Domain

logger = logging.getLogger("scanprune")

BY_STATISTICS = "by the statistics of its files"
# Reasons that leave a filter without effect on the files of a scan.
_NO_FILTER = frozenset(
    {ReasonCode.UNCLUSTERED, ReasonCode.NAN_KEYS, ReasonCode.NO_STATISTICS, ReasonCode.NO_READER_FILTER}
)


class PrunedPlan(Protocol):
    """The plan whose scans are filtered, as far as a top-k filter needs it."""

    options: PruningOptions
    metadata: PlanMetadata
    reasons: dict[Reason, None]

    def selection(self) -> BuildSelection:
        """The rules by which scans are worth a filter, at this moment."""

    def prune(self, relation: Relation, options: PruningOptions) -> PrunedScan | None:
        """Plans a scan anew by all its filters; None where they skip nothing."""


@dataclass(slots=True)
class TopKFilters:
    """The filters that ORDER BY ... LIMIT puts on scans, by `Relation.at`, and the outcome for each scan."""

    all: tuple[TopK, ...]
    names: PlanNames
    filters: dict[int, list[Collected]] = field(default_factory=dict)
    _found: dict[tuple[int, int, int], str | Reason] = field(default_factory=dict)

    @staticmethod
    def of(root: Node, *, is_on: bool) -> TopKFilters:
        """The limits of a plan that take the first rows of an order; none where the option is off."""
        return TopKFilters(tuple(top_ks(root)) if is_on else (), PlanNames(root))

    def is_wanted(self, selection: BuildSelection) -> bool:
        """True where metadata may filter a scan that is worth a filter."""
        return any(_wanted(top, selection) for top in self.all)

    def filter_scans(self, plan: PrunedPlan) -> None:
        """Filters scans by the keys that enough rows surely have, as metadata alone proves."""
        for top in self.all:
            if probes := _wanted(top, plan.selection()):
                keys = _sure(plan, top)
                for each in probes:
                    found = keys if isinstance(keys, Reason) else self._why_not_filtered(top, each, keys, plan)
                    self._found[_id(top, each)] = BY_STATISTICS if found is None else found

    def found(self, selection: BuildSelection) -> Iterator[TopFilter]:
        """The outcome for each scan below a limit."""
        for top in self.all:
            for each in top.probes:
                refused = selection.why_no_filter(each) or _too_few(each.name)
                yield TopFilter(top, each, self._found.get(_id(top, each), refused))
            yield from (TopFilter(top, None, each) for each in top.stops)

    def _why_not_filtered(self, top: TopK, probe: ProbeColumn, keys: Domain, plan: PrunedPlan) -> Reason | None:
        made = TopKMetadata(plan.metadata).filter_of(top, probe, keys, self.names)
        if isinstance(made, Reason):
            return made
        own = self.filters.setdefault(probe.relation.at, [])
        own.append(made)
        scan = plan.prune(probe.relation, replace(plan.options, scan=PREDICATE))
        if scan is None:
            own.remove(made)
            said = (each for each in reversed(plan.reasons) if each.subject in made.filter.columns)
            return next(said, Reason(ReasonCode.UNCLUSTERED, probe.name))
        refused = (each for each in scan.decided.plan.reasons if each.subject == made.filter.columns[0])
        return next((each for each in refused if each.code in _NO_FILTER), None)


def _wanted(top: TopK, selection: BuildSelection) -> tuple[ProbeColumn, ...]:
    """The scans below a limit that are worth a filter, where metadata may prove which rows come first."""
    return tuple(each for each in top.probes if selection.why_no_filter(each) is None) if top.sure else ()


def _too_few(subject: str) -> Reason:
    return Reason(ReasonCode.TOO_FEW_FIRST_ROWS, subject)


def _sure(plan: PrunedPlan, top: TopK) -> Domain | Reason:
    subject = str(top.first.key)
    try:
        return TopKMetadata(plan.metadata).sure(top) or _too_few(subject)
    except Exception as error:
        logger.debug("Reading the statistics of the first rows by %s failed", subject, exc_info=True)
        failed = Reason(ReasonCode.STATISTICS_FAILED, subject, one_line(error))
        plan.reasons[failed] = None
        return failed


def expected(tops: TopKFilters, metadata: PlanMetadata, selection: BuildSelection) -> Iterator[TopFilter]:
    """The outcome that metadata tells for each scan, without changing any plan."""
    for top in tops.all:
        known = TopKMetadata(metadata).sure(top) if _wanted(top, selection) else None
        for each in top.probes:
            how = BY_STATISTICS if known is not None else _too_few(each.name)
            yield TopFilter(top, each, selection.why_no_filter(each) or how)
        yield from (TopFilter(top, None, each) for each in top.stops)


def _id(top: TopK, probe: ProbeColumn) -> tuple[int, int, int]:
    return top.at, probe.relation.at, probe.column


@dataclass(frozen=True, slots=True, eq=False)
class TopKMetadata:
    """First rows of orders as the metadata of a plan's tables proves them."""

    metadata: PlanMetadata

    def sure(self, top: TopK) -> Domain | None:
        """Keys, in the type of the order, of which as many rows as are asked for surely have one; None if unknown.

        Each scan alone may tell, and the fewest keys that any of them tells are enough.
        """
        found = [each for probe in top.sure if (each := self._sure(top, probe)) is not None]
        return reduce(Domain.intersect, found) if found else None

    def filter_of(self, top: TopK, probe: ProbeColumn, keys: Domain, names: PlanNames) -> Collected | Reason:
        """`keys`, in the type of the order, as the filter of a scan."""
        opened = self._opened(probe)
        if isinstance(opened, Reason):
            return opened
        table, column = opened
        assert column.type is not None  # noqa: S101 - or it is refused above
        found = coerce(keys, column.type, column.name)
        if isinstance(found, Reason):
            return found
        return collected(top, column, held(found.domain, table.files([column]), column.name), names)

    def _opened(self, probe: ProbeColumn) -> tuple[OpenedTable, Column] | Reason:
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
