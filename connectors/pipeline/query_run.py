"""`QueryRun`: the driver of `QueryPlanner` on Spark, which answers each request and decides nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from connectors.builds.cached_builds import CachedBuildRunner
from connectors.builds.materialized import MaterializedBuild
from connectors.builds.query_builds import BuildRequest, BuildResult, QueryBuilds
from connectors.builds.stored import StoredBuild
from connectors.cost_rates import observe_build, rates_of, remote_stores
from connectors.jobs.runner import BuildScheduler
from connectors.pipeline.earlier_queries import NO_QUERIES, EarlierQueries
from connectors.pipeline.plan_metadata import PlanMetadata
from connectors.pipeline.query_scans import QueryScans
from connectors.spark.jvm import make_date
from connectors.spark.plan_facts import broadcast_limit, cores_of
from connectors.spark.plan_reader import SparkPlan, as_batch
from pruning.options import PruningOptions
from pruning.query.broadcasts import effective_strategy
from pruning.query.calendar_keys import MAKE_DATE
from pruning.query.join_graph import JoinGraph
from pruning.query.key_origins import statistics_columns
from pruning.query.known_statistics import KnownStatistics
from pruning.query.plan import Expression, Node, Relation, is_field
from pruning.query.plan_statistics import QueryFacts
from pruning.query.planner import QueryPlanner
from pruning.query.planner_requests import (
    JoinRows,
    PinFiles,
    PruneScan,
    RunBuilds,
    SummarizeTuples,
)
from pruning.query.requests import Request, answered
from pruning.query.runtime_filter import RuntimeFilter
from pruning.reasons import Reason, ReasonCode


@dataclass(slots=True)
class QueryRun:
    """One query on Spark; `replacements` are JVM plans that replace nodes, by `Node.id`.

    A command runs its own plan afterwards, with fewer files, so a scan that lists its files at each run stays unpinned.
    """

    plan: SparkPlan
    planner: QueryPlanner
    metadata: PlanMetadata
    builds: QueryBuilds | CachedBuildRunner
    scans: QueryScans
    earlier: EarlierQueries = NO_QUERIES
    is_command: bool = False
    replacements: dict[int, Any] = field(default_factory=dict)

    @staticmethod
    def of(
        plan: SparkPlan,
        options: PruningOptions,
        earlier: EarlierQueries = NO_QUERIES,
        probed: Collection[int] | None = None,
        *,
        is_command: bool = False,
    ) -> QueryRun:
        """A query before its builds; `all_builds_timeout_seconds` begins here.

        `probed` are the only scans that are filtered, by `Relation.id`; all of them if None.
        """
        graph = JoinGraph.of(plan.root, by_file=is_command)
        graph = graph if probed is None else graph.towards(probed)
        metadata = PlanMetadata(plan, options.limits, partial(statistics_columns, graph))
        lesson = earlier.lesson(plan.root, options)
        facts = replace(query_facts(metadata), tests_rows=not is_command, lesson=lesson)
        options = options.with_limits(
            costs=rates_of(plan.spark, options, remote_stores(metadata.facts().stores.values()))
        )
        # Rows of builds are asked for only where the query may join them.
        options = replace(options, broadcast_strategy=effective_strategy(graph, options, facts).name)
        scheduler = BuildScheduler.of(plan.spark, options)
        planner = QueryPlanner.of(graph, options, facts, KnownStatistics(plan.root, facts, options))
        builds = QueryBuilds(scheduler) if earlier.cache is None else CachedBuildRunner(scheduler, earlier.cache)
        scans = QueryScans(metadata, planner.options, graph.equal, by_file=is_command)
        return QueryRun(plan, planner, metadata, builds, scans, earlier, is_command=is_command)

    def __enter__(self) -> QueryRun:  # noqa: PYI034 - Python 3.10 has no Self
        """The run; at its end replacements are dropped, so that its record does not keep the rows of builds."""
        return self

    def __exit__(self, *_: object) -> None:
        self.plan.forget()

    def run(self) -> None:
        """Answers the planner until it has no more requests."""
        answered(self.planner.run(), self._answer)
        self.earlier.planned(self.planner)

    def rewritten(self) -> Any:
        """The JVM plan of the query with every replacement."""
        sides = answered(self.planner.broadcast_sides(), self._answer)
        return self.plan.replaced(self.plan.root, self.replacements, sides)

    def _answer(self, request: Request[Any]) -> Any:
        match request:
            case PinFiles(relations):
                return self._pin(relations)
            case RunBuilds(filters):
                return self._run_builds(filters)
            case SummarizeTuples(node, MaterializedBuild() as rows, columns):
                places = {at: self.plan.column(node, at) for at in map(node.output.index, columns.build)}
                return rows.tuples(places, self.planner.options, columns.name)
            case JoinRows(node, MaterializedBuild() | StoredBuild() as rows, keeps_scan):
                self.replacements[node.id] = rows.as_relation(self.plan.node(node), keeps_scan=keeps_scan)
                return None
            case PruneScan():
                return self.scans.planned(request, self.replacements)
            case _:
                answer = self.metadata.answer(request)
                if isinstance(answer, Reason) and answer.code is ReasonCode.BUILD_CANCELLED:
                    self.builds.scheduler.cancel(answer)
                return answer

    def _run_builds(self, filters: Sequence[RuntimeFilter]) -> Sequence[BuildResult]:
        """The results of builds; rates of stores learn from those that ran where they were expected to."""
        results = self.builds.run([self._build_request(each) for each in filters])
        # Scans whose rows a build has given are not read again.
        known, done = self.metadata.facts().stores, self.planner.materialized
        stores = {at: store for at, store in known.items() if at not in done}
        for each, built in zip(filters, results, strict=True):
            benefit = each.benefit
            if benefit is not None and benefit.mostly_reads and built.seconds and built.on_driver == each.on_driver:
                read = [stores[at.id] for at in each.build_side.node.walk() if at.id in stores]
                observe_build(self.plan.spark, self.planner.options, benefit.run, built.seconds, read)
        return results

    def _pin(self, relations: Sequence[Relation]) -> Mapping[int, Reason]:
        refused: dict[int, Reason] = {}
        for relation in relations:
            table = self.metadata.plan_table(relation)
            if self.is_command:
                refused[relation.id] = Reason(ReasonCode.NOT_FILES, relation.table, "the command lists its files anew")
            elif isinstance(table, Reason):
                refused[relation.id] = table
            else:
                self.replacements[relation.id] = table.plan_of(table.table.read(None))
        return refused

    def _build_request(self, runtime_filter: RuntimeFilter) -> BuildRequest:
        build_side = runtime_filter.build_side
        wanted = (
            runtime_filter.brings_rows,
            runtime_filter.must_fit,
            runtime_filter.on_driver,
            runtime_filter.needs_rows,
            runtime_filter.runs_once,
        )
        plan, name = self.plan.replaced(build_side.node, self.replacements), str(build_side.key)
        plan = as_batch(self.plan.spark, plan) if self.plan.streams else plan
        if (column := build_side.key.column) is not None and not is_field(column):
            at = build_side.node.output.index(column)
            key = self.plan.column(build_side.node, at)
            return BuildRequest(plan, key, name, at, *wanted)
        if build_side.key.kind == MAKE_DATE:
            parts = (self._column_or_first(build_side.node, each) for each in build_side.key.children)
            return BuildRequest(plan, make_date(self.plan.spark, *parts), name, None, *wanted)
        expression = self.plan.node(build_side.join).condition().get()
        for place in build_side.condition.path:
            expression = expression.children().apply(place)
        return BuildRequest(plan, expression, name, None, *wanted)

    def _column_or_first(self, node: Node, part: Expression) -> Any:
        """The JVM's column of a part of a date; None for the first day of a month."""
        return None if part.column is None else self.plan.column(node, node.output.index(part.column))


def query_facts(metadata: PlanMetadata) -> QueryFacts:
    """The facts about a query before any decision."""
    plan, found = metadata.plan, metadata.facts()
    return QueryFacts(
        found.leaves.sizes,
        found.leaves.files,
        found.leaves.unpinned,
        found.first_leaf,
        found.equal,
        plan.used,
        plan.partitions,
        streams=plan.streams,
        broadcast_limit=broadcast_limit(plan.spark),
        remote=frozenset(at for at, store in found.stores.items() if remote_stores([store])),
        cores=cores_of(plan.spark),
        runs_on_driver=True,
    )
