from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from delta.tables import DeltaTable
from deltalake import write_deltalake

from connectors.columns import quoted
from connectors.scan.literals import ranges_sql
from pruning.scan.skipping import prune_containers
from pruning.scan.statistics import UNKNOWN
from pruning.values.domain import Domain
from pruning.values.types import ValueType
from sample_data.confs import conf
from tests.connectors.delta_logs import (
    column_of,
    files_delta_keeps,
    ids,
    kept_files,
    opened,
    pushed,
    schema_of,
    write_log,
)

pytestmark = pytest.mark.spark

BIGINT = ValueType("bigint")
MAPPED = {"delta.columnMapping.mode": "name", "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}
HOURS = 3600
NOON_UTC = 1_709_208_000


def alter(spark, path, change):
    spark.sql(f"ALTER TABLE delta.{quoted(str(path))} {change}")


def set_properties(spark, path, properties):
    settings = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    alter(spark, path, f"SET TBLPROPERTIES ({settings})")


def clear_log_cache(spark):
    """Clears Delta's cache, so that snapshots are read from storage again."""
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def assert_pruned(table, name, domain, expected_files, expected_ids):
    """The decision of pruning, Delta's own and the rows agree."""
    assert expected_files == len(kept_files(table, name, domain))
    scan = pushed(table, name, domain)
    assert expected_files == files_delta_keeps(scan)
    assert expected_ids == ids(scan)
    assert not table.problems


@pytest.fixture
def renamed(spark, tmp_path):
    """A table whose column `b` was `a` and keeps the physical name `a`; the former `b` is now `c`."""
    path = tmp_path / "t"
    frame = spark.range(0, 4, 1, 2).selectExpr("id", "id AS a", "100 + id AS b", "id AS gone")
    frame.write.format("delta").save(str(path))
    set_properties(spark, path, MAPPED)
    for change in ("RENAME COLUMN b TO c", "RENAME COLUMN a TO b", "DROP COLUMN gone", "ADD COLUMN gone BIGINT"):
        alter(spark, path, change)
    return path


# Failure catalogue 126: a column with the physical name of another. 127: rewritten files. 130: files of different
# schemas.
@pytest.mark.full
def test_renamed_and_dropped_columns_use_physical_names(spark, renamed):
    spark.createDataFrame([(9, 9, 109, 9)], "id bigint, b bigint, c bigint, gone bigint").write.format("delta").mode(
        "append"
    ).save(str(renamed))
    table = opened(spark, renamed)
    assert_pruned(table, "b", Domain.of(BIGINT, 1), 1, [1])
    assert_pruned(table, "c", Domain.of(BIGINT, 102), 1, [2])
    assert_pruned(table, "b", Domain.of(BIGINT, 102), 0, [])
    # A new column with a reused name: older files have no statistics of it.
    assert_pruned(table, "gone", Domain.of(BIGINT, 9), 3, [9])
    files = np.arange(3)
    groups = table.row_groups(files, [column_of(table, name) for name in ("b", "c", "gone")], ["b"])
    assert 1 == prune_containers(groups, {"b": Domain.of(BIGINT, 1)}).kept_count
    assert 1 == prune_containers(groups, {"c": Domain.of(BIGINT, 102)}).kept_count
    # The reader takes no predicate on a column that a file lacks.
    assert 3 == prune_containers(groups, {"gone": Domain.of(BIGINT, 9)}).kept_count
    DeltaTable.forPath(spark, str(renamed)).optimize().executeCompaction()
    assert_pruned(opened(spark, renamed), "b", Domain.of(BIGINT, 1), 1, [1])
    assert_pruned(table, "b", Domain.of(BIGINT, 1), 1, [1])


# Failure catalogue 127, 128: with column mapping from the start, no physical name equals a logical one.
@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_and_partitions_with_hostile_names(spark, tmp_path, mode):
    path = tmp_path / "t"
    builder = DeltaTable.create(spark).location(str(path)).property("delta.columnMapping.mode", mode)
    for name, type_ in (("id", "BIGINT"), ("a.b `c`;\n", "BIGINT"), ("p=1 '/", "STRING")):
        builder = builder.addColumn(name, type_)
    builder.partitionedBy("p=1 '/").execute()
    frame = spark.range(0, 4, 1, 2).selectExpr("id", "id AS `a.b ``c``;\n`", "IF(id < 2, 'x y', '%') AS `p=1 '/`")
    frame.write.format("delta").mode("append").save(str(path))
    table = opened(spark, path)
    assert ("p=1 '/",) == table.partition_columns
    assert_pruned(table, "`a.b ``c``;\n`", Domain.of(BIGINT, 3), 1, [3])
    assert_pruned(table, "`p=1 '/`", Domain.of(ValueType("string"), "x y"), 1, [0, 1])
    groups = table.row_groups(np.arange(2), [column_of(table, "`a.b ``c``;\n`"), column_of(table, "`p=1 '/`")], None)
    assert 1 == prune_containers(groups, {"`a.b ``c``;\n`": Domain.of(BIGINT, 3)}).kept_count
    assert 1 == prune_containers(groups, {"`p=1 '/`": Domain.of(ValueType("string"), "%")}).kept_count


@pytest.fixture(scope="module")
def widened(spark, tmp_path_factory):
    """A table with a file of ints and floats, and one of bigints and doubles."""
    path = tmp_path_factory.mktemp("widened") / "t"
    frame = spark.range(2).selectExpr("id", "CAST(id AS INT) AS i", "CAST(id + 0.1 AS FLOAT) AS f").coalesce(1)
    frame.write.format("delta").option("delta.enableTypeWidening", "true").save(str(path))
    alter(spark, path, "ALTER COLUMN i TYPE BIGINT")
    alter(spark, path, "ALTER COLUMN f TYPE DOUBLE")
    more = spark.createDataFrame([(9, 3_000_000_000, 5e300)], "id bigint, i bigint, f double")
    more.write.format("delta").mode("append").save(str(path))
    return opened(spark, path)


# Failure catalogue 75, 133: keys beyond the range of the older type.
@pytest.mark.parametrize(
    ("key", "expected"), [(3_000_000_000, [9]), (1, [1]), (4_000_000_000, []), (-(2**63), [])], ids=str
)
def test_widened_integers_keep_files_of_their_keys(widened, key, expected):
    assert_pruned(widened, "i", Domain.of(BIGINT, key), len(expected), expected)


# Failure catalogue 133: bounds of the older file have the digits of floats, 0.1 for 0.10000000149011612.
@pytest.mark.parametrize(
    ("key", "expected"), [(0.10000000149011612, [0]), (1.100000023841858, [1]), (5e300, [9]), (2.0, [])], ids=str
)
def test_widened_floats_keep_files_of_their_keys(widened, key, expected):
    double = ValueType("double")
    domain = Domain.of(double, key)
    assert len(expected) == len(kept_files(widened, "f", domain))
    scan = pushed(widened, "f", domain)
    assert len(expected) == files_delta_keeps(scan)
    assert set(expected) <= set(ids(scan))


# Failure catalogue 129: names that differ only by case are one column. 110, 130: older files lack a column, and a
# struct field.
@pytest.mark.full
def test_files_without_a_column_are_kept(spark, tmp_path):
    path = tmp_path / "t"
    first = spark.range(2).selectExpr("id", "NAMED_STRUCT('x', id) AS s").coalesce(1)
    first.write.format("delta").save(str(path))
    later = spark.range(5, 7).selectExpr("id AS ID", "NAMED_STRUCT('x', id, 'y', id) AS s", "id AS extra").coalesce(1)
    later.write.format("delta").mode("append").option("mergeSchema", "true").save(str(path))
    table = opened(spark, path)
    assert_pruned(table, "ID", Domain.of(BIGINT, 5), 1, [5])
    assert_pruned(table, "extra", Domain.of(BIGINT, 5), 2, [5])
    assert_pruned(table, "S.Y", Domain.of(BIGINT, 5), 2, [5])
    assert_pruned(table, "extra", Domain.of(BIGINT, 99), 1, [])


CHECKPOINTS = {
    "classic": {},
    "version 2": {"delta.checkpointPolicy": "v2"},
    "struct alone": {"delta.checkpoint.writeStatsAsJson": "false", "delta.checkpoint.writeStatsAsStruct": "true"},
    "without statistics": {
        "delta.checkpoint.writeStatsAsJson": "false",
        "delta.checkpoint.writeStatsAsStruct": "false",
    },
}


# Failure catalogue 108: statistics from commits or from a checkpoint, in each form that a checkpoint may keep.
@pytest.mark.parametrize("kind", [*CHECKPOINTS, "two parts"])
def test_checkpoints_keep_statistics_of_commits(spark, tmp_path, kind):
    schema = schema_of({"i": "bigint", "ts": "timestamp", "x": "double", "other": "int"})
    moments = [f"20{year}-01-01T00:00:00.000Z" for year in range(10, 13)]
    adds = [
        {
            "stats": {
                "numRecords": 5,
                "minValues": {"i": at, "ts": moment, "x": "NaN"},
                "maxValues": {"i": at, "ts": moment, "x": "NaN"},
                "nullCount": {"i": 0, "ts": 0, "x": 0, "other": at},
            }
        }
        for at, moment in enumerate(moments)
    ]
    path = write_log(tmp_path / "t", schema, [*adds, {"stats": None}])
    if properties := CHECKPOINTS.get(kind):
        set_properties(spark, path, properties)
    with conf(spark, {"spark.databricks.delta.checkpoint.partSize": "3"} if kind == "two parts" else {}):
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path).checkpoint()
    assert (2 if kind == "two parts" else 1) <= len(list(Path(path, "_delta_log").glob("*.checkpoint.*")))
    for commit in Path(path, "_delta_log").glob("*.json"):
        if ".checkpoint." not in commit.name:
            commit.write_text("")
    clear_log_cache(spark)
    table = opened(spark, path)
    known = kind != "without statistics"
    assert ({2, 3} if known else {0, 1, 2, 3}) == kept_files(table, "i", Domain.of(BIGINT, 2))
    moment = Domain.of(ValueType("timestamp"), np.datetime64("2011-01-01", "us").astype(int).item())
    assert ({1, 3} if known else {0, 1, 2, 3}) == kept_files(table, "ts", moment)
    assert {0, 1, 2, 3} == kept_files(table, "x", Domain.of(ValueType("double"), 5.0))
    assert {0, 1, 2, 3} == kept_files(table, "other", Domain.of(ValueType("int"), 5))
    assert ([5, 5, 5, UNKNOWN] if known else [UNKNOWN] * 4) == table.files([]).rows.tolist()
    assert not table.problems


