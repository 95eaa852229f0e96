"""Any query with filters on its scans: builds run level by level, and each shrinks what the next ones read.

plan --JoinGraph--> feeds --build--> KeySummary --pruned_scan--> scans --> plan
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from connectors.build_errors import one_line
from connectors.pipeline import warn
from connectors.plan_reader import SparkPlan, check_has_plan
from connectors.pruned_scan import PrunedScan
from connectors.query_run import QueryRun
from connectors.spark_files import frame_of
from pruning.filter_plan import FilterPlan
from pruning.options import PruningOptions
from pruning.prune_report import PruneReport
from pruning.query_explanation import QueryExplanation
from pruning.query_plan import PlanNames
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
    query = QueryRun.of(plan, options)
    sizes = query.run()
    scans = {at: scan for at, scan in query.scans.items() if at not in query.kept}
    filters = FilterPlan(query.graph, tuple(query.levels), tuple(query.reasons), query.unused)
    record = PrunedQuery(filters, sizes, scans, tuple(query.reasons))
    # That a side of a join is not fit to be run beforehand is no trouble: nobody asked for it.
    warn("a query", [each for each in record.reasons if each.code is not ReasonCode.UNREPEATABLE_KEYS])
    if not (scans or query.kept):
        return df, record
    return frame_of(df.sparkSession, query.rewritten()), record
