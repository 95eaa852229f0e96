from __future__ import annotations

import datetime as dt
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from pruning.errors import InvalidOptionError, SourceNotFoundError
from pruning.values.domain import Domain
from pruning.values.types import ValueType
from tests.connectors.delta_logs import column_of, kept_files, opened, schema_of, write_log

SCHEMA = schema_of({"i": "int"})
INT = ValueType("int")
HOSTILE = [
    "spaces and quote'\"`s",
    "percent%20%brackets[1]{2}*?",
    "new\nline",
    "semi; DROP TABLE t; -- é😀",
    "hash#and+plus colon:equals=1",
]


def add(*values):
    low, high = min(values), max(values)
    return {"stats": {"numRecords": 2, "minValues": {"i": low}, "maxValues": {"i": high}, "nullCount": {"i": 0}}}


@pytest.fixture
def versioned(tmp_path):
    """A table whose version 0 has 0 and 1, version 1 also 2 and 3, version 2 only 9."""
    path = str(tmp_path / "t")
    for mode, values in (("error", [0, 1]), ("append", [2, 3]), ("overwrite", [9])):
        write_deltalake(path, pa.table({"i": pa.array(values, pa.int32())}), mode=mode)
    return path


def values(table):
    return sorted(row["i"] for row in table.read(None).collect())


@pytest.mark.spark
@pytest.mark.parametrize(("version", "expected"), [(0, [0, 1]), (1, [0, 1, 2, 3]), (2, [9]), (None, [9])])
def test_version_has_its_own_files_and_rows(spark, versioned, version, expected):
    table = opened(spark, versioned, version=version)
    assert (2 if version is None else version) == table.version
    assert expected == values(table)
    assert ("delta", versioned, ()) == (table.connector.name, table.name, table.partition_columns)
    assert len(kept_files(table, "i", Domain.of(INT, 9))) == expected.count(9)
    assert not table.problems


# Failure catalogue 47, 48, 49: commits after opening change neither the decision nor the rows.
@pytest.mark.spark
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_later_commits_change_nothing(spark, versioned, mode):
    table = opened(spark, versioned)
    df = table.read(None)
    write_deltalake(versioned, pa.table({"i": pa.array([4, 5], pa.int32())}), mode=mode)
    assert 1 == len(table.files([column_of(table, "i")]))
    assert ([9], [9]) == (values(table), [row["i"] for row in df.collect()])
    write_deltalake(versioned, pa.table({"i": pa.array([6], pa.int32())}), mode=mode)
    assert set() == kept_files(table, "i", Domain.of(INT, 4))
    assert [9] == [row["i"] for row in df.where("i > 0").collect()]
    assert 4 == opened(spark, versioned).version


# The shared session of the tests has states of one partition.
@pytest.mark.spark
def test_state_of_several_partitions_is_read(spark, conf, tmp_path):
    conf("spark.databricks.delta.snapshotPartitions", "5")
    source = write_log(tmp_path / "t", SCHEMA, [add(each) for each in range(20)])
    table = opened(spark, source)
    state = (
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, source)
        .unsafeVolatileSnapshot()
        .stateDF()
    )
    assert (5, 20) == (state.rdd().getNumPartitions(), len(table.files([])))
    assert 1 == len(kept_files(table, "i", Domain.of(INT, 7)))
    assert set() == kept_files(table, "i", Domain.of(INT, 20))


# Failure catalogue 56: statistics are those of the new table, not of the previous one.
@pytest.mark.spark
def test_recreated_table_is_another_table(spark, tmp_path):
    for value in (1, 7):
        source = write_log(tmp_path / "t", SCHEMA, [add(value)], table_id=f"{value:032}")
        table = opened(spark, source)
        assert {0} == kept_files(table, "i", Domain.of(INT, value))
        assert set() == kept_files(table, "i", Domain.of(INT, 8 - value))
        shutil.rmtree(source)
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


