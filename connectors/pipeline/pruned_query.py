"""Pruning of a whole query: builds run level by level, and each level shrinks the scans that the next one reads.

plan --JoinGraph--> filters --build--> KeySummary --pruned_scan--> scans --> plan
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame

from connectors.pipeline.query_run import QueryRun
from connectors.pipeline.records import PrunedScan
from connectors.pipeline.table_scan import warn
from connectors.registry import observe, optimized, size_calls
from connectors.spark.jvm import analyzed_plan, frame_of, one_line, optimized_plan, same_frame
from connectors.spark.plan_reader import SparkPlan, check_has_plan, is_candidate
from connectors.spark.versions import version_refusal, warn_of_version
from pruning.keys.cache import PruningCache
from pruning.options import PruningOptions
from pruning.query.filter_plan import FilterPlan, unused
from pruning.query.plan import PlanNames
from pruning.query.plan_statistics import Sizes
from pruning.reasons import Reason, ReasonCode, why_nothing
from pruning.results.explanation import Explanation
from pruning.results.prune_report import PruneReport

_QUERY = "the query"

logger = logging.getLogger("scanprune")


@dataclass(slots=True)
class PrunedQuery:
    """The record of one pruned query: its scans with filters by `Relation.id`, and the reasons of failures.

    `known` are the sizes of its scans with filters, from which refusals follow; `sizes` are those without filters. The
    builds of the build sides in `from_cache` were not run for this query.
    """

    plan: FilterPlan | None
    sizes: Mapping[int, int]
    known: Sizes
    scans: Mapping[int, PrunedScan]
    reasons: tuple[Reason, ...]
    options: PruningOptions
    from_cache: frozenset[tuple[int, str]] = frozenset()

    @staticmethod
    def untouched(reason: Reason, options: PruningOptions) -> PrunedQuery:
        """The record of an unchanged query."""
        return PrunedQuery(None, {}, Sizes({}, (), ()), {}, (reason,), options)

    def explanation(self) -> Explanation:
        """The plan of each scan with a filter, from metadata alone."""
        if self.plan is None:
            return Explanation.nothing(*self.reasons, ran_builds=True)
        # Finding the refusals takes as long as finding the filters, so it is done only on demand.
        left = unused(self.plan.graph, self.known, self.options, self.sizes, self.plan.levels)
        tops = (each.found for each in self.plan.tops if isinstance(each.found, Reason))
        reasons = dict.fromkeys((*self.plan.graph.refusals, *self.reasons, *(each.reason for each in left), *tops))
        tables = {at: table for at, scan in self.scans.items() for table in scan.explanation().tables}
        plan = replace(self.plan, unused=left)
        return Explanation.of(plan, self.sizes, tables, tuple(reasons), ran_builds=True, from_cache=self.from_cache)

    def report(self) -> PruneReport:
        """The plan beside what the latest action measured."""
        if self.plan is None or not self.scans:
            is_rewritten = self.plan is not None and bool(self.known.materialized)
            return PruneReport((), "" if is_rewritten else why_nothing(self.explanation().reasons))
        names = PlanNames(self.plan.graph.root).scans
        return PruneReport(
            tuple(
                replace(table, planned=replace(table.planned, table=names[at]))
                for at, scan in self.scans.items()
                for table in scan.report().tables
            )
        )


@dataclass(frozen=True, slots=True)
class UntouchedQuery:
    """The record of a query that was left unchanged before it was optimised; the reasons are computed on demand."""

    df: DataFrame
    options: PruningOptions

    @staticmethod
    def of(df: DataFrame, options: PruningOptions) -> UntouchedQuery:
        """The record of `df`; it holds another object for the same query, so that it does not keep `df` alive."""
        return UntouchedQuery(same_frame(df), options)

    def explanation(self) -> Explanation:
        """The reasons why there is no filter, from metadata alone."""
        try:
            return _record(QueryRun.of(SparkPlan.of(self.df, optimized(self.df)), self.options)).explanation()
        except Exception as error:
            logger.debug("Explaining the query failed", exc_info=True)
            reason = Reason(ReasonCode.PRUNING_FAILED, _QUERY, one_line(error))
            return PrunedQuery.untouched(reason, self.options).explanation()

    def report(self) -> PruneReport:
        """The reason why nothing was planned."""
        return PruneReport((), why_nothing(self.explanation().reasons))


def prune_query(
    df: DataFrame, options: PruningOptions, cache: PruningCache | None = None
) -> tuple[DataFrame, PrunedQuery | UntouchedQuery]:
    """`df` with filters on its scans, or `df` itself where no filter is worth it or pruning fails.

    Builds in `cache` are not run, and the results of builds that ran are added to it.
    """
    check_has_plan(df)
    if not options.enabled:
        return df, PrunedQuery.untouched(Reason(ReasonCode.SWITCHED_OFF, _QUERY), options)
    if (refusal := version_refusal(df.sparkSession)) is not None:
        warn_of_version(df.sparkSession)
        return df, PrunedQuery.untouched(refusal, options)
    # An error of the query itself is raised here, as Spark reports it.
    analyzed: Any = analyzed_plan(df)
    try:
        if analyzed.isStreaming():
            return df, PrunedQuery.untouched(Reason(ReasonCode.STREAMING, _QUERY), options)
        calls = size_calls(df.sparkSession)
        if not is_candidate(df.sparkSession, analyzed, options.min_probe_bytes, calls, top_k=options.top_k):
            return df, UntouchedQuery.of(df, options)
        return _pruned(df, options, cache)
    except Exception as error:
        logger.debug("Pruning the query failed", exc_info=True)
        reason = Reason(ReasonCode.PRUNING_FAILED, _QUERY, one_line(error))
        logger.warning("Reading without pruning: %s; try: %s", reason, reason.remedy)
        return df, PrunedQuery.untouched(reason, options)


def _pruned(df: DataFrame, options: PruningOptions, cache: PruningCache | None) -> tuple[DataFrame, PrunedQuery]:
    plan = SparkPlan.of(df, optimized(df))
    query = QueryRun.of(plan, options, cache)
    query.run()
    record = _record(query)
    # A join side that cannot be run beforehand is no failure, so it gives no warning.
    warn("a query", [each for each in record.reasons if each.code is not ReasonCode.UNREPEATABLE_KEYS])
    if not (record.scans or query.planner.materialized):
        return df, record
    result: Any = frame_of(df.sparkSession, query.rewritten())
    # Spark optimises before the first action anyway. Done here, an error still allows a fallback to the original query.
    observe(df.sparkSession, optimized_plan(result))
    return result, record


def _record(query: QueryRun) -> PrunedQuery:
    planner = query.planner
    scans = {at: scan for at, scan in query.scans.records.items() if at not in planner.materialized}
    reasons = tuple(planner.reasons)
    filters = FilterPlan(planner.graph, tuple(planner.levels), reasons, tops=tuple(planner.top_filters()))
    sizes, cached = planner.facts.sizes, frozenset(planner.from_cache)
    return PrunedQuery(filters, sizes, planner.known(), scans, reasons, planner.options, cached)
