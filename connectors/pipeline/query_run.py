"""The levels of builds of one query, and what they leave of its plan."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from connectors.builds.cached_builds import CachedBuildRunner
from connectors.builds.materialized import MaterializedBuild
from connectors.builds.query_builds import BuildRequest, BuildResult, QueryBuilds
from connectors.jobs.progress import one_line
from connectors.jobs.runner import BuildScheduler
from connectors.keys import sources as key_sources
from connectors.keys.sources import Collected, KeySource
from connectors.pipeline.plan_metadata import PlanMetadata
from connectors.pipeline.scan_record import PrunedScan
from connectors.pipeline.table_scan import Read, case_of, pruned_scan, read_by_arrow, wants_arrow
from connectors.pipeline.top_k import TopRuns
from connectors.scan.decision import StaticPruning, plan_column
from connectors.spark.column_ids import with_own_columns
from connectors.spark.plan_facts import broadcast_limit, leaf_sizes
from connectors.spark.plan_reader import SparkPlan
from pruning.keys.cache import PruningCache
from pruning.keys.summary import KeySummary, bounded
from pruning.options import ARROW, AUTO, PREDICATE, BroadcastStrategy, PruningOptions
from pruning.query.build_selection import BuildSelection, Sizes
from pruning.query.cardinality import Cardinality
from pruning.query.exchanges import broadcast_sides
from pruning.query.filter_plan import FilterId, RuntimeFilter, ready_filters
from pruning.query.join_graph import BuildSide, JoinGraph, key_tuple, says_more
from pruning.query.key_origins import conditions_of, statistics_columns
from pruning.query.plan import Node, Relation
from pruning.query.top_k import TopFilter
from pruning.reasons import Reason, ReasonCode
from pruning.scan.reader_cost import ScanCase
from pruning.values.ranges import BoolArray

logger = logging.getLogger("scanprune")

# Builds that gave nothing, though they were begun.
_NOT_DONE = frozenset({ReasonCode.BUILD_TIMED_OUT, ReasonCode.BUILD_FAILED})


@dataclass(slots=True)
class QueryRun:
    """What is known so far: `others` are the plans that take the place of nodes.

    The nodes at `kept` are not run again, since the rows of a build stand in their place. The builds of the build sides
    that `from_cache` names were not run for this query.
    """

    spark: SparkSession
    plan: SparkPlan
    graph: JoinGraph
    options: PruningOptions
    builds: QueryBuilds | CachedBuildRunner
    metadata: PlanMetadata
    _strategy: BroadcastStrategy
    _tops: TopRuns
    others: dict[int, Any] = field(default_factory=dict)
    scans: dict[int, PrunedScan] = field(default_factory=dict)
    kept: set[int] = field(default_factory=set)
    levels: list[tuple[RuntimeFilter, ...]] = field(default_factory=list)
    reasons: dict[Reason, None] = field(default_factory=dict)
    from_cache: set[tuple[int, str]] = field(default_factory=set)
    _keys: dict[int, dict[int, list[KeySummary]]] = field(default_factory=dict)
    _sizes: dict[int, int] = field(default_factory=dict)
    _tuples: dict[int, dict[tuple[int, ...], list[KeySummary]]] = field(default_factory=dict)
    _rows: dict[int, MaterializedBuild] = field(default_factory=dict)
    _row_bytes: dict[int, int] = field(default_factory=dict)
    _files: set[int] = field(default_factory=set)
    _unpinned: frozenset[int] = frozenset()

    @staticmethod
    def of(plan: SparkPlan, options: PruningOptions, cache: PruningCache | None = None) -> QueryRun:
        """A query none of whose builds has run; their time begins at this moment.

        `cache` may have what some of them give.
        """
        reasons: dict[Reason, None] = {}
        if options.scan != PREDICATE and plan.asks_for_files:
            if options.scan == ARROW:
                reasons[Reason(ReasonCode.NOT_READ_BY_ARROW, "the query", "it asks for the file of a row")] = None
            options = replace(options, scan=PREDICATE)
        channel = BuildScheduler.of(plan.spark, options)
        builds = QueryBuilds(channel) if cache is None else CachedBuildRunner(channel, cache, reasons)
        graph = JoinGraph.of(plan.root)
        strategy, metadata = (
            _strategy(plan, graph, options),
            PlanMetadata(plan, options, partial(statistics_columns, graph)),
        )
        tops = TopRuns.of(plan.root, is_on=options.top_k)
        return QueryRun(plan.spark, plan, graph, options, builds, metadata, strategy, tops, reasons=reasons)

    def run(self) -> Mapping[int, int]:
        """Levels of builds until no filter is left; what each scan reads without filters, in bytes."""
        sizes = self.sized()
        done: set[FilterId] = set()
        is_pinned = any(self._tops.wanted(top, self.selection()) for top in self._tops.all)
        if is_pinned:
            self._pin()
            self._tops.by_metadata(self)
        while True:
            known = self.known()
            filters, _ = ready_filters(self.graph, known, done, self.options)
            if not filters and self._tops.by_next_run(self):
                continue
            if not filters:
                self._read_by_arrow()
                return sizes
            if not is_pinned:
                # What it costs is paid only where something is to be run, and may leave less to run.
                self._pin()
                is_pinned = True
                continue
            done |= {each.id for each in filters}
            wanted = tuple(each for each in filters if each.probe.relation.at not in self.kept)
            self.levels.append(wanted)
            self._level(wanted)

    def sized(self) -> Mapping[int, int]:
        """What each scan reads without filters, in bytes; no build is run."""
        found = leaf_sizes(self.plan, self.graph)
        self._sizes, self._files, self._unpinned = dict(found.sizes), set(found.files), found.unpinned
        return found.sizes

    def rewritten(self) -> Any:
        """The plan of the query with what was found."""
        sides = broadcast_sides(self.plan.root, self._row_bytes, broadcast_limit(self.spark), self._strategy)
        return with_own_columns(self.spark, self.plan.replaced(self.plan.root, self.others, sides))

    def known(self) -> Sizes:
        """What is known of the scans at this moment."""
        return Sizes(self._sizes, self._files, self.scans, self.kept, self._expected(), self.metadata)

    def _expected(self) -> dict[int, Cardinality]:
        found = ((at, scan.expected) for at, scan in self.scans.items() if at not in self.kept)
        return {at: expected for at, expected in found if expected is not None}

    def selection(self) -> BuildSelection:
        """What is worth it by what is known."""
        return BuildSelection(self.known(), self.options, self.graph.edges)

    def _pin(self) -> None:
        """Lists no Parquet files again: builds and query read the same ones, whatever is written meanwhile.

        A leaf that cannot be pinned is none of `files`: its rows are no keys.
        """
        for relation in self.graph.relations:
            if relation.at not in self._unpinned:
                continue
            table = self.metadata.scan(relation)
            if isinstance(table, Reason):
                self.reasons[table] = None
                self._files.discard(relation.at)
            else:
                self.others[relation.at] = table.renamed(table.table.read(None))

    def _level(self, filters: Sequence[RuntimeFilter]) -> None:
        changed: dict[int, Relation] = {}
        joined: dict[tuple[int, int, int], RuntimeFilter] = {}
        for each, keys in self._summaries(filters):
            relation = each.probe.relation
            if not each.from_metadata:
                joined[each.build_side.join.at, each.build_side.node.at, relation.at] = each
            known = self._keys.setdefault(relation.at, {}).setdefault(each.probe.column, [])
            if keys not in known:
                known.append(keys)
                changed[relation.at] = relation
        for each in joined.values():
            if each.probe.relation.at in changed:
                self._add_tuple(each.build_side, each.probe.relation)
        # What a later level makes of a scan takes its place, so of these none is worth a scan by pyarrow.
        for relation in changed.values():
            self.prune(relation, replace(self.options, scan=PREDICATE))

    def _add_tuple(self, build_side: BuildSide, relation: Relation) -> None:
        """The keys of all columns by which a join compares a scan with the rows of a build, where these are at hand."""
        rows, found = self._rows.get(build_side.node.at), key_tuple(self.graph, build_side, relation)
        if rows is None or found is None:
            return
        output = self.plan.node(build_side.node).output()
        places = [build_side.node.output.index(each) for each in found.build]
        keys = rows.tuples({at: output.apply(at) for at in places}, self.options, found.name)
        known = self._tuples.setdefault(relation.at, {}).setdefault(found.probe, [])
        if isinstance(keys, Reason):
            self.reasons[keys] = None
        elif keys not in known and says_more(keys, self.options):
            known.append(keys)

    def _read_by_arrow(self) -> None:
        """Once all keys are known, scans that are left in the query are made by pyarrow where that is to be."""
        for relation in self.graph.relations:
            if relation.at not in self.scans or relation.at in self.kept:
                continue
            scan = self.scans[relation.at]
            case = self._weighed(relation, scan)
            is_free = wants_arrow(scan.decided.plan, self.options) and not self._is_cut_by_spark(relation)
            if is_free and not self._may_be_asked_for_files():
                self._by_arrow(relation, scan, case)

    def _is_read_again(self, relation: Relation) -> bool:
        """Whether another scan reads the same table: Spark may make equal ones once, of pyarrow's no two are equal."""
        table = self.metadata.table(relation)
        others = (each for each in self.graph.relations if each.at in self.scans and each.at != relation.at)
        return any(self.metadata.table(each) is table for each in others)

    def _weighed(self, relation: Relation, scan: PrunedScan) -> ScanCase | None:
        """What a scan costs by either reader, and the choice by that, where it is to be made."""
        if self.options.scan == AUTO and self._is_read_again(relation):
            return None
        case = case_of(self.spark, scan.table, scan.decided, scan.needed, self.options)
        if case is not None:
            scan.decided = replace(scan.decided, plan=replace(scan.decided.plan, choice=case.choice()))
        return case

    def _by_arrow(self, relation: Relation, scan: PrunedScan, case: ScanCase | None) -> None:
        found = self.metadata.scan(relation)
        if isinstance(found, Reason):
            return
        made = read_by_arrow(scan, self.options, case)
        if isinstance(made, Reason):
            scan.decided = replace(scan.decided, reasons=(*scan.decided.reasons, made))
            return
        df, self.scans[relation.at] = made
        self.others[relation.at] = found.renamed(df)
        self._sizes[relation.at] = min(self._sizes[relation.at], self.scans[relation.at].planned_bytes)

    def _summaries(self, filters: Sequence[RuntimeFilter]) -> Iterator[tuple[RuntimeFilter, KeySummary]]:
        """The filters whose keys are known, be it from a build or from metadata."""
        built = iter(self.builds.run([self._asked(each) for each in filters if not each.from_metadata]))
        self.metadata.forget_keys()
        for each in filters:
            if each.instead is not None:
                self.reasons[each.instead] = None
            found = self._by_statistics(each) if each.from_metadata else self._from_build(each, next(built))
            if isinstance(found, Reason):
                self.reasons[found] = None
            else:
                yield each, found

    def _from_build(self, runtime_filter: RuntimeFilter, built: BuildResult) -> KeySummary | Reason:
        keys = built.keys
        if built.from_cache:
            self.from_cache.add(runtime_filter.build_side.id)
        if isinstance(keys, Reason):
            if keys.code not in _NOT_DONE or not self.selection().is_bounded(
                runtime_filter.build_side, runtime_filter.probe
            ):
                return keys
            self.reasons[keys] = None
            return self._by_statistics(runtime_filter)
        if runtime_filter.build_side.null_safe and keys.null_rows:
            return Reason(ReasonCode.NULL_SAFE, str(runtime_filter.build_side.key))
        is_kept = built.rows is not None and self._keep_rows(runtime_filter.build_side.node, built.rows)
        if runtime_filter.needs_rows and not is_kept:
            return Reason(
                ReasonCode.UNREPEATABLE_KEYS, str(runtime_filter.build_side.key), "its rows are too many to be kept"
            )
        if built.rows is not None:
            # Of rows that a later run may not give again, no keys are taken in any way.
            self._rows[runtime_filter.build_side.node.at] = built.rows
        return keys if runtime_filter.build_side.bound is None else bounded(keys, runtime_filter.build_side.bound)

    def _by_statistics(self, runtime_filter: RuntimeFilter) -> KeySummary | Reason:
        return self.metadata.selective_keys(runtime_filter.build_side, runtime_filter.probe, self.kept_files)

    def tuples_of(self, relation: Relation) -> Mapping[tuple[int, ...], Sequence[KeySummary]]:
        """The keys that filter a scan by several columns of its output together."""
        return self._tuples.get(relation.at, {})

    def keys_of(self, relation: Relation) -> Mapping[int, Sequence[KeySummary]]:
        """The keys that filter a scan, by the columns of its output."""
        return self._keys.get(relation.at, {})

    def kept_files(self, relation: Relation) -> BoolArray | None:
        """The files that a pruned scan still reads."""
        scan = self.scans.get(relation.at)
        return None if scan is None else scan.decided.plan.files.kept

    def _keep_rows(self, node: Node, rows: MaterializedBuild) -> bool:
        """Joins the rows of a build as they are, if they are few; what it read is not read again."""
        if self._strategy is BroadcastStrategy.NONE or 0 <= broadcast_limit(self.spark) < rows.nbytes:
            return False
        self._row_bytes[node.at] = rows.nbytes
        self.others[node.at] = rows.instead_of(self.plan.node(node))
        for each in node.walk():
            self.kept.add(each.at)
            if isinstance(each, Relation):
                self._sizes[each.at] = 0
        return True

    def _asked(self, runtime_filter: RuntimeFilter) -> BuildRequest:
        build_side, must_fit = runtime_filter.build_side, runtime_filter.must_fit
        plan, name = self.plan.replaced(build_side.node, self.others), str(build_side.key)
        if build_side.key.column is not None:
            at = build_side.node.output.index(build_side.key.column)
            return BuildRequest(plan, self.plan.node(build_side.node).output().apply(at), name, at, must_fit=must_fit)
        expression = self.plan.node(build_side.join).condition().get()
        for place in build_side.path:
            expression = expression.children().apply(place)
        return BuildRequest(plan, expression, name, must_fit=must_fit)

    def prune(self, relation: Relation, options: PruningOptions) -> PrunedScan | None:
        """The scan with all that is known to filter it, in the place of its leaf; None where that changes nothing."""
        made = self.scan(relation, options)
        if isinstance(made, Reason):
            self.reasons[made] = None
            return None
        plan, scan = made
        if not scan.decided.plan.acts:
            self.reasons.update(dict.fromkeys(scan.reasons))
            return None
        self.others[relation.at] = plan
        self.scans[relation.at] = scan
        self._sizes[relation.at] = min(self._sizes[relation.at], scan.planned_bytes)
        return scan

    def scan(self, relation: Relation, options: PruningOptions, *more: Collected) -> tuple[Any, PrunedScan] | Reason:
        """The same, with `more` filters, put nowhere."""
        found = self.metadata.scan(relation)
        if isinstance(found, Reason):
            return found
        table = found.table
        build_sides = [
            KeySource((plan_column(table, relation, column),), summary)
            for column, summaries in self.keys_of(relation).items()
            for summary in summaries
        ]
        build_sides += [
            KeySource(tuple(plan_column(table, relation, column) for column in columns), summary)
            for columns, summaries in self.tuples_of(relation).items()
            for summary in summaries
        ]
        collected = key_sources.collect_all(self.spark, build_sides, self.options, exact=False)
        collected += [*self._tops.filters.get(relation.at, ()), *more]
        root, spark = self.plan.root, self.spark

        def static() -> StaticPruning:
            return StaticPruning.of(table, relation, conditions_of(root, relation), found.listed(spark))

        read = Read(self.metadata.needed(relation), static=static)
        try:
            df, scan = pruned_scan(spark, table, collected, read, options)
        except Exception as error:
            # The other scans keep their filters, and the builds that have run are not for nothing.
            logger.debug("Pruning %s failed", table.name, exc_info=True)
            return Reason(ReasonCode.STATISTICS_FAILED, table.name, one_line(error))
        scan.static = static
        return (found.renamed(df) if scan.decided.plan.acts else self.others.get(relation.at)), scan

    def top_filters(self) -> Iterator[TopFilter]:
        """What became of each scan below a limit that takes the first rows of an order."""
        return self._tops.found(self.selection())

    def _is_cut_by_spark(self, relation: Relation) -> bool:
        """Whether Spark itself prunes partitions of a scan by a column without keys, so that it has to read them."""
        by_spark = self.plan.partitions.intersection(relation.output) - self.keys_of(relation).keys()
        if by_spark:
            names = dict(zip(relation.output, relation.names, strict=True))
            subject = ", ".join(sorted(names[each] for each in by_spark))
            self.reasons[Reason(ReasonCode.NOT_READ_BY_ARROW, subject, "Spark prunes partitions by it")] = None
        return bool(by_spark)

    def _may_be_asked_for_files(self) -> bool:
        """Whether rows have to know their file, though the query does not ask for it: nobody chose that they do not."""
        if self.options.scan != AUTO or not self.plan.may_be_asked_for_files():
            return False
        self.reasons[Reason(ReasonCode.NOT_READ_BY_ARROW, "the query", "its rows may be asked for their file")] = None
        return True


def _strategy(plan: SparkPlan, graph: JoinGraph, options: PruningOptions) -> BroadcastStrategy:
    """Rows in the place of a side end what Spark prunes by its condition, so keys have to reach all of that."""
    reached = {probe.column for edge in graph.edges for probe in edge.probes}
    return BroadcastStrategy[options.broadcast_strategy if plan.partitions <= reached else "NONE"]
