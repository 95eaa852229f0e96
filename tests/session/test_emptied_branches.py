"""Keys that leave no row of one branch of a union: Spark drops the branch, and with it the union's own column ids."""

from __future__ import annotations

import datetime as dt

import pytest

from connectors.session import session_pruning
from connectors.spark.jvm import optimized_plan
from pruning import history
from sample_data.rows import Rows
from tests.costs import ALWAYS
from tests.in_session import kept

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# Each year has four files of 91 days; week 10 is in the first one, week 60 in the second, and week 999 in none.
FILES_OF = {"w10": (1, 0), "w60": (0, 1), "w999": (0, 0)}
QUERIES = {
    "rows": "SELECT store, id FROM sales JOIN cal ON dt = d WHERE week = '{week}'",
    "same column twice": "SELECT id, id AS again, dt FROM sales JOIN cal ON dt = d WHERE week = '{week}'",
    "groups": "SELECT store, count(*) AS n FROM sales JOIN cal ON dt = d WHERE week = '{week}' GROUP BY store",
    "a semi join": "SELECT * FROM sales WHERE dt IN (SELECT d FROM cal WHERE week = '{week}')",
    "an outer join": "SELECT week, id FROM (SELECT * FROM cal WHERE week = '{week}') LEFT JOIN sales ON dt = d",
}


@pytest.fixture(scope="module", params=["delta", "parquet"], autouse=True)
def _sales(spark, request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("years")
    for year in (2024, 2025):
        days = f"date_add(DATE'{year}-01-01', cast(id div 10 AS int))"
        rows = spark.range(0, 3640, 1, 4).selectExpr(
            "id", f"{days} AS dt", "cast(id % 5 AS int) AS store", f"'{year}' y"
        )
        rows.write.format(request.param).save(f"{folder}/{year}")
        spark.read.format(request.param).load(f"{folder}/{year}").createOrReplaceTempView(f"sales_{year}")
    first = dt.date(2024, 1, 1)
    cal = [(first + dt.timedelta(days=at), f"w{at // 7}") for at in range(731)]
    spark.createDataFrame(cal, "d date, week string").coalesce(1).write.format("parquet").save(f"{folder}/cal")
    spark.read.parquet(f"{folder}/cal").createOrReplaceTempView("cal")
    # The second branch has the columns under other names.
    spark.sql(
        "SELECT * FROM sales_2024 UNION ALL SELECT id AS other, dt AS day, store AS shop, y FROM sales_2025"
    ).createOrReplaceTempView("sales")
    yield
    for name in ("sales", "sales_2024", "sales_2025", "cal"):
        spark.catalog.dropTempView(name)


@pytest.mark.parametrize("week", FILES_OF)
@pytest.mark.parametrize("query", QUERIES)
def test_a_query_over_a_branch_without_rows_is_pruned(spark, enabled, query, week):
    text = QUERIES[query].format(week=week)
    expected = spark.sql(text)
    names, stock = expected.columns, Rows(expected.collect())
    enabled(ALWAYS)
    pruned = spark.sql(text)
    assert stock == Rows(pruned.collect())
    assert names == pruned.columns
    first, second = FILES_OF[week]
    assert sorted(kept(history(spark)[0])) == [("2024", first), ("2025", second)]


def test_a_table_is_written_of_a_branch_without_rows(spark, enabled):
    text = QUERIES["same column twice"].format(week="w60")
    stock = Rows(spark.sql(text).collect())
    enabled(ALWAYS)
    try:
        spark.sql(f"CREATE TABLE of_one_branch USING parquet AS {text}")
        assert [("2024", 0), ("2025", 1)] == sorted(kept(history(spark)[0]))
        assert ["id", "again", "dt"] == spark.table("of_one_branch").columns
        assert stock == Rows(spark.table("of_one_branch").collect())
    finally:
        spark.sql("DROP TABLE IF EXISTS of_one_branch")


@pytest.mark.parametrize("made", ["other types", "fewer columns", "columns in another order"])
def test_a_plan_with_other_columns_is_still_refused(spark, enabled, monkeypatch, made):
    text = QUERIES["rows"].format(week="w60")
    stock = Rows(spark.sql(text).collect())
    others = {
        "other types": "SELECT 'a', 1",
        "fewer columns": "SELECT 1",
        "columns in another order": "SELECT id, store FROM sales",
    }
    wrong = optimized_plan(spark.sql(others[made]))
    inner = session_pruning.prune_plan
    monkeypatch.setattr(session_pruning, "prune_plan", lambda *given: (wrong, inner(*given)[1]))
    enabled(ALWAYS)
    assert stock == Rows(spark.sql(text).collect())
    assert "PrunedPlanError" in history(spark)[0].verdict
