"""Pruning of a whole query: its builds run, and it is rewritten.

Builds run level by level, and each level shrinks the scans that the next one reads:

plan --JoinGraph--> filters --build--> KeySummary --pruned_scan--> scans --> plan
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from connectors.connector_names import size_calls
from connectors.cost_rates import rates_of
from connectors.pipeline.earlier_queries import NO_QUERIES, EarlierQueries
from connectors.pipeline.query_run import QueryRun
from connectors.pipeline.records import PrunedScan
from connectors.pipeline.table_scan import NO_FAILURE, NO_TROUBLE, warn
from connectors.registry import before_execution, early_query, optimized, pinned_plan
from connectors.spark.jvm import analyzed_plan, error_kind, failed_build, is_data_error, optimized_plan, same_frame
from connectors.spark.own_queries import optimized_once
from connectors.spark.plan_facts import cores_of
from connectors.spark.plan_reader import (
    SparkPlan,
    check_is_query,
    is_candidate,
    with_columns_of,
    with_new_scan_columns,
    without_blooms,
)
from connectors.spark.versions import remote_refusal, version_refusal, warn_of_version
from pruning.cost.rates import NANOSECONDS, CostRates
from pruning.errors import InvalidOptionError
from pruning.keys.cache import PruningCache
from pruning.options import PruningOptions
from pruning.query.benefit import Benefits
from pruning.query.build_selection import BuildSelection
from pruning.query.filter_plan import FilterPlan, UnusedFilter, unused
from pruning.query.plan import PlanNames, is_field
from pruning.query.plan_statistics import QueryFacts, Sizes
from pruning.query.requests import Request, answered, with_answers
from pruning.reasons import UNFINISHED, Reason, ReasonCode, size
from pruning.results.explanation import Explanation, builds_and_filters
from pruning.results.prune_report import PruneReport
from pruning.results.table_explanation import TableExplanation

_QUERY = "the query"
logger = logging.getLogger("scanprune")


@dataclass(slots=True)
class PrunedQuery:
    """The record of one pruned query: its scans with filters by `Relation.id`, and the reasons of failures.

    `pruned_sizes` are the sizes of its scans with filters, from which refusals follow; `sizes` are those without
    filters. The builds of the build sides in `from_cache` were not run for this query, those in `on_driver` took no
    job; `seconds` are those of each build side. `answer` answers requests about metadata, and holds the JVM's plan with
    all rows that lie in it. `may_change` is True where the seconds of this query may
    change the choice for an equal one.
    """

    plan: FilterPlan | None
    sizes: Mapping[int, int]
    pruned_sizes: Sizes
    scans: Mapping[int, PrunedScan]
    reasons: tuple[Reason, ...]
    options: PruningOptions
    from_cache: frozenset[tuple[int, str]] = frozenset()
    on_driver: frozenset[tuple[int, str]] = frozenset()
    seconds: Mapping[tuple[int, str], float] = field(default_factory=dict)
    answer: Callable[[Request[Any]], Any] | None = None
    facts: QueryFacts | None = None
    may_change: bool = False

    @staticmethod
    def untouched(reason: Reason, options: PruningOptions) -> PrunedQuery:
        """The record of an unchanged query."""
        return PrunedQuery(None, {}, Sizes({}, (), ()), {}, (reason,), options)

    @staticmethod
    def failed(error: Exception, options: PruningOptions) -> PrunedQuery:
        """The record of a query that stays unchanged since pruning it failed, after one warning.

        Spark computes expressions over the rows of a build while it optimises a plan. Where one refuses a value,
        nothing is wrong: without pruning it may never meet that row.
        """
        logger.debug("Pruning the query failed", exc_info=error)
        if is_data_error(error):
            return PrunedQuery.untouched(failed_build(_QUERY, error), options)
        code = ReasonCode.INVALID_OPTION if isinstance(error, InvalidOptionError) else ReasonCode.PRUNING_FAILED
        reason = Reason(code, _QUERY, error_kind(error))
        _warn_of(reason)
        return PrunedQuery.untouched(reason, options)

    @property
    def is_lasting(self) -> bool:
        """True for a query without filters for reasons that an equal query would have, too."""
        has_filters = self.plan is not None and bool(self.plan.levels)
        return not (has_filters or self.may_change or any(each.code in UNFINISHED for each in self.reasons))

    def forget_plan(self, *, keeps_reasons: bool = False) -> None:
        """Drops the JVM's plan; without `keeps_reasons` explanations then lack the reasons against single filters.

        Finding these takes about as long as planning did.
        """
        if keeps_reasons and self.plan is not None and self.answer is not None and not self.scans:
            try:
                self.plan = replace(self.plan, unused=self._unused(self.plan))
            except Exception:
                logger.debug("Finding the reasons against filters failed", exc_info=True)
        self.answer = None

    @property
    def cancelled(self) -> str | None:
        """Spark's message if somebody cancelled a build, as by the job group of the query; else None."""
        return next((each.detail for each in self.reasons if each.code is ReasonCode.BUILD_CANCELLED), None)

    def measure_only(self, execution: int) -> None:
        """Makes this execution, for which the plan was made, the only one that the report measures."""
        for scan in self.scans.values():
            if scan.identity is not None:
                scan.identity = replace(scan.identity, execution=execution)

    def tested_columns(self) -> frozenset[int]:
        """The ids of columns of scans whose rows are tested by the keys of each join that could filter them.

        None of a query with an expression that may raise: rows may reach it that another filter would drop.
        """
        if self.plan is None or any(node.may_raise for node in self.plan.graph.root.walk()):
            return frozenset()
        builds: dict[int, set[tuple[int, str]]] = {}
        probes = [(edge, probe) for edge in self.plan.graph.edges for probe in edge.probes]
        for edge, probe in probes:
            builds.setdefault(probe.column, set()).add(edge.build_side.id)
        return frozenset(
            probe.column
            for _, probe in probes
            if (scan := self.scans.get(probe.relation.id)) is not None
            and not is_field(probe.column)
            and len(builds[probe.column]) <= scan.plan.tested_by_keys(probe.name)
        )

    def explanation(self) -> Explanation:
        """The plan of each scan with a filter, from metadata alone."""
        if self.plan is None:
            return Explanation.nothing(*self.reasons, ran_builds=True)
        remaining = self._unused(self.plan)
        tops = (each.found for each in self.plan.tops if isinstance(each.found, Reason))
        reasons = dict.fromkeys((*self.plan.graph.refusals, *self.reasons, *(each.reason for each in remaining), *tops))
        tables = {at: table for at, scan in self.scans.items() for table in scan.explanation().tables}
        plan = replace(self.plan, unused=remaining)
        return Explanation.of(
            plan,
            self.sizes,
            tables,
            tuple(reasons),
            ran_builds=True,
            from_cache=self.from_cache,
            on_driver=self.on_driver,
            seconds=self.seconds,
        )

    def _unused(self, plan: FilterPlan) -> tuple[UnusedFilter, ...]:
        # Finding these takes as long as finding the filters, so it is done only on demand.
        # Another thread may forget the plan.
        if (answer := self.answer) is None:
            return plan.unused
        selection = BuildSelection.of(plan.graph, self.pruned_sizes, self.options, self.facts)
        return answered(unused(selection, plan.levels), answer)

    def report(self) -> PruneReport:
        """The plan beside what the latest action measured."""
        if self.plan is None:
            return PruneReport((), self.explanation().why_nothing)
        builds, _ = builds_and_filters(self.plan, self.sizes, {}, (self.from_cache, self.on_driver), self.seconds)
        if not self.scans:
            is_rewritten = bool(self.pruned_sizes.materialized)
            nothing = "" if is_rewritten else self.explanation().why_nothing
            return PruneReport((), nothing, builds if is_rewritten else ())
        names = PlanNames(self.plan.graph.root).scans
        tables = tuple(
            replace(
                table,
                planned=replace(table.planned, table=names[at]),
                scan_seconds=self._scan_seconds(at, table.planned),
            )
            for at, scan in self.scans.items()
            for table in scan.report().tables
        )
        return PruneReport(tables, builds=builds)

    def _scan_seconds(self, at: int, planned: TableExplanation) -> tuple[float | None, float | None]:
        """Seconds of tasks that a scan is expected to read and decode, with its filters and without them."""
        limits, values = self.options.limits, self._decoded_values(at)
        is_remote, whole = self.facts is not None and at in self.facts.remote, planned.bytes_total

        def seconds(nbytes: int | None, files: int | None) -> float | None:
            if nbytes is None or (is_remote and files is None):
                return None
            requests = (files or 0) * limits.requests_per_file if is_remote else None
            share = nbytes / whole if whole else 0.0
            return limits.costs.reading(nbytes, share * values, requests) / NANOSECONDS

        return (
            seconds(planned.bytes_kept, planned.files_kept),
            seconds(planned.bytes_total, planned.files_total),
        )

    def _decoded_values(self, at: int) -> float:
        """The values that a scan without filters decodes, as many as numbers would take the time; 0 if not known."""
        if self.plan is None:
            return 0.0
        # A record that has dropped its plan still has the answers that it was planned by.
        answer = self.answer or (lambda _: Reason(ReasonCode.STATISTICS_FAILED, _QUERY))
        statistics = self.pruned_sizes.statistics
        scan = next(each for each in self.plan.graph.relations if each.id == at)
        return answered(with_answers(lambda: statistics.rows(scan) * statistics.decoded_values(scan)), answer)

    def expected_seconds(self, rates: CostRates | None = None) -> float | None:
        """Seconds that the query is expected to take without filters, by the sizes before pruning.

        None if no plan was read. `rates` take the place of those by which the query was planned.
        """
        facts = self.facts
        if self.plan is None or self.answer is None or facts is None:
            return None
        limits = self.options.limits if rates is None else replace(self.options.limits, costs=rates)
        statistics = self.pruned_sizes.statistics
        sizes = Sizes(facts.sizes, facts.files, (), statistics=statistics, remote=facts.remote, cores=facts.cores)
        benefits = Benefits.of(sizes, limits, facts)
        return answered(with_answers(partial(benefits.query, self.plan.graph.root)), self.answer)


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
            return self.examined().explanation()
        except Exception as error:
            logger.debug("Explaining the query failed", exc_info=True)
            reason = Reason(ReasonCode.PRUNING_FAILED, _QUERY, error_kind(error))
            return PrunedQuery.untouched(reason, self.options).explanation()

    def examined(self) -> PrunedQuery:
        """The record of the optimised query, of which no build has run."""
        return record_of_run(QueryRun.of(SparkPlan.of(self.df, optimized(self.df)), self.options))

    def report(self) -> PruneReport:
        """The reason why nothing was planned."""
        return PruneReport((), self.explanation().why_nothing)


