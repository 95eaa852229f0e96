"""Scans by pyarrow in Python workers: equal rows, exact counts, and a reason where Spark's reader scans instead."""

from __future__ import annotations

import gc
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.accumulators import _accumulatorRegistry
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812  its usual name

from connectors.arrow_scan import workers as arrow_workers
from connectors.arrow_scan.scan import arrow_scan
from connectors.arrow_scan.workers import KnownWorkers, Workers
from connectors.pipeline import table_scan as pipeline
from connectors.spark.session_state import state_of
from pruning import explain, prune, pruned_read, report
from pruning.query import planner
from pruning.query.filter_plan import ready_filters
from pruning.reasons import ReasonCode
from sample_data.rows import Rows
from tests.oracle.lakes import Layout, copied, write
from tests.oracle.test_bad_input import with_statistics
from tests.queries.arrow import ARROW, counts, is_by_arrow, refusals, side_bytes
from tests.queries.star import DAYS_PER_FILE, FILES, ROWS_PER_DAY
from tests.unchanged import is_unchanged

pytestmark = pytest.mark.spark

PER_FILE = DAYS_PER_FILE * ROWS_PER_DAY


@pytest.fixture(scope="module")
def groups(spark, ways, tmp_path_factory) -> str:
    """The folder of a table of 4 files with 5 row groups of 10 rows each: `k` ascends, `m` is spread over all rows."""
    rows = pa.table(
        {
            "k": pa.array(range(200), pa.int32()),
            "m": pa.array([None if at % 7 == 0 else at * 37 % 50 for at in range(200)], pa.int64()),
            "text": pa.array(["\U0001f600" * (at % 5) for at in range(200)]),
        }
    )
    lake = write(spark, tmp_path_factory.mktemp("groups") / "t", "parquet", rows, Layout(50, 10))
    ways.view("groups", lake.whole())
    return lake.source


# Statistics and row filters.


@pytest.mark.parametrize(
    "query",
    [
        "SELECT s.* FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 2",
        "SELECT count(*) FROM {sales} WHERE day IN (SELECT day FROM {days} WHERE month = 2)",
        "SELECT count(s.item) FROM (SELECT * FROM {days} WHERE month = 2) d LEFT JOIN {sales} s ON s.day = d.day",
    ],
)
def test_dimension_filters_a_fact(pruned, query):
    _, result = pruned(query, ARROW)
    assert is_by_arrow(result)
    assert {"sales": (2, 2, 2 * PER_FILE)} == counts(result)


def test_scan_tests_rows_by_all_filters(pruned):
    query = """
        SELECT name, sum(amount) FROM {sales} s JOIN {days} d ON s.day = d.day JOIN {items} i ON s.item = i.item
        WHERE month = 5 AND name LIKE 'n1%' GROUP BY name"""
    _, result = pruned(query, ARROW)
    assert is_by_arrow(result)
    (table,) = explain(result).tables
    assert [("day",), ("item",)] == sorted(each.columns for each in table.filters)
    assert {"sales": (1, 1, PER_FILE)} == counts(result)


def test_other_columns_are_read_only_for_surviving_rows(spark, groups):
    """Bytes are those of column chunks: key columns of the opened row groups, other columns of row groups with a
    survivor.
    """
    df = pruned_read(spark, groups, keys={"k": [5, 6, 54, 61], "m": [35, 7]}, options=ARROW)
    assert {5, 61} == {row.k for row in df.collect()}
    assert is_by_arrow(df)
    # The keys lie in the first row group of one file and in the first two of the next.
    assert {groups: (2, 3, 30)} == counts(df)
    first, second = (pq.read_metadata(path) for path in sorted(Path(groups).glob("*.parquet"))[:2])
    read = [(first, 0, (0, 1, 2)), (second, 0, (0, 1)), (second, 1, (0, 1, 2))]
    size = sum(file.row_group(at).column(leaf).total_compressed_size for file, at, leaves in read for leaf in leaves)
    assert (size, "") == (report(df).measured.bytes_scanned, report(df).measured.bytes_note)


