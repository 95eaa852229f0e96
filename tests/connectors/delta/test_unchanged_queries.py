"""A query without filters is the query itself, which Spark plans when it runs."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from connectors.delta import file_index
from pruning import explain, prune, report
from sample_data.rows import Rows
from tests.connectors.delta.test_file_index import indexes, jobs
from tests.costs import COSTLY_BUILDS
from tests.unchanged import is_unchanged

pytestmark = pytest.mark.spark

OPTIONS = COSTLY_BUILDS
PREPARED = "PreparedDeltaFileIndex"
ROWS = 40


@pytest.fixture
def lake(spark, tmp_path) -> str:
    """Facts in four files, and a dimension of which no condition leaves out a row."""
    facts = spark.range(0, ROWS, 1, 4).selectExpr("id", "id % 10 AS k", "cast(null AS string) AS note")
    facts.write.format("delta").save(f"{tmp_path}/facts")
    spark.range(0, 10, 1, 1).selectExpr("id AS k", "concat('x', id) AS name").write.format("delta").save(
        f"{tmp_path}/dims"
    )
    return str(tmp_path)


def query_of(lake: str, columns: str = "f.id, f.note, d.name", more: str = "") -> str:
    return f"SELECT {columns} FROM delta.`{lake}/facts` f JOIN delta.`{lake}/dims` d ON f.k = d.k {more}"


def rows_of(df) -> Rows:
    return Rows(df.collect())


def phases(df) -> str:
    return str(df._jdf.queryExecution().tracker().phases())


@pytest.mark.quick(2)
@pytest.mark.parametrize(("more", "kept"), [("", 4), ("WHERE f.id >= 25", 2)], ids=["all-files", "fewer-files"])
def test_unchanged_query_runs_as_by_stock(spark, lake, more, kept):
    expected = rows_of(spark.sql(query_of(lake, more=more)))
    for read in (False, True):
        df = spark.sql(query_of(lake, more=more))
        before = jobs(spark)
        result = prune(df, options=OPTIONS)
        # Its files are known from the first time.
        assert not read or before == jobs(spark)
        assert is_unchanged(df, result)
        assert "optimization" not in phases(df) + phases(result)
        before = jobs(spark)
        assert [PREPARED] * 2 == indexes(result)
        assert before == jobs(spark)
        assert expected == rows_of(result)
    assert ((), kept + 1) == (report(result).tables, len(result.inputFiles()))
    assert explain(result).reasons


# Failure catalogue 47: the version that Delta pins when the query runs, as for stock Spark.
@pytest.mark.parametrize("table", ["facts", "dims"])
def test_commit_after_pruning_is_read(spark, lake, pruned_frame, table):
    result = pruned_frame(spark.sql(query_of(lake)), options=OPTIONS)
    added = f"({ROWS}, 3, 'new')" if table == "facts" else "(3, 'again')"
    spark.sql(f"INSERT INTO delta.`{lake}/{table}` VALUES {added}")
    expected = rows_of(spark.sql(query_of(lake)))
    assert expected == rows_of(result)
    assert ROWS + (1 if table == "facts" else 4) == len(expected)
    spark.sql(f"DELETE FROM delta.`{lake}/{table}` WHERE k = 5")
    # A DataFrame that ran reads the version that it was planned with.
    assert expected == rows_of(result)


def test_older_version_stays(spark, lake):
    text = query_of(lake).replace("/facts`", "/facts` VERSION AS OF 0")
    result = prune(spark.sql(text), options=OPTIONS)
    spark.sql(f"DELETE FROM delta.`{lake}/facts`")
    assert [PREPARED] * 2 == indexes(result)
    assert ROWS == len(rows_of(result))


def test_changed_table_is_an_error_of_delta(spark, lake, pruned_frame):
    df = spark.sql(query_of(lake))
    result = pruned_frame(df, options=OPTIONS)
    spark.range(3).selectExpr("id AS k").write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(
        f"{lake}/facts"
    )
    for each in (df, result):
        with pytest.raises(Exception, match="DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"):
            each.collect()


def test_rows_that_are_cached_after_pruning_are_read(spark, lake):
    result = prune(spark.sql(query_of(lake)), options=OPTIONS)
    result.cache()
    try:
        assert ROWS == result.count()
        assert "InMemoryRelation" in result._jdf.queryExecution().optimizedPlan().toString()
        again = prune(spark.sql(query_of(lake)), options=OPTIONS)
        assert "InMemoryRelation" in again._jdf.queryExecution().optimizedPlan().toString()
        assert rows_of(again) == rows_of(result)
    finally:
        result.unpersist()


def test_aliases_and_columns_of_the_query_name_columns_of_the_result(spark, lake, pruned_frame):
    facts = spark.read.format("delta").load(f"{lake}/facts").alias("f")
    dims = spark.read.format("delta").load(f"{lake}/dims").alias("d")
    df = facts.join(F.broadcast(dims), "k")
    result = pruned_frame(df, options=OPTIONS)
    expected = rows_of(df.select("f.id", "d.name", dims["k"]))
    assert expected == rows_of(result.select("f.id", "d.name", dims["k"]))
    assert ROWS == len(expected) == result.where(df["id"] >= 0).count()


@pytest.mark.parametrize("other", ["time", "text", "inner-time", "files"])
def test_plan_that_depends_on_when_it_is_made_is_made_when_it_runs(spark, lake, tmp_path, other):
    spark.range(10).withColumnRenamed("id", "k").write.parquet(str(tmp_path / "other"))
    text = {
        "time": query_of(lake, "f.id, current_timestamp() AS now"),
        "text": query_of(lake, "f.id, CAST('now' AS TIMESTAMP) AS now"),
        "inner-time": query_of(lake, more=f"WHERE (SELECT max(current_date()) FROM delta.`{lake}/dims`) IS NOT NULL"),
        "files": query_of(lake, more=f"JOIN parquet.`{tmp_path}/other` o ON o.k = d.k"),
    }
    df = spark.sql(text[other])
    result = prune(df, options=OPTIONS)
    assert "optimization" not in phases(df) + phases(result)
    assert ROWS == len(rows_of(result))


def test_query_whose_own_plan_fails_is_planned_by_spark(spark, lake, monkeypatch):
    def fails(*_: object) -> None:
        raise Py4JError("secret")

    assert ROWS == len(rows_of(prune(spark.sql(query_of(lake)), options=OPTIONS)))
    monkeypatch.setattr(file_index, "jvm_frame", fails)
    df = spark.sql(query_of(lake))
    result = prune(df, options=OPTIONS)
    assert df._jdf is result._jdf
    assert ROWS == len(rows_of(result))
