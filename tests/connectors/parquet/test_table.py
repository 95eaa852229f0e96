from __future__ import annotations

import datetime as dt
import shutil
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from connectors.parquet.row_groups import FooterCache
from connectors.parquet.table import ParquetTable
from pruning.limits import Limits
from pruning.reasons import ReasonCode
from pruning.scan.skipping import prune_containers
from pruning.scan.statistics import UNKNOWN
from pruning.values.domain import Domain
from sample_data.confs import conf
from tests.connectors.parquet_tables import by_name, columns, in_files, numbered, opened, pruned, scanned

pytestmark = pytest.mark.spark


def position(table: ParquetTable, name: str) -> int:
    return next(index for index, file in enumerate(table.files([]).names) if file.endswith(name))


@pytest.fixture(scope="module")
def partitioned(spark, tmp_path_factory) -> Path:
    """Twelve files, one per partition, with the values 0 to 11 in `id`."""
    words, numbers = ["'a b'", "'x%2F/=é\"'", "'0012'", "NULL"], ["1", "2", "NULL"]
    pairs = [f"({word}, {number})" for word in words for number in numbers]
    rows = ", ".join(f"({id_}, {pair[1:]}" for id_, pair in enumerate(pairs))
    source = tmp_path_factory.mktemp("partitioned") / "t"
    frame = spark.sql(f"SELECT * FROM VALUES {rows} AS t(id, word, k)").coalesce(1)
    frame.write.partitionBy("word", "k").parquet(str(source))
    return source


PARTITION_KEYS = {
    "number": ({"k": [2]}, {1, 4, 7, 10}),
    "special characters": ({"word": ['x%2F/=é"']}, {3, 4, 5}),
    "leading zeros": ({"word": ["0012"]}, {6, 7, 8}),
    "no such value": ({"word": ["12"]}, set()),
    "null": ({"word": [None]}, {9, 10, 11}),  # failure catalogue 112
    "null or value": ({"word": ["a b", None], "k": [1, None]}, {0, 2, 9, 11}),
    "with a data column": ({"k": [1], "id": [0, 3]}, {0, 3}),
}


@pytest.mark.parametrize(("keys", "expected"), PARTITION_KEYS.values(), ids=PARTITION_KEYS.keys())
def test_partition_values_are_exact(spark, partitioned, keys, expected):
    table = opened(spark, partitioned)
    assert ("word", "k") == table.partition_columns
    kept = pruned(table, keys).kept
    rows, files, read = scanned(table.read(kept).select("id"))
    assert (expected, len(expected), len(expected)) == ({id_ for (id_,) in rows}, files, read)


def test_partition_values_have_spark_types(spark, tmp_path):
    values = {"i": "7", "l": "3000000000", "d": "2024-02-29", "t": "2024-02-29 12%3A00%3A00", "f": "1.5", "s": "x"}
    directory = "/".join(f"{name}={value}" for name, value in values.items())
    in_files(tmp_path / "t" / directory, *numbered(0))
    table = opened(spark, tmp_path / "t")
    wanted = columns(table, *values)
    found = table.files(wanted)[0].domains
    expected = ["{7}", "{3000000000}", "{2024-02-29}", "{2024-02-29T12:00:00.000000}", "{1.5}", "{x}"]
    assert expected == [str(found[name]) for name in values]
    assert ["int", "bigint", "date", "timestamp", "double", "string"] == [str(each.type) for each in wanted]
    assert [True] * 6 == [each.is_partition for each in table.files(wanted).columns.values()]


def test_partition_column_hides_a_data_column(spark, tmp_path):  # failure catalogue 129
    for value in (1, 2):
        in_files(tmp_path / "t" / f"COL={value}", pa.table({"col": [9 - value], "id": [value]}))
    table = opened(spark, tmp_path / "t")
    kept = pruned(table, {"col": [1]}).kept
    assert [(1,)] == scanned(table.read(kept).where("col = 1").select("id"))[0]
    assert [(1,)] == [
        tuple(row) for row in spark.read.parquet(str(tmp_path / "t")).where("col = 1").select("id").collect()
    ]


