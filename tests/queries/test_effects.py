"""Observations and functions with effects see the same rows in a pruned query as in stock Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import Observation
from pyspark.sql.functions import count, lit, udf

from connectors.pipeline.records import attach
from connectors.spark.jvm import analyzed_plan, frame_of
from pruning import PruningOptions, disable, enable, explain, prune
from pruning.reasons import ReasonCode
from sample_data.rows import Rows
from tests.costs import ALWAYS
from tests.queries.star import FILES, ITEMS, OPTIONS, files
from tests.two_ways import WAYS, LatestQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

# No file of sales has a day of more than 159.
CHOSEN = {"some": "day", "none": "day + 1000 AS day"}
# The DataFrame, and what it is seen to do when it has run.
Made = tuple["DataFrame", Callable[[], Any]]


def observed(items: DataFrame) -> Made:
    seen = Observation()
    return items.observe(seen, count(lit(1)).alias("rows")), lambda: seen.get


def observed_groups(items: DataFrame) -> Made:
    """Rows that no shuffle has counted in whole before the join takes them, partition by partition."""
    seen = Observation()
    return items.groupBy("item").agg(count("*")).observe(seen, count(lit(1)).alias("rows")), lambda: seen.get


def called(items: DataFrame) -> Made:
    runs = items.sparkSession.sparkContext.accumulator(0)

    def counting(item):
        runs.add(1)
        return item

    return items.withColumn("again", udf(counting, "int")("item")), lambda: runs.value


def mapped(items: DataFrame) -> Made:
    runs = items.sparkSession.sparkContext.accumulator(0)

    def counting(batches):
        for each in batches:
            runs.add(each.num_rows)
            yield each

    return items.mapInArrow(counting, "item int, name string"), lambda: runs.value


@pytest.fixture(params=WAYS)
def pruned_here(spark, request):
    """Prunes a DataFrame by `prune()`, or from then on in its own session: an observation is of one session alone."""

    def run(df: DataFrame, options: PruningOptions = OPTIONS) -> DataFrame:
        if request.param == "prune()":
            return prune(df, options=options)
        enable(spark, options=options)
        return attach(frame_of(spark, analyzed_plan(df)), LatestQuery(spark))

    yield run
    disable(spark)


@pytest.fixture(autouse=True)
def shuffled(conf):
    """Adaptive execution, with which Spark drops the other side of a join as soon as a side has no row."""
    conf("spark.sql.autoBroadcastJoinThreshold", "-1")
    conf("spark.sql.adaptive.enabled", "true")


def sales_of(spark: SparkSession, star: str, chosen: str, items: DataFrame | None = None) -> DataFrame:
    """The sales of the chosen days, after a join with `items`."""
    days = spark.table(f"{star}days").where("day = 30").selectExpr(CHOSEN[chosen])
    sales = spark.table(f"{star}sales")
    return (sales if items is None else sales.join(items, "item")).join(days, "day")


@pytest.mark.parametrize("chosen", CHOSEN)
@pytest.mark.parametrize("make", [observed, observed_groups, called, mapped])
def test_effect_beside_a_scan_is_that_of_stock(spark, star, pruned_here, make, chosen):
    def query() -> Made:
        items, told = make(spark.table(f"{star}items"))
        return sales_of(spark, star, chosen, items), told

    stock, stock_told = query()
    rows = Rows(stock.collect())
    df, told = query()
    result = pruned_here(df)
    assert rows == Rows(result.collect())
    assert stock_told() == told()
    assert ITEMS == (told()["rows"] if isinstance(told(), dict) else told())
    assert "sales" not in {name.rpartition("_")[2] for name in files(result)}
    assert ReasonCode.EFFECT_BESIDE in {each.code for each in explain(result).reasons}


def test_function_of_a_build_is_called_once_for_each_row(spark, star, pruned_here):
    """Its rows are joined, so nothing of it is left that Spark could drop beside a scan."""

    def query() -> Made:
        items, told = called(spark.table(f"{star}items").where("item < 7"))
        return sales_of(spark, star, "some", items), told

    stock, stock_told = query()
    rows = Rows(stock.collect())
    df, told = query()
    result = pruned_here(df, ALWAYS)
    assert (rows, 7, 7) == (Rows(result.collect()), stock_told(), told())
    assert {"sales": 1} == {name.rpartition("_")[2]: kept for name, (_, kept, _) in files(result).items()}


def test_observed_result_of_a_pruned_join(spark, star, pruned_here):
    def query() -> Made:
        seen = Observation()
        joined = sales_of(spark, star, "none").observe(seen, count(lit(1)).alias("rows"))
        return joined, lambda: seen.get

    stock, stock_told = query()
    df, told = query()
    result = pruned_here(df)
    assert [] == stock.collect() == result.collect()
    assert {"rows": 0} == stock_told() == told()
    assert [(0, FILES)] == [(each.files_kept, each.files_total) for each in explain(result).tables]
