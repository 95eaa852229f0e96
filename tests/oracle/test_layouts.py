"""Tables with a history: deleted rows, renamed and widened columns, files of several schemas, odd sizes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pruning import explain, pruned_read
from pruning.reasons import ReasonCode
from sample_data.confs import conf
from tests.oracle.answers import Keys
from tests.oracle.lakes import Lake, Layout, data_files, write
from tests.oracle.oracle import (
    check_rows,
    skips,
)

pytestmark = pytest.mark.spark

LAYOUT = Layout(file_rows=10, group_rows=5)
FILES, GROUPS = 4, 8


def forty() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(40), pa.int64()),
            "k": pa.array([None if at % 10 == 3 else at * 10 for at in range(40)], pa.int32()),
            "real": pa.array([at / 4 for at in range(40)], pa.float32()),
            "text": pa.array([f"t{at:02}" for at in range(40)]),
        }
    )


def made(spark, tmp_path, **properties: str) -> Lake:
    options = {f"delta.{name}": value for name, value in properties.items()}
    return write(spark, tmp_path / "t", "delta", forty(), LAYOUT, options=options)


def alter(lake: Lake, *statements: str) -> None:
    for statement in statements:
        lake.spark.sql(statement.format(t=f"delta.`{lake.source}`"))


@pytest.mark.parametrize("format_", ["delta", "parquet"])
@pytest.mark.parametrize(
    ("rows", "keys", "expected"),
    [
        (forty().slice(0, 1), [0], skips((1, 1), (1, 1), ReasonCode.UNCLUSTERED)),
        (pa.concat_tables([forty()] * 3), [0, 390], skips((6, 12), (6, 24))),
        (forty(), [], skips((0, 4), (0, 8))),
        (forty(), [None], skips((0, 4), (0, 8))),
    ],
    ids=["one row", "duplicates", "no keys", "NULL alone"],
)
def test_small_tables_and_uneven_sizes(oracle, spark, tmp_path, format_, rows, keys, expected):
    lake = write(spark, tmp_path / "t", format_, rows, LAYOUT)
    oracle.check(lake, Keys.of("k", pa.array(keys, pa.int32())), expected=expected)


def test_single_row_without_a_matching_key(oracle, spark, tmp_path):
    lakes = [write(spark, tmp_path / each, each, forty().slice(0, 1), LAYOUT) for each in ("delta", "parquet")]
    for lake in lakes:
        answer = oracle.answer(lake, [Keys.of("k", pa.array([5], pa.int32()))])
        check_rows(pruned_read(spark, lake.source, keys={"k": [5]}), answer, exact=True)
    for lake in lakes:
        oracle.check(lake, Keys.of("k", pa.array([5], pa.int32())), expected=skips((0, 1), (0, 1)))


def test_table_without_rows(oracle, spark, tmp_path):
    # Spark writes an empty DataFrame as one Parquet file without a row group.
    lakes = {each: write(spark, tmp_path / each, each, forty().slice(0, 0), LAYOUT) for each in ("delta", "parquet")}
    for lake in lakes.values():
        assert [] == pruned_read(spark, lake.source, keys={"k": [1, 2]}).collect()
    oracle.check(lakes["parquet"], Keys.of("k", pa.array([1, 2], pa.int32())), expected=skips((0, 1), (0, 0)))
    oracle.check(lakes["delta"], Keys.of("k", pa.array([1, 2], pa.int32())), expected=skips((0, 0), (0, 0)))


def test_duplicate_keys_return_each_row_once(oracle, spark, tmp_path):
    lake = write(spark, tmp_path / "t", "delta", forty(), LAYOUT)
    oracle.check(lake, Keys.of("k", pa.array([10, 10, 10, None, 350, 350], pa.int32())), expected=skips((2, 4), (2, 8)))


@pytest.mark.parametrize("format_", ["delta", "parquet"])
def test_many_row_groups_in_one_file(oracle, spark, tmp_path, format_):
    rows = pa.table({"id": pa.array(range(300), pa.int64()), "k": pa.array(range(0, 3000, 10), pa.int32())})
    lake = write(spark, tmp_path / "t", format_, rows, Layout(file_rows=300, group_rows=3))
    keys = Keys.of("k", pa.array([0, 25, 1000, 1010, 2990, 5000], pa.int32()))
    # 25 lies within the bounds of the first row group; its neighbours 20 and 30 are in two row groups.
    oracle.check(lake, keys, expected=skips((1, 1), (3, 100)))


# Failure catalogue 123, 124: positions in deletion vectors count rows of the whole file.
def test_rows_in_deletion_vectors_are_not_returned(oracle, spark, tmp_path):
    lake = made(spark, tmp_path, enableDeletionVectors="true")
    alter(lake, "DELETE FROM {t} WHERE id % 5 = 1", "DELETE FROM {t} WHERE id BETWEEN 20 AND 24")
    assert any((tmp_path / "t").glob("deletion_vector*.bin"))
    for keys in ([0, 10, 20], [210, 220, 390], [60, 110, 160], [50, 60, 70, 320]):
        answer = oracle.answer(lake, [Keys.of("k", pa.array(keys, pa.int32()))])
        for exact in (False, True):
            read = pruned_read(spark, lake.source, keys={"k": keys}, exact=exact)
            check_rows(read, answer, exact=exact)
            (plan,) = explain(read).tables
            assert plan.files_kept < FILES


# Failure catalogue 126, 127: a column may have the physical name of another column.
@pytest.mark.full
@pytest.mark.parametrize("mode", ["name", "id"])
def test_renamed_and_dropped_columns(oracle, spark, tmp_path, mode):
    lake = made(spark, tmp_path, **{"columnMapping.mode": mode})
    alter(
        lake,
        "ALTER TABLE {t} RENAME COLUMN k TO was_k",
        "ALTER TABLE {t} RENAME COLUMN text TO k",
        "ALTER TABLE {t} DROP COLUMN real",
        "ALTER TABLE {t} ADD COLUMN real INT",
        "INSERT INTO {t} (id, was_k, k, real) "
        "SELECT /*+ COALESCE(1) */ * FROM VALUES (100L, 100, 't07', 7), (101L, 1000, 'z', 8)",
    )
    oracle.check(lake, Keys.of("was_k", pa.array([70, 1000], pa.int32())), expected=skips((2, 5), (2, 9)))
    oracle.check(lake, Keys.of("k", pa.array(["t07", "t39"])), expected=skips((3, 5), (3, 9)))
    # Older files have no statistics for a later column, which Delta treats as unknown.
    answer = oracle.answer(lake, [keys := Keys.of("real", pa.array([7, 9], pa.int32()))])
    read = pruned_read(spark, lake.source, keys=dict([keys.entry]), exact=True)
    check_rows(read, answer, exact=True)
    assert (5, 5) == (explain(read).tables[0].files_kept, explain(read).tables[0].files_total)


def test_added_column_is_null_in_older_files(oracle, spark, tmp_path):
    lake = made(spark, tmp_path)
    alter(
        lake,
        "ALTER TABLE {t} ADD COLUMN extra BIGINT",
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM VALUES (50L, 1, 1.5F, 'x', 5L), (51L, 2, 2F, 'y', NULL)",
    )
    keys = Keys.of("extra", pa.array([5, 6]))
    for exact in (False, True):
        read = pruned_read(spark, lake.source, keys={"extra": [5, 6]}, exact=exact)
        check_rows(read, oracle.answer(lake, [keys]), exact=exact)
    # An older file has no statistics for the column, which Delta treats as unknown.
    oracle.check(lake, Keys.of("extra", pa.array([None], pa.int64())), expected=skips((0, 5), (0, 9)))
    oracle.check(lake, keys, expected=skips((5, 5), (9, 9), ReasonCode.UNCLUSTERED))


# Failure catalogue 75, 133: older files have the narrower type.
@pytest.mark.parametrize("exact", [False, True])
def test_widened_columns_match_in_old_and_new_files(oracle, spark, tmp_path, exact):
    lake = made(spark, tmp_path, enableTypeWidening="true")
    alter(
        lake,
        "ALTER TABLE {t} ALTER COLUMN k TYPE BIGINT",
        "ALTER TABLE {t} ALTER COLUMN real TYPE DOUBLE",
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM VALUES (60L, 3000000000, 0.1D, 'a'), (61L, 390L, 2.25D, 'b')",
    )
    oracle.check(lake, Keys.of("k", pa.array([390, 3_000_000_000], pa.int64())), exact=[exact])
    # Spark asks files of the narrower type for the list, though not for the range of a point beyond that type.
    oracle.check(lake, Keys.of("k", pa.array([0, 3_000_000_001], pa.int64())), exact=[exact])
    oracle.check(lake, Keys.of("real", pa.array([0.1, 2.25])), exact=[exact])


# Failure catalogue 75, 130, 131: one directory has files with different types, orders and columns.
def test_parquet_files_of_several_schemas(oracle, spark, tmp_path):
    folder = tmp_path / "t"
    write(spark, folder, "parquet", forty(), LAYOUT)
    later = pa.table(
        {
            "text": pa.array(["t05", "zz"]),
            "extra": pa.array([1, 2]),
            "id": pa.array([90, 91]),
            "k": pa.array([5, 70], pa.int32()),
        }
    )
    lake = write(spark, folder, "parquet", later, LAYOUT, mode="append")
    with conf(spark, {"spark.sql.parquet.mergeSchema": "true"}):
        oracle.check(lake, Keys.of("k", pa.array([70], pa.int32())), expected=skips((2, 5), (2, 9)))
        oracle.check(lake, Keys.of("text", pa.array(["t05"])), expected=skips((2, 5), (2, 9)))
        oracle.check(lake, Keys.of("extra", pa.array([2])), expected=skips((1, 5), (1, 9)))


# Failure catalogue 108, 110: columns without statistics in the log keep their files.
@pytest.mark.parametrize(
    ("properties", "unknown"),
    [
        ({"dataSkippingNumIndexedCols": "1"}, {"k", "text"}),
        ({"dataSkippingNumIndexedCols": "0"}, {"id", "k", "text"}),
        ({"dataSkippingStatsColumns": "text"}, {"id", "k"}),
    ],
    ids=lambda each: str(sorted(each)),
)
def test_columns_without_log_statistics_skip_only_row_groups(oracle, spark, tmp_path, properties, unknown):
    lake = made(spark, tmp_path, **properties)
    for name, keys in (("id", pa.array([7])), ("k", pa.array([70], pa.int32())), ("text", pa.array(["t07"]))):
        files = FILES if name in unknown else 1
        oracle.check(lake, Keys.of(name, keys), expected=skips((files, FILES), (1, GROUPS)))


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_checkpoint_keeps_statistics_of_commits(oracle, spark, tmp_path, policy):
    lake = made(spark, tmp_path, checkpointPolicy=policy, checkpointInterval="2")
    alter(lake, *(f"INSERT INTO {{t}} VALUES ({at}, {at}00, 0, 'n')" for at in (100, 101, 102)))
    assert any((tmp_path / "t" / "_delta_log").glob("*checkpoint*"))
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    oracle.check(lake, Keys.of("k", pa.array([10_100, 390], pa.int32())), expected=skips((2, 7), (2, 11)))


@pytest.mark.parametrize("source", ["INT96", "TIMESTAMP_MILLIS"])
def test_timestamp_formats_of_other_writers(oracle, spark, tmp_path, source):
    moments = pa.array([at * 1_000_000_000 for at in range(40)], pa.timestamp("us", "UTC"))
    rows = pa.table({"id": range(40), "at": moments})
    confs = {"spark.sql.parquet.outputTimestampType": source}
    lake = write(spark, tmp_path / "t", "parquet", rows, LAYOUT, confs=confs)
    keys = Keys.of("at", moments.take(pa.array([7, 31])))
    expected = skips((4, 4), (8, 8), ReasonCode.INT96) if source == "INT96" else skips((2, 4), (2, 8))
    oracle.check(lake, keys, expected=expected)


def test_files_of_two_tables_are_distinguished(spark, tmp_path):
    first = write(spark, tmp_path / "a", "delta", forty(), LAYOUT)
    second = write(spark, tmp_path / "b", "delta", forty().slice(20), LAYOUT)
    one = pruned_read(spark, first.source, keys={"id": [1, 30]}, exact=True)
    two = pruned_read(spark, second.source, keys={"id": [1, 30]}, exact=True)
    assert [(1, 1), (30, 1), (30, 1)] == sorted((row.id, 1) for row in one.union(two).collect())
    assert (4, 2) == (len(data_files(first)), len(data_files(second)))
