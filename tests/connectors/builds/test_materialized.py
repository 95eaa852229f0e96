"""Keys read from materialized builds equal the keys that a job collects."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connectors.builds.materialized import MaterializedBuild, TooMany, local_rows
from connectors.builds.query_builds import BuildRequest, QueryBuilds
from connectors.jobs.runner import BuildScheduler
from connectors.keys import frame as key_frame
from connectors.keys.frame import collect
from pruning.keys.summary import KeySummary
from pruning.limits import Limits
from pruning.options import PruningOptions
from pruning.reasons import Reason, ReasonCode
from sample_data.confs import CODE_GENERATION

pytestmark = pytest.mark.spark

OPTIONS = PruningOptions()
VALUES = {
    "tinyint": "(-128Y), (127Y), (null), (127Y)",
    "smallint": "(-32768S), (32767S), (null)",
    "int": "(-2147483648), (2147483647), (0), (null)",
    "bigint": "(-9223372036854775808L), (9223372036854775807L), (null)",
    "float": "(float('nan')), (-0.0f), (0.0f), (float('-infinity')), (1.5f), (null)",
    "double": "(double('nan')), (-0.0d), (0.0d), (double('infinity')), (4.9e-324d), (null)",
    "decimal(9,2)": "(1.25BD), (-9999999.99BD), (null)",
    "decimal(38,10)": "(1234567890123456789012345678.0123456789BD), (-0.0000000001BD), (null)",
    "date": "(date'0001-01-01'), (date'9999-12-31'), (date'1582-10-10'), (null)",
    "timestamp": "(timestamp'0001-01-01 00:00:00'), (timestamp'2024-03-31 02:30:00.123456'), (null)",
    "timestamp_ntz": "(timestamp_ntz'0001-01-01 00:00:00'), (timestamp_ntz'2024-03-31 02:30:00.123456'), (null)",
    "string": "(''), ('a'), ('é😀'), (repeat('x', 300)), (null), ('a')",
    "boolean": "(true), (false), (null)",
    "binary": "(x''), (x'00ff'), (null)",
}


def materialized(spark, df, column: str, options: PruningOptions = OPTIONS):
    plan = df._jdf.queryExecution().optimizedPlan()
    rows, at = local_rows(spark, plan, "k"), df.columns.index(column)
    assert rows is not None
    keys = rows.keys(at, plan.output().apply(at), options, "k")
    assert keys is rows.keys(at, plan.output().apply(at), options, "k")
    return keys


def collected(spark, df, column: str, options: PruningOptions = OPTIONS):
    found = collect(spark, df.select(column), options, "k")
    return replace(found, source="rows of k") if isinstance(found, KeySummary) else found


def test_equal_builds_are_compiled_once(spark, conf):
    """Spark numbers limits in its generated code, which could prevent reuse of compiled code."""
    for name, value in CODE_GENERATION.items():
        conf(name, value)
    metrics = getattr(getattr(spark._jvm.org.apache.spark.metrics.source, "CodegenMetrics$"), "MODULE$")
    compiled = metrics.METRIC_COMPILATION_TIME()

    def build() -> int:
        before = compiled.getCount()
        df = spark.range(0, 1000, 1, 2).selectExpr("id % 10 AS once").where("once > 3")
        assert local_rows(spark, df._jdf.queryExecution().optimizedPlan(), "k").count == 600
        return compiled.getCount() - before

    assert build() > 0
    assert build() == 0


@pytest.mark.parametrize("type_", VALUES)
@pytest.mark.parametrize("zone", ["Europe/Berlin"])
def test_materialized_keys_equal_collected_keys(spark, conf, type_, zone):
    conf("spark.sql.session.timeZone", zone)
    df = spark.sql(f"SELECT 7 AS other, cast(k AS {type_}) AS k, 'b' AS text FROM VALUES {VALUES[type_]} AS t(k)")
    df = df.repartition(3)
    assert collected(spark, df, "k") == materialized(spark, df, "k")
    empty = df.where("other = 8")
    assert collected(spark, empty, "k") == materialized(spark, empty, "k")


@pytest.mark.parametrize(
    "options", [PruningOptions().with_limits(max_build_keys=10), PruningOptions(max_build_bytes=100)]
)
def test_materialized_keys_over_the_limit_equal_collected_ones(spark, options):
    df = spark.range(0, 5000, 1, 1).selectExpr("id * 3 AS k")
    wanted, found = collected(spark, df, "k", options), materialized(spark, df, "k", options)
    assert (wanted.rows, wanted.distinct) == (found.rows, found.distinct)
    assert wanted.columns == found.columns


def test_materialized_rows_give_keys_of_each_column(spark):
    df = spark.range(0, 500, 1, 4).selectExpr("id AS k", "cast(id % 7 AS int) AS day", "cast(id % 5 AS string) AS text")
    plan = df._jdf.queryExecution().optimizedPlan()
    rows = local_rows(spark, plan, "k")
    found = [rows.keys(at, plan.output().apply(at), OPTIONS, name) for at, name in enumerate(df.columns)]
    assert [500, 7, 5] == [each.distinct for each in found]


def test_rows_take_few_py4j_calls(spark, bridge_calls):
    """Builds of a level run concurrently, and their calls wait for each other."""
    plan = spark.range(0, 500, 1, 4).where("id % 7 = 3")._jdf.queryExecution().optimizedPlan()
    local_rows(spark, plan, "k")
    assert 20 >= bridge_calls(lambda: local_rows(spark, plan, "k"))


@pytest.mark.parametrize(("rows", "found"), [(9, 9), (10, TooMany(10)), (24, TooMany(24)), (60, TooMany(40))])
def test_too_many_rows_are_counted_up_to_the_limit(spark, rows, found):
    plan = spark.range(0, rows, 1, 4)._jdf.queryExecution().optimizedPlan()
    build = local_rows(spark, plan, "k", Limits(joined_rows=10))
    assert found == (build.count if isinstance(build, MaterializedBuild) else build)


def test_build_of_too_many_rows_is_not_collected_as_rows_again(spark, monkeypatch):
    """Such a build once ran three times: for its rows, for its keys as rows, and for its keys."""
    options = OPTIONS.with_limits(joined_rows=10, driver_rows=10)
    monkeypatch.setattr(key_frame, "_limited", lambda *_: pytest.fail("its rows were asked for again"))
    plan = spark.range(0, 12, 1, 1)._jdf.queryExecution().optimizedPlan()
    (built,) = QueryBuilds(BuildScheduler.of(spark, options)).run([BuildRequest(plan, plan.output().apply(0), "k", 0)])
    assert (12, None) == (built.keys.rows, built.rows)


def test_materialized_keys_of_unsupported_types_are_refused(spark):
    df = spark.sql("SELECT map('a', id) AS k, struct(id) AS s, id FROM range(3)")
    for name in ("k", "s"):
        found = materialized(spark, df, name)
        assert isinstance(found, Reason)
        assert ReasonCode.UNSUPPORTED_TYPE is found.code
    padded = spark.sql("SELECT cast('a' AS string COLLATE UTF8_LCASE) AS k FROM range(2)")
    assert ReasonCode.COLLATED is materialized(spark, padded, "k").code