# Failure catalogue 108, 109: a column without statistics is unknown, in commits and in checkpoints.
@pytest.mark.parametrize(
    ("properties", "unknown"),
    [({"delta.dataSkippingStatsColumns": "id"}, "later"), ({"delta.dataSkippingNumIndexedCols": "1"}, "later")],
    ids=["named", "counted"],
)
def test_columns_without_statistics_keep_every_file(spark, tmp_path, properties, unknown):
    path = tmp_path / "t"
    frame = spark.range(0, 4, 1, 2).selectExpr("id", "id AS later")
    frame.write.format("delta").options(**properties).save(str(path))
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(path)).checkpoint()
    clear_log_cache(spark)
    table = opened(spark, path)
    assert_pruned(table, "id", Domain.of(BIGINT, 3), 1, [3])
    assert_pruned(table, unknown, Domain.of(BIGINT, 3), 2, [3])
    both = prune_containers(
        table.files([column_of(table, "id"), column_of(table, unknown)]),
        {"id": Domain.of(BIGINT, 3), unknown: Domain.of(BIGINT, 3)},
    )
    assert 1 == both.kept_count


# Failure catalogue 98: the writer's time zone determines the partition, and Delta computes the partition to read in the
# reader's.
def test_partitions_of_timestamps_in_another_time_zone(spark, tmp_path):
    path = tmp_path / "t"
    builder = DeltaTable.create(spark).location(str(path)).addColumn("id", "BIGINT").addColumn("ts", "TIMESTAMP")
    builder = builder.addColumn("day", "DATE", generatedAlwaysAs="CAST(ts AS DATE)").partitionedBy("day")
    builder.execute()
    moments = [NOON_UTC + hours * HOURS for hours in (0, 11, 24 * 10)]
    frame = spark.createDataFrame(list(enumerate(moments)), "id bigint, seconds bigint")
    frame.selectExpr("id", "TIMESTAMP_SECONDS(seconds) AS ts").write.format("delta").mode("append").save(str(path))
    with conf(spark, {"spark.sql.session.timeZone": "Australia/Melbourne"}):
        table = opened(spark, path)
        domain = Domain.of(ValueType("timestamp"), moments[1] * 1_000_000)
        assert 1 == len(kept_files(table, "ts", domain))
        scan = pushed(table, "ts", domain)
        assert files_delta_keeps(scan) < 3
        assert 1 in ids(scan)