def test_row_groups_without_a_key_are_not_read(spark, groups):
    df = pruned_read(spark, groups, keys={"k": [-5, 500], "m": [3]}, options=ARROW)
    assert [] == df.collect()
    # No row group has both keys, but one file has.
    df = pruned_read(spark, groups, keys={"k": [55], "m": [999]}, options=ARROW)
    assert ([], 0) == (df.collect(), report(df).measured.files_read)


def test_empty_build_reads_nothing(pruned):
    _, result = pruned("SELECT * FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 77", ARROW)
    assert [0] == [each.measured.files_read for each in report(result).tables]


def test_pyarrow_scan_is_created_once_after_all_levels(pruned, monkeypatch):
    """A scan created after one level of builds would be created again after the next level."""
    made = []

    def one_at_a_time(*arguments):
        filters, refused = yield from ready_filters(*arguments)
        return filters[:1], refused

    def counted(*arguments):
        made.append(arguments[1].name)
        return arrow_scan(*arguments)

    monkeypatch.setattr(planner, "ready_filters", one_at_a_time)
    monkeypatch.setattr(pipeline, "arrow_scan", counted)
    query = """
        SELECT name, sum(amount) FROM {sales} s JOIN {days} d ON s.day = d.day JOIN {items} i ON s.item = i.item
        WHERE month < 3 AND name LIKE 'n1%' GROUP BY name"""
    _, result = pruned(query, ARROW)
    assert [1, 2] == sorted(each.level for each in explain(result).filters)
    assert is_by_arrow(result)
    assert 1 == len(made)
    assert {"sales": (5, 5, 5 * PER_FILE)} == counts(result)


# Actions.


def test_each_action_is_counted_separately(spark, groups):
    """A task may run several partitions of a scan, and a stage two scans: each partition counts once."""
    df = pruned_read(spark, groups, keys={"k": [5, 55, 105]}, options=ARROW)
    for made in (df, df.coalesce(1), df.repartition(3)):
        assert 3 == len(made.collect())
        assert {groups: (3, 3, 30)} == counts(df)
    assert 3 == report(df).tables[0].actions
    assert 6 == len(df.union(df).coalesce(1).collect())
    assert (3, 6, 60) == (
        report(df).measured.files_read,
        report(df).measured.row_groups_read,
        report(df).measured.rows_scanned,
    )


def test_query_on_top_outlives_the_counters(spark, groups):
    """The counters end with the pruned DataFrame; later actions of other queries are not counted."""
    known = set(_accumulatorRegistry)
    df = pruned_read(spark, groups, keys={"k": [5, 55, 105]}, options=ARROW)
    assert is_by_arrow(df)
    assert 1 == len(_accumulatorRegistry.keys() - known)
    above = df.where("m = 35")
    del df
    gc.collect()
    assert set() == _accumulatorRegistry.keys() - known
    for _ in range(2):
        assert [5, 55] == sorted(row.k for row in above.collect())


def test_action_that_stops_early_is_not_measured(spark, groups):
    """Spark does not report the metrics of cancelled tasks."""
    df = pruned_read(spark, groups, keys={"k": [*range(5), *range(100, 105)]}, options=ARROW)
    assert 1 == len(df.limit(1).collect())
    assert (None, 0) == (report(df).measured, report(df).tables[0].actions)
    assert 10 == len(df.collect())
    assert {groups: (2, 2, 20)} == counts(df)


def test_table_read_twice_is_two_scans(pruned):
    query = """
        SELECT count(*) FROM {days} d JOIN {sales} a ON d.day = a.day JOIN {sales} b ON a.day = b.day
        WHERE d.month = 4 AND a.item = 3 AND b.item = 7"""
    _, result = pruned(query, replace(ARROW, broadcast_strategy="NONE"))
    assert is_by_arrow(result)
    assert {"sales#1": (2, 2, 2 * PER_FILE), "sales#2": (2, 2, 2 * PER_FILE)} == counts(result)


def test_union_columns_are_read_by_position(pruned):
    """Failure catalogue 126: a union takes columns by position and has the names of its first branch."""
    query = """
        SELECT day + item + amount FROM (
            SELECT day, item, amount FROM {sales} WHERE day < 3
            UNION ALL SELECT * FROM {sales} WHERE day IN (SELECT day FROM {days} WHERE month = 2))"""
    _, result = pruned(query, ARROW)
    assert is_by_arrow(result)


