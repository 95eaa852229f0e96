"""Pruning of a command of a table format, such as a MERGE: files that it need not read are taken out of its plan."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from connectors.base import CommandScan
from connectors.jobs.runner import Build
from connectors.pipeline.earlier_queries import NO_QUERIES, EarlierQueries
from connectors.pipeline.plan_metadata import PlanMetadata
from connectors.pipeline.pruned_query import PrunedQuery, least_bytes, record_of_run
from connectors.pipeline.query_run import QueryRun
from connectors.pipeline.records import PrunedScan
from connectors.pipeline.table_scan import NO_TROUBLE, Read, pruned_scan, warn
from connectors.registry import command_scan
from connectors.scan.decision import StaticPruning, plan_column
from connectors.spark.plan_reader import SparkPlan
from pruning.options import BroadcastStrategy, PruningOptions
from pruning.query.plan import Expression, PlanNames, Relation, relations_of
from pruning.query.sure_rows import first_sure, passing_domains
from pruning.reasons import Reason, ReasonCode, size, why_nothing
from pruning.results.explanation import Explanation
from pruning.results.prune_report import PruneReport
from pruning.results.verdict import verdict_of_scan

_COMMAND = "a command"

logger = logging.getLogger("scanprune")


@dataclass(slots=True)
class WholeCommand:
    """The record of a command that has to read every file that it chose; its report reads their metadata."""

    spark: SparkSession
    plan: Any
    reason: Reason
    options: PruningOptions
    execution: int | None = None
    _scan: tuple[str, PrunedScan] | Reason | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def cancelled(self) -> None:
        """None: it has no build that somebody could cancel."""

    def explanation(self) -> Explanation:
        """The reason why no file is left out."""
        return Explanation.nothing(self.reason, ran_builds=True)

    def measure_only(self, execution: int) -> None:
        """Makes this execution the one that the report measures."""
        self.execution = execution

    def report(self) -> PruneReport:
        """The files that the command chose beside what it read of them."""
        nothing = why_nothing((self.reason,))
        try:
            with self._lock:
                self._scan = self._scan or self._read()
            if isinstance(self._scan, Reason):
                return PruneReport((), nothing)
            name, scan = self._scan
            tables = [replace(each, planned=replace(each.planned, table=name)) for each in scan.report().tables]
        except Exception:
            logger.debug("Reading the files of a command failed", exc_info=True)
            tables = []
        return PruneReport(tuple(tables), nothing)

    def _read(self) -> tuple[str, PrunedScan] | Reason:
        """The name and the scan of all files of the target; a `Reason` if they cannot be read."""
        read, execution = SparkPlan.read(self.spark, None, self.plan), self.execution
        (target,) = relations_of(read.root)
        found = PlanMetadata(read, self.options.limits).plan_table(target)
        if isinstance(found, Reason) or execution is None:
            return found if isinstance(found, Reason) else self.reason
        _, scan = pruned_scan(self.spark, found.table, [], Read(), self.options)
        scan.static = partial(StaticPruning.of, found.table, target, (), found.files_left(self.spark))
        if scan.identity is not None:
            scan.identity = replace(scan.identity, after_execution=execution - 1, execution=execution)
        return PlanNames(read.root).scans[target.id], scan


def prune_command(
    spark: SparkSession, plan: Any, options: PruningOptions, earlier: EarlierQueries = NO_QUERIES
) -> tuple[Any, PrunedQuery | WholeCommand]:
    """The optimised plan of a command over fewer files, None where it stays as it is, and its record.

    The command joins no rows of a build and takes no predicate, because it counts the rows that it sees.
    """
    if not options.enabled:
        return None, PrunedQuery.untouched(Reason(ReasonCode.SWITCHED_OFF, _COMMAND), options)
    found = command_scan(spark, plan)
    if found is None or isinstance(found, Reason):
        return None, PrunedQuery.untouched(found or Reason(ReasonCode.COMMAND, _COMMAND), options)
    if found.refusal is not None:
        return None, WholeCommand(spark, found.plan, found.refusal, options)
    if not found.nbytes:
        return None, PrunedQuery.untouched(Reason(ReasonCode.NOT_WORTH, _COMMAND, "its target has no files"), options)
    least = least_bytes(spark, options)
    if found.nbytes < least:
        reason = Reason(ReasonCode.NOT_WORTH, _COMMAND, f"its target has less than {size(least)}")
        return None, PrunedQuery.untouched(reason, options)
    options = replace(options, broadcast_strategy=BroadcastStrategy.NONE.name, top_k=False)
    read = SparkPlan.read(spark, None, found.plan)
    target = next(each for each in relations_of(read.root) if found.is_scan(read.node(each)))
    with QueryRun.of(read, options, earlier, probed={target.id}, is_command=True) as query:
        query.run()
        scan = query.planner.scans.get(target.id)
        restricted = _restricted(found, query, target, scan) if isinstance(scan, PrunedScan) else None
        if isinstance(restricted, Reason):
            del query.planner.scans[target.id]
            query.planner.reasons[restricted] = None
        record = record_of_run(query)
        warn("a command", record.reasons, besides=NO_TROUBLE)
        return (None if isinstance(restricted, Reason) else restricted), record


def _restricted(found: CommandScan, query: QueryRun, target: Relation, scan: PrunedScan) -> Any | Reason:
    """The plan of the command over the files that a scan keeps; the record of the scan then tells of these."""
    kept = scan.plan.files.kept
    if kept.all():
        return Reason(ReasonCode.UNCLUSTERED, target.table)
    sure = _sure_file(query, target, scan) if found.needs_a_row else None
    if found.needs_a_row and sure is None and (refusal := _has_row(found, query, target, scan)) is not None:
        return refusal
    decided = scan.decided
    if sure is not None and not kept[sure]:
        kept = kept.copy()
        kept[sure] = True
        # The row groups of a file that stays for its rows alone were not read.
        decided = replace(decided, row_groups=None, plan=replace(decided.plan, row_groups=None))
    scan.decided = replace(decided, plan=decided.plan.reading_whole(kept))
    if scan.identity is not None:
        scan.identity = replace(scan.identity, reads_nothing=not kept.any())
    verdict = verdict_of_scan(scan.decided.plan, scan.decided.files, None, has_conditions=False)
    return found.over(scan.table, kept, f"scanprune: {verdict or 'reads no file'}")


def _has_row(found: CommandScan, query: QueryRun, target: Relation, scan: PrunedScan) -> Reason | None:
    """None if a job finds a row in the kept files that passes the filters of the scan."""
    build = Build(f"a row of {target.table}", partial(found.has_row, scan.table, scan.plan.files.kept))
    (is_there,) = query.builds.scheduler.run_all([build])
    if isinstance(is_there, Reason) or is_there:
        return is_there if isinstance(is_there, Reason) else None
    return Reason(ReasonCode.COMMAND, target.table, "no row of the files that hold keys passes its filters")


def _sure_file(query: QueryRun, target: Relation, scan: PrunedScan) -> int | None:
    """A file of which metadata proves a row that passes the filters of the scan: a kept one if there is one.

    None if nothing is proved.
    """
    wanted = passing_domains(query.plan.root, target)
    if isinstance(wanted, Expression):
        return None
    columns = {at: plan_column(scan.table, target, at) for at in wanted}
    files = scan.table.files([*columns.values()])
    found = query.metadata.plan_table(target)
    left = None if isinstance(found, Reason) else found.files_left(query.plan.spark)
    if left is None:
        return None
    order = np.lexsort((files.sizes, ~scan.plan.files.kept))
    return first_sure(files, {columns[at].name: each for at, each in wanted.items()}, order[left[order]].tolist())
