"""Small build sides without a condition: tables with few keys, and cached tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pruning import explain, prune
from tests.queries.star import FILES, OPTIONS, files
from tests.unchanged import is_unchanged

pytestmark = pytest.mark.spark


def codes(df) -> set[str]:
    return {each.code.name for each in explain(df).reasons}


@pytest.mark.full
def test_small_table_filters_without_a_condition(spark, star, ways, tmp_path):
    spark.createDataFrame([(41,), (43,), (None,), (41,)], "day int").write.format("delta").save(str(tmp_path / "few"))
    few = spark.read.format("delta").load(str(tmp_path / "few"))
    ways.view("few", few)
    query = f"SELECT s.* FROM {star}sales s JOIN few f ON s.day = f.day"
    _, result = ways.agreed(query, OPTIONS)
    assert {"sales": (1, 1, FILES)} == files(result)


def test_dimension_with_every_key_is_not_run(spark, star):
    query = f"SELECT s.* FROM {star}sales s JOIN {star}items i ON s.item = i.item"
    df = spark.sql(query)
    result = prune(df, options=OPTIONS)
    assert is_unchanged(df, result)
    assert "UNSELECTIVE_BUILD" in codes(result)


def test_cached_build_filters_and_is_materialized(spark, star, ways):
    """Failure catalogue 59: Spark may evict cached rows and compute them again from a table that has changed."""
    cached = spark.table(f"{star}days").where("month = 2").cache()
    try:
        ways.view("chosen", cached)
        _, result = ways.agreed(f"SELECT s.* FROM {star}sales s JOIN chosen c ON s.day = c.day", OPTIONS)
        assert {"sales": (2, 2, FILES)} == files(result)
        assert "InMemoryRelation" not in result._jdf.queryExecution().optimizedPlan().toString()
    finally:
        cached.unpersist(blocking=True)


def test_cached_build_without_materialization_gives_no_keys(spark, star, ways):
    cached = spark.table(f"{star}days").where("month = 2").cache()
    try:
        ways.view("chosen", cached)
        query = f"SELECT s.* FROM {star}sales s JOIN chosen c ON s.day = c.day"
        _, result = ways.agreed(query, replace(OPTIONS, broadcast_strategy="NONE"))
        assert {} == files(result)
        assert {"UNREPEATABLE_KEYS"} <= codes(result)
    finally:
        cached.unpersist(blocking=True)


def test_cached_fact_is_not_filtered(spark, star, ways):
    cached = spark.table(f"{star}sales").cache()
    try:
        ways.view("kept_sales", cached)
        query = f"SELECT s.* FROM kept_sales s JOIN {star}days d ON s.day = d.day WHERE month = 2"
        _, result = ways.agreed(query, OPTIONS)
        assert ((), True) == (explain(result).tables, "InMemoryRelation" in str(explain(result).edges))
    finally:
        cached.unpersist(blocking=True)