def test_query_conditions_skip_containers(pruned):
    """The conditions stay above the scan, where Spark pushes them to no reader."""
    query = """
        SELECT s.* FROM {sales} s JOIN {days} d ON s.day = d.day
        WHERE month IN (1, 4) AND s.amount >= 2375 AND s.item <> 7"""
    _, result = pruned(query, ARROW)
    assert is_by_arrow(result)
    assert {"sales": (2, 2, 2 * PER_FILE)} == counts(result)


@pytest.mark.full
def test_joins_are_planned_as_over_files(pruned, conf):
    """A side that Spark would not broadcast may not fit into memory."""
    query = """
        SELECT max(s.amount + s.item) FROM (SELECT * FROM {days} WHERE day % 20 = 3) d
        LEFT JOIN {sales} s ON s.day = d.day"""
    options = replace(ARROW, broadcast_strategy="NONE")
    for factor in ("1.0", "3.0", "0.3"):
        conf("spark.sql.sources.fileCompressionFactor", factor)
        df, result = pruned(query, options)
        ways = [df, prune(df, options=replace(options, scan="PREDICATE")), result]
        assert is_by_arrow(result)
        (size,) = {side_bytes(each) for each in ways}
        for threshold, kind in ((size - 1, "SortMergeJoin"), (size, "BroadcastHashJoin")):
            conf("spark.sql.autoBroadcastJoinThreshold", str(threshold))
            # Plans made again, because Spark keeps the plan of a DataFrame.
            plans = [each.where("true")._jdf.queryExecution().sparkPlan().toString() for each in ways]
            assert [True] * 3 == [kind in each for each in plans]
        conf("spark.sql.autoBroadcastJoinThreshold", "10m")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.execution.arrow.useLargeVarTypes", "true"),
        ("spark.sql.execution.arrow.maxRecordsPerBatch", "1"),
        ("spark.sql.adaptive.enabled", "false"),
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.caseSensitive", "true"),
        ("spark.sql.parquet.enableVectorizedReader", "false"),
    ],
)
def test_settings_of_the_session_do_not_change_rows(spark, conf, groups, name, value):
    conf(name, value)
    df = pruned_read(spark, groups, keys={"k": [5, 55, 105]}, options=ARROW)
    assert [(5, 35, ""), (55, 35, ""), (105, None, "")] == Rows(df.collect())
    assert is_by_arrow(df)
    assert {groups: (3, 3, 30)} == counts(df)


@pytest.mark.parametrize(
    ("format_", "name"),
    [
        ("delta", "spark.databricks.delta.stats.skipping"),
        ("delta", "spark.sql.parquet.filterPushdown"),
        ("parquet", "spark.sql.parquet.filterPushdown"),
        ("parquet", "spark.sql.parquet.filterPushdown.timestamp"),
    ],
)
@pytest.mark.parametrize("vectorised", ["true", "false"])
def test_disabled_data_skipping_keeps_spark_reader(spark, conf, tmp_path, format_, name, vectorised):
    """A user who disables data skipping does not trust the statistics, so no reader may skip by them."""
    at = [datetime(2024, 1, 1 + day, tzinfo=timezone.utc) for day in range(8)]
    lake = write(spark, tmp_path / "t", format_, pa.table({"at": at}), Layout(4, 2))
    conf("spark.sql.parquet.enableVectorizedReader", vectorised)
    conf(name, "false")
    df = pruned_read(spark, lake.source, keys={"at": at[3:4]}, options=ARROW)
    assert at[3:4] == [row.at.astimezone(timezone.utc) for row in df.where(F.col("at") == at[3]).collect()]
    assert "MapInArrow" not in df._jdf.queryExecution().executedPlan().toString()
    reasons = [each for each in explain(df).tables[0].reasons if each.code is ReasonCode.SKIPPING_DISABLED]
    assert name in {each.detail for each in reasons}


