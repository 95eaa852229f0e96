"""A session corrects the rates of its scans by the seconds that these took, and decides anew what it had refused."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from pyspark.errors import SparkRuntimeException

from connectors.cost_rates import SessionRates
from connectors.session import scan_seconds
from connectors.session.scan_seconds import PlannedScans, ScanSeconds
from connectors.spark.jvm import jvm_context, jvm_session
from connectors.spark.own_queries import own_session
from connectors.spark.session_state import state_of
from pruning import PruningOptions, disable, enable, history
from pruning.cost.corrections import LOCAL_READS, CorrectionLimits
from pruning.options import GIVEN, SESSION
from tests.costs import FREE_BUILDS
from tests.queries.star import FILES, star_tables

LEARNING = replace(FREE_BUILDS, cost_rates=SESSION)
# Each observation counts, and as it is.
AT_ONCE = CorrectionLimits(most=1000.0, least_count=1, weight=1.0)


class Session:
    """A stand-in for a Spark session, which only has to be a key."""


@dataclass
class Listener:
    """A stand-in for the listener in Java."""

    lines: list[str] = field(default_factory=list)

    def taken(self) -> str:
        found, self.lines = self.lines, []
        return "\n".join(found)


def scans(seconds: dict[tuple[int, ...], float], pruned: tuple[int, ...] = ()) -> PlannedScans:
    options = PruningOptions(cost_rates=SESSION)
    return PlannedScans({frozenset(each): value for each, value in seconds.items()}, frozenset(pruned), options)


def learnt(spark: object) -> tuple[int, float]:
    """The number of observations of reads, and the factor by the latest."""
    rates = state_of(spark).slot(SessionRates)._corrections
    seen = rates._seen.get((LOCAL_READS, ""))
    return (0, 1.0) if seen is None else (seen.count, rates.factor(LOCAL_READS, AT_ONCE))


def test_the_scans_of_a_query_count_once_together():
    found = ScanSeconds(Session(), Listener())
    found.expect(scans({(1, 2): 0.3, (3,): 0.1}))
    found._listener.lines = ["500 0 2", "300 0 3"]
    found.learn()
    assert (1, pytest.approx(2.0)) == learnt(found._spark)
    # The same scans do not count a second time.
    found._listener.lines = ["500 0 2"]
    found.learn()
    assert 1 == learnt(found._spark)[0]


def test_scan_that_a_query_runs_twice_was_planned_twice():
    found = ScanSeconds(Session(), Listener())
    found.expect(scans({(1, 2): 0.1}))
    found._listener.lines = ["200 0 1 2", "200 0 1"]
    found.learn()
    assert (1, pytest.approx(2.0)) == learnt(found._spark)


# A build may read a scan before it is pruned.
@pytest.mark.parametrize("is_pruned", [0, 1])
def test_scan_counts_only_as_it_was_planned(is_pruned):
    found = ScanSeconds(Session(), Listener())
    found.expect(scans({(1,): 0.1}, pruned=(1,)))
    found._listener.lines = [f"200 {is_pruned} 1"]
    found.learn()
    assert is_pruned == learnt(found._spark)[0]


def test_unknown_scans_and_those_of_other_queries_say_nothing():
    found = ScanSeconds(Session(), Listener())
    found._listener.lines = ["200 0 7", "200 1"]
    found.learn()
    assert 0 == learnt(found._spark)[0]


def test_latest_query_with_a_column_waits_for_it():
    found = ScanSeconds(Session(), Listener())
    found.expect(scans({(1,): 100.0}))
    found.expect(scans({(1,): 0.1}))
    found._listener.lines = ["400 0 1"]
    found.learn()
    assert (1, pytest.approx(4.0)) == learnt(found._spark)


def test_scans_that_never_run_are_forgotten():
    found = ScanSeconds(Session(), Listener())
    for at in range(0, 10_000, 2):
        found.expect(scans({(at, at + 1): 0.1}))
    assert 4096 == len(found._waiting)
    assert 9_999 in found._waiting
    assert 0 not in found._waiting


def test_given_rates_learn_nothing():
    found = ScanSeconds(Session(), Listener())
    found.expect(replace(scans({(1,): 0.1}), options=PruningOptions(cost_rates=GIVEN)))
    found._listener.lines = ["200 0 1"]
    found.learn()
    assert 0 == learnt(found._spark)[0]


@pytest.fixture(scope="module")
def star_paths(spark, tmp_path_factory) -> list[str]:
    """The folders of the sales, clustered by day, and of the days."""
    folder, tables = tmp_path_factory.mktemp("scans"), star_tables(spark)
    paths = [str(folder / name) for name in ("sales", "days")]
    for path, name in zip(paths, ("sales", "days"), strict=True):
        tables[name].write.format("delta").save(path)
    return paths


@pytest.fixture
def session(spark):
    """A session of its own, whose rates no other test has corrected."""
    return spark.newSession()


@pytest.fixture
def observed(monkeypatch) -> list[tuple[float, float]]:
    """The seconds that were expected of the scans of each query, and those that they took."""
    found: list[tuple[float, float]] = []
    monkeypatch.setattr(scan_seconds, "observe_scans", lambda _, __, *seconds: found.append(seconds))
    return found


@pytest.mark.spark
def test_session_learns_from_the_scans_of_its_queries(session, star_paths, observed):
    sales, days = (session.read.format("delta").load(each) for each in star_paths)
    listeners = len(jvm_session(session).listenerManager().listListeners())
    enable(session, options=LEARNING)
    try:
        for at in range(3):
            sales.join(days.where(f"month = {at}"), "day").groupBy("item").count().collect()
            (table,) = history(session)[0].tables
            assert 0 < table.planned.files_kept < FILES
            jvm_context(session).listenerBus().waitUntilEmpty()
            # The scans of a query count when the next one is planned.
            assert at == len(observed)
        # Queries of pruning itself need no session of their own for the sake of our listener.
        assert own_session(session).equals(jvm_session(session))
    finally:
        disable(session)
    assert all(expected > 0.0 and actual > 0.0 for expected, actual in observed)
    assert listeners == len(jvm_session(session).listenerManager().listListeners())


@pytest.mark.spark
def test_failed_query_says_nothing(session, star_paths, observed):
    sales, days = (session.read.format("delta").load(each) for each in star_paths)
    enable(session, options=LEARNING)
    try:
        failing = sales.join(days.where("month = 1"), "day").selectExpr("raise_error(string(amount))")
        with pytest.raises(SparkRuntimeException, match="USER_RAISED_EXCEPTION"):
            failing.collect()
        jvm_context(session).listenerBus().waitUntilEmpty()
        sales.join(days.where("month = 2"), "day").collect()
    finally:
        disable(session)
    assert [] == observed
