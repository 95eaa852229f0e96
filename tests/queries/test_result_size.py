"""A build whose rows are more than the driver takes is no trouble of a query that brings few rows to the driver."""

from __future__ import annotations

import logging

import pytest

from pruning import explain
from pruning.reasons import ReasonCode
from sample_data.rows import Rows
from tests.queries.star import BY_JOB, FILES, files

pytestmark = pytest.mark.spark


@pytest.fixture
def small_results(spark):
    """The driver takes no result of a job with more than 6,000 bytes."""
    conf = spark.sparkContext._jsc.sc().conf()
    before = conf.get("spark.driver.maxResultSize", None)
    conf.set("spark.driver.maxResultSize", "6000b")
    yield
    # Else sessions that begin later have a conf that the shared one has not.
    if before is None:
        conf.remove("spark.driver.maxResultSize")
    else:
        conf.set("spark.driver.maxResultSize", before)


@pytest.mark.usefixtures("small_results")
def test_build_above_the_largest_result_gives_no_warning(spark, star, pruned_frame, caplog):
    days = f"(SELECT DISTINCT day, sha2(string(day), 512) AS text FROM {star}days WHERE month > 0)"
    # Stock runs it: no row of the small side goes to the driver.
    query = f"SELECT /*+ MERGE(d) */ max(text) FROM {star}sales s JOIN {days} d ON s.day = d.day"
    rows = Rows(spark.sql(query).collect())
    with caplog.at_level(logging.WARNING):
        result = pruned_frame(spark.sql(query), options=BY_JOB)
        assert rows == Rows(result.collect())
    assert [] == [each.getMessage() for each in caplog.records if each.name == "scanprune"]
    assert ReasonCode.RESULT_TOO_LARGE in {each.code for each in explain(result).reasons}
    # The statistics of the small side's files still bound its keys.
    assert all(kept <= FILES for _, kept, _ in files(result).values())
