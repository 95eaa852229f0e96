"""One snapshot: builds, decisions and the query read one version of each table despite concurrent commits."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from connectors.builds.query_builds import QueryBuilds
from pruning import explain
from sample_data.rows import Rows
from tests.queries.star import OPTIONS

pytestmark = pytest.mark.spark

FILES, DAYS_PER_FILE = 6, 10
# The build side is read once for its keys and once more by the query.
TWICE = replace(OPTIONS, broadcast_strategy="NONE")
ONCE = replace(TWICE, broadcast_strategy="AUTO")


class Lake:
    """Sales clustered by day, and days with their months, in one format."""

    def __init__(self, spark, format_: str, folder: str) -> None:
        self.spark, self.format = spark, format_
        self.sales, self.days = f"{folder}/sales", f"{folder}/days"
        rows = FILES * DAYS_PER_FILE * 20
        self.write(self.sales, spark.range(0, rows, 1, FILES).selectExpr("cast(id div 20 AS int) AS day", "id"))
        self.write(self.days, self.months("day div 10"))

    def months(self, month: str):
        days = self.spark.range(0, FILES * DAYS_PER_FILE, 1, 1).selectExpr("cast(id AS int) AS day")
        return days.selectExpr("day", f"cast({month} AS int) AS month")

    def write(self, path: str, df, mode: str = "error") -> None:
        df.write.format(self.format).mode(mode).save(path)

    @property
    def query(self) -> str:
        return f"""
            SELECT s.day, month, count(*), sum(s.id) FROM {self.format}.`{self.sales}` s
            JOIN {self.format}.`{self.days}` d ON s.day = d.day WHERE month = 2 GROUP BY 1, 2"""

    def rows(self, df) -> Rows:
        return Rows(df.collect())


def appended(lake: Lake) -> None:
    """Adds days to the selected month and sales to its days."""
    lake.write(lake.days, lake.months("2").where("day IN (3, 55)"), "append")
    lake.write(lake.sales, lake.spark.sql("SELECT cast(25 AS int) AS day, 100000L AS id"), "append")


def days_overwritten(lake: Lake) -> None:
    lake.write(lake.days, lake.months("7 - day div 10"), "overwrite")


def sales_overwritten(lake: Lake) -> None:
    shifted = lake.spark.range(0, 1200, 1, 2).selectExpr("cast(59 - id div 20 AS int) AS day", "id + 7 AS id")
    lake.write(lake.sales, shifted, "overwrite")


def optimised(lake: Lake) -> None:
    """Compacts each table into one file."""
    lake.spark.sql(f"OPTIMIZE delta.`{lake.sales}`").collect()
    lake.spark.sql(f"OPTIMIZE delta.`{lake.days}`").collect()


def deleted(lake: Lake) -> None:
    lake.spark.sql(f"DELETE FROM delta.`{lake.sales}` WHERE day = 21")
    lake.spark.sql(f"DELETE FROM delta.`{lake.days}` WHERE day = 22")


CASES = [
    pytest.param("delta", each, TWICE, id=f"delta-{each.__name__}")
    for each in (appended, days_overwritten, sales_overwritten, optimised, deleted)
] + [
    pytest.param("parquet", appended, TWICE, id="parquet-appended"),
    pytest.param("delta", appended, ONCE, id="delta-appended-rows-kept"),
    pytest.param("parquet", appended, ONCE, id="parquet-appended-rows-kept"),
]


# Failure catalogue 47: a build that runs as a job of its own gets its own snapshot.
@pytest.mark.full
@pytest.mark.parametrize(("format_", "commit", "options"), CASES)
def test_commit_between_pruning_and_reading_changes_no_row(
    spark, tmp_path, pruned_before, format_, commit: Callable[[Lake], None], options
):
    lake = Lake(spark, format_, str(tmp_path))
    expected = lake.rows(spark.sql(lake.query))
    result = pruned_before(lambda: commit(lake), spark.sql(lake.query), options=options)
    assert expected == lake.rows(result)
    assert [(1, FILES)] == [
        (it.files_kept, it.files_total) for it in explain(result).tables if it.table.startswith("sales")
    ]
    assert DAYS_PER_FILE == len(expected)
    if commit is not optimised:
        assert expected != lake.rows(spark.sql(lake.query))


@pytest.mark.parametrize(("format_", "commit", "options"), CASES)
def test_commit_between_build_and_decision_changes_no_row(
    spark, tmp_path, pruned_frame, monkeypatch, format_, commit: Callable[[Lake], None], options
):
    lake = Lake(spark, format_, str(tmp_path))
    expected = lake.rows(spark.sql(lake.query))
    run, commits = QueryBuilds.run, []

    def run_and_commit(self, requests):
        found = run(self, requests)
        if not commits:
            with ThreadPoolExecutor(1) as pool:
                commits.append(pool.submit(commit, lake).result())
        return found

    monkeypatch.setattr(QueryBuilds, "run", run_and_commit)
    result = pruned_frame(spark.sql(lake.query), options=options)
    assert expected == lake.rows(result)
    assert [None] == commits
    assert [1] == [it.files_kept for it in explain(result).tables if it.table.startswith("sales")]


@pytest.mark.parametrize("commit", [days_overwritten, sales_overwritten], ids=lambda each: each.__name__)
def test_overwritten_parquet_files_fail_the_query(spark, tmp_path, pruned_before, commit):
    """Parquet has no versions: overwritten files cannot be read any more."""
    lake = Lake(spark, "parquet", str(tmp_path))
    result = pruned_before(lambda: commit(lake), spark.sql(lake.query), options=TWICE)
    with pytest.raises(Exception, match=r"FAILED_READ_FILE|does not exist"):
        result.collect()


@pytest.mark.full
def test_table_joined_with_its_older_version(spark, tmp_path, pruned_frame):
    lake = Lake(spark, "delta", str(tmp_path))
    sales_overwritten(lake)
    lake.spark.sql(f"OPTIMIZE delta.`{lake.sales}`").collect()
    query = f"""
        SELECT a.day, count(*), sum(b.id) FROM delta.`{lake.sales}` VERSION AS OF 0 a
        JOIN delta.`{lake.sales}` VERSION AS OF 1 b ON a.day = b.day
        JOIN delta.`{lake.days}` d ON a.day = d.day WHERE month = 2 GROUP BY 1"""
    expected = lake.rows(spark.sql(query))
    result = pruned_frame(spark.sql(query), options=TWICE)
    assert expected == lake.rows(result)
    sales = [it for it in explain(result).tables if it.table.startswith("sales")]
    versions = {it.version: (it.files_kept, it.files_total) for it in sales}
    assert {0: (1, FILES), 1: (1, 2)} == versions
