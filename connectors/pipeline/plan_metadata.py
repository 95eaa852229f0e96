"""`PlanMetadata`: the tables of a plan, and answers from their metadata, before any row is read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from connectors.base import Table
from connectors.columns import Column
from connectors.connector_names import file_formats, snapshot_calls
from connectors.jobs.runner import Build, run_all
from connectors.registry import PlanTable, scan_of, table_of
from connectors.scan.capabilities import lenient_settings, skipping_switched_off
from connectors.scan.decision import keys_from_statistics, plan_column
from connectors.spark.jvm import cancelled_job, error_kind
from connectors.spark.plan_facts import PlanFacts, plan_facts, row_shape
from connectors.spark.plan_reader import SparkPlan
from pruning.limits import Limits
from pruning.query.key_origins import origins_of
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Relation, relations_of
from pruning.query.planner_requests import BoundKeys
from pruning.query.requests import (
    DescribeFiles,
    DescribeRowGroups,
    DescribeRows,
    EstimateBytes,
    Request,
    ScanContainers,
    TrustStatistics,
)
from pruning.reasons import Reason, ReasonCode
from pruning.scan.statistics import Containers

logger = logging.getLogger("scanprune")


@dataclass(slots=True)
class PlanMetadata:
    """The tables of one plan, each opened once however many scans read it.

    `asked` gives the columns of scans whose statistics may be needed, by `Relation.id`: one job fetches all of them for
    a table version that no query of the session has read.
    """

    plan: SparkPlan
    limits: Limits
    asked: Callable[[], Mapping[int, Collection[int]]] = dict
    _asked: Mapping[int, Collection[int]] | None = None
    _facts: PlanFacts | None = None
    _tables: dict[int, Table | Reason] = field(default_factory=dict)
    _scans: dict[int, PlanTable | Reason] = field(default_factory=dict)
    _fetches: list[Build[object]] = field(default_factory=list)
    _has_fetched: bool = False

    def facts(self) -> PlanFacts:
        """The facts about the plan, read from the JVM once."""
        if self._facts is None:
            spark = self.plan.spark
            self._facts = plan_facts(self.plan, file_formats(spark), snapshot_calls(spark)).without(self.plan.streams)
        return self._facts

    def table(self, relation: Relation) -> Table | Reason:
        """The table that a scan reads; scans of the same table version and files share one object."""
        first = self.facts().first_leaf[relation.id]
        if first not in self._tables:
            self._tables[first] = self._opened(relation, first)
        return self._tables[first]

    def _opened(self, relation: Relation, first: int) -> Table | Reason:
        table = table_of(self.plan.spark, self.plan.node(relation), self.limits)
        if not isinstance(table, Reason) and (fetch := table.expect(self._asked_of(table, first))) is not None:
            self._fetches.append(Build(f"statistics of {table.name}", fetch))
        return table

    def _asked_of(self, table: Table, first: int) -> Iterator[Column]:
        """The columns of a table whose statistics may be needed; a generator, so computed only if the table uses it."""
        for each in relations_of(self.plan.root):
            if self.facts().first_leaf[each.id] == first:
                yield from (plan_column(table, each, column) for column in self._columns().get(each.id, ()))

    def _columns(self) -> Mapping[int, Collection[int]]:
        if self._asked is None:
            self._asked = self.asked()
        return self._asked

    def _fetch_together(self) -> Reason | None:
        """Runs the jobs that tables need for their statistics at the same time; one that fails runs again later.

        The reason where somebody has cancelled one.
        """
        self._has_fetched = True
        files = self.facts().leaves.files
        for each in relations_of(self.plan.root):
            if each.id in files and self._columns().get(each.id):
                self.table(each)
        if len(self._fetches) > 1:
            timeout = self.limits.all_builds_timeout_seconds
            found = run_all(self.plan.spark, self._fetches, timeout=timeout)
            cancelled = (each for each in found if isinstance(each, Reason) and each.code is ReasonCode.BUILD_CANCELLED)
            return next(cancelled, None)
        return None

    def plan_table(self, relation: Relation) -> PlanTable | Reason:
        """The table of this scan, to replace the scan in the plan."""
        if relation.id not in self._scans:
            table = self.table(relation)
            if isinstance(table, Reason):
                return table
            self._scans[relation.id] = scan_of(self.plan.spark, self.plan.node(relation), table)
        return self._scans[relation.id]

    def needed(self, relation: Relation) -> tuple[str, ...]:
        """The top-level columns of a scan that the query uses."""
        used = self.plan.used
        return tuple(name for name, column in zip(relation.names, relation.output, strict=False) if column in used)

    def answer(self, request: Request[Any]) -> Any:
        """The answer to a request about metadata; a `Reason` where the statistics of a table cannot be read."""
        try:
            return self._answer(request)
        except Exception as error:
            if request.failure_subject is None:
                raise
            logger.debug("Reading statistics failed", exc_info=True)
            if (cancelled := cancelled_job(error)) is not None:
                return Reason(ReasonCode.BUILD_CANCELLED, request.failure_subject, cancelled)
            return Reason(ReasonCode.STATISTICS_FAILED, request.failure_subject, error_kind(error))

    def _answer(self, request: Request[Any]) -> Any:
        match request:
            case DescribeFiles(relation, column):
                if not self._has_fetched and (cancelled := self._fetch_together()) is not None:
                    return cancelled
                return self._described(relation, column, lambda table, columns: table.files(columns))
            case DescribeRowGroups(relation, files, column):
                needed = self.needed(relation) if column is None else None
                return self._described(
                    relation,
                    column,
                    lambda table, columns: table.row_groups(files, columns, needed or [it.path[0] for it in columns]),
                )
            case BoundKeys(build_side, kept):
                origins = () if build_side.is_widened_bound else origins_of(build_side.node, build_side.key)
                return keys_from_statistics(origins, self.table, kept, str(build_side.key), self.limits)
            case TrustStatistics(probe):
                return self._trusts_statistics(probe)
            case EstimateBytes(nodes):
                return self.plan.nbytes_of(nodes)
            case DescribeRows(node):
                return row_shape(self.plan, node)
            case _:
                msg = f"No answer to {type(request).__name__}: expected a request of `pruning.query`"
                raise TypeError(msg)

    def _described(
        self, relation: Relation, column: int | None, of: Callable[[Table, list[Column]], Containers]
    ) -> ScanContainers | Reason:
        table = self.table(relation)
        if isinstance(table, Reason):
            return table
        if column is None:
            return ScanContainers(of(table, []))
        found = plan_column(table, relation, column)
        if found.type is None:
            return found.refusal or Reason(ReasonCode.UNSUPPORTED_TYPE, found.name)
        return ScanContainers(of(table, [found]), found.name, found.type, found.refusal)

    def _trusts_statistics(self, probe: ProbeColumn) -> bool:
        table = self.table(probe.relation)
        if isinstance(table, Reason):
            return False
        column = plan_column(table, probe.relation, probe.column)
        if skipping_switched_off(self.plan.spark, table, [column]) is not None:
            return False
        return not lenient_settings(table.read(None))
