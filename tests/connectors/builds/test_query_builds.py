"""The builds of one query: equal plans run once for several keys, and each key has its own result."""

from __future__ import annotations

import pytest

from connectors.builds import query_builds
from connectors.builds.query_builds import BuildRequest, QueryBuilds
from connectors.jobs.runner import Build, BuildScheduler
from pruning.keys.summary import KeySummary
from pruning.options import PruningOptions
from pruning.reasons import Reason, ReasonCode
from pruning.values.domain import Domain

pytestmark = pytest.mark.spark

OPTIONS = PruningOptions().with_limits(joined_rows=2, joined_long_rows=2)


@pytest.fixture(params=["few rows", "in workers"])
def options(request):
    """The rows are too many to be materialized; keys are collected on the driver, or summarized in workers."""
    return OPTIONS if request.param == "few rows" else OPTIONS.with_limits(driver_rows=0, driver_long_rows=0)


@pytest.fixture
def plan(spark, tmp_path):
    """A function that returns the plan of a table of five rows with the given columns, with new ids each time."""
    path = str(tmp_path / "rows")
    spark.range(1, 6).selectExpr("cast(id as int) a", "'x' || id b").write.parquet(path)

    def read(columns: str):
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW query_builds ({columns}) USING parquet OPTIONS (path '{path}')")
        found = spark.table("query_builds")._jdf.queryExecution().optimizedPlan()
        spark.catalog.dropTempView("query_builds")
        return found

    return read


def requests(plan, *places):
    return [BuildRequest(plan, plan.output().apply(at), f"key {at}", at) for at in places]


@pytest.mark.parametrize(
    ("type_", "code"), [("char(3)", ReasonCode.CHAR_PADDED), ("string collate UTF8_LCASE", ReasonCode.COLLATED)]
)
def test_unsupported_key_does_not_affect_other_keys(spark, plan, options, type_, code):
    """The type or the metadata of one of the two columns refuses it."""
    found = QueryBuilds(BuildScheduler.of(spark, options)).run(requests(plan(f"a int, b {type_}"), 1, 0))
    assert isinstance(found[0].keys, Reason)
    assert (code, "key 1") == (found[0].keys.code, found[0].keys.subject)
    assert isinstance(found[1].keys, KeySummary)
    assert (5, None) == (found[1].keys.distinct, found[1].rows)


def test_equal_plans_with_different_ids_are_one_build(spark, plan, options, monkeypatch):
    jobs = []
    done = query_builds.spark_keys.collected

    def collected(frames, *others):
        jobs.extend([each.name for each in frame.keys] for frame in frames)
        return done(frames, *others)

    monkeypatch.setattr(query_builds.spark_keys, "collected", collected)
    builds = QueryBuilds(BuildScheduler.of(spark, options))
    first, second = plan("a int, b string"), plan("a int, b string")
    assert not first.output().apply(0).exprId().equals(second.output().apply(0).exprId())
    found = builds.run([*requests(first, 0), *requests(second, 1, 0)])
    assert [["key 0", "key 1"]] == jobs
    assert found[0].keys is found[2].keys
    assert ["int", "string", "int"] == [str(each.keys.types[0]) for each in found]
    assert found[1].keys is builds.run(requests(first, 1))[0].keys
    assert 1 == len(jobs)


def test_seconds_of_a_build_are_told_once(spark, plan, options):
    builds = QueryBuilds(BuildScheduler.of(spark, options.with_limits(driver_scan_files=0)))
    rows = plan("a int, b string")
    computed = BuildRequest(rows, rows.output().apply(0), "computed")
    first = [each.seconds > 0.0 for each in builds.run([*requests(rows, 0, 1), computed])]
    assert [True, False] == first[:2]
    assert [0.0, 0.0] == [each.seconds for each in builds.run(requests(rows, 0, 1))]


def test_build_on_the_driver_tells_its_seconds(spark, plan):
    (found,) = QueryBuilds(BuildScheduler.of(spark, PruningOptions())).run(requests(plan("a int, b string"), 0))
    assert (True, True) == (found.on_driver, found.seconds > 0)


@pytest.mark.parametrize(("most", "on_driver"), [(6, True), (5, False)])
def test_keys_of_too_many_long_rows_need_no_job(spark, plan, most, on_driver):
    """Rows with texts are held for a join up to fewer than keys are; a scan that reaches a limit may have been cut."""
    limited = PruningOptions().with_limits(joined_long_rows=2, joined_rows=most)
    before = len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))
    found = QueryBuilds(BuildScheduler.of(spark, limited)).run(requests(plan("a int, b string"), 1, 0))
    assert [(None, on_driver)] * 2 == [(each.rows, each.on_driver) for each in found]
    assert [5, 5] == [each.keys.distinct for each in found]
    texts, numbers = (each.keys.columns[0].domain for each in found)
    assert (Domain.of(texts.type, *(f"x{at}" for at in range(1, 6))), "{[1, 5]}") == (texts, str(numbers))
    assert found[0].seconds > 0
    assert on_driver == (len(spark.sparkContext.statusTracker().getJobIdsForGroup(None)) == before)


def test_failed_plan_does_not_affect_other_plans(spark, plan, options, monkeypatch):
    whole = QueryBuilds._selected

    def selected(self, rows, expressions):
        if len(expressions) == 1:
            raise ValueError("secret")
        return whole(self, rows, expressions)

    monkeypatch.setattr(QueryBuilds, "_selected", selected)
    several, one = plan("a int, b string"), plan("a int")
    found = QueryBuilds(BuildScheduler.of(spark, options)).run([*requests(several, 0, 1), *requests(one, 0)])
    assert [5, 5] == [each.keys.distinct for each in found[:2]]
    assert ReasonCode.BUILD_FAILED is found[2].keys.code
    assert "secret" not in str(found[2].keys)


def test_failed_build_is_a_reason_for_each_key(spark, plan, options):
    scheduler = BuildScheduler.of(spark, options)
    builds = QueryBuilds(scheduler)

    def run_all(wanted: list[Build]):
        return [Reason(ReasonCode.BUILD_TIMED_OUT, each.subject, "0 seconds") for each in wanted]

    rows = requests(plan("a int, b string"), 0, 1)
    numbers = [builds._numbers.of(each.plan) for each in rows]
    builds._rows = dict.fromkeys(numbers)
    builds.scheduler = type("Late", (), {"spark": spark, "options": options, "run_all": staticmethod(run_all)})()
    found = [each.keys for each in builds.run(rows)]
    assert [("BUILD_TIMED_OUT", "key 0"), ("BUILD_TIMED_OUT", "key 1")] == [
        (each.code.name, each.subject) for each in found
    ]