def test_kept_row_groups_are_those_that_spark_reads(spark, tmp_path):
    table_of = pa.table({"id": range(1000), "v": ["x"] * 1000})
    source = in_files(tmp_path / "t", table_of, row_group_size=100)
    table = opened(spark, source)
    wanted = columns(table, "id")
    groups = table.row_groups(np.array([0]), wanted, ["id"])
    kept = prune_containers(groups, {"id": Domain.of(wanted[0].type, 150, 820)}).kept
    assert ([1, 8], [100] * 10) == (np.flatnonzero(kept).tolist(), groups.rows.tolist())
    ranges = "(id between 150 and 150) or (id between 820 and 820)"
    rows, _, read = scanned(table.read(None).where(ranges).select("id"))
    assert [(150,), (820,)] == rows
    assert read <= groups.rows[kept].sum()


def test_row_groups_are_named_by_their_file(spark, partitioned):
    table = opened(spark, partitioned)
    files = table.files(columns(table, "id"))
    chosen = np.array([7, 2])
    groups = table.row_groups(chosen, columns(table, "id", "word"), None)
    assert [7, 2] == groups.parents.tolist()
    assert [f"{files.names[index]}#0" for index in chosen] == list(groups.names)
    assert [str(files[int(index)].domains["id"]) for index in chosen] == [
        str(groups[index].domains["id"]) for index in range(2)
    ]
    assert groups.columns["word"].is_partition


WRITTEN_BY_SPARK = {
    "tinyint": ("CAST(id AS TINYINT)", 3),
    "smallint": ("CAST(id AS SMALLINT)", 3),
    "int": ("CAST(id AS INT)", 3),
    "bigint": ("id", 3),
    "decimal(7,2)": ("CAST(id AS DECIMAL(7,2))", "3.00"),
    "decimal(15,2)": ("CAST(id AS DECIMAL(15,2))", 3),
    "decimal(38,2)": ("CAST(id AS DECIMAL(38,2))", 3),
    "float": ("CAST(id AS FLOAT)", 3.0),
    "double": ("CAST(id AS DOUBLE)", 3.0),
    "string": ("CONCAT('é', id)", "é3"),
    "binary": ("CAST(CAST(id AS STRING) AS BINARY)", b"3"),
    "boolean": ("id = 3", True),
    "date": ("DATE_ADD(DATE'2024-01-01', CAST(id AS INT))", dt.date(2024, 1, 4)),
    "timestamp": ("TIMESTAMP_MICROS(id)", 3),
    "timestamp_ntz": ("CAST(TIMESTAMP_MICROS(id) AS TIMESTAMP_NTZ)", 3),
}


@pytest.fixture(scope="module")
def of_all_types(spark, tmp_path_factory) -> Path:
    """Eight files with one row each and a column of each type, named after it."""
    source = tmp_path_factory.mktemp("types") / "t"
    expressions = [f"{sql} AS `{name}`" for name, (sql, _) in WRITTEN_BY_SPARK.items()]
    with conf(spark, {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}):
        spark.range(0, 8, 1, 8).selectExpr("id AS row", *expressions).write.parquet(str(source))
    return source


@pytest.mark.parametrize("name", WRITTEN_BY_SPARK)
def test_values_of_every_type_in_files_of_spark(spark, of_all_types, name):
    table = opened(spark, of_all_types)
    kept = pruned(table, {f"`{name}`": [WRITTEN_BY_SPARK[name][1]]}).kept
    assert ([(3,)], 1, 1) == scanned(table.read(kept).select("row"))


def test_decimals_in_legacy_format(spark, tmp_path):  # failure catalogue 81
    with conf(spark, {"spark.sql.parquet.writeLegacyFormat": "true"}):
        df = spark.range(0, 4, 1, 4).selectExpr("CAST(id - 2 AS DECIMAL(7,2)) AS d")
        df.write.parquet(str(tmp_path / "t"))
    table = opened(spark, tmp_path / "t")
    assert ([(Decimal("-1.00"),)], 1, 1) == scanned(table.read(pruned(table, {"d": [-1]}).kept))


