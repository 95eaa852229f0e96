"""Hashes and bloom filters are equal in numpy and in the JVM."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from pruning.keys.bloom import VERSION_1, VERSION_2, BloomFilter
from pruning.keys.key_set import row_hashes
from pruning.values.types import ValueType
from tests.connectors.nasty_values import VALUES, key_rows

pytestmark = pytest.mark.spark


def spark_hashes(spark, table: pa.Table, schema: str) -> list[int]:
    hashed = spark.createDataFrame(table, schema).select(F.xxhash64(*table.column_names).alias("hash"))
    return [row.hash for row in hashed.collect()]


def our_hashes(table: pa.Table, *types: str) -> list[int]:
    parsed = [ValueType.parse(type_) for type_ in types]
    return row_hashes(parsed, key_rows(table, parsed)).view(np.int64).tolist()


@pytest.mark.parametrize("case", VALUES)
def test_values_hash_as_in_spark(spark, case):
    table = pa.table({"value": VALUES[case]}).drop_null()
    assert spark_hashes(spark, table, f"value {case}") == our_hashes(table, case)


def test_rows_of_several_columns_hash_as_in_spark(spark):
    types = ("int", "string", "double", "decimal(38,2)")
    table = pa.table(
        {
            "a": pa.array([1, -7, 0, 4], pa.int32()),
            "b": pa.array(["x", "", "y", "\U0001f600" * 9]),
            "c": pa.array([np.nan, 1.5, np.inf, -0.0], pa.float64()),
            "d": pa.array([Decimal(0), Decimal("-1.5"), Decimal("0.01"), Decimal(10**30)], pa.decimal128(38, 2)),
        }
    )
    schema = ", ".join(f"{name} {type_}" for name, type_ in zip("abcd", types, strict=True))
    assert spark_hashes(spark, table, schema) == our_hashes(table, *types)


def sketch(spark):
    return spark._jvm.org.apache.spark.util.sketch


def written(spark, jvm_filter) -> bytes:
    stream = spark._jvm.java.io.ByteArrayOutputStream()
    jvm_filter.writeTo(stream)
    return bytes(stream.toByteArray())


ITEMS = np.concatenate(
    [
        np.random.default_rng(11).integers(-(2**63), 2**63 - 1, 150),
        # Items whose first hash is close to zero.
        np.array([0x5852677, 0x1D7867CF1, 0xE93281BA, 0x12C34D5A2, 0xE420D212, 0x167AB735B]),
        np.array([-(2**63), -1, 0, 1, 2**63 - 1]),
    ]
)
ABSENT = np.random.default_rng(12).integers(-(2**63), 2**63 - 1, 300)


@pytest.mark.parametrize(("version", "seed"), [(VERSION_1, 0), (VERSION_2, 0), (VERSION_2, -77)])
def test_bytes_of_the_jvm_are_read(spark, version, seed):
    jvm = sketch(spark)
    number = getattr(jvm, "BloomFilter$Version").valueOf(f"V{version}")
    theirs = jvm.BloomFilter.create(number, 200, 1500, seed)
    for item in ITEMS.tolist():
        theirs.putLong(item)
    read = BloomFilter.from_bytes(written(spark, theirs))
    ours = BloomFilter(np.zeros(24, np.uint64), 5, version, seed).adding(ITEMS.view(np.uint64))
    assert written(spark, theirs) == ours.to_bytes() == read.to_bytes()
    assert theirs.expectedFpp() == pytest.approx(read.expected_fpp)
    assert [theirs.mightContainLong(item) for item in ABSENT.tolist()] == read.might_contain(
        ABSENT.view(np.uint64)
    ).tolist()


@pytest.mark.parametrize(("version", "fpp"), [(VERSION_1, 0.05), (VERSION_2, 0.05), (VERSION_2, 0.3)])
def test_written_bytes_are_read_by_the_jvm(spark, version, fpp):
    empty = BloomFilter.of_capacity(200, fpp, version=version)
    assert isinstance(empty, BloomFilter)
    ours = empty.adding(ITEMS.view(np.uint64))
    theirs = sketch(spark).BloomFilter.readFrom(ours.to_bytes())
    assert all(theirs.mightContainLong(item) for item in ITEMS.tolist())
    assert ours.might_contain(ABSENT.view(np.uint64)).tolist() == [
        theirs.mightContainLong(item) for item in ABSENT.tolist()
    ]
    assert ours.to_bytes() == written(spark, theirs)


def test_filter_of_a_spark_aggregate_is_read(spark):
    frame = spark.range(0, 3000, 3, numPartitions=4)
    theirs = frame._jdf.stat().bloomFilter("id", 1000, 0.03)
    read = BloomFilter.from_bytes(written(spark, theirs))
    probes = np.arange(9000, dtype=np.uint64)
    found = read.might_contain(probes)
    assert found[0:3000:3].all()
    assert found.mean() < 0.2
    assert [theirs.mightContainLong(item) for item in range(500)] == found[:500].tolist()
    assert VERSION_2 == read.version
