"""The plan that `prune` would try, from metadata alone: statistics of files bound the keys of each build."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from pyspark.sql import DataFrame

from connectors.pipeline.plan_metadata import PlanMetadata
from connectors.pipeline.top_k import expected
from connectors.registry import optimized
from connectors.scan.decision import static_columns
from connectors.spark.jvm import one_line
from connectors.spark.plan_reader import SparkPlan, check_has_plan
from connectors.spark.versions import version_refusal
from pruning.options import PruningOptions
from pruning.query.build_selection import BuildSelection
from pruning.query.filter_plan import FilterId, FilterPlan, RuntimeFilter
from pruning.query.join_graph import JoinGraph
from pruning.query.key_origins import conditions_of, statistics_columns
from pruning.query.plan_statistics import Sizes
from pruning.reasons import Reason, ReasonCode
from pruning.results.explanation import Explanation
from pruning.results.table_explanation import KindLine, Scanned, before_build, kinds_of
from pruning.scan.key_filter import KeyFilter, key_filter
from pruning.scan.skipping import prune

_QUERY = "the query"

logger = logging.getLogger("scanprune")


def dry_run(df: DataFrame, options: PruningOptions) -> Explanation:
    """The plan that `prune` would try: no build runs and no data is read."""
    check_has_plan(df)
    if not options.enabled:
        return Explanation.nothing(Reason(ReasonCode.SWITCHED_OFF, _QUERY), ran_builds=False)
    if (refusal := version_refusal(df.sparkSession)) is not None:
        return Explanation.nothing(refusal, ran_builds=False)
    try:
        if df.isStreaming:
            return Explanation.nothing(Reason(ReasonCode.STREAMING, _QUERY), ran_builds=False)
        return _explained(df, options)
    except Exception as error:
        logger.debug("Explaining the query failed", exc_info=True)
        return Explanation.nothing(Reason(ReasonCode.PRUNING_FAILED, _QUERY, one_line(error)), ran_builds=False)


def _explained(df: DataFrame, options: PruningOptions) -> Explanation:
    plan = SparkPlan.of(df, optimized(df))
    graph = JoinGraph.of(plan.root)
    metadata = PlanMetadata(plan, options, partial(statistics_columns, graph))
    known = sizes_before_builds(metadata)
    filters = FilterPlan.before_builds(graph, known, options)
    tops = tuple(expected(plan.root, metadata, BuildSelection(known, options, graph.edges)))
    filters = replace(filters, tops=tops)
    reasons = (*graph.refusals, *filters.refusals, *(each.found for each in tops if isinstance(each.found, Reason)))
    kinds = estimates(metadata, filters)
    return Explanation.of(filters, known.scanned, {}, reasons, ran_builds=False, kinds=kinds)


def sizes_before_builds(metadata: PlanMetadata) -> Sizes:
    """The sizes of a query's scans before any build has run."""
    found = metadata.facts().leaves
    return Sizes(found.sizes, found.files, (), statistics=metadata)


def estimates(metadata: PlanMetadata, filters: FilterPlan) -> Mapping[FilterId, tuple[KindLine, ...]]:
    """The most containers that each filter keeps, by kind; empty for scans whose metadata cannot be read."""
    found = {each.id: _kinds(metadata, each) for level in filters.levels for each in level}
    return {name: lines for name, lines in found.items() if lines}


def _kinds(metadata: PlanMetadata, runtime_filter: RuntimeFilter) -> tuple[KindLine, ...]:
    relation, options = runtime_filter.probe.relation, metadata.options
    table = metadata.table(relation)
    if isinstance(table, Reason):
        return ()
    column = metadata.column(table, runtime_filter.probe)
    keys = metadata.keys(runtime_filter.build_side, lambda _: None)
    filter_ = (
        KeyFilter.unknown([column], "") if isinstance(keys, Reason) else key_filter([column], keys, options.limits)
    )
    columns, wanted = static_columns(table, relation, conditions_of(metadata.plan.root, relation))
    columns = {**columns, column.name: column} if column.type is not None else columns
    files = table.files(list(columns.values()))
    left = prune(files, wanted).kept
    chosen = np.flatnonzero(left)
    groups = None
    if files.is_listed and len(chosen) <= options.limits.max_footers:
        groups = table.row_groups(chosen, list(columns.values()), metadata.needed(relation)).seen_by_reader()
    return before_build(kinds_of(filter_, Scanned(files, groups, left), options.limits.max_ranges))
