from __future__ import annotations

import shutil

import numpy as np
import pytest

from sample_data.confs import CODE_GENERATION
from tests.connectors.parquet_tables import in_files, numbered, opened, pruned, scanned

pytestmark = pytest.mark.spark

ODD_NAMES = ["a b", "100%", "a%20b", "é\U0001f600", "q'\"`", "a+b&c=d", "#;@!$,", "new\nline", "x]y"]


def test_files_without_a_key_are_not_read(spark, tmp_path):
    source = in_files(tmp_path / "t", *numbered(0, 100, 200))
    table = opened(spark, source)
    found = pruned(table, {"id": [5, 150, 207]})
    assert (2, {"statistics": 1}) == (found.kept_count, found.skipped_by())
    (source / "1.parquet").unlink()
    rows, files, read = scanned(table.read(found.kept))
    assert [(id_, f"v{id_ // 100 * 100}") for id_ in [*range(10), *range(200, 210)]] == sorted(rows)
    assert (2, 20) == (files, read)


def test_pruned_frame_equals_the_whole_in_schema_and_plan(spark, tmp_path, conf):
    for name, value in CODE_GENERATION.items():
        conf(name, value)
    table = opened(spark, in_files(tmp_path / "t", *numbered(0, 100)))
    whole, part = table.read(None), table.read(np.array([True, False]))
    assert (whole.schema, whole.columns) == (part.schema, part.columns)
    assert "Batched: true" in part._jdf.queryExecution().executedPlan().toString()
    assert whole.select("id", "v").columns == part.select(whole["id"], whole["v"]).columns
    assert 10 == part.join(table.read(None), "id").count()


def test_whole_table_is_read_unchanged(spark, tmp_path):
    table = opened(spark, in_files(tmp_path / "t", *numbered(0, 100)))
    assert 2 == scanned(table.read(None))[1]
    plans = [table.read(kept)._jdf.queryExecution().analyzed() for kept in (None, np.ones(2, bool))]
    assert plans[0].sameResult(plans[1])


def test_no_kept_file_reads_nothing(spark, tmp_path):
    source = in_files(tmp_path / "t", *numbered(0, 100))
    table = opened(spark, source)
    shutil.rmtree(source)
    assert ([], 0, 0) == scanned(table.read(np.zeros(2, bool)))


def test_files_written_later_are_not_read(spark, tmp_path):
    source = in_files(tmp_path / "t", *numbered(0, 100))
    table = opened(spark, source)
    kept = pruned(table, {"id": [5]}).kept
    in_files(tmp_path / "new", *numbered(0, 5))
    for path in (tmp_path / "new").iterdir():
        path.rename(source / f"new {path.name}")
    assert [20, 10] == [table.read(each).count() for each in (None, kept)]
    assert (2, 1) == (len(table.files([])), scanned(table.read(kept))[1])
    assert 40 == opened(spark, source).read(None).count()


def test_scans_of_different_files_are_distinguished(spark, tmp_path):  # failure catalogue 52, 53
    source = in_files(tmp_path / "t", *numbered(0, 100, 200))
    table = opened(spark, source)
    some, others = np.array([True, False, False]), np.array([False, True, True])
    cached = table.read(some).cache()
    try:
        assert 10 == cached.count()
        assert [30, 20, 10] == [each.count() for each in (spark.read.parquet(str(source)), table.read(others), cached)]
    finally:
        cached.unpersist()
    part, whole = (each.groupBy("v").count() for each in (table.read(some), table.read(None)))
    assert [1, 3] == [len(each) for each in (part.collect(), whole.join(part, "v", "left").collect())]
    same, again = (table.read(some)._jdf.queryExecution().analyzed() for _ in range(2))
    assert same.sameResult(again)
    assert not same.sameResult(table.read(None)._jdf.queryExecution().analyzed())


@pytest.mark.parametrize("name", ODD_NAMES)
def test_hostile_file_names(spark, tmp_path, name):  # failure catalogue 113
    source = in_files(tmp_path / name, *numbered(0, 100))
    (source / "0.parquet").rename(source / f"{name}.parquet")
    table = opened(spark, source)
    kept = pruned(table, {"id": [5]}).kept
    assert (1, ()) == (kept.sum(), table.problems)
    assert [(id_, "v0") for id_ in range(10)] == scanned(table.read(kept))[0]
