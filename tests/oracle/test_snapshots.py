"""A table that changes before, during and after a pruned read: the read sees one snapshot."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812  its usual name

from pruning import explain, pruned_read, report
from sample_data.confs import conf
from tests.oracle.answers import Keys, rows_of
from tests.oracle.lakes import Lake, Layout, copied, data_files, write
from tests.oracle.oracle import check_rows, check_skips, skips

pytestmark = pytest.mark.spark

LAYOUT = Layout(file_rows=10, group_rows=5)
KEYS = Keys.of("k", pa.array([0, 70, 210, 390, 500], pa.int64()))
PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.columnMapping.mode": "name",
    "delta.enableTypeWidening": "true",
}


def rows(first: int = 0) -> pa.Table:
    ids = range(first, first + 40)
    return pa.table({"id": ids, "k": pa.array([at * 10 for at in ids], pa.int64()), "text": [f"t{at}" for at in ids]})


@pytest.fixture
def lake(shared_lake, tmp_path):
    return copied(shared_lake("changing", "delta", rows, LAYOUT, options=PROPERTIES), tmp_path / "t")


def statement(text: str) -> Callable[[Lake], None]:
    def run(lake: Lake) -> None:
        lake.spark.sql(text.format(t=f"delta.`{lake.source}`"))

    return run


def overwrite(lake: Lake) -> None:
    rows_ = lake.spark.range(900, 940).selectExpr("id", "0L AS k", "'new' AS text")
    rows_.write.format("delta").mode("overwrite").save(lake.source)


def replace(lake: Lake) -> None:
    frame = lake.spark.range(5).selectExpr("id", "'k' || id AS k")
    frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(lake.source)


CHANGES = {
    "append": statement("INSERT INTO {t} VALUES (100, 70, 'again')"),
    "delete by vector": statement("DELETE FROM {t} WHERE id IN (7, 21)"),
    "update": statement("UPDATE {t} SET k = k + 70 WHERE id < 20"),
    "optimize": statement("OPTIMIZE {t}"),
    "rename column": statement("ALTER TABLE {t} RENAME COLUMN k TO was_k"),
    "drop column": statement("ALTER TABLE {t} DROP COLUMN k"),
    "swap names": lambda lake: [
        statement(f"ALTER TABLE {{t}} RENAME COLUMN {old} TO {new}")(lake)
        for old, new in (("k", "x"), ("id", "k"), ("x", "id"))
    ],
    "overwrite": overwrite,
    "another schema": replace,
}


@pytest.mark.parametrize("change", CHANGES)
def test_commit_before_the_action_changes_no_row(oracle, lake, change):
    answer = oracle.answer(lake, [KEYS])
    keys = dict([KEYS.entry])
    reads = {exact: pruned_read(lake.spark, lake.source, keys=keys, exact=exact) for exact in (False, True)}
    CHANGES[change](lake)
    for exact, read in reads.items():
        check_rows(read, answer, exact=exact)
        # Keys lie in the first, third and last file; 500 is in none.
        check_skips(read, skips((3, 4), (4, 8)))
    statement("INSERT INTO {t} BY NAME (SELECT 200L AS id)")(lake) if change != "optimize" else overwrite(lake)
    check_rows(reads[True], answer, exact=True)


@pytest.mark.full
@pytest.mark.parametrize("change", ["delete by vector", "update", "rename column", "another schema"])
def test_older_version_is_pruned_by_its_statistics(oracle, lake, change):
    answer = oracle.answer(lake, [KEYS], version=0)
    CHANGES[change](lake)
    for exact in (False, True):
        read = pruned_read(lake.spark, lake.source, keys=dict([KEYS.entry]), version=0, exact=exact)
        check_rows(read, answer, exact=exact)
        check_skips(read, skips((3, 4), (4, 8)))
        assert 0 == explain(read).tables[0].version


def committing(lake: Lake, change: str) -> Iterator[int]:
    """Keys with a commit in between; the table is already open then."""
    yield from (0, 70)
    CHANGES[change](lake)
    yield from (210, 390, 500)


@pytest.mark.parametrize("change", ["append", "update", "optimize", "overwrite", "another schema"])
def test_commit_while_collecting_keys_changes_no_row(oracle, lake, change):
    answer = oracle.answer(lake, [KEYS])
    read = pruned_read(lake.spark, lake.source, keys={"k": committing(lake, change)}, exact=True)
    assert 1 == lake.whole().sparkSession.sql(f"DESCRIBE HISTORY delta.`{lake.source}` LIMIT 1").first()["version"]
    check_rows(read, answer, exact=True)
    check_skips(read, skips((3, 4), (4, 8)))


@pytest.mark.full
def test_next_read_sees_the_new_version(oracle, lake):
    oracle.check(lake, KEYS, expected=skips((3, 4), (4, 8)))
    CHANGES["update"](lake)
    oracle.check(lake, KEYS)
    overwrite(lake)
    oracle.check(lake, KEYS)


@pytest.mark.full
def test_vacuumed_files_fail_the_read(spark, lake):
    read = pruned_read(spark, lake.source, keys=dict([KEYS.entry]))
    before = read.count()
    overwrite(lake)
    settings = {
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        # By default, VACUUM lists a folder in thousands of tasks.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
    }
    with conf(spark, settings):
        spark.sql(f"VACUUM delta.`{lake.source}` RETAIN 0 HOURS")
    assert before >= 4
    with pytest.raises(
        (PySparkException, Py4JError), match=r"(?i)does not exist|FAILED_READ_FILE|DELTA_FILE_NOT_FOUND"
    ):
        read.collect()


@pytest.fixture
def plain(shared_lake, tmp_path):
    return copied(shared_lake("changing", "parquet", rows, LAYOUT), tmp_path / "p")


def test_rewritten_directory_is_listed_again(oracle, spark, plain):
    oracle.check(plain, KEYS, expected=skips((3, 4), (4, 8)))
    shutil.rmtree(plain.source)
    write(spark, Path(plain.source), "parquet", rows(35), LAYOUT)
    # 390 and 500 lie in the first two files.
    oracle.check(plain, KEYS, expected=skips((2, 4), (2, 8)))


def test_file_added_while_collecting_keys_is_not_read(oracle, spark, plain):
    answer = oracle.answer(plain, [KEYS])

    def keys() -> Iterator[int]:
        yield from (0, 70)
        write(spark, Path(plain.source), "parquet", rows(), LAYOUT, mode="append")
        yield from (210, 390, 500)

    read = pruned_read(spark, plain.source, keys={"k": keys()}, exact=True)
    check_rows(read, answer, exact=True)
    check_skips(read, skips((3, 4), (4, 8)))


def test_deleted_files_fail_the_read(spark, plain):
    read = pruned_read(spark, plain.source, keys=dict([KEYS.entry]))
    assert 4 <= read.count()
    for path in data_files(plain):
        path.unlink()
    with pytest.raises((PySparkException, Py4JError), match=r"(?i)does not exist|FAILED_READ_FILE"):
        read.collect()


# Failure catalogue 47 - 49, 174: plans of one table with different filters must be distinguished.
@pytest.fixture(params=["delta", "parquet"])
def shared(request, shared_lake):
    return shared_lake("reused", request.param, rows, LAYOUT)


def of(lake: Lake, *keys: int, exact: bool = True):
    return pruned_read(lake.spark, lake.source, keys={"k": list(keys)}, exact=exact)


def ids(df) -> list[int]:
    return sorted(row["id"] for row in df.select("id").collect())


def test_reads_with_different_keys_in_one_query(shared):
    low, high, both = of(shared, 0, 70), of(shared, 350, 390), of(shared, 70, 350)
    assert [0, 7, 35, 39] == ids(low.union(high))
    assert [7] == ids(low.join(both.select("k"), "k"))
    assert [0, 7, 7, 35, 35, 39] == ids(low.union(high).union(both))
    assert [0] == ids(low.join(both, "k", "left_anti"))
    assert [(0, None), (7, 7)] == sorted(
        (row[0], row[1])
        for row in low.alias("a").join(both.alias("b"), F.expr("a.k = b.k"), "left").select("a.id", "b.id").collect()
    )
    assert 40 == shared.whole().count()
    assert 38 == len(ids(shared.whole().join(low.select("k"), "k", "left_anti")))
    assert 1 == report(high).measured.files_read


def test_one_read_with_different_filters_in_one_query(shared):
    read = of(shared, 0, 70, 350)
    assert [0, 7, 7, 35] == ids(read.where("k < 100").union(read.where("k > 0")))
    assert [7] == ids(read.where("k > 0").join(read.where("k < 100").select("k"), "k"))
    assert [(0, 3), (7, 3), (35, 3)] == sorted(
        (row["id"], row["n"]) for row in read.crossJoin(read.agg(F.count("*").alias("n"))).collect()
    )


def test_cached_read_is_distinguished_from_table_and_other_reads(shared):
    read = of(shared, 0, 70)
    whole = shared.whole()
    read.cache()
    try:
        assert [0, 7] == ids(read)
        assert 40 == shared.whole().count()
        assert [35, 39] == ids(of(shared, 350, 390))
        assert [0, 7] == ids(of(shared, 0, 70))
        whole.cache()
        assert 40 == whole.count()
        assert [21] == ids(of(shared, 210))
    finally:
        whole.unpersist(blocking=True)
        read.unpersist(blocking=True)


def test_read_behaves_like_any_dataframe(spark, shared, tmp_path):
    read = of(shared, 0, 70, 350)
    expected = rows_of(read)
    read.write.format("delta").save(str(tmp_path / "copy"))
    assert expected == rows_of(spark.read.format("delta").load(str(tmp_path / "copy")))
    read.createOrReplaceTempView("pruned_once")
    try:
        assert [(3, 420)] == [tuple(row) for row in spark.sql("SELECT count(*), sum(k) FROM pruned_once").collect()]
    finally:
        spark.catalog.dropTempView("pruned_once")
    assert (
        3
        == len(read.toPandas())
        == read.rdd.count()
        == len(read.repartition(3).collect())
        == len(list(read.toLocalIterator()))
    )
    assert {"id", "k", "text"} == set(read.columns)
    assert shared.whole().schema == read.schema
    assert [35, 7] == [row["id"] for row in read.orderBy(F.desc("k")).limit(2).collect()]
    assert 1 == len({row[0] for row in read.where("k = 350").select("_metadata.file_name").collect()})
