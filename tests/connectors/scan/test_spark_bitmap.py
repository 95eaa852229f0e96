from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.connect.session import SparkSession as RemoteSession

from connectors.columns import Column
from connectors.scan.spark_scan import in_bitmap_column
from pruning.errors import UnsupportedSessionError
from pruning.keys.bitmap import Bitmap
from pruning.values.types import ValueType
from sample_data.confs import conf
from tests.connectors.nasty_values import VALUES

pytestmark = pytest.mark.spark

TYPES = ("tinyint", "smallint", "int", "bigint", "date")
LEAST, GREATEST = -(2**63), 2**63 - 1


def column_of(df, name: str) -> Column:
    spark_type = df.schema[name].dataType
    return Column((name,), spark_type, ValueType.parse(spark_type.simpleString()), None)


def matching(df, name: str, codes: list[int]):
    return df.where(in_bitmap_column(df, column_of(df, name), Bitmap.of(np.array(codes, np.int64))))


def kept(df, name: str, codes: list[int]) -> list[int]:
    return sorted(row.row for row in matching(df, name, codes).select("row").collect())


def frame(spark, type_: str, values: pa.Array):
    table = pa.table({"row": np.arange(len(values)), "a.b`c": values})
    return spark.createDataFrame(table, f"row BIGINT, `a.b``c` {type_}")


def codes_of(values: pa.Array) -> list[int | None]:
    width = pa.int32() if pa.types.is_date(values.type) else values.type
    return values.cast(width).cast(pa.int64()).to_pylist()


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("type_", TYPES)
def test_each_value_is_found_by_itself(spark, type_, ansi):
    df, codes = frame(spark, type_, VALUES[type_]), codes_of(VALUES[type_])
    with conf(spark, {"spark.sql.ansi.enabled": ansi}):
        for at, code in enumerate(codes):
            if code is not None:
                same = [each for each, other in enumerate(codes) if other is not None and (other - code) % 2**38 == 0]
                assert same == kept(df, "a.b`c", [code])
                assert same == [at] or type_ == "bigint"


SPANS = {
    "tinyint": (-128, 127),
    "smallint": (-(2**15), 2**15 - 1),
    "int": (-(2**31), 2**31 - 1),
    "bigint": (LEAST, GREATEST),
    "date": (-719_000, 2_900_000),
}
BASES = (LEAST, -(2**31), -(2**15), -128, -70, -1, 0, 1, 63, 64, 100, 2**15 - 130, 2**31 - 130, GREATEST - 130)


@pytest.mark.parametrize(
    ("type_", "base"), [(type_, base) for type_, (low, high) in SPANS.items() for base in BASES if low <= base <= high]
)
def test_values_about_the_ends_of_words(spark, type_, base):
    least, greatest = SPANS[type_]
    near = [each for each in range(base - 70, base + 200) if least <= each <= greatest]
    arrow = {"tinyint": pa.int8(), "smallint": pa.int16(), "bigint": pa.int64()}.get(type_, pa.int32())
    values = pa.array(near, arrow)
    df = frame(spark, type_, values.cast(pa.date32()) if type_ == "date" else values)
    wanted = near[20::3]
    assert [near.index(each) for each in wanted] == kept(df, "a.b`c", wanted)


def test_bigints_of_equal_low_bits_may_pass_and_no_key_is_lost(spark):
    keys = [5, 77, 300]
    others = [key + times * 2**38 for key in keys for times in (-1, 1, 2**20)]
    df = frame(spark, "bigint", pa.array([*keys, *others, 6, LEAST, GREATEST, None], pa.int64()))
    assert {0, 1, 2} <= set(kept(df, "a.b`c", keys)) <= set(range(12))