@pytest.mark.spark
def test_timestamp_selects_its_version(spark, versioned):
    # Timestamps older than a week are refused, because their files may be deleted.
    now = dt.datetime.now(dt.timezone.utc).replace(microsecond=0)
    for version in range(3):
        at = (now - dt.timedelta(hours=10 - version)).timestamp()
        os.utime(Path(versioned, "_delta_log", f"{version:020}.json"), (at, at))
    assert 1 == opened(spark, versioned, timestamp=f"{now - dt.timedelta(hours=8, minutes=30)}").version
    for timestamp in ("2001-01-01", "2999-01-01", "no time", ""):
        with pytest.raises(SourceNotFoundError, match=f"at timestamp '{timestamp}'"):
            opened(spark, versioned, timestamp=timestamp)


@pytest.mark.spark
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_directory_names(spark, tmp_path, name):
    source = write_log(tmp_path / name, SCHEMA, [add(1), add(5)])
    table = opened(spark, source)
    assert {1} == kept_files(table, "i", Domain.of(INT, 5))
    assert not table.problems
    assert table.files([]).names[0].startswith("file:/")


@pytest.mark.spark
@pytest.mark.parametrize("form", ["file:{0}", "file://{0}", "{0}/", "{0}/../t u/./"])
def test_forms_of_a_path(spark, tmp_path, form):
    source = write_log(tmp_path / "t u", SCHEMA, [add(1), add(5)])
    assert {1} == kept_files(opened(spark, form.format(source)), "i", Domain.of(INT, 5))


@pytest.mark.spark
def test_relative_path(spark, tmp_path):
    source = write_log(tmp_path / "t", SCHEMA, [add(1)])
    assert 0 == opened(spark, os.path.relpath(source)).version


@pytest.mark.spark
def test_path_in_backticks(spark, tmp_path):
    source = write_log(tmp_path / "t t", SCHEMA, [add(1)])
    assert {0} == kept_files(opened(spark, f"delta.`{source}`"), "i", Domain.of(INT, 1))


@pytest.mark.spark
def test_catalog_tables_by_name(spark, versioned):
    spark.sql("CREATE DATABASE IF NOT EXISTS shop")
    try:
        spark.catalog.createTable("shop.sales", versioned, "delta")
        spark.range(3).write.format("parquet").saveAsTable("shop.plain")
        spark.sql("CREATE VIEW shop.seen AS SELECT * FROM shop.sales")
        for name in ("shop.sales", "`shop`.`sales`", "spark_catalog.SHOP.sales"):
            assert (2, [9]) == (opened(spark, name).version, values(opened(spark, name)))
        assert [0, 1] == values(opened(spark, "shop.sales", version=0))
        for other in ("shop.seen", "shop.plain"):
            with pytest.raises(SourceNotFoundError, match="name the table itself"):
                opened(spark, other)
    finally:
        spark.sql("DROP DATABASE shop CASCADE")


@pytest.mark.spark
@pytest.mark.parametrize(
    "source",
    [
        "/nowhere/at/all",
        "nowhere",
        "no.where",
        "`no`.`where`",
        "a b",
        "`open",
        "x'; DROP TABLE t; --",
        "/a\nb",
        "",
        "file:/nowhere",
    ],
)
def test_error_names_the_missing_table(spark, source):
    with pytest.raises(SourceNotFoundError) as raised:
        opened(spark, source)
    assert repr(source) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert raised.value.__cause__ is not None


@pytest.mark.spark
def test_directory_without_a_log_is_refused(spark, tmp_path):
    with pytest.raises(SourceNotFoundError, match="expected a directory that holds _delta_log"):
        opened(spark, tmp_path)


@pytest.mark.spark
@pytest.mark.parametrize("text", ["{", '{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}\n', ""])
def test_unreadable_log_is_refused(spark, tmp_path, text):
    Path(tmp_path, "_delta_log").mkdir()
    Path(tmp_path, "_delta_log", f"{0:020}.json").write_text(text)
    with pytest.raises(SourceNotFoundError, match=r"Cannot read Delta table|No Delta table") as raised:
        opened(spark, tmp_path)
    assert "\n" not in str(raised.value)


