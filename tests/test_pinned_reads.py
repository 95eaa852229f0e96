"""A pruned read returns the rows of one version of a table, also after later commits."""

from __future__ import annotations

import shutil
import time
import uuid
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812  its usual name

from pruning import PruningOptions, explain, pruned_read, report
from sample_data.confs import conf

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


@pytest.mark.full
@pytest.mark.parametrize("exact", [False, True], ids=["superset", "exact"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
def test_read_is_pinned_to_the_opened_version(spark, delta, change, exact):
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


@pytest.mark.full
def test_time_travel_by_version_and_timestamp(spark, delta):
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


@pytest.mark.full
def test_keys_over_the_limit_are_collected_once(spark, delta, tmp_path):
    dimension = str(tmp_path / "dimension")
    _write(spark, 40, 60, dimension, "overwrite")
    with conf(spark, {"spark.pruning.limits.max_build_keys": "5"}):
        keys = spark.read.format("delta").load(dimension).select("id")
        read = pruned_read(spark, delta, keys={"id": keys}, exact=True)
    _write(spark, 500, 600, dimension, "append")
    assert list(range(40, 60)) == sorted(row.id for row in read.collect())
    assert 1 == explain(read).tables[0].files_kept


@pytest.mark.full
def test_keys_of_a_disabled_exact_read_are_pinned(spark, delta, tmp_path):
    dimension = str(tmp_path / "dimension")
    _write(spark, 41, 43, dimension, "overwrite")
    keys = spark.read.format("delta").load(dimension).select("id")
    read = pruned_read(spark, delta, keys={"id": keys}, exact=True, options=PruningOptions(enabled=False))
    _write(spark, 500, 600, dimension, "append")
    assert [41, 42] == sorted(row.id for row in read.collect())
    assert [["SWITCHED_OFF"]] == [[reason.code.name for reason in each.reasons] for each in _filters(read)]


def _slow(batches):
    time.sleep(1)
    yield from batches


@pytest.mark.full
@pytest.mark.parametrize("how", ["limit", "sample", "random"])
def test_unrepeatable_keys_do_not_prune(spark, delta, how, caplog):
    """A later join runs the query of the keys again, and may need the rows of other keys."""
    every = spark.range(0, 50, 1, 2).toDF("k")
    keys = {"limit": every.limit(5), "sample": every.sample(0.2, seed=3), "random": every.where("rand() < 0.2")}[how]
    read = pruned_read(spark, delta, keys={"id": keys})
    (table,) = explain(read).tables
    assert (1000, table.files_total) == (read.count(), table.files_kept)
    assert ["UNREPEATABLE_KEYS"] == [reason.code.name for reason in table.filters[0].reasons]
    assert "may give other rows when it runs again" in caplog.text
    caplog.clear()
    kept = keys.cache()
    try:
        again = pruned_read(spark, delta, keys={"id": kept})
        assert {row.k for row in kept.collect()} <= {row.id for row in again.collect()}
        (table,) = explain(again).tables
        assert (1, (), "") == (table.files_kept, table.filters[0].reasons, caplog.text)
    finally:
        keys.unpersist()
    alone = pruned_read(spark, delta, keys={"id": keys}, exact=True)
    assert (alone.count(), 1) == (len(alone.collect()), explain(alone).tables[0].files_kept)


@pytest.mark.full
def test_build_timeout_leaves_keys_unpinned(spark, delta):
    read = pruned_read(
        spark,
        delta,
        keys={"id": spark.range(41, 43).mapInArrow(_slow, "id bigint")},
        exact=True,
        options=PruningOptions(build_timeout_seconds=0.001),
    )
    assert [41, 42] == sorted(row.id for row in read.collect())
    reasons = [reason.code.name for each in _filters(read) for reason in each.reasons]
    assert ["BUILD_TIMED_OUT", "UNPINNED_KEYS"] == reasons


def test_disabled_read_lists_no_file(spark, delta):
    read = pruned_read(spark, delta, keys={"id": KEYS}, options=PruningOptions(enabled=False))
    (planned,) = explain(read).tables
    assert (None, None, None, ()) == (planned.files_total, planned.files_kept, planned.bytes_total, planned.reasons)
    assert "unknown" in str(explain(read))
    assert 1000 == read.count()


def _filters(read):
    return explain(read).tables[0].filters


def test_parquet_directory_is_pinned_to_its_listing(spark, tmp_path):
    path = str(tmp_path / "plain")
    _write(spark, 0, 1000, path, "overwrite", "parquet")
    read = pruned_read(spark, path, keys={"id": KEYS}, exact=True)
    _write(spark, 0, 1000, path, "append", "parquet")
    assert KEYS == sorted(row.id for row in read.collect())
    assert (4, 2) == (explain(read).tables[0].files_total, report(read).measured.files_read)


@pytest.fixture(params=["", "PARTITIONED BY (p)"], ids=["plain", "partitioned"])
def table(spark, request):
    """A Parquet table of the catalog: ids 0 to 39 in four files or partitions."""
    name = f"t_{uuid.uuid4().hex}"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, p INT) USING parquet {request.param}")
    spark.range(0, 40, 1, 4).withColumn("p", F.expr("int(id div 10)")).write.insertInto(name)
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


def _insert(spark, name, rows, into="INTO"):
    spark.sql(f"INSERT {into} {name} {rows}")


def _ids(read):
    """The sorted ids of a new plan: a collected DataFrame keeps its plan and its files."""
    return sorted(row.id for row in read.select("id").collect())


READS = [
    pytest.param([5], {"exact": True}, [5], 1, id="some files"),
    pytest.param([5, 15, 25, 35], {"exact": True}, [5, 15, 25, 35], 4, id="all files"),
    pytest.param([5], {"exact": True, "options": PruningOptions(enabled=False)}, [5], None, id="switched off, exact"),
    pytest.param([5], {"options": PruningOptions(enabled=False)}, list(range(40)), None, id="switched off"),
]


@pytest.mark.parametrize("cached", [False, True], ids=["", "cached"])
@pytest.mark.parametrize(("keys", "how", "expected", "kept"), READS)
def test_catalog_table_is_pinned_to_its_listing(spark, table, keys, how, expected, kept, cached):
    read = pruned_read(spark, table, keys={"id": keys}, **how)
    assert kept == explain(read).tables[0].files_kept
    read = read.cache() if cached else read
    try:
        assert expected == _ids(read)
        _insert(spark, table, "VALUES (5, 0), (5, 7)")
        assert expected == _ids(read)
        spark.catalog.refreshTable(table)
        assert expected == _ids(read)
    finally:
        read.unpersist()
    assert expected == _ids(read)
    assert sorted([*expected, 5, 5]) == _ids(pruned_read(spark, table, keys={"id": keys}, **how))


@pytest.mark.parametrize(("keys", "how", "expected", "kept"), READS)
def test_overwritten_files_raise_an_error(spark, table, keys, how, expected, kept):
    read = pruned_read(spark, table, keys={"id": keys}, **how)
    assert (kept, expected) == (explain(read).tables[0].files_kept, _ids(read))
    _insert(spark, table, "VALUES (5, 8)", "OVERWRITE")
    with pytest.raises(Exception, match="FAILED_READ_FILE"):
        read.collect()
    assert [5] == _ids(pruned_read(spark, table, keys={"id": keys}, **how))


@pytest.mark.parametrize(("keys", "how", "expected", "kept"), READS)
def test_overwrite_of_the_table_being_read_is_refused(spark, table, keys, how, expected, kept):
    """Spark empties a table before it writes, so the plan of the read must still name the table."""
    read = pruned_read(spark, table, keys={"id": keys}, **how)
    with pytest.raises(AnalysisException, match="UNSUPPORTED_OVERWRITE"):
        read.write.insertInto(table, overwrite=True)
    assert (kept, expected) == (explain(read).tables[0].files_kept, _ids(read))
    assert 40 == spark.table(table).count()


@pytest.mark.parametrize("partitions", [[], ["p"]], ids=["plain", "partitioned"])
@pytest.mark.parametrize(("keys", "how", "expected", "kept"), READS)
def test_cached_directory_is_pinned_to_its_listing(spark, tmp_path, keys, how, expected, kept, partitions):
    path = str(tmp_path / "directory")

    def append(rows):
        rows.write.partitionBy(*partitions).mode("append").parquet(path)

    append(spark.range(0, 40, 1, 4).withColumn("p", F.expr("int(id div 10)")))
    read = pruned_read(spark, path, keys={"id": keys}, **how).cache()
    derived = read.selectExpr("id AS other").cache()
    try:
        assert (kept, expected) == (explain(read).tables[0].files_kept, _ids(read))
        assert len(expected) == derived.count()
        append(spark.sql("SELECT 5L AS id, p FROM VALUES (0), (7) AS t (p)"))
        assert (expected, len(expected)) == (_ids(read), derived.count())
        spark.catalog.refreshByPath(path)
        assert (expected, len(expected)) == (_ids(read), derived.count())
    finally:
        derived.unpersist()
        read.unpersist()
    assert expected == _ids(read)
    assert sorted([*expected, 5, 5]) == _ids(pruned_read(spark, path, keys={"id": keys}, **how))


@pytest.mark.parametrize("partitioned", ["", "PARTITIONED BY (p)"], ids=["plain", "partitioned"])
def test_empty_catalog_table_gives_no_warning(spark, partitioned, caplog):
    name = f"t_{uuid.uuid4().hex}"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, p INT) USING parquet {partitioned}")
    try:
        read = pruned_read(spark, name, keys={"id": [5]}, exact=True)
        _insert(spark, name, "VALUES (5, 1)")
        assert ([], [5]) == (_ids(read), _ids(pruned_read(spark, name, keys={"id": [5]}, exact=True)))
    finally:
        spark.sql(f"DROP TABLE {name}")
    assert ((), []) == (explain(read).tables[0].reasons, caplog.records)


def test_explain_needs_no_data_file(spark, delta):
    """The statistics of the Delta log suffice; footers lie in the data files."""
    read = pruned_read(spark, delta, keys={"id": KEYS})
    for file in Path(delta).glob("*.parquet"):
        file.unlink()
    (planned,) = explain(read).tables
    assert (4, 2) == (planned.files_total, planned.files_kept)


@pytest.mark.full
def test_read_supports_join_cache_union_and_write(spark, delta, tmp_path):
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


def test_deleted_table_raises_an_error(spark, delta):
    read = pruned_read(spark, delta, keys={"id": KEYS})
    shutil.rmtree(delta)
    with pytest.raises(Exception, match=r"(?i)not exist|not found|missing|FAILED_READ_FILE"):
        read.collect()
