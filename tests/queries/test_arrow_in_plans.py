"""Scans by pyarrow as leaves of Spark's plans: joins, caches and actions behave as they do over files."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812  its usual name

from pruning import explain, prune
from sample_data.rows import Rows
from tests.costs import NO_FIXED_COSTS
from tests.oracle.lakes import Layout, write
from tests.queries.arrow import counts, is_by_arrow, refusals, side_bytes
from tests.queries.star import OPTIONS

pytestmark = pytest.mark.spark

ARROW = replace(OPTIONS, scan="ARROW")
# Costs by which Spark's reader is far more expensive than pyarrow.
AUTO = replace(OPTIONS, scan="AUTO").with_limits(
    costs=replace(NO_FIXED_COSTS, spark_value=1e6, arrow_task=0.0, arrow_scan=0.0)
)
INPUT_FILE_POSSIBLE = "input_file_name() may be used over its result"
SEMI = "SELECT * FROM numbers WHERE k IN (SELECT key FROM few WHERE name = 'a')"


@pytest.fixture(scope="module")
def numbers(spark, ways, tmp_path_factory) -> str:
    """The folder of the view `numbers`, which has 5 files with 4 row groups of 10 rows; the view `few` has some of its
    keys.
    """
    folder = tmp_path_factory.mktemp("numbers")
    rows = pa.table(
        {"k": pa.array(range(200), pa.int32()), "v": pa.array([at * 37 % 50 for at in range(200)], pa.int64())}
    )
    few = pa.table({"key": pa.array([5, 55, 105], pa.int32()), "name": ["a", "b", "a"]})
    lakes = {
        name: write(spark, folder / name, "parquet", each, Layout(40, 10))
        for name, each in (("numbers", rows), ("few", few))
    }
    for name, lake in lakes.items():
        ways.view(name, lake.whole())
    return lakes["numbers"].source


# input_file_name().


@pytest.mark.usefixtures("numbers")
@pytest.mark.parametrize(
    ("query", "answer"),
    [
        (SEMI, "names"),
        (f"{SEMI} UNION ALL SELECT * FROM numbers WHERE k = 7", "names"),
        ("SELECT v, count(*) FROM numbers n JOIN (VALUES (5), (105)) AS t(key) ON k = key GROUP BY v", "free"),
        (f"SELECT DISTINCT v FROM ({SEMI})", "free"),
        ("SELECT n.* FROM numbers n JOIN few ON k = key WHERE name = 'a'", "refused"),
    ],
    ids=["subquery", "union", "aggregate", "distinct", "join"],
)
def test_auto_keeps_input_file_name_for_later_queries(ways, query, answer):
    df, result = ways.agreed(query, AUTO)
    assert ("MapInArrow" in executed(result)) is (answer in {"free", "refused"})
    assert any(INPUT_FILE_POSSIBLE in str(each) for each in explain(result).reasons) is (answer == "names")
    if answer == "refused":
        with pytest.raises(AnalysisException, match="MULTI_SOURCES_UNSUPPORTED"):
            df.select(F.input_file_name())
        return
    asked = F.input_file_name(), F.expr("input_file_block_start()"), F.expr("input_file_block_length()")
    told = [Rows(each.select(*asked).collect()) for each in (df, result)]
    assert told[0] == told[1]
    assert (answer == "names") is all(name.endswith(".parquet") for name, *_ in told[0])


@pytest.mark.usefixtures("numbers")
def test_pyarrow_scan_has_no_input_file_name(ways):
    _, result = ways.agreed(SEMI, ARROW)
    assert is_by_arrow(result)
    assert {""} == {row[0] for row in result.select(F.input_file_name()).collect()}
    assert {"numbers"} == {each.table for each in explain(result).tables}


def test_file_metadata_columns_keep_spark_reader(spark, numbers):
    known = spark.read.parquet(numbers).select("k", "_metadata.file_name", "_metadata.row_index")
    df = known.join(spark.table("few").where("name = 'a'"), F.expr("k = key"))
    result = prune(df, options=ARROW)
    assert Rows(df.collect()) == Rows(result.collect())
    assert ["_metadata" in each for each in refusals(result)] == [True]


# Joins.


def test_analyze_statistics_size_a_pyarrow_scan(spark, ways, conf, numbers):
    spark.sql(f"CREATE TABLE counted USING parquet AS SELECT * FROM parquet.`{numbers}`")
    try:
        spark.sql("ANALYZE TABLE counted COMPUTE STATISTICS FOR ALL COLUMNS")
        query = "SELECT count(c.v) FROM (SELECT * FROM few WHERE name = 'a') f LEFT JOIN counted c ON c.k = f.key"
        ways.rows("counted", spark.table("counted"))
        sizes = []
        for is_on in ("false", "true"):
            conf("spark.sql.cbo.enabled", is_on)
            df, result = ways.agreed(query, replace(ARROW, broadcast_strategy="NONE"))
            assert is_by_arrow(result)
            assert side_bytes(df) == side_bytes(result)
            sizes.append(side_bytes(df))
        assert 200 * (8 + 4 + 8) == sizes[1] != sizes[0]
    finally:
        spark.sql("DROP TABLE counted")


def test_bucketed_table_keeps_spark_reader(spark, ways, conf, numbers):
    spark.sql(
        f"CREATE TABLE bucketed USING parquet CLUSTERED BY (k) INTO 4 BUCKETS AS SELECT * FROM parquet.`{numbers}`"
    )
    plain = "SELECT b.* FROM bucketed b JOIN few ON k = key WHERE name = 'a'"
    query = plain.replace("SELECT", "SELECT /*+ MERGE(b) */")
    try:
        ways.rows("bucketed", spark.table("bucketed"))
        for is_on, why in (("true", [True]), ("false", [])):
            conf("spark.sql.sources.bucketing.enabled", is_on)
            df, result = ways.agreed(query, replace(ARROW, broadcast_strategy="NONE"), duck=plain)
            assert ("MapInArrow" in executed(result)) is (is_on == "false")
            assert why == ["it is bucketed" in each for each in refusals(result)]
            assert executed(df).count("Exchange") == executed(result).count("Exchange")
    finally:
        spark.sql("DROP TABLE bucketed")


# Readers.


@pytest.mark.parametrize("place", ["session", "context", "read"])
def test_page_checksum_verification_keeps_spark_reader(spark, conf, numbers, place):
    name = "parquet.page.verify-checksum.enabled"
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    reader = spark.read
    if place == "session":
        conf(name, "true")
    elif place == "context":
        hadoop.set(name, "true")
    else:
        reader = reader.option(name, "true")
    try:
        df = reader.parquet(numbers).join(spark.table("few").where("name = 'a'"), F.expr("k = key"))
        result = prune(df, options=ARROW)
        assert [5, 105] == sorted(row.k for row in result.collect())
        assert [f"{name} is set" in each for each in refusals(result)] == [True]
    finally:
        hadoop.unset(name)
    assert is_by_arrow(
        prune(spark.read.parquet(numbers).join(spark.table("few"), F.expr("k = key")), options=ARROW)
    ) is (place != "session")


# Caches and actions.


@pytest.mark.usefixtures("numbers")
def test_cached_table_is_read_from_the_cache(spark, ways):
    """A table cached before pruning is no file scan; a table cached afterwards is still scanned as files."""
    query = "SELECT n.* FROM numbers n JOIN few ON k = key WHERE name = 'a'"
    options = replace(ARROW, broadcast_strategy="NONE")
    _, after = ways.agreed(query, options)
    table = spark.table("numbers").cache()
    try:
        table.count()
        _, before = ways.agreed(query, options)
        assert ["InMemoryTableScan" in executed(each) for each in (before, after)] == [True, False]
        assert "MapInArrow" not in executed(before)
        assert [5, 105] == sorted(row.k for row in after.where("v >= 0").collect())
    finally:
        spark.catalog.clearCache()


@pytest.mark.usefixtures("numbers")
def test_cached_result_is_reused_by_queries_over_it(spark):
    """A query over the cached DataFrame reads the cache; the query, pruned again, does so only by Spark's reader."""

    def made(columns: str, name: str, options=ARROW):
        query = f"SELECT {columns} FROM numbers n JOIN few ON k = key WHERE name = '{name}'"
        return prune(spark.sql(query), options=options)

    for options, is_found in ((replace(ARROW, scan="PREDICATE"), True), (ARROW, False)):
        cached = made("n.*", "a", options).cache()
        try:
            assert 2 == cached.count()
            same, others = made("n.*", "a", options), [made("n.*", "b", options), made("n.*, 1 AS one", "a", options)]
            read = (cached.where("v > 0"), same, *others)
            assert ["InMemoryTableScan" in executed(each) for each in read] == [True, is_found, False, False]
            assert [[5, 105], [5, 105], [55], [5, 105]] == [
                sorted(row.k for row in each.collect()) for each in (cached, same, *others)
            ]
        finally:
            cached.unpersist(blocking=True)
    assert [{"numbers": (1, 1, 10)}, {"numbers": (2, 2, 20)}] == [counts(each) for each in others]


