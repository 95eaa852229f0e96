"""Executors without this package: scans are pruned, a build by Python fails with a reason, and rows are right."""

from __future__ import annotations

import duckdb
from pyspark.sql import SparkSession

from pruning import explain, prune, report
from pruning.reasons import ReasonCode
from sample_data.rows import Rows
from tests.cluster.outcomes import Found, Skipped
from tests.cluster.star import BY_TASKS, FILES_READ, JOIN, ROWS
from tests.queries.star import BY_JOB, FILES


def check_scan(spark: SparkSession, duck: duckdb.DuckDBPyConnection) -> Found:
    """Checks that the scan skips the same files as with the package."""
    result = prune(spark.sql(JOIN), options=BY_JOB)
    rows = Rows(result.collect())
    assert rows == Rows(duck.execute(JOIN).fetchall())
    (table,) = report(result).tables
    assert (ROWS, FILES_READ, FILES) == (len(rows), table.planned.files_kept, table.planned.files_total)
    assert table.measured is not None, "nothing was measured"
    assert table.measured.files_read == FILES_READ, table.measured
    return Found(len(rows), Skipped(1, (FILES_READ, FILES)))


def check_build(spark: SparkSession, duck: duckdb.DuckDBPyConnection) -> Found:
    """Checks that a build that needs Python workers fails with a reason, and that the query still has its rows."""
    result = prune(spark.sql(JOIN), options=BY_JOB.with_limits(**BY_TASKS))
    rows = Rows(result.collect())
    assert rows == Rows(duck.execute(JOIN).fetchall())
    reasons = [str(each) for each in explain(result).reasons if each.code is ReasonCode.BUILD_FAILED]
    assert reasons, "no build failed"
    return Found(len(rows), note="; ".join(reasons))
