"""Values, names and files that scans by pyarrow read as Spark's reader does, or leave to Spark's reader."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as st

from pruning import PruningOptions, explain, pruned_read
from pruning.reasons import ReasonCode
from sample_data.confs import conf
from sample_data.nasty import tables
from sample_data.rows import Rows
from tests.oracle.answers import Keys
from tests.oracle.lakes import Lake, Layout, write
from tests.oracle.oracle import skips
from tests.oracle.test_nasty_values import CATALOGUE, key_sets

pytestmark = pytest.mark.spark

# Row filters are always used, whatever their benefit.
ARROW = PruningOptions(scan="ARROW").with_limits(min_filter_ratio=0.0)
LAYOUT = Layout(file_rows=4, group_rows=2)
IN_THE_SCAN = "keys, in the scan"
NO_STATISTICS = ReasonCode.NO_STATISTICS
OTHER_VALUES, NOT_READ = ReasonCode.OTHER_VALUES_BY_ARROW, ReasonCode.NOT_READ_BY_ARROW


def by_arrow(oracle, lake, *entries, **more) -> None:
    """Checks a read that is scanned by pyarrow."""
    plan = oracle.check(lake, *entries, exact=[False], options=ARROW, **more)
    assert {IN_THE_SCAN} == {each.row_test for each in plan.filters}, plan.reasons


def by_spark(oracle, lake, *entries, why: str, code: ReasonCode = OTHER_VALUES, **more) -> None:
    """Checks a read that is scanned by Spark's reader, and the reason for it."""
    plan = oracle.check(lake, *entries, exact=[False], options=ARROW, **more)
    assert IN_THE_SCAN not in {each.row_test for each in plan.filters}
    assert any(each.code is code and why in str(each) for each in plan.reasons), plan.reasons


# 56 to 62, 81, 84, 107: whole rows are compared, so each value is also read, not only tested.
@pytest.mark.parametrize(("table", "format_"), [*((each, "parquet") for each in CATALOGUE), ("strings", "delta")])
def test_every_value_is_found_and_read(oracle, shared_lake, table, format_):
    rows = tables()[table]
    lake = shared_lake(table, format_, lambda: rows, LAYOUT)
    for column in rows.column_names[1:]:
        *some, last = key_sets(table, column)
        if len(rows) - rows.column(column).null_count > 2:
            by_arrow(oracle, lake, last)
        else:
            oracle.check(lake, *some[:1], exact=[False], options=ARROW)


@pytest.mark.parametrize("zone", ["America/St_Johns", "Asia/Kathmandu"])
def test_timestamps_in_every_time_zone(oracle, spark, shared_lake, zone):  # failure catalogue 96, 105
    rows = tables()["timestamps"]
    lake = shared_lake("timestamps", "parquet", lambda: rows, LAYOUT)
    with conf(spark, {"spark.sql.session.timeZone": zone}):
        by_arrow(oracle, lake, key_sets("timestamps", "at")[0])


@pytest.mark.parametrize("format_", ["delta", "parquet"])
def test_hostile_names(oracle, shared_lake, format_):  # failure catalogue 126, 128, 129
    rows = tables()["hostile_names"]
    options = {"delta.columnMapping.mode": "name"} if format_ == "delta" else None
    lake = shared_lake("hostile_names", format_, lambda: rows, Layout(1, 1), options=options)
    names = ["`a.b`", "a", "`tick``tick`", "UPPER", "`comma,`"]
    for name in names:
        at = rows.column_names.index(name.strip("`").replace("``", "`")) - 1
        by_arrow(oracle, lake, Keys.of(name, pa.array([at, at + 2], pa.int32())))
    some = ["`a.`b`.c`".replace("`b`", "``b``"), "upper", "`\\d`", "id"]
    by_arrow(oracle, lake, Keys.of("a", pa.array([1, 3], pa.int32())), columns=some)


