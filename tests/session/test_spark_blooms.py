"""Spark's runtime bloom filters in an enabled session: those that a row filter of the same column covers go.

Each reads the side that makes it once more. Beside files and ranges alone they stay: they drop rows that these leave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from sample_data.rows import Rows
from tests.costs import FREE_BUILDS
from tests.in_session import in_session

pytestmark = pytest.mark.spark

# Without joined rows each side of a join is a scan, to which Spark adds filters.
OPTIONS = FREE_BUILDS.with_limits(joined_rows=0, joined_long_rows=0)


@pytest.fixture(autouse=True)
def low_gates(conf) -> None:
    """Lowers Spark's thresholds, so that every sort merge join gets a runtime bloom filter."""
    conf("spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold", "0")
    conf("spark.sql.optimizer.runtime.bloomFilter.creationSideThreshold", "1g")
    conf("spark.sql.autoBroadcastJoinThreshold", "-1")


@dataclass(frozen=True, slots=True)
class Ran:
    """The rows of a query, the runtime bloom filters in its optimised plan, and its row filters by column."""

    rows: Rows
    blooms: int
    tests: dict[str, str]

    @staticmethod
    def of(run: Callable[[], Any], spark, options=None) -> Ran:
        def ran() -> tuple[Rows, int]:
            df = run()
            rows = Rows(df.collect())
            return rows, df._jdf.queryExecution().optimizedPlan().toString().count("bloom_filter_agg")

        (rows, blooms), told = in_session(spark, options, ran) if options else (ran(), None)
        filters = [one for each in told.tables for one in each.planned.filters] if told else []
        return Ran(rows, blooms, {one.columns[0]: one.row_test for one in filters})


def test_bloom_filter_of_a_column_that_a_row_filter_tests_goes(spark, star):
    query = f"SELECT s.* FROM {star}sales s JOIN {star}items i ON s.item = i.item WHERE i.name IN ('n3', 'n44')"
    stock, pruned = (Ran.of(lambda: spark.sql(query), spark, each) for each in (None, OPTIONS))
    assert stock.rows == pruned.rows
    assert ({"item": "IN list"}, 1, 0) == (pruned.tests, stock.blooms, pruned.blooms)


@pytest.mark.parametrize("off", [{"max_in_list": 0}, {"max_in_list": 0, "bitmap_filter_bytes": 0}])
def test_bloom_filter_goes_beside_each_kind_of_row_filter(spark, star, off):
    query = f"SELECT s.* FROM {star}sales s JOIN {star}items i ON s.item = i.item WHERE i.name IN ('n3', 'n44')"
    stock, pruned = (Ran.of(lambda: spark.sql(query), spark, each) for each in (None, OPTIONS.with_limits(**off)))
    assert stock.rows == pruned.rows
    # A bloom filter of ours is a subquery of one row, which aggregates nothing.
    assert {"item": "bloom filter" if "bitmap_filter_bytes" in off else "bitmap"} == pruned.tests
    assert (1, 0) == (stock.blooms, pruned.blooms)


def test_bloom_filter_beside_files_and_ranges_alone_stays(spark, star):
    query = f"SELECT s.* FROM {star}sales s JOIN {star}days d ON s.day = d.day WHERE d.month = 2"
    stock, pruned = (Ran.of(lambda: spark.sql(query), spark, each) for each in (None, OPTIONS))
    assert stock.rows == pruned.rows
    assert pruned.tests["day"] in {"none", "ranges"}
    assert (1, 1) == (stock.blooms, pruned.blooms)


def test_bloom_filter_of_another_column_stays(spark, star):
    """Each join has one; the row filter of items covers the one of their join alone."""
    joined = f"{star}sales s JOIN {star}items i ON s.item = i.item JOIN {star}days d ON s.day = d.day"
    query = f"SELECT s.* FROM {joined} WHERE i.name = 'n3' AND d.month = 2"
    stock, pruned = (Ran.of(lambda: spark.sql(query), spark, each) for each in (None, OPTIONS))
    assert stock.rows == pruned.rows
    assert pruned.tests["item"] == "IN list"
    assert (2, 1) == (stock.blooms, pruned.blooms)
