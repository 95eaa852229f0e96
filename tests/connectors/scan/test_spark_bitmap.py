from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from connectors.columns import Column
from connectors.scan.spark_scan import in_bitmap_column
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


@pytest.mark.parametrize("format_", ["delta", "parquet"])
def test_partition_values_are_tested(spark, tmp_path, format_):
    path = str(tmp_path / "table")
    rows = spark.range(0, 400).selectExpr("id", "date_add(DATE'1969-12-20', CAST(id DIV 20 AS INT)) AS day")
    rows.write.format(format_).partitionBy("day").save(path)
    df = spark.read.format(format_).load(path)
    both = matching(df, "day", [-12, -1, 0, 7])
    assert sorted([*range(20), *range(220, 260), *range(380, 400)]) == sorted(row.id for row in both.collect())
