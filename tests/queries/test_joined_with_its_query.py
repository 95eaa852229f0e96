"""A pruned DataFrame beside its unpruned one: each works, or fails, as `df.select("*")` does in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from pruning import prune, report
from sample_data.rows import Rows
from tests.queries.star import FILES, OPTIONS, files

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark

QUERY = "SELECT s.day, s.item, s.amount, d.month FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 2"
# Queries over both, with columns of either DataFrame.
DEMANDS: dict[str, Callable[[DataFrame, DataFrame], DataFrame]] = {
    "by_name": lambda df, other: df.join(other, "amount"),
    "by_name_from_the_left": lambda df, other: other.join(df, "amount"),
    "by_columns": lambda df, other: df.join(other, df["amount"] == other["amount"]),
    "by_columns_from_the_left": lambda df, other: other.join(df, df["amount"] == other["amount"]),
    "by_a_column_of_each_side": lambda df, other: other.join(
        df, (df["amount"] == other["amount"]) & (df["month"] == other["month"])
    ),
    "its_columns_after_a_join": lambda df, other: other.join(df, "amount").select(other["day"], other["month"]),
    "its_columns_after_a_join_from_the_right": lambda df, other: df.join(other, "amount").select(other["day"]),
    "columns_of_the_query_after_a_join": lambda df, other: df.join(other, "amount").select(df["day"], df["month"]),
    "columns_of_the_query_from_the_right": lambda df, other: other.join(df, "amount").select(df["day"]),
    "columns_of_the_query": lambda df, other: other.select(df["amount"], df["month"]),
    "a_condition_on_the_query": lambda df, other: other.where(df["amount"] > 1600),
    "with_itself": lambda _, other: other.join(other, other["amount"] == other["amount"]),
    "aliases": lambda df, other: df.alias("a").join(other.alias("b"), "amount").selectExpr("a.day", "b.month"),
    "left_anti": lambda df, other: df.join(other, df["amount"] == other["amount"], "left_anti"),
    "outer": lambda df, other: other.where("day % 2 = 0").join(df, "amount", "right"),
    "union": lambda df, other: df.union(other),
    "union_by_name": lambda df, other: other.unionByName(df),
    "except": lambda df, other: df.exceptAll(other),
    "intersect": lambda df, other: other.intersectAll(df),
    "sums_of_both": lambda df, other: other.groupBy("month").count().join(df.groupBy("month").sum("item"), "month"),
}


@pytest.fixture
def query(spark, star) -> DataFrame:
    return spark.sql(QUERY.format(sales=f"{star}sales", days=f"{star}days"))


def outcome(make: Callable[[], DataFrame]) -> Rows | str:
    """The rows of a DataFrame, or the condition of Spark's refusal."""
    try:
        return Rows(make().collect())
    except AnalysisException as error:
        return str(error.getCondition())


@pytest.mark.quick(4)
@pytest.mark.parametrize("demand", DEMANDS.values(), ids=DEMANDS)
def test_a_pruned_query_takes_the_place_of_its_query(query, demand):
    pruned = prune(query, options=OPTIONS)
    assert pruned.schema == query.schema
    found = outcome(lambda: demand(query, pruned))
    assert outcome(lambda: demand(query, query.select("*"))) == found
    read = report(pruned).tables[0].measured
    assert isinstance(found, str) == (read is None)
    assert read is None or read.files_read == 2


@pytest.mark.parametrize("place", ["left", "right"])
def test_a_report_counts_the_pruned_scan_of_a_join_with_the_query(query, place):
    pruned = prune(query, options=OPTIONS)
    joined = pruned.join(query, "amount") if place == "left" else query.join(pruned, "amount")
    assert Rows(query.join(query.select("*"), "amount").collect()) == Rows(joined.collect())
    assert {"sales": (2, 2, FILES)} == files(pruned)
    (table,) = report(pruned).tables
    assert 1 == table.actions


def test_reports_of_two_pruned_queries_count_their_own_actions(query):
    first, second = (prune(query, options=OPTIONS) for _ in range(2))
    assert Rows(first.collect()) == Rows(query.collect())
    assert [1, 0] == [report(each).tables[0].actions for each in (first, second)]
    second.collect()
    assert [1, 1] == [report(each).tables[0].actions for each in (first, second)]


def test_a_scan_inside_a_subquery_is_told_from_that_of_the_query(spark, star):
    """Its ids are below an expression, where those of the operators do not reach."""
    query = spark.sql(
        f"SELECT item FROM {star}items WHERE item < (SELECT max(item) FROM {star}sales s"
        f" JOIN {star}days d ON s.day = d.day WHERE month = 1)"
    )
    pruned = prune(query, options=OPTIONS)
    expected = Rows(query.collect())
    assert [0] == [each.actions for each in report(pruned).tables]
    assert expected == Rows(pruned.collect())
    assert {"sales": (2, 2, FILES)} == files(pruned)
    assert [1] == [each.actions for each in report(pruned).tables]


def test_a_cached_pruned_query_is_joined_with_its_query(query):
    pruned = prune(query, options=OPTIONS)
    expected = Rows(query.join(query.select("*"), "amount").collect())
    pruned.cache()
    try:
        assert Rows(query.collect()) == Rows(pruned.collect())
        assert expected == Rows(pruned.join(query, "amount").collect())
    finally:
        pruned.unpersist(blocking=True)
