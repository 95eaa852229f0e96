"""What `prune` would try, from metadata alone."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame

from connectors.build_errors import one_line
from connectors.estimates import estimates
from connectors.leaf_sizes import sizes_before_builds
from connectors.plan_metadata import PlanMetadata
from connectors.plan_reader import SparkPlan, check_has_plan
from connectors.top_runs import TopRuns, expected
from pruning.asked_columns import asked_columns
from pruning.filter_plan import FilterPlan
from pruning.gates import Gates
from pruning.join_graph import JoinGraph
from pruning.options import PruningOptions
from pruning.query_explanation import QueryExplanation
from pruning.reasons import Reason, ReasonCode

_QUERY = "the query"

logger = logging.getLogger("scanprune")


def dry_run(df: DataFrame, options: PruningOptions) -> QueryExplanation:
    """What `prune` would try: no build runs and no data is read."""
    check_has_plan(df)
    if not options.enabled:
        return QueryExplanation.nothing(Reason(ReasonCode.SWITCHED_OFF, _QUERY), ran_builds=False)
    try:
        if df.isStreaming:
            return QueryExplanation.nothing(Reason(ReasonCode.STREAMING, _QUERY), ran_builds=False)
        return _explained(df, options)
    except Exception as error:
        logger.debug("Explaining the query failed", exc_info=True)
        return QueryExplanation.nothing(Reason(ReasonCode.PRUNING_FAILED, _QUERY, one_line(error)), ran_builds=False)


def _explained(df: DataFrame, options: PruningOptions) -> QueryExplanation:
    plan = SparkPlan.of(df)
    graph = JoinGraph.of(plan.root)
    metadata = PlanMetadata(plan, options, partial(asked_columns, graph))
    known = sizes_before_builds(plan, graph, metadata)
    filters = FilterPlan.before_builds(graph, known, options)
    tops = tuple(expected(TopRuns.of(plan.root, is_on=options.top_k), metadata, Gates(known, options, graph.edges)))
    filters = replace(filters, tops=tops)
    reasons = (*graph.refusals, *filters.refusals, *(each.found for each in tops if isinstance(each.found, Reason)))
    kinds = estimates(metadata, filters)
    return QueryExplanation.of(filters, known.scanned, {}, reasons, ran_builds=False, kinds=kinds)
