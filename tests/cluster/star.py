"""A small star schema on the store, for which the counts of a query follow from arithmetic."""

from __future__ import annotations

import duckdb
from pyspark.sql import SparkSession

from sample_data.layout import row_groups_of
from sample_data.plain_duckdb import load
from tests.queries.star import DAYS_PER_FILE, DAYS_PER_MONTH, FILES, ROWS_PER_DAY, star_tables

TABLES = ("sales", "days", "items")
DAYS_PER_GROUP = 4
# Months 2 and 4 are days 60 to 89 and 120 to 149; 11 of 50 items match the name, and each day has half of the items.
JOIN = """
    SELECT s.*, month, name FROM sales s JOIN days d ON s.day = d.day JOIN items i ON s.item = i.item
    WHERE month IN (2, 4) AND name LIKE 'n1%'"""
ROWS = 2 * DAYS_PER_MONTH // 2 * 11
# Files have 20 days, row groups 4 days. Files 3 and 6 are read whole; of files 4 and 7, three row groups are read.
FILES_READ, GROUPS_READ, GROUPS = 4, 5 + 3 + 5 + 3, FILES * DAYS_PER_FILE // DAYS_PER_GROUP
ROWS_READ = GROUPS_READ * DAYS_PER_GROUP * ROWS_PER_DAY
# The join above with an aggregation, so with an exchange.
GROUPED = f"SELECT name, count(*) AS n, sum(amount) AS amount FROM ({JOIN}) GROUP BY name"
# Limits by which builds become jobs whose Python workers collect keys, as large builds do.
BY_TASKS = {"driver_rows": 0, "driver_long_rows": 0, "joined_rows": 0, "joined_long_rows": 0}
_FOLDER = "star"


def write(spark: SparkSession, bucket: str) -> str:
    """Writes the Delta tables; returns the URI of their folder."""
    place = f"s3a://{bucket}/{_FOLDER}"
    with row_groups_of(spark, DAYS_PER_GROUP * ROWS_PER_DAY):
        for name, df in star_tables(spark).items():
            df.write.format("delta").save(f"{place}/{name}")
    return place


def fill(duck: duckdb.DuckDBPyConnection, spark: SparkSession) -> None:
    """Copies the rows of all tables into DuckDB."""
    for name, df in star_tables(spark).items():
        load(duck, name, df.toArrow())
