"""`scanprune run`: rows, bytes and seconds of a query with pruning and, if asked for, without."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from rich import box
from rich.table import Table
from rich.text import Text

from connectors.measure.metrics import counts_bytes
from connectors.measure.status_store import finished_executions, last_execution, stage_input, stages_of
from connectors.spark.jvm import analyzed_plan, frame_of, optimized_plan
from pruning import prune, report
from pruning.reasons import size
from pruning.results.blocks import plain
from pruning.results.prune_report import PruneReport

_CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class Way:
    """The outcome of a query with or without pruning: its rows, and the bytes of all scans and builds.

    `bytes` are None if Spark does not count them. `seconds` are those of each run after the first, in which Java
    compiles its code.
    """

    rows: tuple[Row, ...]
    bytes: int | None
    seconds: tuple[float, ...] = ()

    def read(self) -> str:
        """Bytes read and seconds, if these are known."""
        seconds = f" in {statistics.median(self.seconds):.2f} s" if self.seconds else ""
        return size(self.bytes) + seconds


@dataclass(frozen=True, slots=True)
class Outcome:
    """A pruned query, its report, and the same query without pruning, None if not asked for."""

    columns: tuple[str, ...]
    pruned: Way
    report: PruneReport
    stock: Way | None

    @property
    def rows_equal(self) -> bool:
        """True if both ways gave the same rows in any order, or only one was run."""
        return self.stock is None or same_rows(self.pruned.rows, self.stock.rows)

    def shown(self, limit: int) -> Table:
        """The first `limit` rows as a table."""
        table = Table(box=box.SIMPLE_HEAD)
        for name in self.columns:
            table.add_column(Text(plain(name)), overflow="fold")
        for row in self.pruned.rows[:limit]:
            table.add_row(*(Text(plain(_word(value))) for value in row))
        return table

    def verdict(self) -> Text:
        """One line: the number of rows, and the bytes and seconds of each way."""
        count = f"{len(self.pruned.rows):,} row{'' if len(self.pruned.rows) == 1 else 's'}"
        read = f"{self.pruned.read()}{'' if self.stock is None else ' pruned'}, small sides included"
        if runs := len(self.pruned.seconds):
            read += f" ({f'median of {runs} runs' if runs > 1 else 'one run'} after a first one)"
        if self.stock is None:
            return Text(f"{count}; read {read}")
        if not self.rows_equal:
            other = f"{len(self.stock.rows):,} without pruning"
            why = (
                "LIMIT without a unique order may choose other rows in each run, so compare with ORDER BY a unique key"
            )
            return Text(f"Rows differ: {count} with pruning, {other}; {why}", style="bold red")
        return Text(f"Rows equal: {count}; read {self.stock.read()} unpruned, {read}", style="bold green")


def run_query(df: DataFrame, *, compare: bool, runs: int = 0) -> Outcome:
    """The outcome of a query with pruning; with `compare` the unpruned query runs first.

    `runs` more runs are timed; both ways alternate.
    """
    # Tables are opened before the first way runs, so that neither pays for it.
    optimized_plan(df)
    stock = _way(df.sparkSession, df.collect) if compare else None
    pruned, result = _pruned(df)
    found = Outcome(tuple(df.columns), pruned, report(result), stock)
    for _ in range(runs if found.rows_equal else 0):
        if found.stock is not None:
            found = replace(found, stock=_again(found.stock, df, _same_query))
        found = replace(found, pruned=_again(found.pruned, df, prune))
    return found


def _again(way: Way, df: DataFrame, choose: Callable[[DataFrame], DataFrame]) -> Way:
    # A DataFrame that has run keeps its plan and its shuffle files.
    fresh = frame_of(df.sparkSession, analyzed_plan(df))
    began = time.perf_counter()
    choose(fresh).collect()
    return replace(way, seconds=(*way.seconds, time.perf_counter() - began))


def _same_query(df: DataFrame) -> DataFrame:
    return df


def _pruned(df: DataFrame) -> tuple[Way, DataFrame]:
    context = df.sparkSession.sparkContext
    pruned: list[DataFrame] = []

    def both_steps() -> list[Row]:
        pruned.append(prune(df))
        # Reports name an action by the description of its jobs, or by a line of this file.
        context.setJobDescription("run")
        return pruned[0].collect()

    try:
        return _way(df.sparkSession, both_steps), pruned[0]
    finally:
        context.setJobDescription(None)  # type: ignore[arg-type]


def _way(spark: SparkSession, run: Callable[[], list[Row]]) -> Way:
    after = last_execution(spark)
    rows = tuple(run())
    return Way(rows, _bytes_read(spark, after))


def _bytes_read(spark: SparkSession, after: int) -> int | None:
    """Input bytes of all executions with an id above `after`."""
    if not counts_bytes(spark):
        return None
    stages = stages_of(finished_executions(spark, after))
    # A stage that never ran read nothing.
    return sum(read[0] for stage in stages if (read := stage_input(spark, stage)) is not None)


def same_rows(first: Sequence[Row], second: Sequence[Row]) -> bool:
    """True for equal rows in any order.

    Sums of doubles depend on the order of rows, so floats may differ in their last digits.

    >>> same_rows([Row(a=0.1 + 0.2, b=None), Row(a=1.0, b="x")], [Row(a=1.0, b="x"), Row(a=0.3, b=None)])
    True
    """
    ordered = [sorted(rows, key=_rank) for rows in (first, second)]
    return len(first) == len(second) and all(map(_same, *ordered))


def _rank(value: Any) -> str:
    """The sort key of a row or value; floats sort by their first digits."""
    if isinstance(value, tuple):
        return repr([_rank(each) for each in value])
    return f"{value:.5g}" if isinstance(value, float) else repr(value)


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, tuple) and isinstance(second, tuple):
        return len(first) == len(second) and all(map(_same, first, second))
    if isinstance(first, float) and isinstance(second, float):
        both_nan = math.isnan(first) and math.isnan(second)
        return both_nan or math.isclose(first, second, rel_tol=_CLOSE, abs_tol=_CLOSE)
    return bool(repr(first) == repr(second))


def _word(value: object) -> str:
    return "NULL" if value is None else str(value)
