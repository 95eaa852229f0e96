"""A query before its builds, from metadata alone: the filters that are planned.

`explain_query()` gives them as an `Explanation`, `shown_plan()` as texts in a plan that Spark only shows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from connectors.pipeline.plan_metadata import PlanMetadata
from connectors.pipeline.pruned_query import why_not_worth
from connectors.pipeline.query_run import QueryRun
from connectors.registry import optimized, pinned_plan
from connectors.scan.decision import plan_column, static_columns
from connectors.spark.jvm import error_kind
from connectors.spark.plan_reader import SparkPlan, check_is_query
from connectors.spark.scan_text import with_leaf_texts
from connectors.spark.versions import remote_refusal, version_refusal
from pruning.keys.summary import KeySummary
from pruning.keys.union import united
from pruning.options import PruningOptions
from pruning.query.build_selection import BuildSelection
from pruning.query.filter_plan import FilterPlan
from pruning.query.first_rows import expected_filters
from pruning.query.key_origins import conditions_of
from pruning.query.metadata_filters import benefit_of_bounds
from pruning.query.plan import Relation
from pruning.query.plan_statistics import Sizes
from pruning.query.planner_requests import bounds_of
from pruning.query.requests import Request, answered
from pruning.query.runtime_filter import FilterId, RuntimeFilter
from pruning.reasons import Reason, ReasonCode
from pruning.results.explanation import Explanation, builds_and_filters
from pruning.results.table_explanation import KindLine, Scanned, before_build, kinds_of
from pruning.results.verdict import verdict_to_come
from pruning.scan.key_filter import KeyFilter, key_filter
from pruning.scan.skipping import prune_containers

_QUERY = "the query"

logger = logging.getLogger("scanprune")


def explain_query(df: DataFrame, options: PruningOptions) -> Explanation:
    """The plan that `prune` would try: no build runs and no data is read."""
    if (refusal := remote_refusal(df.sparkSession, warns=False)) is not None:
        return Explanation.nothing(refusal, ran_builds=False)
    check_is_query(df)
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
        return Explanation.nothing(Reason(ReasonCode.PRUNING_FAILED, _QUERY, error_kind(error)), ran_builds=False)


def _explained(df: DataFrame, options: PruningOptions) -> Explanation:
    query = QueryRun.of(SparkPlan.of(df, optimized(df)), options)
    planner, answer = query.planner, query.metadata.answer
    # Those of the planner have the rates of this machine.
    options, refused = planner.options, _refused(query)
    known, filters = _before_builds(query, refused)
    selection = BuildSelection.of(planner.graph, known, options, planner.facts)
    outcomes = [answered(expected_filters(each, selection, options.limits), answer) for each in planner.tops]
    tops = tuple(each for several in outcomes for each in several)
    stopped = (each.found for each in tops if isinstance(each.found, Reason))
    reasons = (*planner.graph.refusals, *refused.values(), *filters.refusals, *stopped)
    bounds = _bounds(query.metadata, filters)
    kinds = estimates(query.metadata, filters, bounds)
    levels = (tuple(_weighed(each, bounds, selection, answer) for each in level) for level in filters.levels)
    filters = replace(filters, levels=tuple(levels))
    return Explanation.of(replace(filters, tops=tops), known.scanned, {}, reasons, ran_builds=False, kinds=kinds)


def _before_builds(query: QueryRun, refused: Mapping[int, Reason]) -> tuple[Sizes, FilterPlan]:
    """The sizes before any build, and the filters that are planned with them."""
    planner = query.planner
    known = planner.current_sizes()
    known = replace(known, files=frozenset(known.files).difference(refused), refused=refused)
    steps = FilterPlan.before_builds(planner.graph, known, planner.options, planner.facts)
    return known, answered(steps, query.metadata.answer)


def _refused(query: QueryRun) -> dict[int, Reason]:
    """Why scans that list their files at each run cannot be pinned, by `Relation.id`."""
    unpinned = (each for each in query.planner.graph.relations if each.id in query.planner.facts.unpinned)
    tables = ((each.id, query.metadata.table(each)) for each in unpinned)
    return {at: table for at, table in tables if isinstance(table, Reason)}


_Bounds = Mapping[tuple[int, str], KeySummary | Reason]


def _bounds(metadata: PlanMetadata, filters: FilterPlan) -> _Bounds:
    """The bounds of the keys of all builds, by `BuildSide.id`."""
    build_sides = {each.build_side.id: each.build_side for level in filters.levels for each in level}
    return {id_: answered(bounds_of(each, {}), metadata.answer) for id_, each in build_sides.items()}


def _weighed(
    runtime_filter: RuntimeFilter, bounds: _Bounds, selection: BuildSelection, answer: Callable[[Request[Any]], Any]
) -> RuntimeFilter:
    """A filter with the seconds that it costs and saves; without where statistics that give its keys do not tell."""
    keys = bounds[runtime_filter.build_side.id]
    if not runtime_filter.from_metadata or isinstance(keys, Reason):
        return runtime_filter
    found = answered(benefit_of_bounds(runtime_filter.probe, keys, selection), answer)
    return runtime_filter if isinstance(found, Reason) else replace(runtime_filter, benefit=found)


def estimates(metadata: PlanMetadata, filters: FilterPlan, bounds: _Bounds) -> Mapping[FilterId, tuple[KindLine, ...]]:
    """The most containers that each filter keeps, by kind; empty for scans whose metadata cannot be read."""
    planned = [each for level in filters.levels for each in level if not each.other_operands]
    found = {each.id: _kinds_if_known(metadata, each, _united_bounds(each, bounds)) for each in planned}
    return {name: lines for name, lines in found.items() if lines}


def _united_bounds(runtime_filter: RuntimeFilter, bounds: _Bounds) -> KeySummary | Reason:
    """The bounds of all keys that filter a scan together; a `Reason` where some are not known."""
    found = [bounds[each] for each in sorted(runtime_filter.id.union or {runtime_filter.build_side.id})]
    known = [each for each in found if isinstance(each, KeySummary)]
    if len(known) < len(found):
        return next(each for each in found if isinstance(each, Reason))
    if len({each.types for each in known}) > 1:
        return Reason(ReasonCode.RUN_ONCE, runtime_filter.probe.name)
    return united(known) if len(known) > 1 else known[0]


def _kinds_if_known(
    metadata: PlanMetadata, runtime_filter: RuntimeFilter, keys: KeySummary | Reason
) -> tuple[KindLine, ...]:
    try:
        return _kinds(metadata, runtime_filter, keys)
    except Exception:
        logger.debug("Estimating a filter of %s failed", runtime_filter.probe.name, exc_info=True)
        return ()


def _kinds(metadata: PlanMetadata, runtime_filter: RuntimeFilter, keys: KeySummary | Reason) -> tuple[KindLine, ...]:
    relation, limits = runtime_filter.probe.relation, metadata.limits
    table = metadata.table(relation)
    if isinstance(table, Reason):
        return ()
    column = plan_column(table, relation, runtime_filter.probe.column)
    values = keys if isinstance(keys, Reason) else runtime_filter.probe.values_of(keys)
    filter_ = KeyFilter.unknown([column], "") if isinstance(values, Reason) else key_filter([column], values)
    columns, wanted = static_columns(table, relation, conditions_of(metadata.plan.root, relation))
    columns = {**columns, column.name: column} if column.type is not None else columns
    files = table.files(list(columns.values()))
    remaining = prune_containers(files, wanted).kept
    chosen = np.flatnonzero(remaining)
    groups = None
    if files.is_listed and len(chosen) <= limits.max_footers:
        groups = table.row_groups(chosen, list(columns.values()), metadata.needed(relation)).seen_by_reader()
    return before_build(kinds_of(filter_, Scanned(files, groups, remaining), limits.max_ranges))


def shown_plan(spark: SparkSession, plan: Any, options: PruningOptions) -> Any:
    """An optimised plan of the JVM with a text at each scan that would be filtered; None where there is none.

    No build runs. Filters by a limit over an order have none.
    """
    try:
        if not options.enabled or why_not_worth(spark, plan, options) is not None:
            return None
        return _shown(spark, pinned_plan(spark, plan), options)
    except Exception:
        logger.debug("Showing the filters of a plan failed", exc_info=True)
        return None


def _shown(spark: SparkSession, plan: Any, options: PruningOptions) -> Any:
    read = SparkPlan.read(spark, None, plan)
    query = QueryRun.of(read, options)
    _, filters = _before_builds(query, _refused(query))
    _, lines = builds_and_filters(filters, {}, {}, ((), ()), {})
    scans = [each.probe.relation for level in filters.levels for each in level]
    by_scan: dict[int, tuple[Relation, list[str]]] = {}
    for scan, line in zip(scans, lines, strict=True):
        by_scan.setdefault(scan.id, (scan, []))[1].append(f"{line.column} by {line.keys}")
    texts = [(read.node(scan), f"scanprune: {verdict_to_come(each)}") for scan, each in by_scan.values()]
    return with_leaf_texts(spark, plan, texts) if texts else None