@pytest.mark.parametrize("format_", ["delta", "parquet"])
def test_partition_values(oracle, shared_lake, format_):  # failure catalogue 111, 112, 113
    rows = tables()["partitions"]
    rows = rows.append_column("k", pa.array([at % 5 for at in range(len(rows))], pa.int16()))
    lake = shared_lake("partitioned_k", format_, lambda: rows, Layout(partition_by=("part",)))
    by_arrow(oracle, lake, Keys.of("k", pa.array([0, 3, None], pa.int16())))
    parts = Keys.of("part", pa.array(["a", "b c", "a%2Fb", "\U0001f600", None, "1"]))
    by_arrow(oracle, lake, parts)
    by_arrow(oracle, lake, parts, Keys.of("k", pa.array([2, 3, 1], pa.int16())))


@pytest.mark.parametrize("format_", ["delta", "parquet"])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu"])
def test_partitions_of_all_types(oracle, spark, tmp_path, format_, zone):  # failure catalogue 101
    rows = pa.table(
        {
            "id": pa.array(range(4), pa.int64()),
            "k": pa.array([1, 2, 3, None], pa.int32()),
            "day": pa.array([date(1, 1, 1), date(1582, 10, 4), None, date(9999, 12, 31)]),
            "at": tables()["timestamps"].column("at").combine_chunks().take(pa.array([1, 6, 0, 12])),
            "money": pa.array([Decimal("-0.10"), Decimal(0), None, Decimal("99.99")], pa.decimal128(10, 2)),
            "flag": pa.array([True, False, None, True]),
        }
    )
    with conf(spark, {"spark.sql.session.timeZone": zone}):
        lake = write(spark, tmp_path / "t", format_, rows, Layout(1, 1, ("day", "at", "money", "flag")))
        some = ["id", "day", "at", "flag"]
        by_arrow(oracle, lake, Keys.of("id", pa.array([1, 2, 3], pa.int64())), columns=some)
        if format_ == "delta":
            by_arrow(oracle, lake, Keys.of("k", pa.array([1, 2], pa.int32())))
        else:
            # As a folder name, a decimal is read as a double, which may be either zero.
            by_spark(oracle, lake, Keys.of("k", pa.array([1, 2], pa.int32())), why="money", code=NO_STATISTICS)


def test_selected_nested_columns_keep_spark_reader(oracle, shared_lake):
    rows = tables()["nested"].append_column("k", pa.array([1, 2, 3, 4, 5], pa.int32()))
    lake = shared_lake("nested_k", "parquet", lambda: rows, LAYOUT)
    keys = Keys.of("k", pa.array([2, 5], pa.int32()))
    by_spark(oracle, lake, keys, why="struct<", code=NOT_READ)
    by_arrow(oracle, lake, keys, columns=["id", "`outer.inner.k`"])
    leaf = Keys.of("outer.inner.k", pa.array([2], pa.int32()))
    by_spark(oracle, lake, leaf, why="struct<", code=NOT_READ, columns=["id"])


# Files of several schemas.


@pytest.mark.full
def test_added_column_is_null_in_older_files(oracle, spark, tmp_path):  # failure catalogue 131
    lake = write(spark, tmp_path / "t", "delta", pa.table({"id": range(8), "k": range(8)}), Layout(4, 2))
    for at, statement in enumerate(("ADD COLUMN (late STRING, day DATE)", "ADD COLUMN flag BOOLEAN")):
        spark.sql(f"ALTER TABLE delta.`{lake.source}` {statement}")
        spark.sql(f"INSERT INTO delta.`{lake.source}` (id, k, late) VALUES ({8 + at}, {8 + at}, 'x{at}')")
    by_arrow(oracle, lake, Keys.of("k", pa.array([1, 6, 8, 9])))
    by_arrow(oracle, lake, Keys.of("late", pa.array(["x1", None])), Keys.of("k", pa.array([1, 9])))


