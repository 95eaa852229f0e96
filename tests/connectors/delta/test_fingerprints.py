"""Fingerprints of Delta leaves where the names of the files do not tell two snapshots apart."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from connectors.delta.table import DELTA

pytestmark = [pytest.mark.spark, pytest.mark.quick(2)]


def fingerprint(spark, path: str):
    df = spark.read.format("delta").load(path)
    (found,) = DELTA.fingerprints(spark, [df._jdf.queryExecution().optimizedPlan().collectLeaves().head()])
    assert isinstance(found, str), found
    return found


@pytest.fixture
def table(spark, tmp_path) -> str:
    path = str(tmp_path / "table")
    df = spark.range(0, 100, 1, 1)
    df.write.format("delta").option("delta.enableDeletionVectors", "true").save(path)
    return path


def files(path: str) -> set[str]:
    return {each.name for each in Path(path).glob("part-*")}


def test_rows_that_a_deletion_vector_removes_change_the_fingerprint(spark, table):
    before, names = fingerprint(spark, table), files(table)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 3")
    assert (names, 99) == (files(table), spark.read.format("delta").load(table).count())
    after = fingerprint(spark, table)
    assert before != after
    spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF 0")
    assert 3 == len({before, after, fingerprint(spark, table)})


def test_a_log_that_is_written_anew_over_the_files_of_a_table_changes_the_fingerprint(spark, table):
    before, names = fingerprint(spark, table), files(table)
    shutil.rmtree(Path(table, "_delta_log"))
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    spark.sql(f"CONVERT TO DELTA parquet.`{table}`")
    assert names == files(table)
    assert before != fingerprint(spark, table)
