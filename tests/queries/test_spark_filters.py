"""Pruning together with Spark's own runtime filters: dynamic partition pruning and row-level bloom filters."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest

from connectors.pipeline import pruned_query
from connectors.scan.spark_scan import might_contain_column
from pruning import explain, report
from pruning.keys.bloom import BloomFilter
from pruning.keys.key_set import row_hashes
from pruning.values.types import ValueType
from sample_data.rows import Rows
from tests.queries.star import FILES, OPTIONS, ROWS_PER_DAY, files
from tests.unchanged import is_unchanged

pytestmark = pytest.mark.spark


@pytest.fixture
def blooms(conf) -> None:
    """Lowers Spark's thresholds, so that every sort merge join gets a runtime bloom filter."""
    conf("spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold", "0")
    conf("spark.sql.optimizer.runtime.bloomFilter.creationSideThreshold", "1g")
    conf("spark.sql.autoBroadcastJoinThreshold", "-1")


@pytest.mark.usefixtures("blooms")
def test_spark_adds_its_merged_bloom_filters_again(spark, ways, tmp_path):
    """A null-safe join has two keys for Spark, whose bloom filters it merges."""
    facts = spark.range(0, 8000, 1, 8).selectExpr("cast(id div 50 AS smallint) AS day", "id AS amount")
    days = spark.range(0, 160, 1, 1).selectExpr("cast(id AS int) AS day", "cast(id div 30 AS int) AS month")
    ways.stored("bloom_facts", facts, str(tmp_path / "facts"), "parquet")
    ways.stored("bloom_days", days, str(tmp_path / "days"), "parquet")
    query = "SELECT f.* FROM bloom_facts f JOIN bloom_days d ON f.day IS NOT DISTINCT FROM d.day WHERE month = 2"
    df, result = ways.agreed(query, replace(OPTIONS, broadcast_strategy="NONE"))
    assert {1} == {optimised(each).count("mergedValue") > 0 for each in (df, result)}
    assert {"facts": (2, 2, 8)} == files(result)


def test_bloom_filters_of_the_query_are_kept(spark, star, pruned_frame):
    """A bloom filter of the query may drop rows; Spark's own never change the result."""
    some = BloomFilter.of_capacity(10, 0.01)
    assert isinstance(some, BloomFilter)
    some = some.adding(row_hashes([ValueType.parse("int")], [np.array([3, 4])]))
    sales, days = spark.table(f"{star}sales"), spark.table(f"{star}days").where("month = 2")
    df = sales.where(might_contain_column(sales, ["item"], some.to_bytes())).join(days, "day")
    result = pruned_frame(df, options=OPTIONS)
    assert Rows(df.collect()) == Rows(result.collect())
    assert 30 <= result.count() < 30 * ROWS_PER_DAY
    assert {"sales": (2, 2, FILES)} == files(result)


def test_plan_refused_by_spark_leaves_the_query_unchanged(spark, star, pruned_frame, monkeypatch):
    refused = Mock()
    refused._jdf.queryExecution.return_value.optimizedPlan.side_effect = ValueError("secret")
    monkeypatch.setattr(pruned_query, "optimized_once", lambda *_, **__: refused)
    df = spark.sql(f"SELECT s.* FROM {star}sales s JOIN {star}days d ON s.day = d.day WHERE month = 2")
    result = pruned_frame(df, options=OPTIONS)
    assert Rows(df.collect()) == Rows(result.collect())
    assert is_unchanged(df, result)
    assert ["the query: pruning failed (ValueError)"] == [str(each) for each in explain(result).reasons]


@pytest.fixture
def partitions(spark, tmp_path) -> tuple[str, str]:
    """The folders of sales, partitioned by day, and of days, both plain Parquet."""
    sales, days = (str(tmp_path / name) for name in ("sales", "days"))
    spark.range(0, 4000, 1, 1).selectExpr("id % 8 AS day", "id AS amount").write.partitionBy("day").parquet(sales)
    spark.range(0, 8, 1, 1).selectExpr("id AS day", "id div 4 AS month").write.parquet(days)
    return sales, days


def test_dynamically_pruned_partitions_are_pruned(spark, partitions, pruned_frame):
    sales, days = partitions
    query = f"SELECT sum(amount) FROM parquet.`{sales}` s JOIN parquet.`{days}` d ON s.day = d.day WHERE month = 1"
    df = spark.sql(query)
    assert "dynamicpruning" in optimised(df)
    result = pruned_frame(df, options=OPTIONS)
    assert Rows(df.collect()) == Rows(result.collect())
    assert {"sales": (4, 4, 8)} == files(result)


@pytest.mark.parametrize("strategy", ["AUTO", "NONE"])
def test_spark_adds_partition_pruning_of_a_table_read_twice(spark, ways, partitions, strategy):
    """Dynamic pruning conditions contain plans, which do not survive a second analysis of the whole plan."""
    query = """
        WITH c AS (SELECT amount, s.day FROM part_sales s JOIN part_days d ON s.day = d.day WHERE month = 1)
        SELECT a.* FROM c a LEFT JOIN c b ON a.amount = b.day
        WHERE a.amount NOT IN (SELECT amount FROM c WHERE amount > 3900)"""
    for name, folder in zip(("part_sales", "part_days"), partitions, strict=True):
        ways.view(name, spark.read.parquet(folder))
    df, result = ways.agreed(query, replace(OPTIONS, broadcast_strategy=strategy))
    assert "dynamicpruning" in optimised(df)
    assert {(4, 8)} == {(it.files_kept, it.files_total) for it in explain(result).tables}
    # One side of the outer join reuses the other one's exchange.
    assert {4} == {it.measured.files_read for it in report(result).tables if it.measured is not None}
    # Rows that stand in place of the filtered side have no condition for Spark to prune by.
    assert (strategy == "NONE") == ("dynamicpruning" in optimised(result))


def test_partitions_without_keys_are_still_pruned_by_spark(spark, ways, partitions, tmp_path):
    """Spark prunes by a side with a condition, and materialized rows in its place would have none."""
    for name, folder in zip(("next_sales", "next_days"), partitions, strict=True):
        ways.view(name, spark.read.parquet(folder))
    facts = spark.range(0, 8000, 1, 8).selectExpr("id div 1000 AS day", "id AS fact")
    ways.stored("next_facts", facts, str(tmp_path / "next_facts"), "parquet")
    query = """
        SELECT d.day, sum(amount), count(fact) FROM next_days d JOIN next_sales s ON abs(s.day + 1) = abs(d.day)
        JOIN (SELECT day, max(fact) AS fact FROM next_facts GROUP BY day) f ON f.day = d.day
        WHERE month = 1 GROUP BY d.day"""
    df, result = ways.agreed(query, OPTIONS)
    # The rows of the few days cost nothing once they are read, so keys may come back to them.
    assert {"next_facts": 4} == {it.table: it.files_kept for it in explain(result).tables if it.table != "days"}
    assert (1, 1) == tuple(optimised(each).count("dynamicpruning") for each in (df, result))


def optimised(df) -> str:
    return df._jdf.queryExecution().optimizedPlan().toString()
