"""The check of a pruned read: its rows, its skipped files and row groups, and the reasons where nothing is skipped."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pruning import PruningOptions, explain, pruned_read, report
from pruning.reasons import ReasonCode
from pruning.results.table_explanation import TableExplanation
from sample_data.rows import Rows, arrow_rows, few
from tests.oracle.answers import (
    Keys,
    Rules,
    collected,
    duckdb_semijoin,
    ids_of,
    probe_of,
    rows_of,
    spark_semijoin,
    spark_semijoins,
)
from tests.oracle.lakes import Lake

# Reasons of row filters, which cases about skipping ignore.
_OF_ROW_TESTS = {ReasonCode.UNSELECTIVE, ReasonCode.NO_JVM}


@dataclass(frozen=True, slots=True)
class Skips:
    """Expected skips as `(kept, total)`, and the codes of all reasons; None is not checked.

    `pages`: the reader may skip more than the plan counts, by pages or dictionaries.
    """

    files: tuple[int, int] | None = None
    row_groups: tuple[int, int] | None = None
    reasons: frozenset[ReasonCode] | None = None
    pages: bool = False


def skips(
    files: tuple[int, int] | None = None,
    row_groups: tuple[int, int] | None = None,
    *reasons: ReasonCode,
    pages: bool = False,
) -> Skips:
    """`Skips` in the short form of tables of cases."""
    return Skips(files, row_groups, frozenset(reasons), pages)


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The rows of a table and those of its semijoin, on which Spark and DuckDB agree."""

    table: Rows
    matching: Rows


_ZONE, _ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"


@dataclass(slots=True, eq=False)
class Oracle:
    """Results of Spark without pruning and of DuckDB, computed once for tables that never change.

    Tables have a column `id`; rows with equal ids are equal.
    """

    spark: SparkSession
    duck: duckdb.DuckDBPyConnection
    _tables: dict[Lake, pa.Table] = field(default_factory=dict)
    _answers: dict[Hashable, AbstractSet[int]] = field(default_factory=dict)

    def table(self, lake: Lake, version: int | None = None) -> pa.Table:
        """All rows, read by Spark without pruning, under the table's own column names."""
        if lake.shared_as and lake in self._tables:
            return self._tables[lake]
        df = lake.whole(version)
        table = collected(df).rename_columns(df.columns)
        if lake.shared_as:
            self._tables[lake] = table
        return table

    def answer(
        self, lake: Lake, entries: Sequence[Keys], *, columns: Sequence[str] | None = None, version: int | None = None
    ) -> Answer:
        """The expected rows of the read now, or at `version`; the two engines must agree on them."""
        table = self.table(lake, version)
        ids = table.column("id").to_pylist()
        matching = set(ids)
        for each in entries:
            question = self._question(lake, each)
            if not lake.shared_as or question not in self._answers:
                by_spark = ids_of(spark_semijoin(lake.whole(version), each))
                self._answers[question] = self._agreed(table, each, by_spark)
            matching &= self._answers[question]
        shown = table
        if columns is not None:
            shown = pa.table([probe_of(table, name) for name in columns], [f"c{at}" for at in range(len(columns))])
        rows = arrow_rows(shown)
        return Answer(Rows(rows), Rows(row for row, id_ in zip(rows, ids, strict=True) if id_ in matching))

    def prepare(self, lake: Lake, sets: Sequence[Keys]) -> None:
        """Computes the results for many key sets of the same columns and types by one query."""
        table = self.table(lake)
        missing = {self._question(lake, each): each for each in sets}
        missing = {question: each for question, each in missing.items() if question not in self._answers}
        answers = spark_semijoins(lake.whole(), list(missing.values()))
        for (question, each), by_spark in zip(missing.items(), answers, strict=True):
            self._answers[question] = self._agreed(table, each, by_spark)

    def _question(self, lake: Lake, entry: Keys) -> Hashable:
        return lake.shared_as, entry.identity, tuple(self.spark.conf.get(name) for name in (_ZONE, _ANSI))

    def _agreed(self, table: pa.Table, entry: Keys, by_spark: AbstractSet[int]) -> AbstractSet[int]:
        probes = [probe_of(table, name) for name in entry.columns]
        rules = Rules(self._offset, self.spark.conf.get(_ANSI) == "true")
        positions = duckdb_semijoin(self.duck, probes, entry, rules)
        by_duckdb = set(table.column("id").take(pa.array(positions, pa.int64())).to_pylist())
        assert by_spark == by_duckdb, f"the oracles differ on {entry!r}"
        return by_spark

    def _offset(self, local: datetime) -> timedelta:
        """The distance of the session's time zone from UTC at a wall-clock time, by the JVM's rules, which may
        differ from Python's.
        """
        time = self.spark._jvm.java.time
        moment = time.LocalDateTime.of(local.year, local.month, local.day, local.hour, local.minute, local.second)
        rules = time.ZoneId.of(self.spark.conf.get(_ZONE)).getRules()
        return timedelta(seconds=rules.getOffset(moment).getTotalSeconds())

    def check(
        self,
        lake: Lake,
        *entries: Keys,
        expected: Skips | None = None,
        exact: Iterable[bool] = (False, True),
        options: PruningOptions | None = None,
        columns: Sequence[str] | None = None,
        version: int | None = None,
        **more: Any,
    ) -> TableExplanation:
        """Checks rows, skips and reasons of pruned reads, inexact and exact; returns the last plan."""
        answer = self.answer(lake, entries, columns=columns, version=version)
        plan: TableExplanation | None = None
        for each in exact:
            keys = dict(entry.entry for entry in entries)
            df = pruned_read(
                self.spark,
                lake.source,
                keys=keys,
                exact=each,
                options=options,
                columns=columns,
                version=version,
                **more,
            )
            check_rows(df, answer, exact=each)
            plan = check_skips(df, expected or Skips())
        assert plan is not None
        return plan


