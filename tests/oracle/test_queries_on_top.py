"""Filters and limits of a query above a pruned read: its conditions and the pushed predicates are ANDed."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pruning import pruned_read, report
from sample_data.confs import conf
from sample_data.plain_duckdb import load
from tests.oracle.lakes import Layout, write

pytestmark = pytest.mark.spark

KEYS = [0, 70, 110, 210, 390]


def rows() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(40), pa.int64()),
            "k": pa.array([None if at % 10 == 3 else at * 10 for at in range(40)], pa.int64()),
            "day": pa.array([f"2024-01-{1 + at // 10:02} {at % 10:02}:00" for at in range(40)]),
        }
    )


@pytest.fixture(scope="module")
def clustered(spark, tmp_path_factory):
    """Four files, each with one value of `substr(day, 1, 10)`, by which Delta skips as by a partition."""
    folder = tmp_path_factory.mktemp("clustered") / "t"
    layout = Layout(file_rows=10, group_rows=5)
    lake = write(spark, folder, "delta", rows(), layout, options={"delta.feature.clustering": "supported"})
    spark.sql(f"ALTER TABLE delta.`{folder}` CLUSTER BY (day)")
    return lake


# Failure catalogue 116, 152 - 154: Delta's rewriting of a negation must not include a pushed predicate.
CONDITIONS = (
    "NOT (k = 70 AND substr(day, 1, 10) = '2024-01-01')",
    "NOT (substr(day, 1, 10) = '2024-01-01' AND upper(day) LIKE '%07:00')",
    "NOT (k > 100 OR day LIKE '2024-01-01 00%')",
    "NOT (k > 100 AND day LIKE '2024-01-03%')",
    "NOT (k IN (70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81))",
    "k <> 70 OR day IS NULL",
    "NOT (k IS NOT DISTINCT FROM 70)",
    "(k = 70) IS NOT TRUE",
    "length(day) = 16 AND NOT (substr(day, 1, 10) < '2024-01-02' AND k >= 0)",
)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_negated_filters_above_a_read_keep_their_rows(spark, duck, clustered, condition):
    load(duck, "t", rows())
    expected = {id_ for (id_,) in duck.execute(f"SELECT id FROM t WHERE k IN {tuple(KEYS)} AND {condition}").fetchall()}
    settings = {
        "spark.databricks.delta.skipping.partitionLikeFilters.enabled": "true",
        "spark.databricks.delta.skipping.partitionLikeDataSkipping.enabled": "true",
        "spark.databricks.delta.skipping.partitionLikeFilters.threshold": "0",
    }
    with conf(spark, settings):
        for exact in (False, True):
            read = pruned_read(spark, clustered.source, keys={"k": KEYS}, exact=exact)
            found = {row.id for row in read.where(condition).collect()}
            assert found >= expected
            assert found == expected or not exact
            assert report(read).measured.files_read <= 4
        whole = clustered.whole().where(f"k IN {tuple(KEYS)}").where(condition)
        assert expected == {row.id for row in whole.collect()}


# Failure catalogue 1, 118: a limit counts the rows that pass.
@pytest.mark.parametrize("exact", [False, True])
def test_limit_above_a_read_counts_matching_rows(spark, tmp_path, exact):
    lake = write(spark, tmp_path / "t", "delta", rows(), Layout(10, 5), options={"delta.enableDeletionVectors": "true"})
    spark.sql(f"DELETE FROM delta.`{lake.source}` WHERE id IN (0, 1, 2, 20, 21)")
    read = pruned_read(spark, lake.source, keys={"k": KEYS}, exact=exact).where(f"k IN {tuple(KEYS)}")
    assert [7, 11, 39] == sorted(row.id for row in read.limit(10).collect())
    assert 2 == len(read.limit(2).collect())