def test_wrong_delta_statistics_lose_no_row_if_skipping_is_off(spark, conf, tmp_path):
    written = write(spark, tmp_path / "t", "delta", pa.table({"k": range(8), "v": range(8)}), Layout(8, 2))
    lake = copied(written, tmp_path / "wrong")
    bounds = {"minValues": {"k": 1000, "v": 0}, "maxValues": {"k": 2000, "v": 7}}
    with_statistics(lake, lambda stats: {**stats, **bounds})
    found = []
    for is_trusted in ("true", "false"):
        conf("spark.databricks.delta.stats.skipping", is_trusted)
        found.append(pruned_read(spark, lake.source, keys={"k": [5]}, options=ARROW).where("k = 5").count())
    # The row is lost where the log is trusted, which proves that the log is wrong.
    assert [0, 1] == found


# Fallback to Spark's reader.


def test_exact_read_keeps_spark_reader(spark, groups):
    df = pruned_read(spark, groups, keys={"k": [5, 55]}, options=ARROW, exact=True)
    assert 2 == len(df.collect())
    assert ["only Spark's reader does exact=True" in each for each in refusals(df)] == [True]


@pytest.mark.usefixtures("groups")
def test_input_file_name_keeps_spark_reader(ways):
    query = """
        SELECT k, instr(input_file_name(), '.parquet') > 0 AS has_name, input_file_block_length() AS length
        FROM groups JOIN VALUES (5), (55) AS d(day) ON k = day"""
    _, result = ways.agreed(query, ARROW, by_duck=False)
    assert [(5, True), (55, True)] == sorted((row.k, row.has_name) for row in result.collect())
    assert any("uses input_file_name()" in str(each) for each in explain(result).reasons)
    query = "SELECT k, text FROM groups JOIN VALUES (5), (55) AS d(day) ON k = day"
    _, result = ways.agreed(query, ARROW, by_duck=False)
    assert is_by_arrow(result)


@pytest.mark.full
def test_not_null_columns_stay_not_null(spark, ways, tmp_path):
    spark.sql(f"CREATE TABLE delta.`{tmp_path}/t` (k INT NOT NULL, v STRING NOT NULL, w INT) USING delta")
    spark.sql(f"INSERT INTO delta.`{tmp_path}/t` SELECT id, 'v' || id, NULL FROM range(0, 1000, 1, 4)")
    ways.view("never_null", spark.read.format("delta").load(f"{tmp_path}/t"))
    query = "SELECT a.* FROM never_null a JOIN VALUES (5), (55) AS d(day) ON k = day"
    _, result = ways.agreed(query, ARROW, duck="SELECT * FROM never_null WHERE k IN (5, 55)")
    assert [False, False, True] == [each.nullable for each in result.schema]
    assert is_by_arrow(result)


@pytest.mark.full
def test_only_files_with_deletion_vectors_keep_spark_reader(spark, ways, tmp_path):  # failure catalogue 118, 123
    table = f"delta.`{tmp_path}/t`"
    spark.sql(f"CREATE TABLE {table} (k INT, v STRING) USING delta TBLPROPERTIES (delta.enableDeletionVectors = true)")
    spark.sql(f"INSERT INTO {table} SELECT id, 'v' || id FROM range(0, 1000, 1, 4)")
    spark.sql(f"DELETE FROM {table} WHERE k = 7")
    ways.view("marked", spark.read.format("delta").load(f"{tmp_path}/t"))
    query = "SELECT a.* FROM marked a JOIN VALUES ({}), (995) AS d(day) ON k = day"
    for key, count in ((700, 2), (5, 2), (7, 1)):
        _, result = ways.agreed(query.format(key), ARROW, duck=f"SELECT * FROM marked WHERE k IN ({key}, 995)")
        assert count == len(result.collect())
        assert (key == 700) == is_by_arrow(result)


@pytest.mark.parametrize("name", ["ignoreCorruptFiles", "ignoreMissingFiles"])
def test_ignored_missing_or_corrupt_files_keep_spark_reader(spark, conf, groups, name):
    conf(f"spark.sql.files.{name}", "true")
    df = pruned_read(spark, groups, keys={"k": [5, 55]}, options=ARROW)
    assert 2 == df.where("k IN (5, 55)").count()
    assert [name in each for each in refusals(df)] == [True]


