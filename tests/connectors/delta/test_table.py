from __future__ import annotations

import datetime as dt
import shutil
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from delta.tables import DeltaTable
from deltalake import write_deltalake

from connectors.delta.table import open_delta
from connectors.spark.session_state import SessionState
from pruning.reasons import ReasonCode
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

# Two rows per file; in the last file every column but `id` is NULL.
FILES = 4
STRING = ValueType("string")
TEXTS = ["", "a", "az", "aé", "b", "😀"]
NOON = dt.datetime.fromisoformat("2024-02-29T12:00:00")
MICROS = 1_709_208_000_000_007
# The type, the SQL from `id`, and the Python value for an `id`; for half an `id`, a value that is in no file.
COLUMNS = {
    "tiny": ("tinyint", "CAST(id * 10 - 30 AS TINYINT)", lambda at: int(at * 10 - 30)),
    "small": ("smallint", "CAST(id * 1000 AS SMALLINT)", lambda at: int(at * 1000)),
    "whole": ("int", "CAST(id * 100000000 AS INT)", lambda at: int(at * 100_000_000)),
    "big": ("bigint", "id * 1000000000000", lambda at: int(at * 10**12)),
    # Failure catalogue 66: the first value is -0.0, its key 0.0.
    "single": ("float", "CAST(IF(id = 0, -0.0D, id / 4D) AS FLOAT)", lambda at: at / 4),
    "real": ("double", "IF(id = 0, -0.0D, id / 10D)", lambda at: at / 10),
    "price": ("decimal(7,2)", "CAST(id + 0.25 AS DECIMAL(7,2))", lambda at: Decimal(str(at)) + Decimal("0.25")),
    "amount": (
        "decimal(38,10)",
        "CAST(id AS DECIMAL(30,10)) + CAST('0.0000000001' AS DECIMAL(37,10))",
        lambda at: Decimal(str(at)) + Decimal("0.0000000001"),
    ),
    # Failure catalogue 97: days before the Gregorian calendar.
    "day": (
        "date",
        "DATE_ADD(DATE'1500-01-01', CAST(id * 366 AS INT))",
        lambda at: dt.date(1500, 1, 1) + dt.timedelta(at * 366),
    ),
    "moment": (
        "timestamp",
        f"TIMESTAMP_MICROS({MICROS} + id * 3600000000)",
        lambda at: MICROS + int(at * 3_600_000_000),
    ),
    "local": (
        "timestamp_ntz",
        "TIMESTAMP_NTZ'2024-02-29 12:00:00' + MAKE_DT_INTERVAL(0, CAST(id AS INT), 0, 0)",
        lambda at: NOON + dt.timedelta(hours=at),
    ),
    # Failure catalogue 84: `az` sorts below `aé` by unsigned bytes.
    "text": (
        "string",
        f"ELEMENT_AT(ARRAY({', '.join(map(repr, TEXTS))}), CAST(id + 1 AS INT))",
        lambda at: TEXTS[int(at)] + "\x00" * (at != int(at)),
    ),
    "nested.leaf": ("int", None, lambda at: int(at * 10)),
    "nested.`a.b`.c": ("string", None, lambda at: f"k{at}"),
    # Failure catalogue 128, 115: names that also have another meaning.
    "`dotted.name`": ("bigint", "id * 10", lambda at: int(at * 10)),
    "file_name": ("string", "CONCAT('f', id)", lambda at: f"f{at}"),
    "`select`": ("bigint", "id * 10", lambda at: int(at * 10)),
}
WITHOUT_BOUNDS = {
    "flag": ("boolean", "id % 2 = 0", lambda id_: int(id_ % 2 == 0)),
    "raw": ("binary", "CAST(CAST(id AS STRING) AS BINARY)", lambda id_: str(id_).encode()),
}
STRUCT = (
    "IF(id < 6, NAMED_STRUCT('leaf', CAST(id * 10 AS INT), 'a.b', NAMED_STRUCT('c', CONCAT('k', id))), NULL) AS nested"
)
EACH_COLUMN = pytest.mark.parametrize("name", COLUMNS)


def domain_of(name, *ids, null=False, nan=False):
    type_, _, value = {**COLUMNS, **WITHOUT_BOUNDS}[name]
    return Domain(Domain.of(ValueType.parse(type_), *map(value, ids)).ranges, null, nan)


def write(spark, path, *selected, rows=8, files=FILES, **options):
    """Rows with `id` from 0, in `files` files of equally many consecutive rows."""
    frame = spark.range(0, rows, 1, files).selectExpr("id", *selected)
    frame.write.format("delta").options(**options).save(str(path))


