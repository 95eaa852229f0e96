"""Seeded random queries: pruned == unpruned == DuckDB, and a join that can be filtered is.

`SCANPRUNE_SEEDS=100-199 SCANPRUNE_QUERIES=200 pytest tests/oracle/test_random_queries.py` runs other ones, and more;
`SCANPRUNE_SEEDS=7 SCANPRUNE_QUERY=12` just one of one lake. A query that fails is made smaller before it is shown.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from pruning import explain, prune, report
from pruning.prune_report import TableReport
from pruning.reasons import ReasonCode
from tests.oracle.answers import Rows, collected
from tests.oracle.draws import Draws, simplest
from tests.oracle.lakes import conf
from tests.oracle.random_lakes import RandomLake, Table, random_lake, stored
from tests.oracle.random_queries import SPARKS_BLOOM, Must, Query, random_query

pytestmark = pytest.mark.spark

QUERIES = int(os.environ.get("SCANPRUNE_QUERIES", "40"))
TRIES = 60
# Whoever has one of these has met trouble, and answers without pruning.
TROUBLE = {
    ReasonCode.PRUNING_FAILED,
    ReasonCode.BUILD_FAILED,
    ReasonCode.BUILD_TIMED_OUT,
    ReasonCode.STATISTICS_FAILED,
}


def seeds() -> range:
    """A few that are the same in every run unless others are asked for: `make fuzz` asks."""
    first, _, last = os.environ.get("SCANPRUNE_SEEDS", "1-5").partition("-")
    return range(int(first), int(last or first) + 1)


def numbers() -> Sequence[int]:
    one = os.environ.get("SCANPRUNE_QUERY", "")
    return [int(one)] if one else range(QUERIES)


@dataclass(frozen=True, slots=True)
class Engines:
    """The tables of one seed, by the same names in both engines."""

    spark: SparkSession
    duck: duckdb.DuckDBPyConnection
    lake: RandomLake


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", seeds())
def test_random_queries(spark, duck, tmp_path, seed):
    failures = []
    with engines(spark, duck, tmp_path, random_lake(seed)) as both:
        for number in numbers():
            draws = Draws(f"query {seed} {number}")
            query = random_query(both.lake, draws)
            error = problem(both, query)
            if error is not None:
                failures.append(shown(both, seed, number, query, error, draws.taken))
    assert not failures, "\n\n".join(failures)


@contextmanager
def engines(spark: SparkSession, duck: duckdb.DuckDBPyConnection, folder: Path, lake: RandomLake) -> Iterator[Engines]:
    for table in lake.tables:
        stored(spark, folder, table).createOrReplaceTempView(table.name)
        duck.register("arriving", without_zones(table.rows))
        duck.execute(f"CREATE TABLE {table.name} AS FROM arriving")
        duck.unregister("arriving")
    # Names are quoted as DuckDB quotes them.
    with conf(spark, {"spark.sql.ansi.doubleQuotedIdentifiers": "true"}):
        yield Engines(spark, duck, lake)
    for table in lake.tables:
        spark.catalog.dropTempView(table.name)


def without_zones(rows: pa.Table) -> pa.Table:
    """Instants as wall-clock times of UTC, the session's zone."""
    for at, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            rows = rows.set_column(at, field.name, rows.column(at).cast(pa.timestamp("us")))
    return rows


def problem(both: Engines, query: Query) -> Exception | None:
    """What is wrong with the pruned query; None where nothing is."""
    try:
        with conf(both.spark, query.confs):
            check(both, query)
    except Exception as error:  # noqa: BLE001 - whatever fails is to be shown with its query
        return error
    return None


def check(both: Engines, query: Query) -> None:
    df = both.spark.sql(query.sql)
    answer = rows_of(df)
    try:
        assert answer == Counter(map(canonical, both.duck.execute(query.sql).fetchall())), "the oracles differ"
    except duckdb.NotImplementedException:
        # DuckDB does not correlate every subquery that Spark does.
        assert "SELECT 1 FROM" in query.sql or ", (SELECT" in query.sql
    result = prune(df, options=query.options)
    # The optimised plan may know more of NULLs, and less once a set operation has become a join.
    assert [(each.name, each.dataType) for each in df.schema] == [(each.name, each.dataType) for each in result.schema]
    found = rows_of(result)
    assert answer == found, f"lost {few(answer - found)}, invented {few(found - answer)}"
    check_plan(result, query)
    if query.must is not None:
        check_filter(both, query.must, result)


def rows_of(df: DataFrame) -> Rows:
    return Counter(canonical(row) for row in zip(*(each.to_pylist() for each in collected(df).columns), strict=True))


