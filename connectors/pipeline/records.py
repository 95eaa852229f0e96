"""Records of pruned reads and queries, found by the DataFrame that was returned.

The DataFrame itself is left as Spark made it. A record lives as long as its DataFrame, so the record must not hold the
DataFrame: `attach` returns another object for the same DataFrame, which is returned to the user.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from connectors.base import Table
from connectors.measure.metrics import latest
from connectors.measure.status_store import ScanIdentity, identity_of
from connectors.scan.decision import ScanDecision, StaticPruning
from connectors.spark.jvm import has_jvm, same_frame
from connectors.spark.versions import version_refusal
from pruning.options import PruningOptions
from pruning.query.plan_statistics import Cardinality
from pruning.reasons import Reason
from pruning.results.explanation import Explanation
from pruning.results.prune_report import Measured, PruneReport, TableReport
from pruning.results.table_explanation import RemainingContainers, TableStatistics, explain_table, restrict_to
from pruning.scan.scan_plan import ScanPlan
from pruning.scan.statistics import UNKNOWN, Containers
from pruning.values.ranges import BoolArray

logger = logging.getLogger("scanprune")


class Record(Protocol):
    """The plan of a pruned read or query, from which `explain()` and `report()` answer."""

    def explanation(self) -> Any:
        """The plan, from metadata alone."""

    def report(self) -> Any:
        """The plan beside the measurements of the latest action."""


def log_verdict(record: Record) -> None:
    """Logs the first line of the explanation, if the logger `scanprune` is at level INFO."""
    if logger.isEnabledFor(logging.INFO):
        logger.info("%s", record.explanation().verdict)


_RECORDS: WeakKeyDictionary[DataFrame, Record] = WeakKeyDictionary()


def attach(df: DataFrame, record: Record) -> DataFrame:
    """A new DataFrame over the plan of `df`, with which `record_of` finds `record`."""
    result = same_frame(df)
    _RECORDS[result] = record
    return result


def record_of(df: DataFrame) -> Record | None:
    """The record of a DataFrame that `attach` returned; None for any other."""
    return _RECORDS.get(df)


@dataclass(slots=True)
class PrunedScan:
    """The record of one scan: the pinned table, the decision, and the scan's identity in the session.

    `static` gives the containers that the query's own conditions keep.
    """

    spark: SparkSession
    table: Table
    decided: ScanDecision
    needed: Sequence[str] | None
    options: PruningOptions
    identity: ScanIdentity | None
    static: Callable[[], StaticPruning] | None = None
    _explained: Explanation | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @staticmethod
    def of(
        df: DataFrame, table: Table, decided: ScanDecision, needed: Sequence[str] | None, options: PruningOptions
    ) -> PrunedScan:
        """The record of `df`; executions of the session up to here are not its actions."""
        spark = df.sparkSession
        reads_nothing = not decided.plan.files.kept_count
        is_measured = has_jvm(spark) and version_refusal(spark) is None
        identity = identity_of(df, reads_nothing=reads_nothing) if is_measured else None
        return PrunedScan(spark, table, decided, needed, options, identity)

    @property
    def plan(self) -> ScanPlan:
        """The containers kept, the pushed predicates and the row filters."""
        return self.decided.plan

    @property
    def planned_bytes(self) -> int:
        """The bytes that the scan reads: needed columns of row groups, or whole files if no footer was read."""
        containers, kept = self._read()
        return int(containers.sizes[kept].sum())

    @property
    def expected(self) -> Cardinality | None:
        """The rows that the scan reads, and the share that passes; None if some container has no row count."""
        containers, kept = self._read()
        rows = containers.rows[kept]
        if (rows == UNKNOWN).any():
            return None
        limits = self.options.limits
        return Cardinality(int(rows.sum()), prod(each.passing_ratio(limits) for each in self.decided.plan.decisions))

    def _read(self) -> tuple[Containers, BoolArray]:
        """The row groups, or the files if no footer was read, and an array: True where they are kept."""
        plan, groups = self.decided.plan, self.decided.row_groups
        if groups is None or plan.row_groups is None or groups.parents is None:
            return self.decided.files, plan.files.kept
        return groups, plan.row_groups.kept & plan.files.kept[groups.parents]

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reasons for every filter that was left out, weakened or refused."""
        plan = self.decided.plan
        own = (reason for decision in plan.decisions for reason in decision.reasons)
        return (*self.decided.reasons, *self.table.problems, *plan.reasons, *own)

    def explanation(self) -> Explanation:
        """The plan; if there are few enough files, reads footers of skipped files, too, for the totals."""
        with self._lock:
            if self._explained is None:
                facts = TableStatistics(
                    self.table.name,
                    self.table.connector.name,
                    self.table.version,
                    self.decided.files,
                    self.decided.row_groups,
                    self._all_row_groups(),
                )
                facts, plan = self._beside(facts)
                reasons = (*self.decided.reasons, *self.table.problems)
                table = explain_table(facts, plan, reasons, self.options.limits.max_ranges)
                self._explained = Explanation.of_read(table)
            return self._explained

    def _beside(self, facts: TableStatistics) -> tuple[TableStatistics, ScanPlan]:
        """The facts and the plan, restricted to the containers that the query's own conditions keep, if known."""
        plan = self.decided.plan
        if self.static is None or not facts.files.is_listed:
            return facts, plan
        static = self.static()
        every, chosen = (
            None if groups is None or groups.parents is None else np.unique(groups.parents)
            for groups in (facts.all_row_groups, facts.row_groups)
        )
        remaining = RemainingContainers(
            static.files,
            None if every is None else static.row_groups(self.table, every),
            None if chosen is None else static.row_groups(self.table, chosen),
        )
        return restrict_to(facts, plan, remaining)

    def report(self) -> PruneReport:
        """The plan beside what the latest action measured."""
        measured, actions = self._measured()
        (planned,) = self.explanation().tables
        return PruneReport((TableReport(planned, measured, actions, unmeasured=self._unmeasured),))

    def _measured(self) -> tuple[Measured | None, int | None]:
        if self.identity is None:
            return None, None
        return latest(self.spark, self.identity, self.options.limits)

    @property
    def _unmeasured(self) -> str:
        """The reason why no action can be measured; empty if it can."""
        if self.identity is not None:
            return ""
        where = "with this version of Spark" if has_jvm(self.spark) else "through Spark Connect"
        return f"measurements are not available {where}"

    def _all_row_groups(self) -> Containers | None:
        count = len(self.decided.files)
        if count > self.options.limits.max_footers:
            return None
        return self.table.row_groups(np.arange(count), self.decided.group_columns, self.needed)