# Failure catalogue 99: '10000-01-01' sorts below '2024-01-01' as a string, and above it as a date.
def test_source_strings_of_date_partitions_are_not_pushed(spark, tmp_path):
    path = tmp_path / "t"
    builder = DeltaTable.create(spark).location(str(path)).addColumn("id", "BIGINT").addColumn("text", "STRING")
    builder = builder.addColumn("quarter", "DATE", generatedAlwaysAs="TRUNC(text, 'quarter')").partitionedBy("quarter")
    builder.execute()
    table = opened(spark, path)
    assert table.storage_safe_ranges("text", Domain.of(ValueType("string"), "10000-01-01").ranges).is_all
    points = Domain.of(BIGINT, 1).ranges
    assert points is table.storage_safe_ranges("id", points)


# Failure catalogue 88, 96: Delta compares a pushed predicate with maxima as older writers truncate them, and with
# timestamps whose offset lost its seconds.
def test_too_narrow_bounds_lose_no_row(spark, tmp_path):
    path = tmp_path / "t"
    text = "x" * 32 + "😀"
    # The clocks of Stockholm were 53 minutes and 28 seconds ahead.
    moment = int(dt.datetime(1849, 12, 31, 23, 8, 32, tzinfo=dt.timezone.utc).timestamp()) * 1_000_000
    data = {"id": pa.array([7]), "text": [text], "ts": pa.array([moment], pa.timestamp("us", "UTC"))}
    write_deltalake(path, pa.table(data))
    log = path / "_delta_log" / f"{0:020}.json"
    stored = '{"text":"' + "x" * 32 + '\ufffd","ts":"1850-01-01T00:02:00.000+00:53"}'
    stats = f'{{"numRecords":1,"minValues":{stored},"maxValues":{stored},"nullCount":{{"text":0,"ts":0}}}}'
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["stats"] = stats
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    table = opened(spark, path)
    for name, domain in (
        ("text", Domain.of(ValueType("string"), text)),
        ("ts", Domain.of(ValueType("timestamp"), moment)),
    ):
        column = column_of(table, name)
        bare = table.read(None).where(ranges_sql(column.sql, domain.ranges))
        assert 0 == files_delta_keeps(bare)
        assert {0} == kept_files(table, name, domain)
        assert [7] == ids(pushed(table, name, domain))