def test_workers_without_the_package_keep_spark_reader(spark, groups, monkeypatch):
    """When the query runs, it is too late to fall back to Spark's reader."""
    monkeypatch.setattr(state_of(spark).slot(KnownWorkers), "answer", Workers("they cannot import 'connectors'"))
    df = pruned_read(spark, groups, keys={"k": [5, 55]}, options=ARROW)
    assert 2 == df.where("k IN (5, 55)").count()
    assert ["cannot import" in each for each in refusals(df)] == [True]


def test_workers_are_probed_once(spark, groups, monkeypatch):
    def others(batches):
        for _ in batches:
            yield pa.record_batch([pa.array(["pyarrow 0.1"]), pa.nulls(1, pa.int64())], ["version", "room"])

    monkeypatch.setattr(state_of(spark).slot(KnownWorkers), "answer", None)
    assert is_by_arrow(pruned_read(spark, groups, keys={"k": [5]}, options=ARROW))
    monkeypatch.setattr(arrow_workers, "probe", lambda: others)
    monkeypatch.setattr(arrow_workers, "version", lambda: "pyarrow 26")
    assert is_by_arrow(pruned_read(spark, groups, keys={"k": [5]}, options=ARROW))
    state_of(spark).slot(KnownWorkers).answer = None
    (why,) = refusals(pruned_read(spark, groups, keys={"k": [5]}, options=ARROW))
    assert "they have pyarrow 0.1, and the driver has pyarrow 26" in why


def test_row_group_over_the_worker_memory_keeps_spark_reader(spark, groups, monkeypatch):
    """A worker over its memory limit fails the query, not only the scan."""
    monkeypatch.setattr(state_of(spark).slot(KnownWorkers), "answer", Workers(room=1 << 30))
    (why,) = refusals(pruned_read(spark, groups, keys={"k": [5]}, options=ARROW))
    assert "a task may take 1.3 GiB, and spark.executor.pyspark.memory leaves 1.0 GiB" in why
    monkeypatch.setattr(state_of(spark).slot(KnownWorkers), "answer", Workers(room=2 << 30))
    assert is_by_arrow(pruned_read(spark, groups, keys={"k": [5]}, options=ARROW))


def test_replaced_file_fails_the_query(spark, tmp_path):
    """The decision is about the old file; row positions of a new file would give wrong rows."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"k": pa.array(range(100)), "v": pa.array(range(100))}), path, row_group_size=10)
    df = pruned_read(spark, str(tmp_path), keys={"k": [5, 6]}, options=ARROW)
    assert is_by_arrow(df)
    pq.write_table(pa.table({"k": pa.array(range(50)), "v": pa.array(range(50))}), path, row_group_size=5)
    with pytest.raises(Exception, match="it was replaced"):
        df.collect()


@pytest.mark.parametrize("way", ["read", "query"])
def test_overwriting_the_table_that_is_read_is_refused(spark, tmp_path, way):
    """Spark would empty the table before reading it."""
    rows = spark.range(0, 1000, 1, 4).selectExpr("CAST(id AS INT) AS k", "id AS v")
    rows.write.option("path", str(tmp_path / "t")).format("parquet").saveAsTable("overwritten")
    try:
        df = pruned_read(spark, "overwritten", keys={"k": [5, 600]}, options=ARROW)
        if way == "query":
            keys = spark.sql("SELECT * FROM VALUES (5), (600) AS d(day)")
            df = prune(spark.table("overwritten").join(keys, F.expr("k = day")).drop("day"), options=ARROW)
        assert is_by_arrow(df)
        write = df.write.mode("overwrite")
        with pytest.raises(AnalysisException, match="UNSUPPORTED_OVERWRITE"):
            write.insertInto("overwritten", overwrite=True)
        assert 1000 == spark.read.parquet(str(tmp_path / "t")).count()
    finally:
        spark.sql("DROP TABLE overwritten")


def test_spark_reader_is_the_default(pruned):
    _, result = pruned("SELECT s.* FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 2")
    plan = result._jdf.queryExecution().executedPlan().toString()
    assert "MapInArrow" not in plan
    assert is_unchanged(result, prune(result, options=replace(ARROW, enabled=False)))
    assert FILES > 2
