"""One check for a pruned read: its rows, what it skipped, and why it skipped nothing."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from connectors.columns import quoted, split_name
from pruning import PruningOptions, explain, pruned_read, report
from pruning.explanation import TableExplanation
from pruning.reasons import ReasonCode
from tests.oracle.answers import (
    Keys,
    Rows,
    canonical_rows,
    collected,
    duckdb_semijoin,
    probe_of,
    spark_semijoin,
)
from tests.oracle.lakes import Lake

# Said of a row test; whether one pays is not what a case about skipping is about.
_OF_ROW_TESTS = {ReasonCode.UNSELECTIVE, ReasonCode.NO_JVM}


@dataclass(frozen=True, slots=True)
class Skips:
    """What a case must skip: `(kept, total)`, and the codes of all reasons given.

    `pages` says that the reader may skip more than the plan counts: a page, or by a dictionary.
    """

    files: tuple[int, int] | None = None
    row_groups: tuple[int, int] | None = None
    reasons: frozenset[ReasonCode] = frozenset()
    pages: bool = False


def skips(
    files: tuple[int, int] | None = None,
    row_groups: tuple[int, int] | None = None,
    *reasons: ReasonCode,
    pages: bool = False,
) -> Skips:
    """`Skips` as a table of cases writes it."""
    return Skips(files, row_groups, frozenset(reasons), pages)


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The rows of a table and those of its semijoin, on which Spark and DuckDB agreed."""

    table: Rows
    matching: Rows


_SEMANTIC_CONFS = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled")


@dataclass(slots=True, eq=False)
class Oracle:
    """Answers of Spark without pruning and of DuckDB, each computed once for tables that never change."""

    spark: SparkSession
    duck: duckdb.DuckDBPyConnection
    _tables: dict[Lake, pa.Table] = field(default_factory=dict)
    _answers: dict[Hashable, Answer] = field(default_factory=dict)

    def answer(
        self, lake: Lake, entries: Sequence[Keys], *, columns: Sequence[str] | None = None, version: int | None = None
    ) -> Answer:
        """What the read must return at this moment, or at `version`; the two engines must agree on it."""
        if not lake.shared_as:
            return self._computed(lake, collected(lake.whole(version)), entries, columns, version)
        if lake not in self._tables:
            self._tables[lake] = collected(lake.whole())
        meaning = tuple(self.spark.conf.get(name) for name in _SEMANTIC_CONFS)
        asked = (lake.shared_as, *(each.identity for each in entries), None if columns is None else tuple(columns))
        key = (asked, meaning)
        if key not in self._answers:
            self._answers[key] = self._computed(lake, self._tables[lake], entries, columns, version)
        return self._answers[key]

    def _computed(
        self, lake: Lake, table: pa.Table, entries: Sequence[Keys], columns: Sequence[str] | None, version: int | None
    ) -> Answer:
        whole = lake.whole(version)
        zone = self.spark.conf.get("spark.sql.session.timeZone")
        probes = {name: probe_of(table, whole.columns, name) for each in entries for name in each.columns}
        found = duckdb_semijoin(self.duck, probes, entries, zone)
        shown = (
            table
            if columns is None
            else pa.table(
                [probe_of(table, whole.columns, name) for name in columns], [f"c{at}" for at in range(len(columns))]
            )
        )
        by_duckdb = canonical_rows(shown.take(pa.array(found, pa.int64())))
        joined = spark_semijoin(whole, entries)
        if columns is not None:
            joined = joined.selectExpr(*(".".join(map(quoted, split_name(name))) for name in columns))
        by_spark = canonical_rows(collected(joined))
        assert by_spark == by_duckdb, f"the oracles differ: {_difference(by_spark, by_duckdb)}"
        return Answer(canonical_rows(shown), by_spark)

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
        """Reads pruned, with false positives allowed and without; all three claims must hold. The last plan."""
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
    found = canonical_rows(collected(df))
    lost, invented = answer.matching - found, found - answer.table
    assert not lost, f"lost {sum(lost.values())} of {sum(answer.matching.values())} rows: {_few(lost)}"
    assert not invented, f"invented {sum(invented.values())} rows: {_few(invented)}"
    if exact:
        assert found == answer.matching, f"false positives in an exact read: {_few(found - answer.matching)}"


def check_skips(df: DataFrame, expected: Skips) -> TableExplanation:
    """What was planned is what the case says, what the scan read is what was planned, and refusals have reasons."""
    (table,) = explain(df).tables
    if expected.files is not None:
        assert expected.files == (table.files_kept, table.files_total)
    if expected.row_groups is not None:
        assert expected.row_groups == (table.row_groups_kept, table.row_groups_total)
    codes = reason_codes(table)
    assert set(expected.reasons) == codes - (_OF_ROW_TESTS - expected.reasons)
    nothing_skipped = (table.files_kept, table.row_groups_kept) == (table.files_total, table.row_groups_total)
    assert codes or not nothing_skipped or not table.files_total, "nothing was skipped, and no reason says why"
    measured = report(df).measured
    assert measured is not None
    assert table.files_kept == measured.files_read
    if expected.pages:
        assert table.rows_kept is None or measured.rows_scanned <= table.rows_kept
    elif table.rows_kept is not None:
        assert table.rows_kept == measured.rows_scanned
    return table


def reason_codes(table: TableExplanation) -> set[ReasonCode]:
    """The codes of all reasons, of the table and of its filters."""
    return {each.code for each in (*table.reasons, *(reason for one in table.filters for reason in one.reasons))}


def row_tests(table: TableExplanation) -> tuple[str, ...]:
    """The row test of each filter."""
    return tuple(each.row_test for each in table.filters)


def _difference(first: Rows, second: Rows) -> str:
    return f"only the first has {_few(first - second)}, only the second {_few(second - first)}"


def _few(rows: Rows) -> str:
    shown = ", ".join(repr(row)[:200] for row in list(rows)[:5])
    return shown + (f" and {len(rows) - 5} more" if len(rows) > 5 else "")