@pytest.mark.parametrize("mode", ["name", "id"])
def test_renamed_and_dropped_columns(oracle, spark, tmp_path, mode):  # failure catalogue 125, 126, 127
    rows = pa.table({"id": range(8), "k": range(8), "gone": range(50, 58), "v": range(100, 108)})
    options = {"delta.columnMapping.mode": mode}
    lake = write(spark, tmp_path / "t", "delta", rows, Layout(4, 2), options=options)
    table = f"delta.`{lake.source}`"
    for statement in ("DROP COLUMN gone", "RENAME COLUMN k TO gone", "RENAME COLUMN v TO k"):
        spark.sql(f"ALTER TABLE {table} {statement}")
    spark.sql(f"INSERT INTO {table} (id, gone, k) VALUES (8, 1, 101)")
    by_arrow(oracle, lake, Keys.of("k", pa.array([101, 103])))
    by_arrow(oracle, lake, Keys.of("gone", pa.array([1, 7])))
    spark.sql(f"ALTER TABLE {table} ADD COLUMN v BIGINT")
    spark.sql(f"INSERT INTO {table} (id, gone, k, v) VALUES (9, 1, 101, 1)")
    if mode == "name":
        by_arrow(oracle, lake, Keys.of("k", pa.array([101, 103])))
    else:
        by_spark(oracle, lake, Keys.of("k", pa.array([101, 103])), why="several columns of that name")


@pytest.mark.full
def test_widened_columns(oracle, spark, tmp_path):  # failure catalogue 75, 133
    options = {"delta.enableTypeWidening": "true"}
    rows = pa.table(
        {
            "id": pa.array(range(6), pa.int64()),
            "k": pa.array([-(2**15), -1, 0, 1, 2, 2**15 - 1], pa.int16()),
            "d": pa.array([Decimal(at) / 10 for at in range(6)], pa.decimal128(4, 1)),
            "f": pa.array([0.1, 0.2, -0.0, 1.5, float("nan"), None], pa.float32()),
        }
    )
    lake = write(spark, tmp_path / "t", "delta", rows, Layout(3, 2), options=options)
    table = f"delta.`{lake.source}`"
    for statement in ("k TYPE INT", "k TYPE BIGINT", "d TYPE DECIMAL(12, 1)"):
        spark.sql(f"ALTER TABLE {table} ALTER COLUMN {statement}")
        spark.sql(f"INSERT INTO {table} VALUES (7, {2**15 + 1 if 'k' in statement else 2**40}, 3, 0.1)")
    by_arrow(oracle, lake, Keys.of("k", pa.array([-(2**15), 1, 2**15 + 1, 2**40])))
    by_arrow(oracle, lake, Keys.of("d", pa.array([Decimal("0.1"), Decimal(3)], pa.decimal128(12, 1))))
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN f TYPE DOUBLE")
    by_spark(oracle, lake, Keys.of("k", pa.array([1])), why="double from FLOAT")
    by_arrow(oracle, lake, Keys.of("k", pa.array([1])), columns=["id", "d"])


def test_parquet_files_of_several_schemas(spark, tmp_path):  # failure catalogue 129, 131
    folder = tmp_path / "t"
    folder.mkdir()
    parts = [
        {"id": pa.array([0, 1]), "K": pa.array([1, 2], pa.int32()), "v": pa.array(["a", None])},
        {"v": pa.array(["b", "c"]), "k": pa.array([2, 3], pa.int64()), "id": pa.array([2, 3])},
        {"id": pa.array([4, 5]), "extra": pa.array([1.5, 2.5]), "k": pa.array([2, 3], pa.int64())},
    ]
    for at, part in enumerate(parts):
        pq.write_table(pa.table(part), folder / f"{at}.parquet")
    spark.sql(f"CREATE TABLE several (id BIGINT, k BIGINT, v STRING) USING parquet LOCATION '{folder.as_uri()}'")
    try:
        lake = Lake(spark, "several", "parquet")
        rows = spark.table("several").orderBy("id").collect()
        assert [(0, 1, "a"), (1, 2, None), (2, 2, "b"), (3, 3, "c"), (4, 2, None), (5, 3, None)] == rows
        df = pruned_read(spark, lake.source, keys={"k": [2]}, options=ARROW)
        assert [rows[1], rows[2], rows[4]] == Rows(df.collect())
        assert [IN_THE_SCAN] == [each.row_test for each in explain(df).tables[0].filters]
    finally:
        spark.sql("DROP TABLE several")


