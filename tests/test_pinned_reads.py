"""A pruned read gives the rows of one version, whatever happens to the table afterwards."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import functions as F  # noqa: N812  its usual name

from pruning import PruningOptions, explain, pruned_read, report

KEYS = [3, 41, 42, 950]


@pytest.fixture
def delta(spark, tmp_path):
    path = str(tmp_path / "orders")
    _write(spark, 0, 1000, path, "overwrite")
    return path


def _write(spark, start, end, path, mode, format_="delta"):
    rows = spark.range(start, end, 1, 4).withColumn("text", F.concat(F.lit("v"), "id"))
    rows.write.format(format_).mode(mode).save(path)


def _append(spark, path):
    spark.sql(f"INSERT INTO delta.`{path}` SELECT 41, 'again'")


def _overwrite(spark, path):
    _write(spark, 900, 2000, path, "overwrite")


def _optimize(spark, path):
    spark.sql(f"OPTIMIZE delta.`{path}`")


def _delete(spark, path):
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id < 500")


def _delete_by_vector(spark, path):
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 41")


def _add_column(spark, path):
    spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMN extra INT")
    spark.sql(f"INSERT INTO delta.`{path}` SELECT 42, 'wide', 1")


CHANGES = [_append, _overwrite, _optimize, _delete, _delete_by_vector, _add_column]


@pytest.mark.parametrize("exact", [False, True], ids=["superset", "exact"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
def test_rows_are_those_of_the_version_that_was_opened(spark, delta, change, exact):
    read = pruned_read(spark, delta, keys={"id": KEYS}, exact=exact)
    change(spark, delta)
    first = sorted(row.id for row in read.where(F.col("id").isin(KEYS)).collect())
    assert KEYS == first
    _delete(spark, delta)
    assert read.columns == ["id", "text"]
    assert [(3, "v3"), (41, "v41"), (42, "v42"), (950, "v950")] == sorted(
        (row.id, row.text) for row in read.where(F.col("id").isin(KEYS)).collect()
    )
    (planned,) = explain(read).tables
    assert (4, 2, 0) == (planned.files_total, planned.files_kept, planned.version)
    assert 2 == report(read).measured.files_read


def test_an_older_version_and_its_timestamp_are_read_as_asked(spark, delta):
    _overwrite(spark, delta)
    by_version = pruned_read(spark, delta, keys={"id": [3, 950]}, version=0, exact=True)
    history = spark.sql(f"DESCRIBE HISTORY delta.`{delta}`").where("version = 0").first()
    by_time = pruned_read(spark, delta, keys={"id": [3, 950]}, timestamp=str(history.timestamp), exact=True)
    current = pruned_read(spark, delta, keys={"id": [3, 950]}, exact=True)
    for expected, version, read in (([3, 950], 0, by_version), ([3, 950], 0, by_time), ([950], 1, current)):
        assert expected == sorted(row.id for row in read.collect())
        assert version == explain(read).tables[0].version


def test_keys_are_collected_once(spark, delta, tmp_path):
    dimension = str(tmp_path / "dimension")
    _write(spark, 41, 43, dimension, "overwrite")
    read = pruned_read(spark, delta, keys={"id": spark.read.format("delta").load(dimension).select("id")}, exact=True)
    _write(spark, 500, 600, dimension, "append")
    assert [41, 42] == sorted(row.id for row in read.collect())
    assert [41, 42] == sorted(row.id for row in read.collect())


def test_too_many_keys_for_exactness_are_still_one_set_of_keys(spark, delta, tmp_path):
    dimension = str(tmp_path / "dimension")
    _write(spark, 40, 60, dimension, "overwrite")
    spark.conf.set("spark.pruning.max_build_keys", "5")
    try:
        keys = spark.read.format("delta").load(dimension).select("id")
        read = pruned_read(spark, delta, keys={"id": keys}, exact=True)
    finally:
        spark.conf.unset("spark.pruning.max_build_keys")
    _write(spark, 500, 600, dimension, "append")
    assert list(range(40, 60)) == sorted(row.id for row in read.collect())
    assert 1 == explain(read).tables[0].files_kept


def test_keys_that_prune_nothing_are_still_those_of_the_moment(spark, delta, tmp_path):
    dimension = str(tmp_path / "dimension")
    _write(spark, 41, 43, dimension, "overwrite")
    keys = spark.read.format("delta").load(dimension).select("id")
    read = pruned_read(spark, delta, keys={"id": keys}, exact=True, options=PruningOptions(enabled=False))
    _write(spark, 500, 600, dimension, "append")
    assert [41, 42] == sorted(row.id for row in read.collect())
    assert [["SWITCHED_OFF"]] == [[reason.code.name for reason in each.reasons] for each in _filters(read)]


def test_who_waited_for_keys_in_vain_does_not_wait_again_and_is_told(spark, delta):
    read = pruned_read(
        spark,
        delta,
        keys={"id": spark.range(41, 43).select("id")},
        exact=True,
        options=PruningOptions(build_timeout_seconds=0.001),
    )
    assert [41, 42] == sorted(row.id for row in read.collect())
    reasons = [reason.code.name for each in _filters(read) for reason in each.reasons]
    assert ["BUILD_TIMED_OUT", "UNPINNED_KEYS"] == reasons


def test_switched_off_it_looks_at_no_file(spark, delta):
    read = pruned_read(spark, delta, keys={"id": KEYS}, options=PruningOptions(enabled=False))
    (planned,) = explain(read).tables
    assert (None, None, None, ()) == (planned.files_total, planned.files_kept, planned.bytes_total, planned.reasons)
    assert "unknown" in str(explain(read))
    assert 1000 == read.count()


def _filters(read):
    return explain(read).tables[0].filters


def test_a_parquet_directory_is_read_as_it_was_listed(spark, tmp_path):
    path = str(tmp_path / "plain")
    _write(spark, 0, 1000, path, "overwrite", "parquet")
    read = pruned_read(spark, path, keys={"id": KEYS}, exact=True)
    _write(spark, 0, 1000, path, "append", "parquet")
    assert KEYS == sorted(row.id for row in read.collect())
    assert (4, 2) == (explain(read).tables[0].files_total, report(read).measured.files_read)


def test_explain_needs_no_data_file(spark, delta):
    """Footers are metadata and lie in the data files; the log's statistics do for the rest."""
    read = pruned_read(spark, delta, keys={"id": KEYS})
    for file in Path(delta).glob("*.parquet"):
        file.unlink()
    (planned,) = explain(read).tables
    assert (4, 2) == (planned.files_total, planned.files_kept)


def test_results_join_cache_union_and_write_like_any_dataframe(spark, delta, tmp_path):
    read = pruned_read(spark, delta, keys={"id": KEYS}, exact=True)
    other = pruned_read(spark, delta, keys={"id": [42, 43]}, exact=True)
    assert [42] == [row.id for row in read.join(other, "id").collect()]
    assert [42] == [row.id for row in read.alias("a").join(read.alias("b"), "id").where("id = 42").collect()]
    assert 6 == read.union(other).count()
    cached = read.cache()
    try:
        _delete(spark, delta)
        assert KEYS == sorted(row.id for row in cached.collect())
    finally:
        cached.unpersist()
    out = str(tmp_path / "out")
    read.write.parquet(out)
    assert KEYS == sorted(row.id for row in spark.read.parquet(out).collect())


def test_a_table_that_disappears_is_no_wrong_answer(spark, delta):
    read = pruned_read(spark, delta, keys={"id": KEYS})
    shutil.rmtree(delta)
    with pytest.raises(Exception, match=r"(?i)not exist|not found|missing|FAILED_READ_FILE"):
        read.collect()
