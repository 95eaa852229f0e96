"""Seeded random queries: pruned == unpruned == DuckDB, and a join that can be filtered is.

`SCANPRUNE_SEEDS=100-199 SCANPRUNE_QUERIES=200 pytest tests/oracle/test_random_queries.py` runs more and other queries;
`SCANPRUNE_SEEDS=7 SCANPRUNE_QUERY=12` runs one query of one lake. A failing query is made smaller before it is shown.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from connectors.columns import split_name
from pruning import explain, prune, report
from pruning.reasons import ReasonCode
from pruning.results.table_explanation import TableExplanation
from sample_data.confs import conf
from sample_data.decided import decided
from sample_data.plain_duckdb import load
from sample_data.rows import Rows, by_value
from tests.in_session import in_session
from tests.oracle.answers import rows_of
from tests.oracle.draws import Draws
from tests.oracle.expected_filters import check_filter, files_without_values, mentions
from tests.oracle.random_lakes import RandomLake, Table, random_lake, stored
from tests.oracle.random_queries import SPARKS_BLOOM, Query, random_query
from tests.oracle.reproductions import Failure, shown

pytestmark = [pytest.mark.spark, pytest.mark.slow]

QUERIES = int(os.environ.get("SCANPRUNE_QUERIES", "40"))
MADE_SMALLER = 3
# Reasons of a failure, after which a query runs without pruning.
TROUBLE = {
    ReasonCode.PRUNING_FAILED,
    ReasonCode.BUILD_FAILED,
    ReasonCode.BUILD_TIMED_OUT,
    ReasonCode.STATISTICS_FAILED,
}


def seeds() -> range:
    """The seeds to run: the same few in every run, unless `make fuzz` or a user sets others."""
    first, _, last = os.environ.get("SCANPRUNE_SEEDS", "1-5").partition("-")
    return range(int(first), int(last or first) + 1)


def numbers() -> Sequence[int]:
    one = os.environ.get("SCANPRUNE_QUERY", "")
    return [int(one)] if one else range(QUERIES)


@dataclass(frozen=True, slots=True)
class Engines:
    """The tables of one seed under the same names in both engines; `filtered` are the queries that had a filter."""

    spark: SparkSession
    duck: duckdb.DuckDBPyConnection
    lake: RandomLake
    filtered: list[Query] = field(default_factory=list)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", seeds())
def test_random_queries(spark, duck, tmp_path, seed):
    failures, lake = [], random_lake(seed)
    make = partial(random_query, lake)
    with engines(spark, duck, lake, partial(stored, spark, tmp_path)) as both:
        for number in numbers():
            draws = Draws(f"query {seed} {number}")
            query = make(draws)
            error = problem(both, query)
            if error is not None:
                again = f"SCANPRUNE_SEEDS={seed} SCANPRUNE_QUERY={number} pytest tests/oracle/test_random_queries.py"
                found = Failure(again, query, error, make, draws.taken)
                # Shrinking many failures takes longer than fixing their common cause.
                is_next = len(failures) >= MADE_SMALLER
                failures.append(str(found) if is_next else shown(found, lake, partial(problem, both)))
    assert not failures, "\n\n".join(failures)
    # A query that is returned unchanged would pass every comparison of rows.
    assert len(both.filtered) >= len(numbers()) // 5, f"only {len(both.filtered)} queries have a filter"


@contextmanager
def engines(
    spark: SparkSession, duck: duckdb.DuckDBPyConnection, lake: RandomLake, read: Callable[[Table], DataFrame]
) -> Iterator[Engines]:
    for table in lake.tables:
        read(table).createOrReplaceTempView(table.name)
        load(duck, table.name, without_zones(table.rows))
    # Names are quoted as DuckDB quotes them.
    with conf(spark, {"spark.sql.ansi.doubleQuotedIdentifiers": "true"}):
        yield Engines(spark, duck, lake)
    for table in lake.tables:
        spark.catalog.dropTempView(table.name)


def without_zones(rows: pa.Table) -> pa.Table:
    """Instants as wall-clock times in UTC, the session's time zone."""
    for at, each in enumerate(rows.schema):
        if pa.types.is_timestamp(each.type):
            rows = rows.set_column(at, each.name, rows.column(at).cast(pa.timestamp("us")))
    return rows


