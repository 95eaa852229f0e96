"""Tests of the count of rows through exchanges."""

from __future__ import annotations

import pytest

from benchmarks.exchange_rows import BROADCAST, SHUFFLE, Exchange, rows_of, without_ids
from benchmarks.exchanges import page, row_of
from benchmarks.workload_runs import merged
from sample_data.workload import TPCDS

EXCHANGES = {
    "stock": [Exchange(SHUFFLE, "hashpartitioning(k, 2)", 400_000), Exchange(SHUFFLE, "SinglePartition", 7)],
    "pruned": [Exchange(SHUFFLE, "hashpartitioning(k, 2)", 100_000), Exchange(BROADCAST, "HashedRelation", 20)],
}


def test_a_row_has_sums_by_kind_and_lists_large_exchanges():
    found = row_of(EXCHANGES)
    assert (400_007, 100_000) == (found["shuffled_stock"], found["shuffled_pruned"])
    assert (0, 20) == (found["broadcast_stock"], found["broadcast_pruned"])
    assert [400_000] == [each["rows"] for each in found["stock"]]
    assert [{"kind": SHUFFLE, "text": "hashpartitioning(k, 2)", "rows": 100_000}] == found["pruned"]


def test_the_page_has_a_line_for_each_query_and_the_sums():
    text = page([{"query": name, **row_of(EXCHANGES)} for name in ("q1", "q2")])
    assert "| q2 | 400,007 | 100,000 | 0.25 | 0 | 20 | - |" in text
    assert "| all | 800,014 | 200,000 | 0.25 | 0 | 40 | - |" in text


def test_rows_of_a_query_replace_those_of_an_earlier_run():
    before = [{"query": "q9", "at": 1}, {"query": "q2", "at": 1}]
    assert [{"query": "q2", "at": 2}, {"query": "q9", "at": 1}] == merged(TPCDS, before, [{"query": "q2", "at": 2}])


def test_texts_of_spark():
    assert 2_880_404 == rows_of("2,880,404")
    told = "Exchange hashpartitioning(ss_item_sk#12, 2), ENSURE_REQUIREMENTS, [plan_id=77]"
    assert "hashpartitioning(ss_item_sk, 2)" == without_ids(told)
    assert "HashedRelationBroadcastMode(List(k),false)" == without_ids(
        "BroadcastExchange HashedRelationBroadcastMode(List(k#3),false), [plan_id=1]"
    )


@pytest.mark.spark
def test_rows_of_shuffles_and_broadcasts_are_counted(spark, conf, tmp_path):
    from benchmarks.contest.spark_engine import SparkEngine  # noqa: PLC0415 - loads Spark

    spark.range(1000).selectExpr("id % 10 AS k", "id AS v").write.parquet(f"{tmp_path}/rows")
    spark.read.parquet(f"{tmp_path}/rows").createOrReplaceTempView("counted_rows")
    engine = SparkEngine({}, spark)
    joined = "SELECT a.v FROM counted_rows a JOIN counted_rows b ON a.v = b.v + 1 WHERE b.k < 3"
    found = row_of({"stock": engine.exchanges("stock", joined)})
    assert (0, 300) == (found["shuffled_stock"], found["broadcast_stock"])
    conf("spark.sql.autoBroadcastJoinThreshold", "-1")
    conf("spark.sql.optimizer.runtime.bloomFilter.enabled", "false")
    found = row_of({"stock": engine.exchanges("stock", joined)})
    assert (1300, 0) == (found["shuffled_stock"], found["broadcast_stock"])
    spark.catalog.dropTempView("counted_rows")
