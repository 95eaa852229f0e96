"""The size of the star schema of these tests, and the files that a pruned query read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pruning import report
from tests.costs import FREE_BUILDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES, DAYS_PER_FILE, ROWS_PER_DAY, ITEMS = 8, 20, 25, 50
DAYS_PER_MONTH = 30
OPTIONS = FREE_BUILDS
# Without it the builds over the small dimensions take no job.
BY_JOB = OPTIONS.with_limits(driver_scan_files=0)


def star_tables(spark: SparkSession) -> dict[str, DataFrame]:
    """The sales, clustered by day, with the dimensions `days` and `items`."""
    days = FILES * DAYS_PER_FILE
    return {
        "sales": spark.range(0, days * ROWS_PER_DAY, 1, FILES).selectExpr(
            f"cast(id div {ROWS_PER_DAY} AS int) AS day", f"cast(id % {ITEMS} AS int) AS item", "id AS amount"
        ),
        "days": spark.range(0, days, 1, 1).selectExpr(
            "cast(id AS int) AS day", f"cast(id div {DAYS_PER_MONTH} AS int) AS month"
        ),
        "items": spark.range(0, ITEMS, 1, 1).selectExpr("cast(id AS int) AS item", "concat('n', id) AS name"),
    }


def files(df) -> dict[str, tuple[int, int, int]]:
    """The files that each pruned scan read, those it was planned to read, and all."""
    return {
        each.planned.table: (each.measured.files_read, each.planned.files_kept, each.planned.files_total)
        for each in report(df).tables
    }