def problem(both: Engines, query: Query) -> Exception | None:
    """The error of the pruned query, None if it is correct."""
    try:
        with conf(both.spark, query.confs):
            check(both, query)
    except Exception as error:  # noqa: BLE001 - any failure is shown with its query
        return error
    return None


def check(both: Engines, query: Query) -> None:
    df = both.spark.sql(query.sql)
    # DuckDB's types are other ones, and which of two zeros a minimum is depends on the order of rows.
    answer = rows_of(df, by_value)
    try:
        assert answer == Rows(both.duck.execute(query.sql).fetchall(), by_value), "the oracles differ"
    except duckdb.NotImplementedException:
        # DuckDB does not support every correlated subquery of Spark.
        assert "SELECT 1 FROM" in query.sql or ", (SELECT" in query.sql
    result = prune(df, options=query.options)
    # Nullability may differ: the optimized plan knows more, or less after a set operation became a join.
    assert [(each.name, each.dataType) for each in df.schema] == [(each.name, each.dataType) for each in result.schema]
    found = rows_of(result, by_value)
    assert answer == found, f"lost {answer - found!r}, invented {found - answer!r}"
    check_plan(both, result, query)
    again, told = in_session(both.spark, query.options, lambda: rows_of(both.spark.sql(query.sql), by_value))
    assert answer == again, f"a session lost {answer - again!r}, invented {again - answer!r}"
    assert decided(report(result)) == decided(told), "a session has other filters"
    plan = explain(result)
    for each in query.musts:
        keys = {key for (key,) in both.duck.execute(each.keys).fetchall()}
        check_filter(plan, each, query.sql, keys)
    if plan.tables:
        both.filtered.append(query)


def check_plan(both: Engines, result: DataFrame, query: Query) -> None:
    """No scan reads more than planned, and every missing filter has a reason that is not a failure."""
    plan = explain(result)
    assert plan.ran_builds, "the query was not pruned at all"
    codes = {each.code for each in (*plan.reasons, *(reason for table in plan.tables for reason in table.reasons))}
    assert not codes & TROUBLE, f"{[str(each) for each in plan.reasons if each.code in TROUBLE]}"
    assert all(each.reaches or each.stops for each in plan.edges), "an edge ends without a reason"
    reached = {column for each in plan.edges for column in each.reaches}
    explained = {each.probe for each in plan.filters} | {f"{each.scan}.{each.column}" for each in plan.unused}
    assert reached <= explained, f"no filter and no reason for {reached - explained}"
    is_whole = len(plan.scans) >= sum(mentions(query.sql, each) for each in both.lake.tables)
    assert plan.edges or not (query.compares and is_whole), "no join has an edge"
    for each in report(result).tables:
        # Spark drops scans whose rows turn out not to be needed, and skips by the filters of the query itself.
        read = 0 if each.measured is None else each.measured.files_read
        if SPARKS_BLOOM in query.confs:
            # Spark reads a side once more for its own bloom filter.
            read //= 2
        kept = each.planned.files_kept + files_kept_by_delta(both.lake, each.planned)
        assert read <= kept, f"{each.planned.table}: {read} files were read, and {kept} planned"


def files_kept_by_delta(lake: RandomLake, planned: TableExplanation) -> int:
    """The number of files that Delta may read besides the planned ones, because a statistic is missing."""
    if planned.format != "delta":
        return 0
    (table,) = [each for each in lake.tables if each.name == planned.table.partition("#")[0]]
    return files_without_values(table, {split_name(column)[0] for each in planned.filters for column in each.columns})
