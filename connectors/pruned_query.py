"""Any query with filters on its scans: builds run level by level, and each shrinks what the next ones read.

plan --JoinGraph--> feeds --build--> KeySummary --pruned_scan--> scans --> plan
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from connectors import key_sources
from connectors.base import Table
from connectors.build_errors import one_line
from connectors.channel import Channel
from connectors.columns import quoted, resolve
from connectors.key_sources import KeySource
from connectors.local_builds import LocalRows
from connectors.pipeline import Read, pruned_scan, warn
from connectors.plan_reader import SparkPlan, check_has_plan
from connectors.plan_tables import PlanTable, is_delta, leaf_sizes, table_of
from connectors.pruned_scan import PrunedScan
from connectors.query_builds import Asked, QueryBuilds
from connectors.spark_files import frame_of
from pruning.bounds import bounded
from pruning.broadcast import BroadcastStrategy, broadcast_sides
from pruning.filter_plan import Feed, FilterPlan, Sizes, Unused, next_feeds, unused
from pruning.join_graph import JoinGraph, Source
from pruning.key_summary import KeySummary
from pruning.options import PruningOptions
from pruning.prune_report import PruneReport
from pruning.query_explanation import QueryExplanation
from pruning.query_plan import Node, PlanNames, Relation
from pruning.reasons import Reason, ReasonCode

_QUERY = "the query"

logger = logging.getLogger("scanprune")


@dataclass(slots=True)
class PrunedQuery:
    """The record of one pruned query: its scans with filters by `Relation.at`, and why there are no others."""

    plan: FilterPlan | None
    sizes: Mapping[int, int]
    scans: Mapping[int, PrunedScan]
    reasons: tuple[Reason, ...]

    @staticmethod
    def untouched(reason: Reason) -> PrunedQuery:
        """The record of a query that was left as it is."""
        return PrunedQuery(None, {}, {}, (reason,))

    def explanation(self) -> QueryExplanation:
        """What is planned for each scan with a filter, from metadata alone."""
        if self.plan is None:
            return QueryExplanation.nothing(*self.reasons, ran_builds=True)
        tables = {at: table for at, scan in self.scans.items() for table in scan.explanation().tables}
        return QueryExplanation.of(self.plan, self.sizes, tables, self.reasons, ran_builds=True)

    def report(self) -> PruneReport:
        """The plan beside what the latest action measured."""
        if self.plan is None:
            return PruneReport(())
        names = PlanNames(self.plan.graph.root).scans
        return PruneReport(
            tuple(
                replace(table, planned=replace(table.planned, table=names[at]))
                for at, scan in self.scans.items()
                for table in scan.report().tables
            )
        )


def prune_query(df: DataFrame, options: PruningOptions) -> tuple[DataFrame, PrunedQuery]:
    """`df` with filters on its scans, or `df` itself where no filter is worth it or pruning fails."""
    check_has_plan(df)
    if not options.enabled:
        return df, PrunedQuery.untouched(Reason(ReasonCode.SWITCHED_OFF, _QUERY))
    # Whether the query itself is sound shows here, in Spark's own words.
    df._jdf.queryExecution().assertAnalyzed()  # noqa: SLF001 - plans have no public door
    try:
        return _pruned(df, options)
    except Exception as error:
        logger.debug("Pruning the query failed", exc_info=True)
        reason = Reason(ReasonCode.PRUNING_FAILED, _QUERY, one_line(error))
        logger.warning("Reading without pruning: %s", reason)
        return df, PrunedQuery.untouched(reason)


def _pruned(df: DataFrame, options: PruningOptions) -> tuple[DataFrame, PrunedQuery]:
    plan = SparkPlan.of(df)
    query = _Query(
        df.sparkSession, plan, JoinGraph.of(plan.root), options, QueryBuilds(Channel.of(df.sparkSession, options))
    )
    sizes = query.run()
    scans = {at: scan for at, scan in query.scans.items() if at not in query.kept}
    filters = FilterPlan(query.graph, tuple(query.levels), tuple(query.reasons), query.unused)
    record = PrunedQuery(filters, sizes, scans, tuple(query.reasons))
    # That a side of a join is not fit to be run beforehand is no trouble: nobody asked for it.
    warn("a query", [each for each in record.reasons if each.code is not ReasonCode.UNREPEATABLE_KEYS])
    if not (scans or query.kept):
        return df, record
    return frame_of(df.sparkSession, query.rewritten()), record


@dataclass(slots=True)
class _Query:
    """What is known so far: `others` are the plans that take the place of nodes.

    The nodes at `kept` are not run again, since the rows of a build stand in their place.
    """

    spark: SparkSession
    plan: SparkPlan
    graph: JoinGraph
    options: PruningOptions
    _builds: QueryBuilds
    others: dict[int, Any] = field(default_factory=dict)
    scans: dict[int, PrunedScan] = field(default_factory=dict)
    kept: set[int] = field(default_factory=set)
    levels: list[tuple[Feed, ...]] = field(default_factory=list)
    reasons: dict[Reason, None] = field(default_factory=dict)
    unused: tuple[Unused, ...] = ()
    _keys: dict[int, dict[int, list[KeySummary]]] = field(default_factory=dict)
    _sizes: dict[int, int] = field(default_factory=dict)
    _tables: dict[int, PlanTable | Reason] = field(default_factory=dict)
    _row_bytes: dict[int, int] = field(default_factory=dict)

    def run(self) -> Mapping[int, int]:
        """Levels of builds until no feed is left; what each scan reads without filters, in bytes."""
        leaves = {relation.at: self.plan.node(relation) for relation in self.graph.relations}
        sizes, files = leaf_sizes(leaves)
        self._sizes = dict(sizes)
        done: set[tuple[int, str, int, int]] = set()
        is_pinned = False
        while True:
            known = Sizes(self._sizes, files, self.scans, self.kept)
            feeds, refusals = next_feeds(self.graph, known, done, self.options)
            if not feeds:
                self.reasons.update(dict.fromkeys(refusals))
                self.unused = unused(self.graph, known, self.options)
                return sizes
            if not is_pinned:
                # What it costs is paid only where something is to be run, and may leave less to run.
                self._pin(leaves, files)
                is_pinned = True
                continue
            done |= {each.id for each in feeds}
            wanted = tuple(each for each in feeds if each.target.relation.at not in self.kept)
            self.levels.append(wanted)
            self._level(wanted)

    def rewritten(self) -> Any:
        """The plan of the query with what was found."""
        sides = broadcast_sides(self.plan.root, self._row_bytes, self._broadcast_limit(), self._strategy)
        return self.plan.replaced(self.plan.root, self.others, sides)

    def _pin(self, leaves: Mapping[int, Any], files: set[int]) -> None:
        """Lists no Parquet files again: builds and query read the same ones, whatever is written meanwhile.

        A leaf that cannot be pinned is none of `files`: its rows are no keys.
        """
        for at, leaf in leaves.items():
            if at not in files or is_delta(leaf):
                continue
            table = self._table(at, leaf)
            if isinstance(table, Reason):
                self.reasons[table] = None
                files.discard(at)
            else:
                self.others[at] = table.renamed(table.table.read(None))

    def _level(self, feeds: Sequence[Feed]) -> None:
        results = self._builds.run([self._asked(each.source) for each in feeds])
        changed: dict[int, Relation] = {}
        for each, built in zip(feeds, results, strict=True):
            result = built.keys
            if isinstance(result, Reason):
                self.reasons[result] = None
                continue
            if each.source.null_safe and result.null_rows:
                self.reasons[Reason(ReasonCode.NULL_SAFE, str(each.source.key))] = None
                continue
            if built.rows is not None:
                self._keep_rows(each.source.node, built.rows)
            relation = each.target.relation
            known = self._keys.setdefault(relation.at, {}).setdefault(each.target.column, [])
            keys = result if each.source.bound is None else bounded(result, each.source.bound)
            if keys not in known:
                known.append(keys)
                changed[relation.at] = relation
        for relation in changed.values():
            self._prune(relation)

    @property
    def _strategy(self) -> BroadcastStrategy:
        return BroadcastStrategy[self.options.broadcast_strategy]

    def _broadcast_limit(self) -> int:
        """Bytes; negative where the session broadcasts nothing of itself."""
        state: Any = self.spark._jsparkSession.sessionState()  # noqa: SLF001 - the conf's text may have any unit
        return int(state.conf().autoBroadcastJoinThreshold())

    def _keep_rows(self, node: Node, rows: LocalRows) -> None:
        """Joins the rows of a build as they are; what it read is not read again."""
        if self._strategy is BroadcastStrategy.NONE or 0 <= self._broadcast_limit() < rows.nbytes:
            return
        self._row_bytes[node.at] = rows.nbytes
        self.others[node.at] = rows.instead_of(self.plan.node(node))
        for each in node.walk():
            self.kept.add(each.at)
            if isinstance(each, Relation):
                self._sizes[each.at] = 0

    def _asked(self, source: Source) -> Asked:
        if source.key.column is not None:
            at = source.node.output.index(source.key.column)
            expression = self.plan.node(source.node).output().apply(at)
        else:
            expression = self.plan.node(source.join).condition().get()
            for place in source.path:
                expression = expression.children().apply(place)
        return Asked(self.plan.replaced(source.node, self.others), expression, str(source.key))

    def _prune(self, relation: Relation) -> None:
        leaf = self.plan.node(relation)
        found = self._table(relation.at, leaf)
        if isinstance(found, Reason):
            self.reasons[found] = None
            return
        table = found.table
        sources = [
            KeySource((self._column(table, relation, column),), summary)
            for column, summaries in self._keys[relation.at].items()
            for summary in summaries
        ]
        collected = key_sources.collect_all(self.spark, sources, self.options, exact=False)
        read = Read(self._needed(relation))
        df, scan = pruned_scan(self.spark, table, collected, read, self.options)
        if not scan.decided.plan.acts:
            self.reasons.update(dict.fromkeys(scan.reasons))
            return
        self.others[relation.at] = found.renamed(df)
        self.scans[relation.at] = scan
        self._sizes[relation.at] = min(self._sizes[relation.at], scan.planned_bytes)

    def _table(self, at: int, leaf: Any) -> PlanTable | Reason:
        if at not in self._tables:
            self._tables[at] = table_of(self.spark, leaf, self.options)
        return self._tables[at]

    def _column(self, table: Table, relation: Relation, column: int) -> Any:
        name = relation.names[relation.output.index(column)]
        return resolve(
            table.schema, quoted(name), table=table.name, case_sensitive=True, partitions=table.partition_columns
        )

    def _needed(self, relation: Relation) -> tuple[str, ...]:
        """The columns that the query uses."""
        used = self.plan.used
        return tuple(name for name, column in zip(relation.names, relation.output, strict=True) if column in used)
