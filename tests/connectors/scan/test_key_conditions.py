"""Conditions made in Java, by a bloom filter and by a bitmap, as parts of a query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql.connect.session import SparkSession as RemoteSession
from pyspark.sql.types import LongType

from connectors.columns import Column
from connectors.scan.spark_scan import in_bitmap_column, might_contain_column
from pruning.errors import UnsupportedSessionError
from pruning.keys.bitmap import Bitmap
from pruning.values.types import ValueType
from tests.connectors.scan.test_spark_bloom import bloom, hashes_of

pytestmark = pytest.mark.spark

Condition = Callable[[DataFrame, str, Iterable[int]], SparkColumn]


def by_bloom(df: DataFrame, name: str, keys: Iterable[int]) -> SparkColumn:
    made = bloom(hashes_of("bigint", pa.array(keys, pa.int64())), 0.000001)
    return might_contain_column(df, (name,), made.to_bytes())


def by_bitmap(df: DataFrame, name: str, keys: Iterable[int]) -> SparkColumn:
    return in_bitmap_column(
        df, Column((name,), LongType(), ValueType("bigint"), None), Bitmap.of(np.array(keys, np.int64))
    )


CONDITIONS: Mapping[str, Condition] = {"bloom filter": by_bloom, "bitmap": by_bitmap}


@pytest.fixture(params=CONDITIONS)
def condition(request) -> Condition:
    """A function that gives the condition that a bigint column of a DataFrame has one of some values."""
    return CONDITIONS[request.param]


def test_two_conditions_on_one_frame(spark, condition):
    df = spark.sql("SELECT id AS row, id % 7 AS rest FROM range(100)")
    narrowed = df.where(condition(df, "row", range(0, 100, 3)))
    found = narrowed.where(condition(narrowed, "rest", [0])).select("row").collect()
    assert list(range(0, 100, 21)) == sorted(row.row for row in found)


def test_plan_text_does_not_contain_the_keys(spark, condition):
    df = spark.range(10)
    df = df.where(condition(df, "id", range(0, 1_000_000, 3)))
    assert len(df._jdf.queryExecution().toString()) < 5_000
    assert [0, 3, 6, 9] == [row.id for row in df.orderBy("id").collect()]


@pytest.mark.parametrize("format_", ["delta", "parquet"])
def test_condition_does_not_prevent_file_skipping(spark, condition, tmp_path, format_):
    path = str(tmp_path / "table")
    spark.range(0, 4000, 1, numPartitions=4).write.format(format_).save(path)
    df = spark.read.format(format_).load(path)
    ranged = df.where("id BETWEEN 0 AND 900")
    tested = ranged.where(condition(ranged, "id", [5, 3500]))
    assert [5] == [row.id for row in tested.collect()]
    assert (1 if format_ == "delta" else 4) == len(ranged.inputFiles()) == len(tested.inputFiles())
    assert "GreaterThanOrEqual(id,0)" in tested._jdf.queryExecution().executedPlan().toString()


def test_filtered_frame_can_be_cached_and_joined(spark, condition):
    df = spark.range(100)
    tested = df.where(condition(df, "id", [7, 8]))
    cached = tested.cache()
    try:
        assert [7, 8] == [row.id for row in cached.join(df, "id").orderBy("id").collect()]
        assert [7, 8] == [row.id for row in tested.orderBy("id").collect()]
    finally:
        cached.unpersist(blocking=True)


def test_spark_connect_is_refused(condition):
    # Nothing listens at this port; a remote session connects only when it must.
    remote = RemoteSession("sc://127.0.0.1:1")
    try:
        with pytest.raises(UnsupportedSessionError, match="use a classic session"):
            condition(remote.range(1), "id", [1])
    finally:
        remote.client.close()


def test_unknown_column_is_refused(spark, condition):
    df = spark.range(1)
    with pytest.raises(AnalysisException, match="missing"):
        df.where(condition(df, "missing", [1]))
