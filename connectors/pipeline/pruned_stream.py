"""Pruning of a micro-batch: its keys, and those of static tables, filter the scans of the static tables of its plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from connectors.jobs.runner import Build
from connectors.pipeline.earlier_queries import NO_QUERIES, EarlierQueries
from connectors.pipeline.pruned_query import PrunedQuery, record_of_run, why_not_worth
from connectors.pipeline.query_run import QueryRun
from connectors.pipeline.table_scan import NO_TROUBLE, warn
from connectors.registry import before_execution
from connectors.spark.jvm import frame_of
from connectors.spark.own_queries import own_query
from connectors.spark.plan_reader import SparkPlan, optimized_stream, with_columns_of
from pruning.options import BroadcastStrategy, PruningOptions
from pruning.query.plan import Join, Node, relations_of
from pruning.reasons import Reason, ReasonCode

_STREAM = "the stream"


def prune_stream(
    spark: SparkSession,
    plan: Any,
    state: str,
    options: PruningOptions,
    earlier: EarlierQueries = NO_QUERIES,
) -> tuple[Any, PrunedQuery]:
    """The optimised plan of a micro-batch over smaller static scans, None where it stays as it is, and its record.

    The leaves of the stream stay, since Spark counts the rows of the micro-batch there; so no rows of a build are
    joined in their place. `state` is the operator by which the stream keeps state, or may.
    """
    if not options.enabled:
        return None, PrunedQuery.untouched(Reason(ReasonCode.SWITCHED_OFF, _STREAM), options)
    if state:
        return None, PrunedQuery.untouched(Reason(ReasonCode.STATEFUL, _STREAM, state), options)
    options = replace(options, broadcast_strategy=BroadcastStrategy.NONE.name, top_k=False)
    if (refusal := why_not_worth(spark, plan, options)) is not None:
        return None, PrunedQuery.untouched(refusal, options)
    read = SparkPlan.read(spark, None, plan, is_stream=True)
    static = {each.id for each in relations_of(read.root)} - read.streams
    with QueryRun.of(read, options, earlier, probed=static) as query:
        query.run()
        record = record_of_run(query)
        warn(_STREAM, record.reasons, besides=NO_TROUBLE)
        for scan in record.scans.values():
            # The next micro-batch has scans of the same ids, so what they measure cannot be told apart.
            scan.identity = None
        if record.scans and (refusal := _emptied_side(query)) is not None:
            return None, PrunedQuery.untouched(refusal, options)
        return (_rewritten(query, plan) if record.scans else None), record


def _emptied_side(query: QueryRun) -> Reason | None:
    """The reason to leave a micro-batch alone: a pruned side of a join with the stream has no row, or may have none.

    Spark would not read the stream beside such a side, and would count no rows of the micro-batch.
    """
    sides = list(_pruned_sides(query))
    frames = [frame_of(query.plan.spark, query.plan.replaced(side, query.replacements)) for side in sides]
    builds = [Build(f"a row of a join with {_STREAM}", own_query(df).isEmpty) for df in frames]
    for is_empty in query.builds.scheduler.run_all(builds):
        if isinstance(is_empty, Reason):
            return is_empty
        if is_empty:
            return Reason(ReasonCode.NO_ROWS_LEFT, _STREAM)
    return None


def _pruned_sides(query: QueryRun) -> Iterator[Node]:
    """The static sides with pruned scans of joins that would not read the stream if the side had no row."""
    for join in query.plan.root.walk():
        if not isinstance(join, Join):
            continue
        left_streams, right_streams = (bool(query.plan.node(each).isStreaming()) for each in join.children)
        (_, stream), (side, _) = join.sides if left_streams else join.sides[::-1]
        # Rows that reach the result without a match are read in any case.
        if left_streams == right_streams or not stream.needs_match:
            continue
        if any(each.id in query.planner.scans for each in side.walk()):
            yield side


def _rewritten(query: QueryRun, stock: Any) -> Any:
    plan = optimized_stream(query.plan.spark, query.rewritten(), stock)
    before_execution(query.plan.spark, plan)
    return with_columns_of(query.plan.spark, plan, stock)