@pytest.mark.full
def test_actions_return_the_same_as_over_files(spark, conf, tmp_path):
    conf("spark.sql.adaptive.enabled", "false")
    df = spark.table("numbers").join(spark.table("few").where("name = 'a'"), F.expr("k = key"))
    by = [prune(df, options=replace(ARROW, scan=each)) for each in ("PREDICATE", "ARROW")]
    assert ["MapInArrow" in executed(each) for each in by] == [False, True]
    found = [list(actions(spark, each, str(tmp_path))) for each in by]
    assert found[0] == found[1]
    assert {"numbers": (2, 2, 20)} == counts(by[1])


def actions(spark, df, folder):
    seen = Observation()
    yield df.schema
    yield df.observe(seen, F.count(F.lit(1)).alias("n")).count(), seen.get
    yield df.localCheckpoint().count()
    yield df.rdd.map(lambda row: row.k).sum()
    yield len(list(df.toLocalIterator()))
    yield df.select(F.udf(lambda k: k + 1, "int")("k").alias("k")).orderBy("k").collect()
    yield (
        df.alias("a").join(df.alias("b"), "k").count(),
        df.union(df).count(),
        len(df.tail(1)),
        len(df.limit(1).collect()),
    )
    df.write.mode("overwrite").parquet(f"{folder}/written")
    yield spark.read.parquet(f"{folder}/written").count()


def executed(df) -> str:
    return df._jdf.queryExecution().executedPlan().toString()
