"""The scans of one query on Spark, each planned by all keys known so far."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from connectors.keys.inputs import Collected, KeyInput, collect_all
from connectors.pipeline import table_scan
from connectors.pipeline.copied_conditions import with_copies
from connectors.pipeline.plan_metadata import PlanMetadata
from connectors.pipeline.records import PrunedScan
from connectors.pipeline.table_scan import Read
from connectors.registry import PlanTable
from connectors.scan.decision import StaticPruning, plan_column
from connectors.spark.jvm import error_kind
from pruning.keys.summary import KeySummary
from pruning.options import PruningOptions
from pruning.query.equal_columns import EqualColumns
from pruning.query.key_origins import conditions_of
from pruning.query.plan import Expression, Node, Relation
from pruning.query.planner_requests import PruneScan
from pruning.reasons import Reason, ReasonCode
from pruning.scan.disjunction import any_of
from pruning.scan.key_filter import RowWorth
from pruning.scan.pushdown import PushdownCapabilities

logger = logging.getLogger("scanprune")


@dataclass(slots=True)
class QueryScans:
    """Plans scans; the JVM plan of a scan that its filters change is added to `replacements`, by `Relation.id`.

    With `by_file` a scan is given the list of the files that keys keep, whatever its format, and nothing is pushed.
    """

    metadata: PlanMetadata
    options: PruningOptions
    equal: EqualColumns
    by_file: bool = False

    def planned(self, request: PruneScan, replacements: dict[int, Any]) -> PrunedScan | Reason:
        """The scan with all filters of the request; it replaces the query's scan if its plan acts."""
        found = self.metadata.plan_table(request.relation)
        if isinstance(found, Reason):
            return found
        if self.by_file and request.whole_for:
            # A list of files may hold a part of the rows of a key.
            return Reason(ReasonCode.MAY_RAISE, found.table.name, request.whole_for)
        collected, spark = self._collected(request, found), self.metadata.plan.spark
        read = Read(self.metadata.needed(request.relation))
        try:
            restricted = partial(self._capabilities, request, found)
            df, scan = table_scan.pruned_scan(
                spark,
                found.table,
                collected,
                read,
                self.options,
                restricted=restricted,
                has_conditions=self._has_conditions(request),
            )
        except Exception as error:
            # Only this scan stays unpruned: the other scans keep their filters.
            logger.debug("Pruning %s failed", found.table.name, exc_info=True)
            return Reason(ReasonCode.STATISTICS_FAILED, found.table.name, error_kind(error))
        # The record of the scan outlives the plan of the query.
        conditions = conditions_of(self.metadata.plan.root, request.relation)
        scan.static = partial(_static, spark, found, request.relation, conditions)
        if scan.plan.acts:
            if request.keeps_scan and not scan.plan.files.kept_count:
                df = found.table.read(scan.plan.files.kept)
            replacements[request.relation.id] = found.plan_of(df)
        return scan

    def _capabilities(self, request: PruneScan, found: PlanTable, own: PushdownCapabilities) -> PushdownCapabilities:
        if self.by_file:
            # The command is given the list, whatever the table accepts; its storage compares no ranges.
            return replace(own, accepts_file_list=True)
        # Ranges drop all rows of a key or none, as each row is tested by them; a list of files drops some of them.
        own = replace(own, accepts_file_list=own.accepts_file_list and not request.whole_for)
        return with_copies(own, self._copies(request, found), self.metadata)

    def _copies(self, request: PruneScan, found: PlanTable) -> Mapping[str, Sequence[tuple[Node, int]]]:
        """The leaves to which Spark copies conditions of the filtered columns, by the names of these."""
        relation = request.relation
        return {
            plan_column(found.table, relation, at).name: self.equal.copies(relation, at) for at in _filtered(request)
        }

    def _has_conditions(self, request: PruneScan) -> bool:
        """True if conditions of the query itself may skip files; no key is NULL, so that none is skips none."""
        waiting, filtered = [*conditions_of(self.metadata.plan.root, request.relation)], _filtered(request)
        while waiting:
            each = waiting.pop()
            if each.kind == "And":
                waiting += each.children
            elif each.kind != "IsNotNull" or not each.columns <= filtered:
                return True
        return False

    def _collected(self, request: PruneScan, found: PlanTable) -> list[Collected]:
        by_columns: Mapping[tuple[int, ...], Collection[KeySummary]] = {
            **{(column,): summaries for column, summaries in request.keys.items()},
            **request.tuples,
        }
        keys, worth = list[KeyInput](), list[RowWorth | None]()
        for columns, summaries in by_columns.items():
            places = tuple(plan_column(found.table, request.relation, each) for each in columns)
            keys += [KeyInput(places, summary) for summary in summaries]
            worth += [request.worth.get(columns)] * len(summaries)
        first_rows = [
            Collected(KeyInput((plan_column(found.table, request.relation, column),), None), filter_, None, None)
            for column, filter_ in request.first_rows
        ]
        disjunctions = [self._disjunction(each, request, found) for each in request.disjunctions]
        collected = collect_all(self.metadata.plan.spark, keys, self.options, exact=False)
        known = [
            replace(each, filter=replace(each.filter, worth=told)) for each, told in zip(collected, worth, strict=True)
        ]
        return [*known, *first_rows, *disjunctions]

    def _disjunction(
        self, operands: Sequence[tuple[int, KeySummary]], request: PruneScan, found: PlanTable
    ) -> Collected:
        """The filter that a row passes if it has a key of one of several columns."""
        keys = [KeyInput((plan_column(found.table, request.relation, at),), summary) for at, summary in operands]
        collected = collect_all(self.metadata.plan.spark, keys, self.options, exact=False)
        possible = [each for each in collected if not each.filter.is_empty]
        if len(possible) <= 1:
            return (*possible, *collected)[0]
        columns = {column.name: column for each in possible for column in each.columns}
        return Collected(
            KeyInput(tuple(columns.values()), None), any_of([each.filter for each in possible]), None, None
        )


def _static(
    spark: SparkSession, found: PlanTable, relation: Relation, conditions: tuple[Expression, ...]
) -> StaticPruning:
    return StaticPruning.of(found.table, relation, conditions, found.files_left(spark))


def _filtered(request: PruneScan) -> set[int]:
    """The ids of the columns that a request filters."""
    in_tuples = (at for several in request.tuples for at in several)
    in_disjunctions = (at for several in request.disjunctions for at, _ in several)
    return {*request.keys, *in_tuples, *in_disjunctions, *dict(request.first_rows)}