def canonical(row: Sequence[Any]) -> tuple[Any, ...]:
    """Equal where Spark's `=` is: numbers whatever their type, both zeros, every NaN; instants as times of UTC."""
    return tuple(map(_canonical, row))


def _canonical(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc).replace(tzinfo=None)
    return value


def check_plan(result: DataFrame, query: Query) -> None:
    """No scan reads more than planned, and what was left alone has a reason that is no trouble."""
    plan = explain(result)
    codes = {each.code for each in (*plan.reasons, *(reason for table in plan.tables for reason in table.reasons))}
    assert not codes & TROUBLE, f"{[str(each) for each in plan.reasons if each.code in TROUBLE]}"
    assert all(each.reaches or each.stops for each in plan.edges), "an edge ends without a reason"
    reached = any(each.reaches for each in plan.edges)
    assert plan.tables or plan.reasons or not reached, "nothing is pruned, and no reason says why"
    for each in report(result).tables:
        # Spark drops scans whose rows it turns out not to need, and skips by the filters of the query itself. Delta
        # keeps files of which it misses a statistic, such as those of NULL alone.
        read = 0 if each.measured is None else each.measured.files_read
        if SPARKS_BLOOM in query.confs:
            # Spark reads a side once more for its own filter.
            read //= 2
        kept = each.planned.files_total if each.planned.format == "delta" else each.planned.files_kept
        assert read <= kept, f"{each.planned.table}: {read} files were read, and {kept} planned"


def check_filter(both: Engines, must: Must, result: DataFrame) -> None:
    """Files that hold no key are skipped, and no others."""
    plan = explain(result)
    if len(plan.scans) < 2:
        # Spark knows without reading that there are no rows.
        return
    keys = {key for (key,) in both.duck.execute(must.keys).fetchall()}
    kept, total = files_with(must.table, keys)
    if kept < total:
        assert plan.feeds, f"no filter, though {total - kept} of {total} files hold no key: {plan.reasons}"
        if "READ_BY_BUILD" in {each.reason.code.name for each in plan.unused if each.scan == must.table.name}:
            # It was the smaller side, and the query does not read it any more.
            return
        fact = filtered(result, must.table)
        # The fact may filter the other side first, which then has fewer keys for the fact.
        is_known = len(plan.tables) == 1
        assert fact.planned.files_kept == kept if is_known else fact.planned.files_kept <= kept
        assert total == fact.planned.files_total


def filtered(result: DataFrame, table: Table) -> TableReport:
    (found,) = [each for each in report(result).tables if each.planned.table.partition("#")[0] == table.name]
    return found


def files_with(table: Table, keys: set[Any]) -> tuple[int, int]:
    """How many files have a key between the ends of the sorted column's values, and how many there are."""
    wanted = {day_of(key) if table.kinds[table.sorted_by] == "day" else key for key in keys} - {None}
    files: dict[Any, list[Any]] = {}
    parts = table.rows.column(table.partition_by).to_pylist() if table.partition_by else [None] * len(table.rows)
    for at, value in enumerate(table.rows.column(table.sorted_by).to_pylist()):
        files.setdefault((at // table.file_rows, parts[at]), []).append(value)
    kept = 0
    for values in files.values():
        known = [each for each in values if each is not None]
        kept += any(min(known) <= key <= max(known) for key in wanted) if known else 0
    return kept, len(files)


def day_of(key: Any) -> Any:
    """The day that equals a key; None where there is none, as at noon."""
    if not isinstance(key, datetime):
        return key
    return key.date() if key.time() == datetime.min.time() else None


def few(rows: Rows) -> str:
    return f"{rows.total()} rows {[repr(row)[:300] for row in list(rows)[:3]]}"


def shown(both: Engines, seed: int, number: int, query: Query, error: Exception, taken: Sequence[int]) -> str:
    """All that it takes to run the query again, and a smaller one that fails alike."""

    def fails(given: Sequence[int]) -> Sequence[int] | None:
        draws = Draws(given=given)
        found = problem(both, random_query(both.lake, draws))
        return draws.taken if found is not None and alike(found, error) else None

    small = random_query(both.lake, Draws(given=simplest(taken, fails, TRIES)))
    tables = [each for each in both.lake.tables if f" {each.name} " in f"{small.sql} "]
    lines = [
        f"{type(error).__name__}: {str(error)[:1500]}",
        f"again: SCANPRUNE_SEEDS={seed} SCANPRUNE_QUERY={number} pytest tests/oracle/test_random_queries.py",
        f"query: {query}",
        f"smaller: {small}",
        f"which says: {str(problem(both, small))[:1500]}",
        *map(repr, tables),
    ]
    return "\n".join(lines)


def alike(one: Exception, other: Exception) -> bool:
    return type(one) is type(other) and str(one)[:8] == str(other)[:8]
