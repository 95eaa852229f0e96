"""`pruned_read()` of a DataFrame, and of a view: read as they are where they are plain scans, refused elsewhere."""

from __future__ import annotations

import pytest

from pruning import explain, pruned_read, report
from pruning.errors import ColumnNotFoundError, InvalidDataFrameError, InvalidOptionError
from sample_data.rows import Rows

pytestmark = pytest.mark.spark

KEYS = [7, 30]


@pytest.fixture(params=["delta", "parquet"])
def stored(spark, request, tmp_path):
    """The format and the path of a table of a hundred rows in four files."""
    path = str(tmp_path / "t")
    spark.range(0, 100, 1, 4).selectExpr("id", "100 - id AS n", "'x' AS text").write.format(request.param).save(path)
    return request.param, path


def agrees(df, read, rows: int) -> None:
    """A read by keys has the rows and the columns of its source, and read two of its four files."""
    assert df.columns == read.columns
    # A condition on the DataFrame would be another query, which may read a newer version.
    assert Rows([row for row in df.collect() if row.id in KEYS]) == Rows(read.collect())
    assert rows == read.count()
    (planned,) = explain(read).tables
    assert (4, 2) == (planned.files_total, planned.files_kept)
    assert 2 == report(read).measured.files_read


@pytest.mark.parametrize("columns", [["*"], ["id"], ["text", "id"]])
def test_a_plain_scan_is_read_by_keys(spark, stored, columns):
    format_, path = stored
    df = spark.read.format(format_).load(path).select(*columns)
    agrees(df, pruned_read(spark, df, keys={"id": KEYS}, exact=True), 2)


def test_views_are_read_by_keys(spark, stored):
    format_, path = stored
    df = spark.read.format(format_).load(path)
    df.createOrReplaceTempView("seen")
    df.select("id", "n").createOrReplaceGlobalTempView("seen_by_all")
    spark.sql(f"CREATE VIEW seen_for_long AS SELECT n, id FROM {format_}.`{path}`")
    try:
        for name in ("seen", "global_temp.seen_by_all", "seen_for_long"):
            agrees(spark.table(name), pruned_read(spark, name, keys={"id": KEYS}, exact=True), 2)
    finally:
        spark.catalog.dropTempView("seen")
        spark.catalog.dropGlobalTempView("seen_by_all")
        spark.sql("DROP VIEW seen_for_long")


def test_a_temp_view_shadows_a_table(spark, stored):
    format_, path = stored
    spark.range(3).write.format(format_).saveAsTable("shadowed")
    try:
        spark.read.format(format_).load(path).createOrReplaceTempView("shadowed")
        agrees(spark.table("shadowed"), pruned_read(spark, "shadowed", keys={"id": KEYS}, exact=True), 2)
    finally:
        spark.catalog.dropTempView("shadowed")
        spark.sql("DROP TABLE shadowed")


def test_the_version_of_the_frame_is_read(spark, tmp_path):
    path = str(tmp_path / "t")
    spark.range(0, 100, 1, 4).write.format("delta").save(path)
    old = spark.read.format("delta").option("versionAsOf", 0).load(path)
    planned = spark.read.format("delta").load(path)
    assert 100 == len(planned.collect())
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (7)")
    for df in (old, planned):
        read = pruned_read(spark, df, keys={"id": KEYS}, exact=True)
        agrees(df, read, 2)
        assert 0 == explain(read).tables[0].version
    newest = pruned_read(spark, spark.read.format("delta").load(path), keys={"id": KEYS}, exact=True)
    assert (3, 1, 5) == (newest.count(), explain(newest).tables[0].version, explain(newest).tables[0].files_total)
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (7)")
    assert 3 == newest.count()


def test_options_of_the_reader_are_kept(spark, tmp_path):
    for part in range(4):
        frame = spark.range(part * 25, part * 25 + 25, 1, 1)
        frame = frame.selectExpr("id", "id AS late") if part else frame
        frame.write.parquet(str(tmp_path / f"part={part}"))
    reader = spark.read.option("mergeSchema", "true").option("basePath", str(tmp_path))
    df = reader.parquet(*(str(tmp_path / f"part={part}") for part in range(4)))
    read = pruned_read(spark, df, keys={"id": KEYS}, exact=True)
    agrees(df, read, 2)
    assert [(7, None, 0), (30, 30, 1)] == sorted((row.id, row.late, row.part) for row in read.collect())
    given = spark.read.schema("id BIGINT, other STRING").parquet(str(tmp_path / "part=1"))
    read = pruned_read(spark, given, keys={"id": [30]}, exact=True)
    assert [(30, None)] == [(row.id, row.other) for row in read.collect()]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda df: df.where("id < 50"), "the operator Filter"),
        (lambda df: df.limit(5), "the operator .*Limit"),
        (lambda df: df.union(df), "the operator Union"),
        (lambda df: df.selectExpr("id", "n + 1 AS n"), "the computed column 'n'"),
        (lambda df: df.selectExpr("n AS id", "id AS n"), "the column 'n' under the name 'id'"),
        (lambda df: df.select("ID", "n"), "the column 'ID', which the table has under another name"),
        (lambda df: df.distinct(), "the operator Aggregate"),
    ],
)
def test_other_plans_are_refused(spark, stored, change, found):
    format_, path = stored
    df = change(spark.read.format(format_).load(path))
    df.createOrReplaceTempView("other")
    try:
        for source in (df, "other"):
            with pytest.raises(InvalidDataFrameError, match=f"found {found}, expected a plain scan of one table"):
                pruned_read(spark, source, keys={"id": KEYS})
    finally:
        spark.catalog.dropTempView("other")


def test_frames_without_files_are_refused(spark, stored):
    format_, path = stored
    with pytest.raises(InvalidDataFrameError, match="found the operator Range"):
        pruned_read(spark, spark.range(3), keys={"id": [1]})
    cached = spark.read.format(format_).load(path).cache()
    try:
        with pytest.raises(InvalidDataFrameError, match="found the operator InMemoryRelation"):
            pruned_read(spark, cached, keys={"id": [1]})
    finally:
        cached.unpersist()


def test_columns_that_the_frame_lacks_are_refused(spark, stored):
    format_, path = stored
    df = spark.read.format(format_).load(path).select("id", "text")
    assert ["text"] == pruned_read(spark, df, keys={"id": KEYS}, columns=["text"]).columns
    for arguments in ({"keys": {"n": KEYS}}, {"keys": {"id": KEYS}, "columns": ["n"]}):
        with pytest.raises(ColumnNotFoundError, match="Cannot read 'n': the source has the columns id, text"):
            pruned_read(spark, df, **arguments)


def test_a_version_or_format_beside_a_frame_is_refused(spark, stored):
    format_, path = stored
    df = spark.read.format(format_).load(path)
    df.createOrReplaceTempView("seen")
    try:
        for arguments in ({"version": 0}, {"timestamp": "2030-01-01"}):
            for source in (df, "seen"):
                with pytest.raises(InvalidOptionError, match="leave out format, version"):
                    pruned_read(spark, source, keys={"id": KEYS}, **arguments)
        with pytest.raises(InvalidOptionError, match="leave out format, version"):
            pruned_read(spark, df, keys={"id": KEYS}, format=format_)
    finally:
        spark.catalog.dropTempView("seen")