def prune_query(
    df: DataFrame, options: PruningOptions, cache: PruningCache | None = None
) -> tuple[DataFrame, PrunedQuery | UntouchedQuery]:
    """`df` with filters on its scans; the same query where no filter is worth it or pruning fails.

    Builds in `cache` are not run, and the results of builds that ran are added to it.
    """
    if (refusal := remote_refusal(df.sparkSession, warns=options.enabled)) is not None:
        return df, PrunedQuery.untouched(refusal, options)
    check_is_query(df)
    if not options.enabled:
        return df, PrunedQuery.untouched(Reason(ReasonCode.SWITCHED_OFF, _QUERY), options)
    if (refusal := version_refusal(df.sparkSession)) is not None:
        warn_of_version(df.sparkSession)
        return df, PrunedQuery.untouched(refusal, options)
    # An error of the query itself is raised here, as Spark reports it.
    analyzed: Any = analyzed_plan(df)
    try:
        if analyzed.isStreaming():
            reason = Reason(ReasonCode.STREAMING, _QUERY)
            _warn_of(reason)
            return df, PrunedQuery.untouched(reason, options)
        calls = size_calls(df.sparkSession)
        if not is_candidate(
            df.sparkSession, analyzed, least_bytes(df.sparkSession, options), calls, top_k=options.top_k
        ):
            return df, UntouchedQuery.of(df, options)
        query, plan = early_query(df)
        pruned, record = _pruned(SparkPlan.of(df, plan), options, EarlierQueries(cache), NO_FAILURE, _with_own_scans)
    except Exception as error:  # noqa: BLE001 - the record tells of it
        return df, PrunedQuery.failed(error, options)
    return (query if pruned is None else pruned), record


