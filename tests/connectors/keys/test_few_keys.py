from __future__ import annotations

import pytest

from connectors.keys.frame import collect, few_rows
from pruning.options import PruningOptions
from pruning.values.types import ValueType

pytestmark = pytest.mark.spark

OPTIONS = PruningOptions()


@pytest.mark.parametrize(
    ("rows", "partitions", "options", "is_few"),
    [
        (99, 1, PruningOptions().with_limits(max_build_keys=100), True),
        (100, 1, PruningOptions().with_limits(max_build_keys=100), False),
        (101, 4, PruningOptions().with_limits(max_build_keys=100), False),
        (99, 100, PruningOptions(max_build_bytes=800), True),
        (100, 100, PruningOptions(max_build_bytes=800), False),
        # An expensive frame is not run twice.
        (20_000_000, 2, OPTIONS, False),
    ],
)
def test_only_few_rows_are_collected_on_the_driver(spark, rows, partitions, options, is_few):
    df = spark.range(0, rows, 1, partitions)
    few = few_rows(df, [ValueType("bigint")], options)
    assert is_few is (few is not None)
    if few is not None:
        assert list(range(rows)) == sorted(few[1].column(0).to_pylist())


@pytest.mark.parametrize(("at_least", "is_few"), [(99, True), (100, False)])
def test_rows_known_to_be_many_are_not_collected(spark, at_least, is_few):
    options = PruningOptions().with_limits(max_build_keys=100)
    assert is_few is (few_rows(spark.range(3), [ValueType("bigint")], options, at_least) is not None)


@pytest.mark.parametrize(("rows", "is_few"), [(9_999, True), (10_000, False)])
def test_long_values_have_a_lower_row_limit(spark, rows, is_few):
    df = spark.range(0, rows, 1, 1).selectExpr("CAST(id AS STRING) AS k")
    assert is_few is (few_rows(df, [ValueType("string")], OPTIONS) is not None)


@pytest.mark.parametrize(("length", "is_few"), [(256, True), (257, False)])
def test_long_values_have_a_length_limit(spark, length, is_few):
    df = spark.range(0, 50, 1, 2).selectExpr(f"IF(id = 7, repeat('x', {length}), IF(id = 8, NULL, 'y')) AS k", "id")
    few = few_rows(df, [ValueType("string"), ValueType("bigint")], OPTIONS)
    assert is_few is (few is not None)
    if few is not None:
        assert ["k", "id"] == few[1].column_names
        assert {None, "x" * 256, "y"} == set(few[1].column(0).to_pylist())
    summary = collect(spark, df.select("k"), OPTIONS, "k")
    assert (50, 1, 2) == (summary.rows, summary.null_rows, summary.distinct)


def test_join_of_small_tables_is_judged_by_its_input(spark):
    sides = [spark.range(100_000).selectExpr("id % 1000 AS k").alias(name) for name in "ab"]
    joined = sides[0].where("k < 3").join(sides[1].where("k > 1"), "k").select("k").distinct()
    few = few_rows(joined, [ValueType("bigint")], OPTIONS)
    assert few is not None
    assert [2] == few[1].column(0).to_pylist()


def test_rows_over_the_limit_are_summarized_in_workers(spark):
    options = PruningOptions().with_limits(max_build_keys=100)
    df = spark.range(0, 400, 1, 4).where("id < 5 OR id >= 290").selectExpr("id % 50 AS k")
    assert few_rows(df, [ValueType("bigint")], options) is None
    summary = collect(spark, df, options, "k")
    assert (115, 50, 4) == (summary.rows, summary.distinct, summary.partitions)
