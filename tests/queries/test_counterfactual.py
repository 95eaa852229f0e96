"""Plans and reports compare with the unfiltered query, whose own conditions already prune."""

from __future__ import annotations

import pytest

from pruning import explain, report
from sample_data.rows import Rows
from tests.queries.star import FILES, OPTIONS, files

pytestmark = pytest.mark.spark

QUERY = "SELECT s.amount FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 2"


def test_statically_pruned_files_are_no_saving(pruned, star):
    # Days 60 to 89 lie in two files, amounts below 2000 in the first four.
    _, result = pruned(QUERY + " AND s.amount < 2000")
    (table,) = explain(result).tables
    # Delta skips files by a condition; the Parquet reader skips only row groups.
    expected = (1, 1, 4) if star == "delta_" else (2, 2, FILES)
    assert {"sales": expected} == files(result)
    assert (4, 1) == (table.row_groups_total, table.row_groups_kept)
    (measured,) = report(result).tables
    assert measured.measured.rows_scanned <= table.rows_kept == 500


def test_query_without_conditions_would_read_everything(pruned):
    _, result = pruned(QUERY)
    (table,) = explain(result).tables
    assert {"sales": (2, 2, FILES)} == files(result)
    assert (FILES, 2) == (table.row_groups_total, table.row_groups_kept)


def test_condition_without_matches_leaves_no_saving(spark, star, pruned_frame):
    query = QUERY.format(sales=f"{star}sales", days=f"{star}days") + " AND s.amount < -5"
    result = pruned_frame(spark.sql(query), options=OPTIONS)
    assert [] == result.collect()
    for table in explain(result).tables:
        assert 0 in {table.files_total, table.row_groups_total, table.files_kept}
        assert 0 == table.bytes_kept


@pytest.mark.full
def test_statically_pruned_partitions_are_no_saving(spark, tmp_path, pruned_frame):
    for format_ in ("parquet", "delta"):
        folder = str(tmp_path / format_)
        sales = spark.range(0, 4000, 1, 1).selectExpr("id % 8 AS day", "id % 2 AS half", "id AS amount")
        sales.write.partitionBy("day").format(format_).save(f"{folder}_sales")
        spark.range(0, 8).selectExpr("id AS day", "id div 4 AS month").write.format(format_).save(f"{folder}_days")
        query = f"""
            SELECT sum(amount) FROM {format_}.`{folder}_sales` s JOIN {format_}.`{folder}_days` d ON s.day = d.day
            WHERE month = 1 AND s.day <> 7 AND s.day > 2"""
        result = pruned_frame(spark.sql(query), options=OPTIONS)
        assert Rows(spark.sql(query).collect()) == Rows(result.collect())
        (counts,) = files(result).values()
        # Delta evaluates `<>` on a partition column but not on `day` as a column of files.
        assert ((3, 3, 4) if format_ == "delta" else (3, 4, 5)) == counts