def _warn_of(reason: Reason) -> None:
    """One warning that a query is left alone."""
    logger.warning("Reading without pruning: %s; try: %s", reason, reason.remedy)


def least_bytes(spark: SparkSession, options: PruningOptions) -> int:
    """Bytes of a table below which no filter of its scan pays."""
    return 0 if options.always else rates_of(spark, options).least_bytes(cores_of(spark))


def _pruned(
    plan: SparkPlan,
    options: PruningOptions,
    earlier: EarlierQueries,
    expected: Collection[ReasonCode],
    rewritten: Callable[[QueryRun, PrunedQuery], Any],
) -> tuple[DataFrame | None, PrunedQuery]:
    """The pruned query of a plan, None where the query stays as it is, and its record.

    Reasons that are `expected` give no warning. `rewritten` gives the plan that Spark optimises.
    """
    with QueryRun.of(plan, options, earlier) as query:
        query.run()
        record = record_of_run(query)
        warn("a query", record.reasons, besides=expected)
        is_pruned = bool(record.scans or query.planner.materialized)
        return (_optimized(query, rewritten(query, record)) if is_pruned else None), record


def _with_same_scans(query: QueryRun, _: PrunedQuery) -> Any:
    """The rewritten plan of a query that is measured in one execution alone, by the column ids of its scans."""
    return query.rewritten()


