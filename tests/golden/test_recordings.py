"""Recorded plans, compared with the plans that the installed Spark makes of the same queries."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from connectors.pipeline import pruned_query
from connectors.spark import plan_reader
from connectors.spark.plan_reader import SparkPlan
from sample_data.confs import conf
from sample_data.dsdgen import load_tpcds
from sample_data.tpcds_queries import QUOTED
from tests.golden.described import DATABASE, EVERY_FILTER, IS_WRITTEN, described, rules
from tests.golden.recorded import RecordedPlan, record, recorded
from tests.in_session import in_session

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.full, pytest.mark.usefixtures("tables")]

NUMBERS = range(1, 100)


@pytest.fixture(scope="module")
def tables(spark) -> Iterator[dict[int, str]]:
    """Empty TPC-DS tables in their own database; yields the text of each query by its number."""
    with duckdb.connect() as connection:
        load_tpcds(connection)
        connection.execute("CALL dsdgen(sf = 0)")
        columns = connection.execute(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() "
            "WHERE NOT internal ORDER BY table_name, column_index"
        ).fetchall()
        queries = dict(connection.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall())
    spark.sql(f"CREATE DATABASE {DATABASE}")
    spark.sql(f"USE {DATABASE}")
    try:
        for table in sorted({name for name, *_ in columns}):
            fields = ", ".join(f"{column} {_spark(type_)}" for name, column, type_ in columns if name == table)
            spark.sql(f"CREATE TABLE {table} ({fields}) USING parquet")
        spark.udf.register("python_function", lambda value: value, "int")
        with conf(spark, {QUOTED: "true"}):
            yield queries
    finally:
        spark.sql("DROP TEMPORARY FUNCTION IF EXISTS python_function")
        spark.sql("USE default")
        spark.sql(f"DROP DATABASE {DATABASE} CASCADE")


def _spark(type_: str) -> str:
    return {"VARCHAR": "STRING", "INTEGER": "INT"}.get(type_, type_)


@pytest.fixture
def read(spark, monkeypatch):
    """Returns the described plan that Spark makes of a query now, and the recording of it."""
    texts: list[tuple[str, str]] = []
    plan_tree = plan_reader.plan_tree

    def recording(text: str, lines: str):
        texts.append((text, lines))
        return plan_tree(text, lines)

    monkeypatch.setattr(plan_reader, "plan_tree", recording)

    def plan(query: str) -> tuple[str, RecordedPlan]:
        plan = SparkPlan.of(spark.sql(query))
        return described(plan.root, plan.used), RecordedPlan(query, *texts[-1])

    return plan


@pytest.fixture
def handed_over(spark, monkeypatch):
    """Returns the described plan that an enabled session hands over for a query; empty where it hands none over."""
    plans: list[SparkPlan] = []
    reader = pruned_query.SparkPlan.read

    def read(*given, **named):
        plans.append(reader(*given, **named))
        return plans[-1]

    monkeypatch.setattr(pruned_query.SparkPlan, "read", read)

    def run(query: str) -> str:
        plans.clear()
        in_session(spark, EVERY_FILTER, lambda: spark.sql(query).collect())
        return described(plans[0].root, plans[0].used) if plans else ""

    return run


@pytest.mark.skipif(not IS_WRITTEN, reason="records only if GOLDEN=write")
def test_plans_are_recorded(read, tables):
    queries = {**{f"q{number}": tables[number] for number in NUMBERS}, **dict(rules())}
    record({name: read(query)[1] for name, query in queries.items()})


@pytest.mark.parametrize("number", NUMBERS, ids="q{}".format)
def test_tpcds(read, handed_over, tables, number):
    plan = recorded()[f"q{number}"]
    assert plan.query == tables[number]
    assert described(*plan.tree) == read(tables[number])[0]
    assert described(*plan.tree) == handed_over(tables[number])


@pytest.mark.parametrize(("title", "query"), tuple(rules()), ids=[title for title, _ in rules()])
def test_rules(read, handed_over, title, query):
    plan = described(*recorded()[title].tree)
    assert plan == read(query)[0]
    assert plan == handed_over(query)
