"""Executors without this package: Spark's own reader runs the query, with a reason, and its rows are right."""

from __future__ import annotations

import duckdb
from pyspark.sql import SparkSession

from pruning import explain, prune, report
from pruning.reasons import ReasonCode
from pruning.results.table_explanation import TableExplanation
from sample_data.rows import Rows
from tests.cluster.outcomes import Found, Skipped
from tests.cluster.star import BY_TASKS, FILES_READ, JOIN, ROWS, options
from tests.queries.arrow import refusals
from tests.queries.star import FILES


def check_scan(spark: SparkSession, duck: duckdb.DuckDBPyConnection, scan: str) -> Found:
    """Checks that Spark's reader makes the scan and skips the same files."""
    result = prune(spark.sql(JOIN), options=options(scan))
    rows = Rows(result.collect())
    assert rows == Rows(duck.execute(JOIN).fetchall())
    reasons = refusals(result)
    assert len(reasons) == (scan == "ARROW"), reasons
    assert all(each.startswith("the Python workers") for each in reasons), reasons
    (table,) = report(result).tables
    files = (FILES_READ, FILES)
    assert (ROWS, *files, FILES_READ) == (len(rows), *_files(table.planned), table.measured.files_read)
    return Found(len(rows), Skipped(1, files), note="; ".join(reasons))


def _files(planned: TableExplanation) -> tuple[int | None, int | None]:
    return planned.files_kept, planned.files_total


def check_build(spark: SparkSession, duck: duckdb.DuckDBPyConnection) -> Found:
    """Checks that a build that needs Python workers fails with a reason, and that the query still has its rows."""
    result = prune(spark.sql(JOIN), options=options("PREDICATE").with_limits(**BY_TASKS))
    rows = Rows(result.collect())
    assert rows == Rows(duck.execute(JOIN).fetchall())
    reasons = [str(each) for each in explain(result).reasons if each.code is ReasonCode.BUILD_FAILED]
    assert reasons, "no build failed"
    return Found(len(rows), note="; ".join(reasons))