def _with_own_scans(query: QueryRun, record: PrunedQuery) -> Any:
    """The rewritten plan of a query that is measured in any execution, beside the unpruned query.

    Its pruned scans have column ids that no other scan has.
    """
    places = [at for at in record.scans if at in query.replacements]
    parts = [query.replacements[at] for at in places]
    if not parts:
        return query.rewritten()
    plan, found = with_new_scan_columns(query.plan.spark, query.rewritten(), parts)
    for at, columns in zip(places, found, strict=True):
        scan = record.scans[at]
        if scan.identity is not None and columns:
            scan.identity = replace(scan.identity, attributes=columns)
    return plan


def _optimized(query: QueryRun, plan: Any) -> DataFrame:
    """A pruned query, optimised: Spark does it before the first action anyway, and here an error can be caught."""
    may_raise = any(node.may_raise for node in query.plan.root.walk())
    result = optimized_once(query.plan.spark, plan, may_raise=may_raise)
    before_execution(query.plan.spark, optimized_plan(result))
    return result


def prune_plan(
    spark: SparkSession, plan: Any, options: PruningOptions, earlier: EarlierQueries = NO_QUERIES
) -> tuple[Any, PrunedQuery]:
    """The pruned plan of an optimised plan of the JVM, None where it stays as it is, and its record."""
    if not options.enabled:
        return None, PrunedQuery.untouched(Reason(ReasonCode.SWITCHED_OFF, _QUERY), options)
    if (refusal := why_not_worth(spark, plan, options)) is not None:
        return None, PrunedQuery.untouched(refusal, options)
    read = SparkPlan.read(spark, None, pinned_plan(spark, plan))
    pruned, record = _pruned(read, options, earlier, NO_TROUBLE, _with_same_scans)
    if pruned is None:
        return None, record
    found = without_blooms(spark, optimized_plan(pruned), record.tested_columns())
    return with_columns_of(spark, found, plan), record


def why_not_worth(spark: SparkSession, plan: Any, options: PruningOptions) -> Reason | None:
    """The reason why an optimised plan is not read; None if it has a join and a scan of a size that may pay."""
    least = least_bytes(spark, options)
    if is_candidate(spark, plan, least, None, top_k=options.top_k):
        return None
    detail = f"no scan below a join, or below a limit over an order, has as much as {size(least)} to read"
    return Reason(ReasonCode.NOT_WORTH, _QUERY, detail)


def record_of_run(query: QueryRun) -> PrunedQuery:
    """The record of a query whose planner has answered."""
    planner = query.planner
    remaining = ((at, scan) for at, scan in planner.scans.items() if at not in planner.materialized)
    scans = {at: scan for at, scan in remaining if isinstance(scan, PrunedScan)}
    reasons = tuple(planner.reasons)
    filters = FilterPlan(planner.graph, tuple(planner.levels), reasons, tops=tuple(planner.top_filters()))
    return PrunedQuery(
        filters,
        planner.facts.sizes,
        planner.current_sizes(),
        scans,
        reasons,
        planner.options,
        frozenset(planner.from_cache),
        frozenset(planner.on_driver),
        dict(planner.seconds),
        query.metadata.answer,
        planner.facts,
        may_change=query.earlier.may_change(planner),
    )
