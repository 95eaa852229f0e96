"""Plans that Spark only shows, as `df.explain()` does: they say which scans filters are to come for."""

from __future__ import annotations

import logging
from typing import Any

from pyspark.sql import SparkSession

from connectors.pipeline.pruned_query import why_not_worth
from connectors.pipeline.query_run import QueryRun
from connectors.registry import pinned_plan
from connectors.spark.plan_reader import SparkPlan
from connectors.spark.scan_text import with_leaf_texts
from pruning.options import PruningOptions
from pruning.query.filter_plan import FilterPlan
from pruning.query.plan import Relation
from pruning.query.requests import answered
from pruning.results.explanation import builds_and_filters
from pruning.results.verdict import verdict_to_come

logger = logging.getLogger("scanprune")


def shown_plan(spark: SparkSession, plan: Any, options: PruningOptions, *, pins: bool = False) -> Any:
    """An optimised plan of the JVM with a text at each scan that would be filtered; None where there is none.

    No build runs. Filters by a limit over an order have none.
    """
    try:
        if not options.enabled or why_not_worth(spark, plan, options) is not None:
            return None
        return _shown(spark, pinned_plan(spark, plan) if pins else plan, options)
    except Exception:
        logger.debug("Showing the filters of a plan failed", exc_info=True)
        return None


def _shown(spark: SparkSession, plan: Any, options: PruningOptions) -> Any:
    read = SparkPlan.read(spark, None, plan, keeps_ids=True)
    query = QueryRun.of(read, options)
    planner = query.planner
    steps = FilterPlan.before_builds(planner.graph, planner.current_sizes(), planner.options, planner.facts)
    filters = answered(steps, query.metadata.answer)
    _, lines = builds_and_filters(filters, {}, {}, ((), ()), {})
    scans = [each.probe.relation for level in filters.levels for each in level]
    by_scan: dict[int, tuple[Relation, list[str]]] = {}
    for scan, line in zip(scans, lines, strict=True):
        by_scan.setdefault(scan.id, (scan, []))[1].append(f"{line.column} by {line.keys}")
    texts = [(read.node(scan), f"scanprune: {verdict_to_come(each)}") for scan, each in by_scan.values()]
    return with_leaf_texts(spark, plan, texts) if texts else None
