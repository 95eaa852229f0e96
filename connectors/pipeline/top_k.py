"""The first rows of orders in one query: found by metadata, else by running them over the best part of their scans.

The first rows of an order by metadata: keys that as many rows surely have, and where such rows probably lie.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from connectors.builds.query_builds import BuildRequest
from connectors.columns import Column
from connectors.jobs.progress import one_line
from connectors.keys.sources import Collected, KeySource
from connectors.parquet.listing import frame_of
from connectors.pipeline.plan_metadata import PlanMetadata
from connectors.pipeline.registry import OpenedTable
from connectors.scan.capabilities import lenient_settings, skipping_switched_off
from connectors.scan.decision import StaticPruning
from connectors.spark.jvm import java_names
from pruning.keys.summary import KeySummary
from pruning.options import PREDICATE
from pruning.query.build_selection import BuildSelection
from pruning.query.key_origins import conditions_of
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Node, PlanNames
from pruning.query.top_k import TopFilter, TopK, first_within, held, surely_first, top_ks
from pruning.reasons import Reason, ReasonCode
from pruning.scan.key_filter import KeyFilter
from pruning.scan.skipping import prune
from pruning.scan.statistics import Containers
from pruning.values.byte_strings import IntArray
from pruning.values.coercion import coerce
from pruning.values.domain import Domain
from pruning.values.ranges import BoolArray

if TYPE_CHECKING:
    from connectors.pipeline.query_run import QueryRun

logger = logging.getLogger("scanprune")

BY_STATISTICS, BY_RUN = "by the statistics of its files", "by a run of the first rows"
# A first try reads this part of what may be read: mostly the first rows lie close together.
_FIRST_TRY = 8
_TROUBLE = frozenset({ReasonCode.BUILD_FAILED, ReasonCode.BUILD_TIMED_OUT, ReasonCode.STATISTICS_FAILED})
# What concerns a filter that was made, and is none.
_NO_FILTER = frozenset(
    {ReasonCode.UNCLUSTERED, ReasonCode.NAN_KEYS, ReasonCode.NO_STATISTICS, ReasonCode.NO_READER_FILTER}
)


@dataclass(slots=True)
class TopRuns:
    """What is known so far: `filters` by `Relation.at`; those that `wait` are to be run."""

    all: tuple[TopK, ...]
    names: PlanNames
    filters: dict[int, list[Collected]] = field(default_factory=dict)
    _waiting: list[TopK] = field(default_factory=list)
    _found: dict[tuple[int, int, int], str | Reason] = field(default_factory=dict)

    @staticmethod
    def of(root: Node, *, is_on: bool) -> TopRuns:
        """All of a plan, none where they are switched off."""
        return TopRuns(tuple(top_ks(root)) if is_on else (), PlanNames(root))

    def wanted(self, top: TopK, selection: BuildSelection) -> tuple[ProbeColumn, ...]:
        """The scans that are worth a filter."""
        return tuple(each for each in top.probes if selection.why_no_filter(each) is None)

    def by_metadata(self, query: QueryRun) -> None:
        """Filters scans by first rows that metadata alone is sure of; the others wait."""
        for top in self.all:
            probes = self.wanted(top, query.selection())
            if probes and not self._is_filtered(top, probes, self._sure(query, top), BY_STATISTICS, query):
                self._waiting.append(top)

    def by_next_run(self, query: QueryRun) -> bool:
        """Runs the first rows that wait, until some scan is filtered by them; whether one is."""
        while self._waiting:
            top = self._waiting.pop(0)
            probes = self.wanted(top, query.selection())
            if probes and self._is_filtered(top, probes, self._run(query, top, probes), BY_RUN, query):
                return True
        return False

    def found(self, selection: BuildSelection, *tops: TopK) -> Iterator[TopFilter]:
        """What became of each scan below the limits that take first rows, all unless some are named."""
        for top in tops or self.all:
            for each in top.probes:
                refused = selection.why_no_filter(each) or Reason(ReasonCode.TOO_FEW_FIRST_ROWS, each.name)
                yield TopFilter(top, each, self._found.get(_id(top, each), refused))
            yield from (TopFilter(top, None, each) for each in top.stops)

    def _is_filtered(
        self, top: TopK, probes: Sequence[ProbeColumn], keys: Domain | Reason, how: str, query: QueryRun
    ) -> bool:
        """Filters scans by keys; whether one has become smaller."""
        if isinstance(keys, Reason) and keys.code in _TROUBLE:
            query.reasons[keys] = None
        done = False
        for each in probes:
            found = keys if isinstance(keys, Reason) else self._why_not_filtered(top, each, keys, query)
            self._found[_id(top, each)] = how if found is None else found
            done |= found is None
        return done

    def _why_not_filtered(self, top: TopK, probe: ProbeColumn, keys: Domain, query: QueryRun) -> Reason | None:
        made = FirstRows(query.metadata).filter_of(top, probe, keys, self.names)
        if isinstance(made, Reason):
            return made
        own = self.filters.setdefault(probe.relation.at, [])
        own.append(made)
        scan = query.prune(probe.relation, replace(query.options, scan=PREDICATE))
        if scan is None:
            own.remove(made)
            said = (each for each in reversed(query.reasons) if each.subject in made.filter.columns)
            return next(said, Reason(ReasonCode.UNCLUSTERED, probe.name))
        refused = (each for each in scan.decided.plan.reasons if each.subject == made.filter.columns[0])
        return next((each for each in refused if each.code in _NO_FILTER), None)

    @staticmethod
    def _sure(query: QueryRun, top: TopK) -> Domain | Reason:
        subject = str(top.first.key)
        try:
            return FirstRows(query.metadata).sure(top) or Reason(ReasonCode.TOO_FEW_FIRST_ROWS, subject, "metadata")
        except Exception as error:
            logger.debug("Looking up the first rows by %s failed", subject, exc_info=True)
            return Reason(ReasonCode.STATISTICS_FAILED, subject, one_line(error))

    def _run(self, query: QueryRun, top: TopK, probes: Sequence[ProbeColumn]) -> Domain | Reason:
        """The keys of first rows, from a run over a small part of the scans, then over as much as may be read."""
        most = query.selection().most_of_first_rows(top.node, probes)
        if isinstance(most, Reason):
            return most
        sizes = query.known().scanned
        largest = max(probes, key=lambda each: sizes[each.relation.at])
        share = most / max(sizes[largest.relation.at], 1)
        found: Domain | Reason = Reason(ReasonCode.UNCLUSTERED, largest.name)
        tried: Domain | None = None
        for part in (share / _FIRST_TRY, share):
            guess = self._guess(query, top, largest, part)
            if isinstance(guess, Reason) or guess == tried:
                found = guess if isinstance(guess, Reason) and tried is None else found
                continue
            found, tried = self._keys_within(query, top, probes, largest, guess, most), guess
            if isinstance(found, Domain) or found.code is not ReasonCode.TOO_FEW_FIRST_ROWS:
                break
        return found

    @staticmethod
    def _guess(query: QueryRun, top: TopK, probe: ProbeColumn, share: float) -> Domain | Reason:
        try:
            return FirstRows(query.metadata).guess(top, probe, query.kept_files(probe.relation), share)
        except Exception as error:
            logger.debug("Looking up the first rows of %s failed", probe.name, exc_info=True)
            return Reason(ReasonCode.STATISTICS_FAILED, probe.name, one_line(error))

    def _keys_within(  # noqa: PLR0913, PLR0917 - a query, what is asked of it, and where it may read
        self, query: QueryRun, top: TopK, probes: Sequence[ProbeColumn], largest: ProbeColumn, guess: Domain, most: int
    ) -> Domain | Reason:
        """The keys as good as those of the first rows, if all of these lie within `guess`; read are `most` bytes."""
        if guess.nan:
            return Reason(ReasonCode.NAN_KEYS, largest.name)
        others = self._scans_within(query, top, probes, guess, most)
        if isinstance(others, Reason):
            return others
        try:
            asked = _asked(query, top, others)
        except Exception as error:
            logger.debug("The first rows by %s failed", largest.name, exc_info=True)
            return Reason(ReasonCode.BUILD_FAILED, largest.name, one_line(error))
        keys = query.builds.run([asked])[0].keys
        if isinstance(keys, Reason):
            return keys
        return _as_good_as_last(top, keys, largest, guess)

    def _scans_within(
        self, query: QueryRun, top: TopK, probes: Sequence[ProbeColumn], guess: Domain, most: int
    ) -> dict[int, Any] | Reason:
        """The plans in the places of scans for a run within `guess`."""
        others, size, known = dict(query.others), 0, query.known().scanned
        for each in probes:
            column = FirstRows(query.metadata).column(each)
            if isinstance(column, Reason) or column.type != guess.type:
                size += known[each.relation.at]
                continue
            filter_ = collected(top, column, guess, self.names)
            made = query.scan(each.relation, replace(query.options, scan=PREDICATE), filter_)
            if isinstance(made, Reason):
                return made
            plan, scan = made
            size += scan.planned_bytes
            if plan is not None:
                others[each.relation.at] = plan
        if size > most:
            return Reason(ReasonCode.BUILD_TOO_LARGE, str(top.first.key), f"{size:,} bytes, at most {most:,} here")
        return others


def expected(tops: TopRuns, metadata: PlanMetadata, selection: BuildSelection) -> Iterator[TopFilter]:
    """What would become of each scan, as far as that is known before anything is run."""
    for top in tops.all:
        probes = tops.wanted(top, selection)
        if not probes:
            yield from tops.found(selection, top)
            continue
        known = FirstRows(metadata).sure(top)
        run = selection.most_of_first_rows(top.node, probes) if known is None else BY_STATISTICS
        how = run if isinstance(run, Reason | str) else BY_RUN
        yield from (TopFilter(top, each, selection.why_no_filter(each) or how) for each in top.probes)
        yield from (TopFilter(top, None, each) for each in top.stops)


def _id(top: TopK, probe: ProbeColumn) -> tuple[int, int, int]:
    return top.at, probe.relation.at, probe.column


def _asked(query: QueryRun, top: TopK, others: dict[int, Any]) -> BuildRequest:
    """The keys of the first rows."""
    spark, key = query.spark, top.first.key
    utils = getattr(getattr(java_names(spark).org.apache.spark.sql.classic, "ExpressionUtils$"), "MODULE$")
    column = query.plan.node(top.node).output().apply(top.node.output.index(key.column))
    keys = frame_of(spark, query.plan.replaced(top.node, others)).select(SparkColumn(utils.column(column)).alias("key"))
    direction, nulls = "desc" if top.first.is_descending else "asc", "first" if top.first.nulls_first else "last"
    ordered = getattr(F.col("key"), f"{direction}_nulls_{nulls}")()
    plan: Any = keys.orderBy(ordered).limit(top.rows)._jdf.queryExecution().analyzed()  # noqa: SLF001 - no other door
    return BuildRequest(plan, plan.output().apply(0), str(key), 0, is_bounded=True)


def _as_good_as_last(top: TopK, keys: KeySummary, probe: ProbeColumn, guess: Domain) -> Domain | Reason:
    """Rows with a key within `guess` are all there; what else the run gave may be a part of more."""
    few = Reason(ReasonCode.TOO_FEW_FIRST_ROWS, probe.name, f"{keys.rows:,} of {top.rows:,}")
    if keys.rows < top.rows or (keys.null_rows and not (top.first.nulls_first and guess.null)):
        return few
    found = coerce(keys.domains[0], guess.type, probe.name)
    if isinstance(found, Reason):
        return found
    inside = Domain(found.domain.ranges, nan=found.domain.nan)
    return top.as_good_as(keys.domains[0]) if guess.contains_all(inside) else few


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
        found = [each for probe in top.sure if (each := self._sure(top, probe)) is not None]
        return reduce(Domain.intersect, found) if found else None

    def guess(self, top: TopK, probe: ProbeColumn, kept: BoolArray | None, most: float) -> Domain | Reason:
        """The first keys of the order, in the column's type, that lie in a share of at most `most` of a scan's bytes.

        `kept` are the files that a pruned scan still reads.
        """
        opened = self._opened(probe)
        if isinstance(opened, Reason):
            return opened
        table, column = opened
        found = self.metadata.scan(probe.relation)
        if isinstance(found, Reason):
            return found
        conditions = conditions_of(self.metadata.plan.root, probe.relation)
        static = StaticPruning.of(table, probe.relation, conditions, found.listed(self.metadata.plan.spark))
        left = static.files if kept is None else static.files & kept
        for containers, among in self._levels(table, column, left):
            domain = first_within(top, containers, column.name, among, int(containers.sizes[among].sum() * most))
            if domain is not None:
                return held(domain, table.files([column]), column.name)
        return Reason(ReasonCode.UNCLUSTERED, probe.name, "the first rows")

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

    def column(self, probe: ProbeColumn) -> Column | Reason:
        """The column of a scan as its table knows it; a `Reason` where it cannot be pruned by."""
        opened = self._opened(probe)
        return opened if isinstance(opened, Reason) else opened[1]

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
