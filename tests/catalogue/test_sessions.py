"""One query over other formats, types, and confs of a session."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import Observation
from pyspark.sql.functions import count

from pruning import disable, enable, history, prune, report
from sample_data.rows import Rows
from tests.catalogue.facts import OPTIONS, fact_rows, files, refusal_codes
from tests.unchanged import is_unchanged

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("tables")]

DIM = "(SELECT * FROM dims WHERE grp = 2)"
BY_DUCK = f"SELECT f.id FROM facts f JOIN {DIM} d ON f.k = d.k"


# All join strategies of Spark, with and without adaptive execution.
@pytest.mark.parametrize("threshold", ["10485760", "-1"])
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_join_strategies(agreed, conf, adaptive, threshold):
    conf("spark.sql.adaptive.enabled", adaptive)
    conf("spark.sql.autoBroadcastJoinThreshold", threshold)
    for strategy in ("AUTO", "RUNTIME_ONLY", "NONE"):
        options = replace(OPTIONS, broadcast_strategy=strategy)
        assert 1 == files(agreed(BY_DUCK, options)[1])["facts"]


# Failure catalogue 6, 25: hints that swap the sides.
@pytest.mark.parametrize("hint", ["BROADCAST(f)", "BROADCAST(d)", "MERGE(f)", "SHUFFLE_HASH(f)", "SHUFFLE_HASH(d)"])
def test_either_side_may_be_the_hash_build_side(agreed, hint):
    assert {"facts": 1} == files(agreed(BY_DUCK.replace("SELECT", f"SELECT /*+ {hint} */"), duck=BY_DUCK)[1])


# Without adaptive execution Spark runs both sides of a join that turns out to have no row, and observes rows of either:
# all or none of them, by the side that is broadcast.
@pytest.mark.parametrize("way", ["stock", "prune()", "enable()"])
def test_rows_beside_a_side_without_rows_are_observed(spark, conf, way):
    conf("spark.sql.adaptive.enabled", "false")
    seen = Observation()
    observed = spark.table("dims").where("grp = 2").observe(seen, count("*").alias("rows"))
    facts = spark.sql("SELECT f.k, f.id FROM facts f JOIN (SELECT k FROM dims WHERE grp = 777) d ON f.k = d.k")
    df = facts.join(observed.select("k"), "k")
    result, told = prune(df, options=OPTIONS) if way == "prune()" else df, None
    if way == "enable()":
        enable(spark, options=OPTIONS)
    try:
        assert [] == result.collect()
        told = report(result) if way == "prune()" else next(iter(history(spark)), None)
    finally:
        disable(spark)
    assert seen.get["rows"] in {0, 20}
    if way != "stock":
        # Spark might not read the observed side beside fewer facts.
        assert [] == [each.planned.files_kept for each in told.tables if each.planned.table == "facts"]


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_text_files_give_keys_whose_rows_are_joined(spark, agreed, tmp_path, format_):
    spark.table("dims").where("grp = 2").write.format(format_).save(f"{tmp_path}/text")
    schema = "k int, id long, item int, grp int"
    spark.read.schema(schema).format(format_).load(f"{tmp_path}/text").createOrReplaceTempView("text_dims")
    try:
        _, result = agreed("SELECT f.id FROM facts f JOIN text_dims d ON f.k = d.k WHERE grp = 2", duck=BY_DUCK)
        assert {"facts": 1} == files(result)
    finally:
        spark.catalog.dropTempView("text_dims")


# Failure catalogue 96: timestamps are equal in any session time zone.
@pytest.mark.parametrize("zone", ["Asia/Kathmandu", "America/St_Johns"])
def test_timestamps_in_other_time_zones(spark, agreed, conf, tmp_path, zone):
    conf("spark.sql.session.timeZone", zone)
    moment = "timestamp_seconds(1700000000 + 1801 * k) AS t"
    fact_rows(spark).selectExpr(moment, "id").write.format("delta").save(f"{tmp_path}/moments")
    spark.table("dims").selectExpr(moment, "grp").write.parquet(f"{tmp_path}/moment_dims")
    facts, dims = f"delta.`{tmp_path}/moments`", f"parquet.`{tmp_path}/moment_dims`"
    query = f"SELECT f.id FROM {facts} f JOIN {dims} d ON f.t = d.t WHERE grp = 2"
    _, result = agreed(query, OPTIONS, duck=BY_DUCK)
    assert {"moments": 1} == files(result)


# Tables are recognized by their plans, whatever their names.
@pytest.mark.full
def test_catalog_tables_and_permanent_views(spark, agreed, tmp_path):
    spark.sql("CREATE DATABASE named")
    try:
        fact_rows(spark).write.format("delta").saveAsTable("named.managed")
        fact_rows(spark).write.format("delta").save(f"{tmp_path}/elsewhere")
        spark.sql(f"CREATE TABLE named.external USING delta LOCATION '{tmp_path}/elsewhere'")
        spark.table("dims").write.format("delta").saveAsTable("named.dims")
        spark.sql("CREATE VIEW named.some_dims AS SELECT k AS key, item FROM named.dims WHERE grp = 2")
        spark.sql("CREATE VIEW named.joined AS SELECT f.id FROM named.managed f JOIN named.some_dims d ON f.k = d.key")
        for table in ("managed", "external"):
            query = f"SELECT f.id FROM named.{table} f JOIN named.some_dims d ON f.k = d.key"
            _, result = agreed(query, duck=BY_DUCK)
            assert [1] == list(files(result).values())
        _, result = agreed("SELECT * FROM named.joined", duck=BY_DUCK)
        assert [1] == list(files(result).values())
    finally:
        spark.sql("DROP DATABASE named CASCADE")


@pytest.mark.parametrize("format_", ["orc", "csv"])
def test_other_formats_are_not_filtered_with_a_reason(spark, agreed, tmp_path, format_):
    facts = fact_rows(spark).selectExpr("k", "id")
    facts.write.format(format_).save(f"{tmp_path}/other")
    spark.read.schema(facts.schema).format(format_).load(f"{tmp_path}/other").createOrReplaceTempView("other_facts")
    try:
        query = f"SELECT f.id FROM other_facts f JOIN {DIM} d ON f.k = d.k"
        df, result = agreed(query, replace(OPTIONS, broadcast_strategy="NONE"), duck=BY_DUCK)
        assert is_unchanged(df, result)
        assert "NOT_FILES" in refusal_codes(df, result)
        # Other tables of the query are filtered.
        query += " JOIN facts g ON g.k = f.k AND g.id = f.id"
        df, result = agreed(query, duck=BY_DUCK)
        assert {"facts": 1} == files(result)
    finally:
        spark.catalog.dropTempView("other_facts")


def test_two_sessions_of_one_application(spark, agreed):
    """Each session has its own confs and views; queries alternate between them."""
    other = spark.newSession()
    for name in ("facts", "dims"):
        folder = spark.table(name).inputFiles()[0].rpartition("/")[0]
        other.read.format("delta").load(folder).createOrReplaceTempView(name)
    wanted = Rows(agreed(BY_DUCK)[1].collect())
    for session in (other, spark, other):
        result = prune(session.sql(BY_DUCK), options=OPTIONS)
        assert {"facts": 1} == files(result)
        assert wanted == Rows(result.collect())
    assert wanted