def check_rows(df: DataFrame, answer: Answer, *, exact: bool) -> None:
    """Every matching row is there as often as in the table, no row is invented; with `exact` nothing else is there."""
    found = rows_of(df)
    lost, invented = answer.matching - found, found - answer.table
    assert not lost, f"lost {len(lost)} of {len(answer.matching)} rows: {few(lost)}"
    assert not invented, f"invented {len(invented)} rows: {few(invented)}"
    if exact:
        assert found == answer.matching, f"false positives in an exact read: {few(found - answer.matching)}"


def check_skips(df: DataFrame, expected: Skips) -> TableExplanation:
    """Planned skips are as expected, the scan reads what is planned, and refusals have reasons."""
    (table,) = explain(df).tables
    if expected.files is not None:
        assert expected.files == (table.files_kept, table.files_total)
    if expected.row_groups is not None:
        assert expected.row_groups == (table.row_groups_kept, table.row_groups_total)
    codes = reason_codes(table)
    if expected.reasons is not None:
        assert set(expected.reasons) == codes - (_OF_ROW_TESTS - expected.reasons)
    nothing_skipped = (table.files_kept, table.row_groups_kept) == (table.files_total, table.row_groups_total)
    assert codes or not nothing_skipped or not table.files_total, "nothing was skipped, and no reason says why"
    measured = report(df).measured
    if table.files_total is None:
        # An unlisted table has no counts to compare.
        return table
    assert measured is not None
    assert table.files_kept == measured.files_read
    if expected.pages:
        assert table.rows_kept is None or measured.rows_scanned <= table.rows_kept
    elif table.rows_kept is not None:
        assert table.rows_kept == measured.rows_scanned
    return table


def reason_codes(table: TableExplanation) -> set[ReasonCode]:
    """The codes of all reasons of the table and of its filters."""
    return {each.code for each in (*table.reasons, *(reason for one in table.filters for reason in one.reasons))}


def row_tests(table: TableExplanation) -> tuple[str, ...]:
    """The row filter of each key filter."""
    return tuple(each.row_test for each in table.filters)
