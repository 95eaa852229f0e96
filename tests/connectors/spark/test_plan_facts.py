"""`plan_facts`: sizes from the files that exist, not from Spark's statistics, and equal parts of a plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.connector_names import file_formats, snapshot_calls
from connectors.registry import optimized
from connectors.spark.plan_facts import plan_facts
from connectors.spark.plan_reader import SparkPlan
from pruning import explain, prune
from pruning.query.plan import relations_of
from tests.costs import FREE_BUILDS

pytestmark = pytest.mark.spark

_GUESS = "spark.sql.sources.fileCompressionFactor"


def facts_of(plan: SparkPlan):
    return plan_facts(plan, file_formats(plan.spark), snapshot_calls(plan.spark))


def sizes(df) -> list[int]:
    """The sizes of the scans of a query, in the order of its plan."""
    found = facts_of(SparkPlan.of(df, optimized(df))).leaves
    assert found.files == set(found.sizes)
    return list(found.sizes.values())


def size_of(*paths: str) -> int:
    """The bytes of all data files."""
    found = [each for path in paths for each in Path(path).rglob("*.parquet") if "_delta_log" not in each.parts]
    assert found
    return sum(each.stat().st_size for each in found)


@pytest.fixture
def table(spark):
    names = []

    def create(name: str, statement: str) -> str:
        names.append(name)
        spark.sql(f"CREATE TABLE {name} {statement}")
        return name

    yield create
    for name in names:
        spark.sql(f"DROP TABLE {name}")


def test_outdated_analyze_statistics_are_ignored(spark, table, conf, tmp_path):
    folder = str(tmp_path / "facts")
    name = table("analyzed_facts", f"(day int, amount bigint) USING parquet LOCATION '{folder}'")
    spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS")
    spark.range(0, 80_000, 1, 8).selectExpr("cast(id div 100 AS int) AS day", "id AS amount").write.mode(
        "append"
    ).parquet(folder)
    spark.catalog.refreshTable(name)
    conf(_GUESS, "0.01")
    assert [size_of(folder)] == sizes(spark.table(name))
    days = spark.range(0, 800, 1, 1).selectExpr("cast(id AS int) AS day", "id div 100 AS month").where("month = 2")
    result = prune(spark.table(name).join(days.cache(), "day"), options=FREE_BUILDS)
    days.unpersist()
    assert [(1, 8)] == [(each.files_kept, each.files_total) for each in explain(result).tables]


@pytest.mark.parametrize("where", ["path", "catalog"])
def test_size_counts_only_selected_partitions(spark, table, where, tmp_path):
    folder = str(tmp_path / "facts")
    facts = spark.range(0, 4000, 1, 1).selectExpr("id AS amount", "id % 4 AS `of month`", "id % 3 AS shop")
    facts.write.partitionBy("of month", "shop").parquet(folder)
    df = spark.read.parquet(folder)
    if where == "catalog":
        columns = "(amount bigint, `of month` bigint, shop bigint)"
        name = table("monthly", f"{columns} USING parquet PARTITIONED BY (`of month`, shop) LOCATION '{folder}'")
        spark.sql(f"MSCK REPAIR TABLE {name}")
        df = spark.table(name)
    assert [size_of(folder)] == sizes(df)
    selected = df.where("`of month` = 2 AND amount > 5 AND shop + amount > 1 AND `of month` + shop > 3 AND rand() >= 0")
    assert [size_of(f"{folder}/of month=2/shop=2")] == sizes(selected)
    joined = df.alias("f").join(df.where("shop = 1").alias("g"), "amount")
    assert [size_of(folder), sum(size_of(f"{folder}/of month={month}/shop=1") for month in range(4))] == sizes(joined)


@pytest.mark.full
def test_size_counts_only_statically_kept_delta_files(spark, tmp_path):
    folder = str(tmp_path / "facts")
    spark.range(0, 4000, 1, 4).selectExpr("id AS amount").write.format("delta").save(folder)
    df = spark.read.format("delta").load(folder)
    assert [size_of(folder)] == sizes(df)
    assert size_of(folder) // 5 < sizes(df.where("amount < 10"))[0] < size_of(folder) // 3


def test_size_counts_delta_partitions_and_statistics(spark, tmp_path):
    folder = str(tmp_path / "facts")
    facts = spark.range(0, 4000, 1, 1).selectExpr("id AS amount", "id % 2 AS month").repartitionByRange(8, "amount")
    facts.write.partitionBy("month").format("delta").save(folder)
    df = spark.read.format("delta").load(folder)
    assert [size_of(f"{folder}/month=1")] == sizes(df.where("month = 1"))
    (one,) = sizes(df.where("month = 1 AND amount < 10"))
    assert one in {each.stat().st_size for each in Path(folder, "month=1").glob("*.parquet")}


def test_equal_leaves_and_nodes_refer_to_the_first(spark, tmp_path):
    for name in ("facts", "others"):
        spark.range(0, 40, 1, 1).selectExpr("id % 4 AS day", "id AS amount").write.parquet(str(tmp_path / name))
    facts, others = (spark.read.parquet(str(tmp_path / name)) for name in ("facts", "others"))
    sums = facts.where("amount > 5").groupBy("day").sum("amount")
    plan = SparkPlan.of(sums.join(others, "day").select("day").union(sums.select("day")))
    first, other, again = relations_of(plan.root)
    found = facts_of(plan)
    assert {first.id: first.id, other.id: other.id, again.id: first.id} == found.first_leaf
    assert first.id == found.equal[again.id]
    assert other.id not in found.equal


def test_facts_take_one_call_and_a_conf(spark, tmp_path, bridge_calls):
    spark.range(0, 40, 1, 1).write.parquet(str(tmp_path / "facts"))
    facts = spark.read.parquet(str(tmp_path / "facts"))
    plan = SparkPlan.of(facts.where("id > 3").union(facts.join(facts, "id")))
    formats, calls = file_formats(spark), snapshot_calls(spark)
    assert 2 == bridge_calls(lambda: plan_facts(plan, formats, calls))
