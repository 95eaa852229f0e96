from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from connectors.scan.spark_scan import might_contain_column
from pruning.keys.bloom import BloomFilter
from pruning.keys.key_set import row_hashes
from pruning.values.types import ValueType
from sample_data.confs import conf
from tests.connectors.nasty_values import VALUES, key_rows

pytestmark = pytest.mark.spark


def bloom(hashes: np.ndarray, fpp: float = 0.01) -> BloomFilter:
    empty = BloomFilter.of_capacity(len(hashes), fpp)
    assert isinstance(empty, BloomFilter)
    return empty.adding(hashes)


def hashes_of(type_: str, values: pa.Array) -> np.ndarray:
    types = [ValueType.parse(type_)]
    return row_hashes(types, key_rows(pa.table([values], ["value"]), types))


def kept(df, columns, made: BloomFilter) -> list[int]:
    tested = df.where(might_contain_column(df, columns, made.to_bytes()))
    return sorted(row.row for row in tested.select("row").collect())


@pytest.mark.parametrize("case", VALUES)
def test_rows_pass_as_in_numpy(spark, case):
    values = VALUES[case].drop_null()
    table = pa.table({"row": np.arange(len(values)), "a.b`c": values})
    df = spark.createDataFrame(table, f"row BIGINT, `a.b``c` {case}")
    hashes = hashes_of(case, values)
    made = bloom(hashes[::2], 0.2)
    expected = np.flatnonzero(made.might_contain(hashes)).tolist()
    assert set(range(0, len(values), 2)) <= set(expected)
    assert expected == kept(df, ("`a.b``c`",), made)


def test_several_columns_are_one_key(spark):
    first, second = pa.array([1, 1, 2, None], pa.int32()), pa.array(["a", "b", "a", "a"])
    df = spark.createDataFrame(pa.table({"row": np.arange(4), "x": first, "y": second}))
    types = ValueType("int"), ValueType("string")
    hashes = row_hashes(types, key_rows(pa.table([first, second], ["x", "y"]).slice(0, 1), types))
    assert [0] == kept(df, ("x", "y"), bloom(hashes, 0.0001))


# Failure catalogue 77: the expression must have the type that was hashed.
def test_filter_of_another_width_needs_a_cast(spark):
    df = spark.sql("SELECT CAST(id AS INT) AS row FROM range(10)")
    made = bloom(hashes_of("bigint", pa.array([3, 4], pa.int64())), 0.000001)
    assert [] == kept(df, ("row",), made)
    assert [3, 4] == kept(df, ("CAST(row AS BIGINT)",), made)


# Failure catalogue 151: `might_contain` of NULL is NULL, but Spark's hash of NULL is a number.
def test_condition_is_never_null(spark):
    df = spark.sql("SELECT CAST(NULL AS BIGINT) AS key, 1 AS row")
    empty = bloom(np.array([], np.uint64))
    condition = might_contain_column(df, ("key",), empty.to_bytes())
    assert [(False,)] == [tuple(row) for row in df.select(condition).collect()]
    assert [1] == [row.row for row in df.where(~condition).collect()]


def test_interpreted_evaluation_gives_equal_rows(spark):
    df = spark.createDataFrame(pa.table({"row": np.arange(100)}))
    made = bloom(hashes_of("bigint", pa.array(range(50), pa.int64())), 0.3)
    expected = kept(df, ("row",), made)
    with conf(spark, {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}):
        assert expected == kept(df, ("row",), made)
