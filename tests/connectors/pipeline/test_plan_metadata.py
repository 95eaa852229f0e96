"""`PlanMetadata`: tables of a plan are opened once, and each scan has its own column ids."""

from __future__ import annotations

import threading

import pytest
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from connectors.delta import log as delta_log
from connectors.delta.log import FileCatalog
from connectors.delta.statistics import listing
from connectors.pipeline import plan_metadata
from connectors.pipeline.plan_metadata import PlanMetadata
from connectors.spark.plan_reader import SparkPlan
from pruning import prune, report
from pruning.limits import LIMITS
from pruning.query.join_graph import JoinGraph
from pruning.reasons import Reason, ReasonCode
from tests.costs import FREE_BUILDS


def opened(df):
    """For each scan of a query, the index of the first scan that shares its table."""
    plan = SparkPlan.of(df)
    metadata, relations = PlanMetadata(plan, LIMITS), JoinGraph.of(plan.root).relations
    tables = [metadata.table(each) for each in relations]
    scans = [metadata.plan_table(each) for each in relations]
    assert not any(isinstance(each, Reason) for each in (*tables, *scans))
    ids = [scan.table.read(None)._jdf.queryExecution().analyzed().output().head().exprId().id() for scan in scans]
    assert len(set(ids)) == len(scans)
    return [tables.index(each) for each in tables]


@pytest.fixture
def written(spark, tmp_path):
    def write(name: str, format_: str, rows: int = 100) -> str:
        path = str(tmp_path / name)
        spark.range(0, rows, 1, 2).selectExpr("id AS k", "id * 2 AS v").write.format(format_).mode("append").save(path)
        return path

    return write


pytestmark = pytest.mark.spark


@pytest.mark.parametrize("format_", ["delta", "parquet"])
def test_table_read_many_times_is_opened_once(spark, written, format_):
    spark.read.format(format_).load(written("one", format_)).createOrReplaceTempView("shared_one")
    spark.read.format(format_).load(written("two", format_)).createOrReplaceTempView("shared_two")
    df = spark.sql(
        "SELECT a.v FROM shared_one a JOIN shared_two b USING (k) JOIN shared_one c USING (k) WHERE c.v > 3 "
        "UNION ALL SELECT v FROM shared_two WHERE k IN (SELECT v FROM shared_one WHERE v < 50)"
    )
    assert [0, 1, 0, 1, 0] == opened(df)
    for name in ("shared_one", "shared_two"):
        spark.catalog.dropTempView(name)


def test_two_versions_of_a_table_are_two_tables(spark, written):
    path = written("facts", "delta")
    written("facts", "delta", 40)
    older = spark.read.format("delta").option("versionAsOf", 0).load(path)
    newer = spark.read.format("delta").load(path)
    assert [0, 1, 0] == opened(older.join(newer, "k").join(older.withColumnRenamed("v", "w"), "k"))


def test_two_listings_of_a_directory_are_two_tables(spark, written):
    path = written("facts", "parquet")
    before = spark.read.parquet(path)
    written("facts", "parquet", 40)
    assert [0, 1] == opened(before.join(spark.read.parquet(path), "k"))


def test_table_with_two_schemas_is_two_tables(spark, written):
    path = written("facts", "parquet")
    whole = spark.read.parquet(path)
    narrow = spark.read.schema("k bigint").parquet(path)
    assert [0, 1] == opened(whole.join(narrow, "k"))


def test_unopenable_table_has_one_reason_for_all_scans(spark, written, monkeypatch):
    calls = []

    def failing(*_):
        calls.append(1)
        return Reason(ReasonCode.STATISTICS_FAILED, "facts")

    monkeypatch.setattr(plan_metadata, "table_of", failing)
    df = spark.read.parquet(written("facts", "parquet"))
    plan = SparkPlan.of(df.join(df.withColumnRenamed("v", "w"), "k"))
    metadata, relations = PlanMetadata(plan, LIMITS), JoinGraph.of(plan.root).relations
    assert {Reason(ReasonCode.STATISTICS_FAILED, "facts")} == {metadata.plan_table(each) for each in relations}
    assert [1] == calls
    assert 2 == len(relations)


def fetches(monkeypatch):
    """A list that collects the columns of each job that fetches statistics from a log."""
    found = []
    kept = FileCatalog._kept

    def counted(self, snapshot, table, columns):
        found.append(sorted(".".join(each.path) for each in columns))
        return kept(self, snapshot, table, columns)

    monkeypatch.setattr(FileCatalog, "_kept", counted)
    return found


@pytest.mark.full
def test_statistics_are_fetched_by_one_job_per_table(spark, written, monkeypatch):
    facts, keys = (spark.read.format("delta").load(written(name, "delta")) for name in ("facts", "keys"))
    found = fetches(monkeypatch)
    query = facts.join(keys.where("v < 50"), "k").where(facts.v > 3).select("k")
    prune(query, options=FREE_BUILDS).collect()
    # All columns of a small log at once, for the estimates of both tables.
    assert [["k", "v"]] * 2 == found
    prune(query, options=FREE_BUILDS).collect()
    assert 2 == len(found)


def test_statistics_of_several_tables_are_fetched_at_the_same_time(spark, written, monkeypatch):
    facts, keys = (spark.read.format("delta").load(written(name, "delta")) for name in ("facts", "keys"))
    both = threading.Barrier(2, timeout=60)
    threads: list[str] = []
    fetched = FileCatalog._fetched

    def waiting(self, snapshot, columns):
        both.wait()
        threads.append(threading.current_thread().name)
        return fetched(self, snapshot, columns)

    monkeypatch.setattr(FileCatalog, "_fetched", waiting)
    result = prune(facts.join(keys.where("v < 50"), "k"), options=FREE_BUILDS)
    assert 2 == len(threads)
    assert threading.current_thread().name not in threads
    assert not [each for each in threading.enumerate() if each.name in threads]
    assert 25 == result.count()
    (table,) = (each.planned for each in report(result).tables if each.planned.files_total == 2)
    assert (1, 2) == (table.files_kept, table.files_total)


@pytest.mark.parametrize("trouble", ["raised", "marked"])
def test_failed_prefetch_does_not_affect_needed_statistics(spark, written, monkeypatch, trouble):
    facts, keys = (spark.read.format("delta").load(written(name, "delta")) for name in ("facts", "keys"))
    found = fetches(monkeypatch)

    def broken(actions, columns):
        if len(columns) > 1 and trouble == "raised":
            raise ValueError("statistics of one of them cannot be read")
        listed = listing(actions, columns)
        return listed.withColumn("broken", F.expr("true")) if len(columns) > 1 else listed

    monkeypatch.setattr(delta_log, "listing", broken)
    result = prune(facts.join(keys.where("v < 50"), "k"), options=FREE_BUILDS)
    assert 25 == result.count()
    (table,) = (each.planned for each in report(result).tables if each.planned.files_total == 2)
    assert ReasonCode.STATISTICS_FAILED not in {each.code for each in table.reasons}
    assert all(len(each) < 2 for each in found)
