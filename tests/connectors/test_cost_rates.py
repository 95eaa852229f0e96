"""Rates of a query: given ones, those of the machine, and those corrected by what the session saw."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from connectors import rate_files
from connectors.cost_rates import SessionRates, observe_build, rates_of
from connectors.pipeline.query_run import QueryRun
from connectors.rate_files import MeasuredRates, write_rates
from connectors.registry import optimized
from connectors.spark.plan_reader import SparkPlan
from pruning import explain
from pruning.cost.corrections import BUILDS, CorrectionLimits
from pruning.cost.rates import CostRates
from pruning.options import GIVEN, MACHINE, SESSION, PruningOptions

LIMITS = CorrectionLimits(most=4.0, least_count=3, weight=0.25)
GIVEN_RATES = replace(CostRates(), byte=2.0)
DEFAULTS, OF_MACHINE = CostRates(), replace(CostRates(), build_job=60e6)


class Session:
    """A stand-in for a Spark session, which only has to be a key."""


@pytest.fixture(autouse=True)
def _cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rate_files.forget_files()
    yield
    rate_files.forget_files()


@pytest.fixture
def measured():
    write_rates(MeasuredRates.now({"build_job": 60e6}))


def options(word: str, costs: CostRates = DEFAULTS) -> PruningOptions:
    return PruningOptions(cost_rates=word).with_limits(costs=costs)


def seen(session: Session, word: str = SESSION, planned: float = 0.1, actual: float = 0.2) -> None:
    used = options(word, rates_of(session, options(word)))
    for _ in range(3):
        observe_build(session, used, planned, actual)


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(("word", "expected"), [(GIVEN, DEFAULTS), (MACHINE, OF_MACHINE), (SESSION, OF_MACHINE)])
def test_option_names_the_source_of_rates(word, expected):
    assert expected == rates_of(Session(), options(word))
    # Rates that a user sets go before measured ones.
    assert GIVEN_RATES == rates_of(Session(), options(word, GIVEN_RATES))


def test_defaults_without_a_file():
    assert [DEFAULTS] * 3 == [rates_of(Session(), options(each)) for each in (GIVEN, MACHINE, SESSION)]


@pytest.mark.usefixtures("measured")
def test_only_the_session_option_corrects():
    session = Session()
    assert OF_MACHINE == rates_of(session, options(SESSION))
    seen(session)
    found = rates_of(session, options(SESSION))
    assert (120e6, 2 * CostRates().kept_row) == pytest.approx((found.build_job, found.kept_row))
    assert OF_MACHINE == rates_of(session, options(MACHINE))
    assert OF_MACHINE == rates_of(Session(), options(SESSION))


@pytest.mark.parametrize("word", [GIVEN, MACHINE])
def test_other_options_learn_nothing(word):
    session = Session()
    seen(session, word)
    observe_build(session, options(word), 0.1, 10.0, read_from=["/data/a"])
    assert DEFAULTS == rates_of(session, options(SESSION))


def test_corrections_are_of_one_set_of_rates():
    session = Session()
    rates_of(session, options(SESSION))
    seen(session)
    assert 2.0 * DEFAULTS.build_job == pytest.approx(rates_of(session, options(SESSION)).build_job)
    assert GIVEN_RATES == rates_of(session, options(SESSION, GIVEN_RATES))
    assert DEFAULTS == rates_of(session, options(SESSION))


def test_queries_of_several_stores_share_the_corrections_of_builds():
    write_rates(MeasuredRates.now({"remote_byte": 25.0}), "s3a-lake")
    session, used = Session(), options(SESSION)
    for _ in range(3):
        # Before its stores are known, and for a query of each kind.
        for stores in ([], ["s3a-lake"], ["s3a-other"]):
            rates_of(session, used, stores)
        observe_build(session, used, 0.1, 0.2)
    lake, other = (rates_of(session, used, [each]) for each in ("s3a-lake", "s3a-other"))
    assert (25.0, 10.0) == (lake.remote_byte, other.remote_byte)
    assert [2.0 * DEFAULTS.build_job] * 2 == pytest.approx([lake.build_job, other.build_job])


def test_corrected_plans_that_are_right_keep_their_rates():
    rates = SessionRates()
    for _ in range(20):
        found = rates.corrected(DEFAULTS, LIMITS, "")
        rates.observe(BUILDS, found.build_job / 1e9, 2.0 * DEFAULTS.build_job / 1e9, LIMITS, found)
    assert 2.0 * DEFAULTS.build_job == pytest.approx(rates.corrected(DEFAULTS, LIMITS, "").build_job)


def test_builds_of_one_query_count_by_the_rates_that_planned_them():
    rates = SessionRates()
    found = rates.corrected(DEFAULTS, LIMITS, "")
    for _ in range(9):
        # From the third on, the next query would be planned by other rates.
        rates.observe(BUILDS, 0.1, 0.2, LIMITS, found)
    assert 2.0 * DEFAULTS.build_job == pytest.approx(rates.corrected(DEFAULTS, LIMITS, "").build_job)


def test_builds_that_read_correct_the_rates_of_their_store():
    session, used = Session(), options(SESSION)
    for _ in range(3):
        observe_build(session, used, 1.0, 0.5, read_from=["file:///data/a", "/data/b"])
        observe_build(session, used, 1.0, 2.0, read_from=["s3a://lake/a", "s3a://lake/b"])
    lake, other = (rates_of(session, used, [each]) for each in ("s3a-lake", "s3a-other"))
    for found, factor in ((lake, 2.0), (other, 1.0)):
        assert (factor * DEFAULTS.remote_byte, factor * DEFAULTS.remote_request) == pytest.approx(
            (found.remote_byte, found.remote_request)
        )
        assert (0.5 * DEFAULTS.byte, 0.5 * DEFAULTS.decoded_byte) == pytest.approx((found.byte, found.decoded_byte))
        assert DEFAULTS.build_job == found.build_job


def test_builds_over_several_stores_correct_those_of_builds():
    session, used = Session(), options(SESSION)
    for _ in range(3):
        observe_build(session, used, 1.0, 2.0, read_from=["s3a://lake/a", "/data/b"])
    found = rates_of(session, used, ["s3a-lake"])
    assert 2.0 * DEFAULTS.build_job == pytest.approx(found.build_job)
    assert (DEFAULTS.byte, DEFAULTS.remote_byte) == (found.byte, found.remote_byte)


def test_limits_of_a_call_bound_its_corrections():
    session = Session()
    seen(session, actual=100.0)
    assert 4.0 * DEFAULTS.build_job == pytest.approx(rates_of(session, options(SESSION)).build_job)
    assert 1.5 * DEFAULTS.build_job == pytest.approx(
        rates_of(session, options(SESSION).with_limits(most_correction=1.5)).build_job
    )
    assert DEFAULTS == rates_of(session, options(SESSION).with_limits(most_correction=1.0))
    assert DEFAULTS == rates_of(session, options(SESSION).with_limits(least_observations=4))


def test_builds_on_the_driver_correct_rates_of_their_own():
    session = Session()
    for _ in range(3):
        observe_build(session, options(SESSION), 0.01, 0.02, on_driver=True)
    found = rates_of(session, options(SESSION))
    changed = {each.name for each in fields(found) if getattr(found, each.name) != getattr(DEFAULTS, each.name)}
    assert {"driver_build", "driver_row"} == changed


def test_query_is_planned_by_the_rates_of_its_session(spark, tmp_path):
    path = str(tmp_path / "rows")
    spark.range(10).write.parquet(path)
    session = spark.newSession()
    df = session.read.parquet(path).join(session.range(3), "id")
    used = options(SESSION)
    planned = [QueryRun.of(SparkPlan.of(df, optimized(df)), used).planner.options]
    for _ in range(3):
        observe_build(session, used, 0.1, 0.2)
    planned += [
        QueryRun.of(SparkPlan.of(df, optimized(df)), options(word)).planner.options for word in (SESSION, GIVEN)
    ]
    first = DEFAULTS.build_job
    assert [first, 2.0 * first, first] == pytest.approx([each.limits.costs.build_job for each in planned])


def test_a_query_is_explained_by_the_rates_of_the_machine(spark, tmp_path):
    for name, rows, files in (("fact", 200_000, 8), ("part", 1_000, 1)):
        spark.range(0, rows, 1, files).selectExpr("id", "id % 7 AS of").write.parquet(str(tmp_path / name))
    fact, part = (spark.read.parquet(str(tmp_path / name)) for name in ("fact", "part"))
    df = fact.join(part.where("of = 3").select("id"), "id")

    def is_filtered(**rates: float) -> bool:
        write_rates(MeasuredRates.now(rates))
        rate_files.forget_files()
        return bool(explain(df, options=PruningOptions(cost_rates=MACHINE)).filters)

    # Nanoseconds: of a byte from a slow disk, and of a build by a slow driver.
    assert is_filtered(byte=1e4, driver_build=1.0, build_job=1.0)
    assert not is_filtered(byte=1e-3, decoded_byte=1e-3, driver_build=1e12, build_job=1e12)