# Deletion vectors.


def test_files_with_deletion_vectors_keep_spark_reader(oracle, spark, tmp_path):  # failure catalogue 118, 123
    options = {"delta.enableDeletionVectors": "true"}
    rows = pa.table({"id": range(16), "k": [at // 4 for at in range(16)]})
    lake = write(spark, tmp_path / "t", "delta", rows, Layout(4, 2), options=options)
    by_arrow(oracle, lake, Keys.of("k", pa.array([0, 1])))
    spark.sql(f"DELETE FROM delta.`{lake.source}` WHERE id = 1")
    by_spark(oracle, lake, Keys.of("k", pa.array([0, 1])), why="", code=ReasonCode.DELETION_VECTORS)
    # Files without a vector have all their rows.
    by_arrow(oracle, lake, Keys.of("k", pa.array([1, 2])))


# Files of other writers.


def foreign(spark, folder: Path, rows: pa.Table, schema: str | None = None, **options) -> Lake:
    folder.mkdir()
    pq.write_table(rows, folder / "part.parquet", **options)
    lake = Lake(spark, str(folder), "parquet")
    assert schema is None or lake.whole().schema == st._parse_datatype_string(schema)
    return lake


ROWS = {"id": pa.array(range(6), pa.int64()), "k": pa.array([1, 2, 3, 1, 2, None], pa.int32())}
KEYS = Keys.of("k", pa.array([1, 3], pa.int32()))
WORDS = ["a", "\U0001f600", "", None, "long " * 2000, "a"]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(WORDS).dictionary_encode(),
        pa.array(WORDS, pa.large_string()),
        pa.array([None if each is None else each.encode() for each in WORDS], pa.large_binary()),
        pa.array([date(1, 1, 1), date(1582, 10, 10), None, date(2020, 1, 1), date(9999, 12, 31), None]),
        pa.array([0, 1, None, -1, 2**62, -(2**61)], pa.timestamp("us", "Europe/Berlin")),
        pa.array([1.5, float("nan"), -0.0, None, 0.0, float("-inf")], pa.float32()),
        pa.array([Decimal("1.10"), None, Decimal("-0.01"), Decimal(0), Decimal(3), Decimal(4)], pa.decimal128(30, 2)),
        pa.array([1, None, -128, 127, 0, 5], pa.int8()),
    ],
    ids=["dictionary", "large text", "large binary", "day", "zoned", "float", "decimal", "byte"],
)
@pytest.mark.parametrize("version", ["1.0", "2.6"])
def test_columns_of_another_writer(oracle, spark, tmp_path, column, version):
    lake = foreign(spark, tmp_path / "t", pa.table({**ROWS, "v": column}), version=version, row_group_size=2)
    by_arrow(oracle, lake, KEYS)


@pytest.mark.parametrize(
    ("column", "options", "why", "code"),
    [
        (pa.array(range(6), pa.uint32()), {}, "v: ", OTHER_VALUES),
        (
            pa.array([0, 1, 2, 2**62, 5, None], pa.timestamp("us", "UTC")),
            {"use_deprecated_int96_timestamps": True},
            "INT96",
            OTHER_VALUES,
        ),
        (pa.array([0, 1, 2, 3, 4, 5], pa.timestamp("ms", "UTC")), {}, "INT64 (TIMESTAMP)", OTHER_VALUES),
        (pa.array([[1], [], None, [2], [3], [4]], pa.list_(pa.int32())), {}, "array<int>", NOT_READ),
        (
            pa.array([str(at) for at in range(6)]),
            {"compression": {"id": "gzip", "k": "zstd", "v": "lz4"}},
            "LZ4",
            NOT_READ,
        ),
    ],
    ids=["unsigned", "INT96", "milliseconds", "list", "LZ4"],
)
def test_unsupported_columns_keep_spark_reader(oracle, spark, tmp_path, column, options, why, code):
    if why == "INT96":
        column = pa.array([0, 1, 2, 3, 4, None], pa.timestamp("us", "UTC"))
    lake = foreign(spark, tmp_path / "t", pa.table({**ROWS, "v": column}), row_group_size=2, **options)
    by_spark(oracle, lake, KEYS, why=why, code=code)
    by_arrow(oracle, lake, KEYS, columns=["id", "k"])


@pytest.mark.parametrize("mode", ["LEGACY", "CORRECTED", "EXCEPTION"])
def test_early_dates_of_other_writers_follow_the_session(oracle, spark, tmp_path, mode):  # failure catalogue 97
    days = pa.array([date(1900, 1, 1)] * 5 + [date(1500, 3, 1) if mode != "EXCEPTION" else date(2020, 1, 1)])
    lake = foreign(spark, tmp_path / "t", pa.table({**ROWS, "v": days}), row_group_size=2)
    with conf(spark, {"spark.sql.parquet.datetimeRebaseModeInRead": mode}):
        if mode == "CORRECTED":
            by_arrow(oracle, lake, KEYS)
        else:
            by_spark(oracle, lake, KEYS, why="date from INT32")


@pytest.mark.parametrize("mode", ["LEGACY", "CORRECTED"])
def test_early_dates_of_spark_follow_the_file(oracle, spark, tmp_path, mode):  # failure catalogue 97
    rows = pa.table({**ROWS, "v": pa.array([date(1, 1, 1), date(1582, 10, 4)] * 3)})
    written = {"spark.sql.parquet.datetimeRebaseModeInWrite": mode}
    lake = write(spark, tmp_path / "t", "parquet", rows, Layout(3, 1), confs=written)
    if mode == "CORRECTED":
        by_arrow(oracle, lake, KEYS)
    else:
        by_spark(oracle, lake, KEYS, why="date from INT32")


def test_binary_as_string(oracle, spark, tmp_path):
    """Spark reads any bytes as a string with this setting."""
    lake = foreign(spark, tmp_path / "t", pa.table({**ROWS, "v": pa.array([b"a", b"", b"z", None, b"a", b"\xc3\xa4"])}))
    with conf(spark, {"spark.sql.parquet.binaryAsString": "true"}):
        assert st.StringType() == lake.whole().schema["v"].dataType
        by_arrow(oracle, lake, KEYS)
        by_arrow(oracle, lake, Keys.of("v", pa.array(["a", "\u00e4"])))


def test_char_columns_keep_spark_reader(oracle, spark, tmp_path):  # failure catalogue 76, 87, 133
    folder = tmp_path / "t"
    spark.sql(f"CREATE TABLE delta.`{folder}` (id BIGINT, k INT, code CHAR(4), name VARCHAR(9)) USING delta")
    spark.sql(f"INSERT INTO delta.`{folder}` VALUES (0, 1, 'a', 'a'), (1, 2, 'b', 'b '), (2, 3, NULL, '')")
    lake = Lake(spark, str(folder), "delta")
    keys = Keys.of("k", pa.array([1, 2], pa.int32()))
    by_spark(oracle, lake, keys, why="char", code=ReasonCode.CHAR_PADDED)
    by_arrow(oracle, lake, keys, columns=["id", "name"])


def test_collated_columns_keep_spark_reader(oracle, spark, tmp_path):  # failure catalogue 79
    folder = tmp_path / "t"
    words = "CAST(id AS STRING) COLLATE UTF8_LCASE AS word"
    spark.range(8).selectExpr("id", "CAST(id AS INT) AS k", words).coalesce(1).write.parquet(str(folder))
    lake = Lake(spark, str(folder), "parquet")
    keys = Keys.of("k", pa.array([1, 2], pa.int32()))
    by_spark(oracle, lake, keys, why="word", code=NOT_READ)
    by_arrow(oracle, lake, keys, columns=["id"])


def test_table_without_rows(oracle, spark, tmp_path):
    lake = foreign(spark, tmp_path / "t", pa.table(ROWS).slice(0, 0))
    plan = oracle.check(lake, KEYS, exact=[False], options=ARROW, expected=skips((0, 1)))
    assert 0 == plan.files_kept