@pytest.mark.parametrize("type_", ["int", "bigint"])
def test_random_keys(spark, type_):
    rng = np.random.default_rng(5)
    for low in (-1_000_000, -500, 12_345):
        values = rng.integers(low, low + 40_000, 3000)
        keys = np.unique(rng.choice(values, 300))
        df = frame(spark, type_, pa.array(values, pa.int64()).cast(pa.int32() if type_ == "int" else pa.int64()))
        assert np.flatnonzero(np.isin(values, keys)).tolist() == kept(df, "a.b`c", keys.tolist())


def test_interpreted_evaluation_gives_equal_rows(spark):
    df = frame(spark, "bigint", pa.array([*range(-200, 200), None], pa.int64()))
    keys = list(range(-130, 130, 3))
    expected = kept(df, "a.b`c", keys)
    assert [key + 200 for key in keys] == expected
    with conf(spark, {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}):
        assert expected == kept(df, "a.b`c", keys)


def test_two_bitmaps_on_one_frame(spark):
    df = spark.sql("SELECT id AS row, CAST(id % 7 AS INT) AS rest FROM range(100)")
    narrowed = matching(df, "row", list(range(0, 100, 3)))
    assert list(range(0, 100, 21)) == kept(narrowed, "rest", [0])


def test_plan_text_does_not_contain_the_bitmap(spark):
    df = matching(spark.range(10), "id", list(range(0, 1_000_000, 3)))
    assert len(df._jdf.queryExecution().toString()) < 5_000
    assert [0, 3, 6, 9] == [row.id for row in df.orderBy("id").collect()]


@pytest.mark.parametrize("format_", ["delta", "parquet"])
def test_bitmap_does_not_prevent_file_skipping(spark, tmp_path, format_):
    path = str(tmp_path / "table")
    spark.range(0, 4000, 1, numPartitions=4).write.format(format_).save(path)
    df = spark.read.format(format_).load(path)
    ranged = df.where("id BETWEEN 0 AND 900")
    both = matching(ranged, "id", [5, 3500])
    assert [5] == [row.id for row in both.collect()]
    assert (1 if format_ == "delta" else 4) == len(ranged.inputFiles()) == len(both.inputFiles())
    assert "GreaterThanOrEqual(id,0)" in both._jdf.queryExecution().executedPlan().toString()


@pytest.mark.parametrize("format_", ["delta", "parquet"])
def test_partition_values_are_tested(spark, tmp_path, format_):
    path = str(tmp_path / "table")
    rows = spark.range(0, 400).selectExpr("id", "date_add(DATE'1969-12-20', CAST(id DIV 20 AS INT)) AS day")
    rows.write.format(format_).partitionBy("day").save(path)
    df = spark.read.format(format_).load(path)
    both = matching(df, "day", [-12, -1, 0, 7])
    assert sorted([*range(20), *range(220, 260), *range(380, 400)]) == sorted(row.id for row in both.collect())


def test_filtered_frame_can_be_cached_and_joined(spark):
    df = spark.range(100)
    filtered = matching(df, "id", [7, 8])
    cached = filtered.cache()
    try:
        assert [7, 8] == [row.id for row in cached.join(df, "id").orderBy("id").collect()]
        assert [7, 8] == [row.id for row in filtered.orderBy("id").collect()]
    finally:
        cached.unpersist(blocking=True)


def test_spark_connect_is_refused(spark):
    column = column_of(spark.range(1), "id")
    # Nothing listens at this port; a remote session connects only when it must.
    remote = RemoteSession("sc://127.0.0.1:1")
    try:
        with pytest.raises(UnsupportedSessionError, match="use a classic session"):
            in_bitmap_column(remote.range(1), column, Bitmap.of(np.array([1])))
    finally:
        remote.client.close()


def test_unknown_column_is_refused(spark):
    df, other = spark.range(1), spark.range(1).withColumnRenamed("id", "missing")
    with pytest.raises(AnalysisException, match="missing"):
        df.where(in_bitmap_column(df, column_of(other, "missing"), Bitmap.of(np.array([1]))))
