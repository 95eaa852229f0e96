"""Pruning of a micro-batch: its keys, and those of static tables, filter the scans of the static tables of its plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from connectors.pipeline.pruned_query import PrunedQuery, record_of_run, why_not_worth
from connectors.pipeline.query_run import QueryRun
from connectors.pipeline.table_scan import warn
from connectors.registry import before_execution
from connectors.spark.plan_reader import SparkPlan, optimized_stream
from pruning.keys.cache import PruningCache
from pruning.options import BroadcastStrategy, PruningOptions
from pruning.query.plan import relations_of
from pruning.reasons import Reason, ReasonCode

_STREAM = "the stream"


def prune_stream(
    spark: SparkSession, plan: Any, state: str, options: PruningOptions, cache: PruningCache | None = None
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
    read = SparkPlan.read(spark, None, plan, keeps_ids=True, is_stream=True)
    static = {each.id for each in relations_of(read.root)} - read.streams
    query = QueryRun.of(read, options, cache, probed=static)
    query.run()
    record = record_of_run(query)
    warn(_STREAM, [each for each in record.reasons if each.code is not ReasonCode.UNREPEATABLE_KEYS])
    for scan in record.scans.values():
        # The next micro-batch has scans of the same ids, so what they measure cannot be told apart.
        scan.identity = None
    return (_rewritten(query) if record.scans else None), record


def _rewritten(query: QueryRun) -> Any:
    plan = optimized_stream(query.plan.spark, query.rewritten())
    before_execution(query.plan.spark, plan)
    return plan