@pytest.mark.parametrize("mode", ["LEGACY", "CORRECTED"])
def test_early_dates_of_either_calendar(spark, tmp_path, mode):  # failure catalogue 97
    days = ["0001-01-01", "1500-03-01", "1582-10-04", "1582-10-15", "1900-01-01", "2024-01-01"]
    rows = ", ".join(f"('{day}', DATE'{day}', TIMESTAMP'{day} 00:00:00')" for day in days)
    with conf(spark, {"spark.sql.parquet.datetimeRebaseModeInWrite": mode}):
        frame = spark.sql(f"SELECT * FROM VALUES {rows} AS t(name, day, moment)").coalesce(1)
        frame.write.partitionBy("name").parquet(str(tmp_path / "t"))
    table = opened(spark, tmp_path / "t")
    names = [file.split("name=")[1][:10] for file in table.files([]).names]
    kept = np.array([pruned(table, {"day": [day]}).kept for day in map(epoch_day, names)])
    assert kept.diagonal().all()
    moments = [pruned(table, {"moment": [epoch_day(day) * 86_400_000_000]}).kept for day in names]
    assert np.array(moments).diagonal().all()
    # Files of the hybrid calendar are kept for any key; other files only for their own keys.
    unsure = {"LEGACY": days[:3], "CORRECTED": []}[mode]
    assert [6 if day in unsure else 1 for day in names] == kept.sum(axis=0).tolist()
    key = epoch_day(days[1])
    rows_found = scanned(table.read(pruned(table, {"day": [key]}).kept).where(f"day = DATE'{days[1]}'").select("name"))
    assert [(days[1],)] == [(str(name),) for (name,) in rows_found[0]]


def epoch_day(day: str) -> int:
    return int(np.datetime64(day).astype(np.int64))


def test_int96_timestamps_keep_their_files(spark, tmp_path):  # failure catalogue 104
    with conf(spark, {"spark.sql.parquet.outputTimestampType": "INT96"}):
        spark.range(0, 2, 1, 2).selectExpr("id", "TIMESTAMP_MICROS(id) AS x").write.parquet(str(tmp_path / "t"))
    table = opened(spark, tmp_path / "t")
    assert [True, True] == pruned(table, {"x": [1]}).kept.tolist()
    assert [True, True] == pruned(table, {"x": [5]}).kept.tolist()


def corrupted(source: Path, name: str) -> None:
    path = source / name
    path.write_bytes(path.read_bytes()[:-4] + b"oops")


def test_corrupt_footer_is_kept_with_a_reason(spark, tmp_path):
    source = in_files(tmp_path / "t", *numbered(0, 100, 200))
    table = opened(spark, source)
    corrupted(source, "1.parquet")
    found = pruned(table, {"id": [5, 999]})
    assert (2, {"statistics": 1}) == (found.kept_count, found.skipped_by())
    assert found.kept[position(table, "1.parquet")]
    (problem,) = table.problems
    assert (ReasonCode.STATISTICS_FAILED, True) == (problem.code, problem.subject.endswith("1.parquet"))
    without = found.kept.copy()
    without[position(table, "1.parquet")] = False
    assert [(id_, "v0") for id_ in range(10)] == scanned(table.read(without))[0]


def test_footer_limit_leaves_partition_pruning(spark, tmp_path):
    for value in range(4):
        in_files(tmp_path / "t" / f"p={value}", *numbered(value * 10))
    table = opened(spark, tmp_path / "t", limits=Limits(max_footers=3))
    found = pruned(table, {"p": [1, 2], "id": [15]})
    assert (2, {"partition": 2}) == (found.kept_count, found.skipped_by())
    assert [ReasonCode.NO_ROW_GROUPS_READ] == [each.code for each in table.problems]
    assert "4 files, 3 footers allowed" in str(table.problems[0])
    groups = table.row_groups(np.flatnonzero(found.kept), columns(table, "id"), None)
    assert ["{[10, 19]}", "{[20, 29]}"] == sorted(str(groups[index].domains["id"]) for index in range(2))
    assert [UNKNOWN] * 4 == table.files([]).rows.tolist()


def test_footers_are_cached_by_the_caller(spark, tmp_path):
    source, cache = in_files(tmp_path / "t", *numbered(0, 100)), FooterCache()
    opened(spark, source, cache=cache).files([])
    assert 2 == len(cache)
    table = opened(spark, source, cache=cache)
    shutil.rmtree(source)
    assert ["{[0, 9]}", "{[100, 109]}"] == sorted(text for (text,) in by_name(table, "id").values())
    assert () == table.problems
