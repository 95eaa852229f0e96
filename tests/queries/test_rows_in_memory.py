"""Small sides that read no tables: lists, checkpoints, RDDs, Python functions, random numbers.

Their keys count even where each run may give other rows, because the query joins the rows of the build.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import Observation
from pyspark.sql.functions import col, count, rand, udf
from pyspark.sql.types import IntegerType

from connectors.builds import query_builds
from pruning import explain, prune, report
from pruning.reasons import Reason, ReasonCode
from sample_data.confs import conf
from sample_data.rows import Rows
from tests import leftovers
from tests.costs import ALWAYS, FREE_BUILDS
from tests.in_session import in_session, kept
from tests.queries.star import DAYS_PER_FILE, DAYS_PER_MONTH, FILES, ROWS_PER_DAY

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

DAYS = [3, 5, 5, None, 13]


def python_rows(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(each, "a") for each in DAYS], "day int, kind string")


def pandas_rows(spark: SparkSession) -> DataFrame:
    import pandas as pd  # noqa: PLC0415 - slow, and only needed here

    return spark.createDataFrame(pd.DataFrame({"day": pd.array(DAYS, dtype="Int32")}))


def arrow_rows(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(pa.table({"day": pa.array(DAYS, pa.int32())}))


def values(spark: SparkSession) -> DataFrame:
    return spark.sql("SELECT * FROM VALUES (3), (5), (5), (NULL), (13) AS t(day)")


def numbers(spark: SparkSession) -> DataFrame:
    return spark.range(3, 14, 5).select(col("id").cast("int").alias("day"))


def parallelized(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(spark.sparkContext.parallelize([(each,) for each in DAYS], 3), "day int")


def checkpointed(spark: SparkSession) -> DataFrame:
    return python_rows(spark).localCheckpoint()


def checkpointed_later(spark: SparkSession) -> DataFrame:
    return python_rows(spark).localCheckpoint(eager=False)


def python_function(spark: SparkSession) -> DataFrame:
    shifted = udf(lambda day: None if day is None else day - 1, IntegerType())
    return values(spark).select(shifted(col("day") + 1).alias("day"))


def pandas_function(spark: SparkSession) -> DataFrame:
    return values(spark).mapInPandas(lambda parts: parts, "day int")


def random_numbers(spark: SparkSession) -> DataFrame:
    return values(spark).where(rand() < 2.0)


def limited(spark: SparkSession) -> DataFrame:
    return spark.range(0, 60, 1, 4).orderBy(col("id") % 7, "id").limit(3).select(col("id").cast("int").alias("day"))


def sampled(spark: SparkSession) -> DataFrame:
    return values(spark).union(values(spark)).sample(fraction=0.99, seed=3)


FROM_MEMORY: list[Callable[[SparkSession], DataFrame]] = [
    python_rows,
    pandas_rows,
    arrow_rows,
    values,
    numbers,
    parallelized,
    checkpointed,
    checkpointed_later,
    python_function,
    pandas_function,
    random_numbers,
    limited,
    sampled,
]

# Limits by which two rows are too many to come to the driver.
MANY = {"joined_rows": 1, "joined_long_rows": 1}


@pytest.mark.parametrize("make", FROM_MEMORY)
def test_rows_in_memory_filter_a_scan(spark, star, ways, make):
    ways.view("chosen", make(spark))
    _, result = ways.agreed(f"SELECT s.*, c.day FROM {star}sales s JOIN chosen c ON s.day = c.day", FREE_BUILDS)
    kept_days = {each.day // DAYS_PER_FILE for each in spark.table("chosen").dropna(subset=["day"]).collect()}
    assert [("sales", len(kept_days))] == kept(report(result))
    assert len(kept_days) < FILES


def counted_rdd(spark: SparkSession, runs: Accumulator[int]) -> DataFrame:
    def chosen(day: int) -> tuple[int]:
        runs.add(1)
        return (day,)

    return spark.createDataFrame(spark.sparkContext.parallelize([3, 13], 2).map(chosen), "day int")


def counted_function(spark: SparkSession, runs: Accumulator[int]) -> DataFrame:
    same = udf(lambda day: runs.add(1) or day, "int").asNondeterministic()
    return spark.range(3, 14, 10).select(same(col("id")).alias("day"))


@pytest.mark.parametrize("make", [counted_rdd, counted_function])
@pytest.mark.parametrize("limits", [{}, MANY], ids=["few", "many"])
@pytest.mark.parametrize("confs", [{}, {"spark.sql.autoBroadcastJoinThreshold": "1"}], ids=["broadcast", "too large"])
def test_a_side_with_side_effects_runs_once(spark, star, make, limits, confs):
    options, before = ALWAYS.with_limits(**limits), leftovers.rows(spark)
    with conf(spark, confs):
        runs = spark.sparkContext.accumulator(0)
        result = prune(spark.table(f"{star}sales").join(make(spark, runs), "day"), options=options)
        assert [("sales", 1)] == kept(report(result))
        assert 2 * ROWS_PER_DAY == len(result.collect()) == len(result.collect())
        assert 2 == runs.value
        joined = spark.table(f"{star}sales").join(make(spark, runs), "day")
        rows, told = in_session(spark, options, joined.collect)
        assert (2 * ROWS_PER_DAY, [("sales", 1)], 4) == (len(rows), kept(told), runs.value)
    # Spark removes these with the plans that read them, as it does local checkpoints.
    assert (2 if limits else 0) == len(leftovers.rows(spark) - before)


@pytest.mark.parametrize("make", [counted_rdd, counted_function])
def test_a_side_whose_keys_fail_runs_once(spark, star, make, monkeypatch):
    monkeypatch.setattr(query_builds.spark_keys, "key_types", lambda _, name: Reason(ReasonCode.BUILD_FAILED, name))
    runs, options = spark.sparkContext.accumulator(0), ALWAYS.with_limits(**MANY)
    result = prune(spark.table(f"{star}sales").join(make(spark, runs), "day"), options=options)
    assert (2 * ROWS_PER_DAY, 2, []) == (len(result.collect()), runs.value, kept(report(result)))
    assert ReasonCode.BUILD_FAILED in {each.code for each in explain(result).reasons}


def test_rows_of_a_side_that_takes_too_long_are_not_stored(spark, star):
    slow = udf(lambda day: time.sleep(2) or day, "int").asNondeterministic()
    side = spark.range(3, 14, 10).repartition(1).select(slow(col("id")).alias("day"))
    options = replace(ALWAYS.with_limits(**MANY), build_timeout_seconds=1.5)
    before = leftovers.rows(spark)
    result = prune(spark.table(f"{star}sales").join(side, "day"), options=options)
    assert ReasonCode.BUILD_TIMED_OUT in {each.code for each in explain(result).reasons}
    # Those of earlier tests may go meanwhile.
    assert set() == leftovers.rows(spark) - before
    assert 2 * ROWS_PER_DAY == result.count()


def test_a_side_without_rows_runs_once_where_rows_are_observed(spark, star):
    """No build runs for the scan beside them, since Spark would drop the observed side with its metrics."""
    with conf(spark, {"spark.sql.adaptive.enabled": "false"}):
        runs, observed = spark.sparkContext.accumulator(0), Observation()
        none = counted_function(spark, runs).where(rand() + col("day") < 0)
        days = spark.table(f"{star}days").where("month = 1").observe(observed, count("*").alias("rows"))
        result = prune(spark.table(f"{star}sales").join(none, "day").join(days, "day"), options=ALWAYS)
        assert ([], 2, []) == (result.collect(), runs.value, kept(report(result)))
        # All or none of them, by the side that Spark broadcasts.
        assert observed.get["rows"] in {0, DAYS_PER_MONTH}


def _drawn(at: int) -> int:
    return Random().randrange(FILES * DAYS_PER_FILE) if at else 0  # noqa: S311 - no secret


def random_days(spark: SparkSession) -> DataFrame:
    """Three days, others in each run; the least of them is in the first file."""
    draw = udf(lambda at: _drawn(at), "int").asNondeterministic()  # noqa: PLW0108 - Spark reads types of functions
    return spark.range(3).select(draw(col("id")).alias("day"), "id")


def days_of_an_rdd(spark: SparkSession) -> DataFrame:
    """Such days from an RDD, whose function does not tell Spark that its rows differ."""
    days = spark.sparkContext.parallelize([0, 1, 2], 1)
    drawn = days.map(lambda at: (_drawn(at), at))
    return spark.createDataFrame(drawn, "day int, id int")


def cached_random_days(spark: SparkSession) -> DataFrame:
    """Cached rows, of which Spark may evict some."""
    return random_days(spark).persist()


def cached_days(spark: SparkSession) -> DataFrame:
    """Cached rows that are the same whenever they are computed."""
    return spark.range(3, 24, 10, 2).select(col("id").cast("int").alias("day"), "id").persist()


@pytest.mark.parametrize(
    ("make", "limits", "stored"),
    [
        pytest.param(cached_days, {}, 0, id="few"),
        pytest.param(cached_days, MANY, 1, id="many"),
        pytest.param(cached_random_days, {}, 1, id="few-random"),
    ],
)
def test_few_cached_rows_are_joined_without_storing_them(spark, star, monkeypatch, make, limits, stored):
    calls, store = list[str](), query_builds.stored_rows
    monkeypatch.setattr(query_builds, "stored_rows", lambda *asked: calls.append(asked[2]) or store(*asked))
    days = make(spark)
    joined = spark.table(f"{star}sales").join(days, "day").groupBy("id").count()
    result = prune(joined, options=FREE_BUILDS.with_limits(**limits))
    assert {ROWS_PER_DAY} == {each["count"] for each in result.collect()}
    assert ["sales"] == [name for name, _ in kept(report(result))]
    assert stored == len(calls)
    days.unpersist(blocking=True)


def test_a_function_that_is_not_deterministic_stays_above_a_pruned_scan(spark, star):
    """Spark's analyser refuses the node that its optimiser makes of such a function."""
    same = udf(lambda amount: amount, "long").asNondeterministic()
    joined = spark.table(f"{star}sales").join(values(spark), "day")
    result = prune(joined.select(same(col("amount"))), options=FREE_BUILDS)
    assert [("sales", 1)] == kept(report(result))
    assert sorted(joined.select("amount").collect()) == sorted(result.collect())


