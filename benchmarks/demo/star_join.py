"""A star join over one fact table, run with and without pruning and measured by the same counters."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from connectors.measure import metrics as measured
from connectors.measure import status_store as scan_identity
from pruning import explain, pruned_read, report
from pruning.results.prune_report import Measured
from pruning.results.table_explanation import TableExplanation
from sample_data.rows import Rows


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension of a star: its rows that satisfy `where` join the fact table's `probe` columns by `key`.

    - `source`: the FROM clause, with table names in braces; empty for plain `values` of the key
    - `where`: empty for a dimension that is joined only for its columns, and has no keys to filter by
    """

    probe: tuple[str, ...]
    key: tuple[str, ...]
    source: str = ""
    where: str = ""
    values: tuple[int, ...] = ()

    @property
    def filters(self) -> bool:
        """True if the keys are a subset of the table's keys."""
        return bool(self.where or self.values)

    @property
    def rows_sql(self) -> str:
        """The SQL query of the dimension's rows that take part in the join."""
        if self.values:
            listed = ", ".join(f"({each})" for each in self.values)
            return f"SELECT * FROM (VALUES {listed}) AS v({self.key[0]})"
        return f"SELECT * FROM {self.source} WHERE {self.where or 'true'}"

    @property
    def keys_sql(self) -> str:
        """The SQL query of the dimension's keys."""
        return f"SELECT {', '.join(self.key)} FROM ({self.rows_sql}) AS d"


@dataclass(frozen=True, slots=True)
class StarJoin:
    """One query in SQL that both Spark and DuckDB parse, with table names in braces.

    - `shows`: the point that the numbers of this join illustrate
    - `exact`: dimensions only filter, and the pruned read returns the semijoin itself, so that no join is left
    """

    name: str
    shows: str
    fact: str
    group: str
    aggregates: str
    dimensions: tuple[Dimension, ...]
    exact: bool = False

    @property
    def sql(self) -> str:
        """The SQL text of the whole query."""
        return self._selected(self._semi_joins() if self.exact else self._joins())

    @property
    def rest_sql(self) -> str:
        """The SQL text that remains to run over a pruned read."""
        return self._selected("") if self.exact else self.sql

    @property
    def filters(self) -> tuple[Dimension, ...]:
        """The dimensions that have keys to filter by."""
        return tuple(each for each in self.dimensions if each.filters)

    def mentions(self, name: str) -> bool:
        """True if the query, or a query of keys, mentions this column or table."""
        texts = (self.sql, *(each.keys_sql for each in self.dimensions))
        return any(re.search(rf"\b{re.escape(name)}\b", text) for text in texts)

    def _joins(self) -> str:
        return "".join(f" JOIN ({each.rows_sql}) AS d{at} ON {_equal(each)}" for at, each in enumerate(self.dimensions))

    def _semi_joins(self) -> str:
        tests = (f"({', '.join(each.probe)}) IN ({each.keys_sql})" for each in self.dimensions)
        return " WHERE " + " AND ".join(tests)

    def _selected(self, joins: str) -> str:
        return f"SELECT {self.group}, {self.aggregates} FROM {{{self.fact}}}{joins} GROUP BY {self.group}"


def _equal(dimension: Dimension) -> str:
    pairs = zip(dimension.probe, dimension.key, strict=True)
    return " AND ".join(f"{probe} = {key}" for probe, key in pairs)


@dataclass(frozen=True, slots=True)
class Lake:
    """Tables of one format, by name."""

    format: str
    folders: Mapping[str, str]

    def frame(self, spark: SparkSession, table: str) -> DataFrame:
        """The DataFrame of a whole table, as stock Spark reads it."""
        return spark.read.format(self.format).load(self.folders[table])


@dataclass(frozen=True, slots=True)
class Run:
    """The rows of one execution, its seconds from opening the table to the last row, and its scan.

    `planned` is None for a run without pruning.
    """

    rows: Rows
    seconds: float
    measured: Measured | None
    planned: TableExplanation | None


def run_stock(spark: SparkSession, lake: Lake, join: StarJoin) -> Run:
    """Runs the query without pruning."""
    frames = _dimensions(spark, lake, join)
    began = time.perf_counter()
    fact = lake.frame(spark, join.fact)
    identity = scan_identity.identity_of(fact)
    asked = _asked(spark, join.sql, {**frames, join.fact: fact})
    rows = asked.collect()
    seconds = time.perf_counter() - began
    scan, _ = measured.latest(spark, identity)
    if scan is None and not scan_identity.reads(asked, identity):
        scan = Measured("collect", 0, 0, 0, "Spark dropped the scan while it ran", vectorised=True, seconds=seconds)
    return Run(Rows(rows), seconds, scan, None)


def run_pruned(spark: SparkSession, lake: Lake, join: StarJoin) -> Run:
    """Runs the query with the fact table read by `pruned_read()`; the seconds include collecting keys and planning."""
    frames = _dimensions(spark, lake, join)
    columns = [name for name in lake.frame(spark, join.fact).columns if join.mentions(name)]
    began = time.perf_counter()
    keys: dict[str | tuple[str, ...], Any] = {each.probe: _keys(spark, each, frames) for each in join.filters}
    source = lake.folders[join.fact]
    fact = pruned_read(spark, source, keys=keys, columns=columns, format=lake.format, exact=join.exact)
    rows = _asked(spark, join.rest_sql, {**frames, join.fact: fact}).collect()
    seconds = time.perf_counter() - began
    return Run(Rows(rows), seconds, report(fact).measured, explain(fact).tables[0])


def _dimensions(spark: SparkSession, lake: Lake, join: StarJoin) -> dict[str, DataFrame]:
    return {name: lake.frame(spark, name) for name in lake.folders if name != join.fact and join.mentions(name)}


def _asked(spark: SparkSession, sql: str, frames: Mapping[str, DataFrame]) -> DataFrame:
    """The DataFrame of the query, with `frames` in place of the names in braces."""
    used: dict[str, Any] = {name: frame for name, frame in frames.items() if f"{{{name}}}" in sql}
    return spark.sql(sql, **used)


def _keys(spark: SparkSession, dimension: Dimension, frames: Mapping[str, DataFrame]) -> Any:
    return list(dimension.values) if dimension.values else _asked(spark, dimension.keys_sql, frames)