@pytest.mark.spark
def test_unknown_file_system_is_a_one_line_error(spark):
    with pytest.raises(SourceNotFoundError, match="Cannot read Delta table 'nosuch://bucket/t'") as raised:
        opened(spark, "nosuch://bucket/t")
    assert "\n" not in str(raised.value)


@pytest.mark.spark
def test_partition_folder_is_refused(spark, tmp_path):
    schema = schema_of({"i": "int", "p": "int"})
    adds = [{"partitionValues": {"p": "1"}, "path": "p=1/x.parquet"}]
    source = write_log(tmp_path / "t", schema, adds, partitions=["p"])
    Path(source, "p=1").mkdir()
    with pytest.raises(SourceNotFoundError, match="not a view or a partition"):
        opened(spark, f"{source}/p=1")


@pytest.mark.spark
@pytest.mark.parametrize("version", [7, 2**62])
def test_error_names_the_missing_version(spark, versioned, version):
    with pytest.raises(SourceNotFoundError, match=f"at version '{version}'"):
        opened(spark, versioned, version=version)


@pytest.mark.spark
@pytest.mark.parametrize(
    "arguments", [{"version": -1}, {"version": True}, {"version": 1, "timestamp": "2020-01-01"}], ids=str
)
def test_invalid_versions_are_refused(spark, versioned, arguments):
    with pytest.raises(InvalidOptionError, match="Cannot read"):
        opened(spark, versioned, **arguments)


REMOTE = """
import sys
import pyarrow as pa
from delta import configure_spark_with_delta_pip
from deltalake import write_deltalake
from pyspark.sql import SparkSession
from connectors.delta.table import open_delta
from pruning.errors import SourceNotFoundError

path = sys.argv[1]
builder = SparkSession.builder.remote("local[2]").config("spark.databricks.delta.snapshotPartitions", "2")
builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
builder = builder.config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
spark = configure_spark_with_delta_pip(builder).getOrCreate()
table = open_delta(spark, path)
write_deltalake(path, pa.table({"i": pa.array([4], pa.int32())}), mode="overwrite")
print("answer", table.version, len(table.files([])), table.problems[0].code.name)
print("answer", [row.i for row in table.read(None).collect()], open_delta(spark, path, version=0).read(None).count())
try:
    open_delta(spark, path, version=9)
except SourceNotFoundError as error:
    print("answer", error)
"""


PLAIN = """
import sys
from pyspark.sql import SparkSession
from pruning import pruned_read

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
for format_ in (None, "delta"):
    try:
        pruned_read(spark, sys.argv[1], keys={"i": [9]}, format=format_)
    except Exception as error:
        print("answer", type(error).__name__, error)
"""


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.slow
def test_session_without_delta_is_a_one_line_error_with_remedy(versioned):
    env = {name: value for name, value in os.environ.items() if name != "PYSPARK_SUBMIT_ARGS"}
    done = subprocess.run(
        [sys.executable, "-c", PLAIN, versioned],
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
        cwd=Path(__file__).parents[3],
        env=env,
    )
    answers = [line.removeprefix("answer ") for line in done.stdout.splitlines() if line.startswith("answer ")]
    assert 2 == len(answers), done.stderr[-2000:]
    for each in answers:
        assert each.startswith(
            f"EnvironmentProblem Cannot read {versioned!r}: this session lacks Delta Lake; start it by"
        )


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.slow
def test_connect_session_reads_a_pinned_version(versioned):
    done = subprocess.run(
        [sys.executable, "-c", REMOTE, versioned],
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
        cwd=Path(__file__).parents[3],
    )
    answers = [line.removeprefix("answer ") for line in done.stdout.splitlines() if line.startswith("answer ")]
    assert ["2 1 NO_JVM", "[9] 2"] == answers[:2], done.stderr[-2000:]
    assert "at version '9'" in answers[2]