@pytest.mark.parametrize("make", [random_days, days_of_an_rdd])
@pytest.mark.parametrize("how", ["prune", "session"])
def test_every_row_of_a_small_side_that_differs_in_each_run_has_its_partners(spark, star, make, how):
    """Failure catalogue 41: keys of one run beside rows of another lose rows."""
    joined = spark.table(f"{star}sales").join(make(spark), "day").groupBy("id").count()
    for _ in range(5):
        if how == "prune":
            result = prune(joined, options=FREE_BUILDS)
            rows, told = result.collect(), report(result)
        else:
            rows, told = in_session(spark, FREE_BUILDS, lambda: joined.select("*").collect())
        assert [(at, ROWS_PER_DAY) for at in range(3)] == sorted((each.id, each["count"]) for each in rows)
        assert ["sales"] == [name for name, _ in kept(told)]


@pytest.mark.parametrize("make", [random_days, days_of_an_rdd, cached_random_days])
def test_one_list_in_two_places_of_a_query_gives_no_keys(spark, star, ways, make):
    """Spark shuffles it once for both, so both have the same rows."""
    ways.view("chosen", make(spark))
    query = f"""
        SELECT s.*, c.id FROM {star}sales s JOIN chosen c ON s.day = c.day
        UNION ALL SELECT s.*, c.id FROM {star}sales s JOIN chosen c ON s.day = c.day"""
    try:
        result = prune(spark.sql(query), options=FREE_BUILDS)
        assert 6 * ROWS_PER_DAY == len(result.collect())
        codes = {each.code.name for each in explain(result).reasons}
        # Days by a Python function are refused as an effect beside the scan.
        assert [] == kept(report(result))
        assert codes & {"UNREPEATABLE_KEYS", "EFFECT_BESIDE"}
    finally:
        spark.table("chosen").unpersist(blocking=True)