@pytest.fixture(scope="module")
def typed(spark, tmp_path_factory):
    path = tmp_path_factory.mktemp("typed") / "t"
    plain = {name: sql for name, (_, sql, _) in {**COLUMNS, **WITHOUT_BOUNDS}.items() if sql is not None}
    write(spark, path, STRUCT, *(f"IF(id < 6, {sql}, NULL) AS {name}" for name, sql in plain.items()))
    table = opened(spark, path)
    found = table.files([column_of(table, "id"), *(column_of(table, name) for name in {**COLUMNS, **WITHOUT_BOUNDS})])
    lows = found.columns["id"].lows
    # File names are random, so their order is not that of the rows.
    return table, {index: int(low) // 2 for index, low in enumerate(lows)}


def kept(typed, name, domain):
    table, places = typed
    return {places[index] for index in kept_files(table, name, domain)}


@EACH_COLUMN
def test_keys_keep_only_files_around_them(typed, name):
    table, _ = typed
    domain = domain_of(name, 0, 5)
    assert {0, 2} == kept(typed, name, domain)
    scan = pushed(table, name, domain)
    assert 2 == files_delta_keeps(scan)
    assert [0, 5] == ids(scan)


@EACH_COLUMN
def test_keys_between_files_keep_no_file(typed, name):
    assert set() == kept(typed, name, domain_of(name, 1.5, 3.5))


@EACH_COLUMN
def test_null_keeps_only_files_with_null(typed, name):
    nulls = {0, 1, 2, 3} if "nested" in name else {3}
    assert nulls == kept(typed, name, domain_of(name, null=True))


@pytest.mark.parametrize("name", WITHOUT_BOUNDS)
def test_types_without_bounds_skip_only_all_null_files(typed, name):
    table, _ = typed
    domain = domain_of(name, 0)
    assert {0, 1, 2} == kept(typed, name, domain)
    assert 0 in ids(pushed(table, name, domain))


# Failure catalogue 60, 61: NaN sorts above every number, and no bound covers it.
@pytest.mark.parametrize("name", ["single", "real"])
def test_nan_keeps_every_file_that_may_have_it(typed, name):
    assert {0, 1, 2} == kept(typed, name, domain_of(name, nan=True))


def test_row_groups_of_selected_files(typed):
    table, places = typed
    name = "`dotted.name`"
    wanted = [column_of(table, name), column_of(table, "raw")]
    files = np.array([index for index, place in places.items() if place in {1, 3}])
    groups = table.row_groups(files, wanted, ["dotted.name"])
    assert files.tolist() == groups.parents.tolist()
    assert [2, 2] == groups.rows.tolist()
    kept_groups = prune_containers(groups, {name: domain_of(name, 2)}).kept
    assert [1] == [places[parent] for parent in groups.parents[kept_groups].tolist()]
    whole = table.row_groups(files, wanted, None)
    assert (groups.sizes < whole.sizes).all()
    assert (whole.sizes < table.files([]).sizes[files]).all()


def test_columns_without_a_type_are_left_out(typed):
    table, _ = typed
    column = replace(column_of(table, "flag"), type=None)
    assert {} == table.files([column]).columns
    assert {} == table.row_groups(np.array([0]), [column], None).columns


def test_column_is_fetched_once(typed):
    table, _ = typed
    first = table.files([column_of(table, "tiny")]).columns["tiny"]
    second = table.files([column_of(table, "small"), column_of(table, "TINY")]).columns["tiny"]
    assert first is second


@pytest.fixture(scope="module")
def partitioned(spark, tmp_path_factory):
    path = tmp_path_factory.mktemp("partitioned") / "t"
    values = [None, "a b", "x=y/z:%20", "q'`\"", "", "__HIVE_DEFAULT_PARTITION__", "é\n{[", ".."]
    frame = spark.createDataFrame([(id_, value) for id_, value in enumerate(values)], "id bigint, `p-k` string")
    with conf(spark, {"spark.sql.session.timeZone": "America/St_Johns"}):
        moments = frame.selectExpr("*", f"TIMESTAMP_MICROS({MICROS} + id * 3600000000) AS moment")
        moments.write.format("delta").partitionBy("p-k", "moment").save(str(path))
    return opened(spark, path)


# Failure catalogue 112, 113: values that folder names encode; an empty string is written as NULL.
@pytest.mark.parametrize(
    ("key", "expected"),
    [("a b", [1]), ("x=y/z:%20", [2]), ("q'`\"", [3]), ("é\n{[", [6]), ("..", [7]), ("", []), ("a%20b", [])],
    ids=repr,
)
def test_partition_values_are_decoded(partitioned, key, expected):
    domain = Domain.of(STRING, key)
    assert len(expected) == len(kept_files(partitioned, "`p-k`", domain))
    scan = pushed(partitioned, "`p-k`", domain)
    assert expected == ids(scan)
    assert len(expected) == files_delta_keeps(scan)


def test_null_partitions_are_kept_only_for_null(partitioned):
    assert [0, 4, 5] == ids(partitioned.read(None).where("`p-k` IS NULL").select("id"))
    assert 3 == len(kept_files(partitioned, "`p-k`", Domain.only_null(STRING)))


# Failure catalogue 101: partition values of timestamps have a time zone.
def test_timestamp_partitions_of_another_time_zone_are_exact(partitioned):
    domain = Domain.of(ValueType("timestamp"), MICROS + 3 * 3_600_000_000)
    assert 1 == len(kept_files(partitioned, "moment", domain))
    assert [3] == ids(pushed(partitioned, "moment", domain))


def test_row_groups_have_partition_values_of_their_files(partitioned):
    column = column_of(partitioned, "`p-k`")
    every = np.arange(len(partitioned.files([])))
    groups = partitioned.row_groups(every, [column], None)
    assert every.tolist() == groups.parents.tolist()
    assert groups.columns["`p-k`"].is_partition
    assert 1 == prune_containers(groups, {"`p-k`": Domain.of(STRING, "a b")}).kept_count
    assert 3 == prune_containers(groups, {"`p-k`": Domain.only_null(STRING)}).kept_count


# Failure catalogue 60, 61, 64: a writer that copies Parquet's bounds does not cover NaN.
def test_nan_outside_of_bounds_keeps_the_file(spark, tmp_path):
    write_deltalake(tmp_path / "t", pa.table({"id": [0, 1, 2], "x": [3.0, float("nan"), 3.0]}))
    table = opened(spark, tmp_path / "t")
    type_ = ValueType("double")
    assert {0} == kept_files(table, "x", Domain.of(type_, float("nan")))
    assert set() == kept_files(table, "x", Domain.of(type_, 4.0))
    assert {0} == kept_files(table, "x", Domain.of(type_, 3.0))


# Failure catalogue 84, 88: the log has U+FFFD for bytes that are not UTF-8, which sorts differently from the bytes.
@pytest.mark.parametrize(
    ("low", "high", "key"),
    [("80", "ff", "é"), ("6180", "62", "aé"), ("61", "ff", b"\xff"), ("c0", "c0", b"\xc0"), ("80", "ff", b"\xfe")],
    ids=repr,
)
def test_strings_that_are_not_utf8_keep_their_file(spark, tmp_path, low, high, key):
    text = key if isinstance(key, bytes) else key.encode()
    values = [bytes.fromhex(low), text, bytes.fromhex(high), b"plain"]
    rows = [(id_, bytearray(value)) for id_, value in enumerate(values)]
    frame = spark.createDataFrame(rows, "id bigint, raw binary").selectExpr("id", "CAST(raw AS STRING) AS text")
    for part in ("id < 3", "id = 3"):
        frame.where(part).coalesce(1).write.format("delta").mode("append").save(str(tmp_path / "t"))
    table = opened(spark, tmp_path / "t")
    domain = Domain.of(STRING, key)
    assert 1 == len(kept_files(table, "text", domain))
    assert 1 in ids(pushed(table, "text", domain))
    # ASCII sorts the same on both sides, and Delta still skips by it.
    scan = pushed(table, "text", Domain.of(STRING, "plain"))
    assert [3] == ids(scan)
    assert 1 + (low == "61") == files_delta_keeps(scan)


# Failure catalogue 82, 93: another writer's decimals are doubles, and its timestamps end in milliseconds.
def test_rounded_statistics_of_another_writer_keep_the_file(spark, tmp_path):
    long = Decimal("12345678901234567.89")
    data = {
        "id": pa.array([0], pa.int64()),
        "amount": pa.array([long], pa.decimal128(38, 2)),
        "moment": pa.array([MICROS], pa.timestamp("us", "UTC")),
    }
    write_deltalake(tmp_path / "t", pa.table(data))
    table = opened(spark, tmp_path / "t")
    for name, type_, key in (
        ("amount", ValueType("decimal", 38, 2), long),
        ("moment", ValueType("timestamp"), MICROS),
    ):
        domain = Domain.of(type_, key)
        assert {0} == kept_files(table, name, domain)
        assert [0] == ids(pushed(table, name, domain))


@pytest.fixture(scope="module")
def deleted(spark, tmp_path_factory):
    path = tmp_path_factory.mktemp("deleted") / "t"
    write(spark, path, "id % 10 AS k", rows=40, files=2, **{"delta.enableDeletionVectors": "true"})
    DeltaTable.forPath(spark, str(path)).delete("id IN (0, 1, 2, 25)")
    return opened(spark, path)


# Failure catalogue 118, 123, 124: counts are those of the files, including rows in deletion vectors.
def test_row_counts_include_rows_in_deletion_vectors(deleted):
    assert [20, 20] == deleted.files([]).rows.tolist()
    groups = deleted.row_groups(np.array([0, 1]), [column_of(deleted, "id")], None)
    assert [20, 20] == groups.rows.tolist()
    domain = Domain.of(ValueType("bigint"), 2, 3)
    assert 1 == len(kept_files(deleted, "id", domain))
    scan = pushed(deleted, "id", domain)
    assert 1 == files_delta_keeps(scan)
    assert [3] == ids(scan)


def test_wide_bounds_of_deletion_vectors_still_skip(deleted):
    type_ = ValueType("bigint")
    assert 2 == len(kept_files(deleted, "k", Domain.of(type_, 5)))
    assert set() == kept_files(deleted, "k", Domain.of(type_, 10))


def test_deleted_table_has_unknown_statistics(spark, tmp_path):
    source = write_log(tmp_path / "t", schema_of({"i": "int"}), [{"stats": None}])
    table = opened(spark, source)
    shutil.rmtree(source)
    files = table.files([column_of(table, "i")])
    assert (1, UNKNOWN, {}) == (len(files), files[0].rows, dict(files.columns))
    assert [ReasonCode.STATISTICS_FAILED] == [reason.code for reason in table.problems]
    assert 1 == prune_containers(files, {"i": Domain.of(ValueType("int"), 5)}).kept_count


def test_missing_data_file_is_one_unknown_row_group(spark, tmp_path):
    source = write_log(tmp_path / "t", schema_of({"i": "int"}), [{}, {"size": 7}])
    table = opened(spark, source)
    groups = table.row_groups(np.array([1]), [column_of(table, "i")], None)
    assert ([UNKNOWN], [7], [1]) == (groups.rows.tolist(), groups.sizes.tolist(), groups.parents.tolist())
    assert [ReasonCode.STATISTICS_FAILED] == [reason.code for reason in table.problems]


# Failure catalogue 53: a copy has the id and the version of its original.
def test_table_and_its_copy_share_no_statistics(spark, tmp_path):
    cache = SessionState()
    for name, rows in (("original", 10), ("copy", 20)):
        stats = {"numRecords": rows, "nullCount": {"i": 0}, "minValues": {"i": rows}, "maxValues": {"i": rows}}
        source = write_log(tmp_path / name, schema_of({"i": "int"}), [{"stats": stats}])
        table = open_delta(spark, source, cache=cache)
        assert [rows] == table.files([column_of(table, "i")]).rows.tolist()
        assert {0} == kept_files(table, "i", Domain.of(ValueType("int"), rows))


def test_statistics_of_a_version_are_cached(spark, tmp_path):
    source = write_log(tmp_path / "t", schema_of({"i": "int"}), [{}])
    cache = SessionState()
    first, second = (open_delta(spark, source, cache=cache) for _ in range(2))
    assert first.files([column_of(first, "i")]).columns["i"] is second.files([column_of(second, "i")]).columns["i"]
    assert open_delta(spark, source).files([]).rows is open_delta(spark, source).files([]).rows


def test_table_with_thousands_of_columns(spark, tmp_path):
    names = [f"c{index}" for index in range(10_000)]
    stats = {"numRecords": 1, "minValues": {"c31": 5}, "maxValues": {"c31": 5}, "nullCount": {"c31": 0}}
    source = write_log(tmp_path / "t", schema_of(dict.fromkeys(names, "int")), [{"stats": stats}])
    table = opened(spark, source)
    assert set() == kept_files(table, "c31", Domain.of(ValueType("int"), 6))
    assert {0} == kept_files(table, "c9999", Domain.of(ValueType("int"), 6))
