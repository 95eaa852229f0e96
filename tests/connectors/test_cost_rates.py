"""Rates of a query: given ones, those of the machine, and those corrected by what the session saw."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from connectors import rate_files
from connectors.cost_rates import observe_build, rates_of
from connectors.rate_files import MeasuredRates, write_rates
from pruning import explain
from pruning.cost.rates import CostRates
from pruning.options import GIVEN, MACHINE, SESSION, PruningOptions

LAKE = "s3a-lake"
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


def seen(session: Session, word: str = SESSION, actual: float = 2.0, store: str = LAKE) -> None:
    """Three builds of one query, which read from a store."""
    used = options(word, rates_of(session, options(word), [store]))
    for _ in range(3):
        observe_build(session, used, 1.0, actual, [f"{store.replace('-', '://')}/table"])


def of_store(session: Session, store: str = LAKE, **limits: float) -> float:
    """The nanoseconds of a byte of a store; those of a request have the same factor."""
    found = rates_of(session, options(SESSION).with_limits(**limits), [store])
    assert found.remote_byte / DEFAULTS.remote_byte == pytest.approx(found.remote_request / DEFAULTS.remote_request)
    return found.remote_byte


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(("word", "expected"), [(GIVEN, DEFAULTS), (MACHINE, OF_MACHINE), (SESSION, OF_MACHINE)])
def test_option_names_the_source_of_rates(word, expected):
    assert expected == rates_of(Session(), options(word))
    # Rates that a user sets go before measured ones.
    assert GIVEN_RATES == rates_of(Session(), options(word, GIVEN_RATES))


def test_defaults_without_a_file():
    assert [DEFAULTS] * 3 == [rates_of(Session(), options(each)) for each in (GIVEN, MACHINE, SESSION)]


def test_only_the_session_option_corrects():
    session = Session()
    seen(session)
    assert 2.0 * DEFAULTS.remote_byte == pytest.approx(of_store(session))
    assert [DEFAULTS] * 2 == [rates_of(session, options(each), [LAKE]) for each in (MACHINE, GIVEN)]
    assert DEFAULTS.remote_byte == of_store(Session())


@pytest.mark.parametrize("word", [GIVEN, MACHINE])
def test_other_options_learn_nothing(word):
    session = Session()
    seen(session, word)
    assert DEFAULTS.remote_byte == of_store(session)


# A slower machine is slower in what a filter costs and in what it saves.
@pytest.mark.parametrize(
    "read_from",
    [[], ["/data/a"], ["file:///data/a", "/data/b"], ["s3a://lake/a", "/data/b"], ["s3a://lake/a", "s3a://other/b"]],
)
def test_builds_that_do_not_read_from_one_store_correct_nothing(read_from):
    session = Session()
    for _ in range(3):
        observe_build(session, options(SESSION), 0.1, 0.4, read_from)
    for stores in ([], [LAKE], ["s3a-other"]):
        assert DEFAULTS == rates_of(session, options(SESSION), stores)


def test_builds_correct_the_rates_of_their_store_alone():
    session = Session()
    seen(session)
    other = rates_of(session, options(SESSION), ["s3a-other"])
    found = rates_of(session, options(SESSION), [LAKE])
    assert DEFAULTS == other == rates_of(session, options(SESSION))
    changed = {each.name for each in fields(found) if getattr(found, each.name) != getattr(DEFAULTS, each.name)}
    assert {"remote_byte", "remote_request"} == changed


def test_corrections_are_of_one_set_of_rates():
    session = Session()
    seen(session)
    slow = replace(CostRates(), remote_byte=20.0)
    assert slow == rates_of(session, options(SESSION, slow), [LAKE])
    # The observations were of other rates.
    assert DEFAULTS.remote_byte == of_store(session)


def test_measured_rates_of_a_store_are_corrected():
    write_rates(MeasuredRates.now({"remote_byte": 25.0}), LAKE)
    session = Session()
    seen(session)
    assert 50.0 == pytest.approx(rates_of(session, options(SESSION), [LAKE]).remote_byte)


@pytest.mark.parametrize("true", [0.5, 3.0])
def test_corrected_plans_that_are_right_keep_their_rates(true):
    session = Session()
    for _ in range(20):
        planned = of_store(session) / DEFAULTS.remote_byte
        used = options(SESSION, rates_of(session, options(SESSION), [LAKE]))
        observe_build(session, used, planned, true, ["s3a://lake/a"])
    assert true * DEFAULTS.remote_byte == pytest.approx(of_store(session))


def test_builds_of_one_query_count_by_the_rates_that_planned_them():
    session = Session()
    for _ in range(3):
        # From the third build on, the next query would be planned by other rates.
        seen(session)
    used = options(SESSION, rates_of(session, options(SESSION), [LAKE]))
    before = of_store(session)
    for _ in range(9):
        observe_build(session, used, 1.0, 1.0, ["s3a://lake/a"])
    assert before == pytest.approx(of_store(session))


def test_build_of_a_query_that_other_stores_planned_says_nothing():
    session = Session()
    seen(session)
    # The slowest rates of both stores planned the query.
    slowest = replace(DEFAULTS, remote_byte=25.0)
    for _ in range(9):
        observe_build(session, options(SESSION, slowest), 1.0, 1.0, ["s3a://lake/a"])
    assert 2.0 * DEFAULTS.remote_byte == pytest.approx(of_store(session))


def test_limits_of_a_call_bound_its_corrections():
    session = Session()
    seen(session, actual=100.0)
    found = [of_store(session, **each) for each in ({}, {"most_correction": 1.5}, {"most_correction": 1.0})]
    assert [4.0, 1.5, 1.0] == pytest.approx([each / DEFAULTS.remote_byte for each in found])
    assert DEFAULTS.remote_byte == of_store(session, least_observations=4)


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