@pytest.mark.parametrize("make", [*FROM_MEMORY, random_days, days_of_an_rdd, cached_days, cached_random_days])
def test_more_rows_than_the_driver_may_take_filter_a_scan(spark, star, make):
    options = ALWAYS.with_limits(joined_rows=2, joined_long_rows=2)
    chosen = make(spark)
    result = prune(spark.table(f"{star}sales").join(chosen, "day").select("day", "amount"), options=options)
    rows = result.collect()
    days = {each.day for each in rows}
    assert [("sales", len({day // DAYS_PER_FILE for day in days}))] == kept(report(result))
    # A day that is chosen twice meets its rows twice.
    assert chosen.dropna().count() * ROWS_PER_DAY == len(rows)
    chosen.unpersist(blocking=True)


def test_rows_of_unknown_number_give_no_keys(spark, star, ways, tmp_path):
    """No estimate of Spark tells of lines of text that an RDD reads."""
    (tmp_path / "days.txt").write_text("3\n13\n", encoding="utf-8")
    lines = spark.sparkContext.textFile(str(tmp_path / "days.txt")).map(lambda line: (int(line),))
    ways.view("chosen", spark.createDataFrame(lines, "day int"))
    query = f"SELECT s.* FROM {star}sales s JOIN chosen c ON s.day = c.day"
    _, result = ways.agreed(query, FREE_BUILDS)
    assert [] == kept(report(result))
    _, result = ways.agreed(query, ALWAYS)
    assert [("sales", 1)] == kept(report(result))


def test_a_micro_batch_filters_a_scan(spark, star, tmp_path):
    values(spark).repartition(1).write.format("delta").save(str(tmp_path / "arrived"))
    found: list[Any] = []

    def batch(df: DataFrame, _: int) -> None:
        df.createOrReplaceTempView("arrived")
        joined = df.sparkSession.sql(f"SELECT s.* FROM {star}sales s JOIN arrived a ON s.day = a.day")
        rows, result = Rows(joined.collect()), prune(joined, options=FREE_BUILDS)
        found.append((rows == Rows(result.collect()), len(joined.collect()), kept(report(result))))

    stream = spark.readStream.format("delta").load(str(tmp_path / "arrived")).writeStream.foreachBatch(batch)
    stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()
    assert [(True, 4 * ROWS_PER_DAY, [("sales", 1)])] == found


@pytest.mark.parametrize("format_", ["csv", "json", "orc"])
def test_a_small_side_of_other_files_filters_a_scan(spark, star, ways, tmp_path, format_):
    """Files of other formats are not pinned, so they may be other files when the query reads them."""
    values(spark).write.format(format_).save(str(tmp_path / "days"))
    ways.view("chosen", spark.read.format(format_).schema("day int").load(str(tmp_path / "days")))
    _, result = ways.agreed(f"SELECT s.* FROM {star}sales s JOIN chosen c ON s.day = c.day", FREE_BUILDS)
    assert [("sales", 1)] == kept(report(result))
