"""Results that depend on the order of rows: pruning leaves the order of the rows of one partition as it was."""

from __future__ import annotations

import pytest

from pruning import report
from sample_data.rows import Rows
from tests.in_session import kept
from tests.queries.star import BY_JOB, OPTIONS

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("options", [OPTIONS, BY_JOB], ids=["driver", "job"])
def test_order_of_one_partition_is_that_of_stock(spark, star, pruned_frame, conf, options):
    """The remaining files are read in the same order, and the small side is broadcast in both."""
    conf("spark.sql.files.minPartitionNum", "1")
    conf("spark.sql.files.openCostInBytes", "0")
    query = f"""
        SELECT collect_list(amount), first(amount), last(item), max_by(amount, s.day DIV 100), min_by(amount, 1),
            mode(item), percentile_approx(amount, 0.3), array_agg(item), listagg(string(amount), ','), sum(amount / 7)
        FROM {star}sales s JOIN {star}days d ON s.day = d.day WHERE month = 2"""
    df = spark.sql(query)
    result = pruned_frame(df, options=options)
    assert Rows(df.collect()) == Rows(result.collect())
    assert [("sales", 2)] == kept(report(result))


def test_ties_with_an_order_are_those_of_stock(spark, star, pruned_frame):
    query = f"""
        SELECT s.item, array_sort(collect_list(amount)), max_by(amount, amount), percentile_approx(amount, 0.5)
        FROM {star}sales s JOIN {star}days d ON s.day = d.day WHERE month = 2 GROUP BY s.item"""
    df = spark.sql(query)
    result = pruned_frame(df, options=OPTIONS)
    assert Rows(df.collect()) == Rows(result.collect())
    assert [("sales", 2)] == kept(report(result))
