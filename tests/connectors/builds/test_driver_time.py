"""Builds that the driver tries in vain: the time that a query loses, and errors. No session is needed."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException

from connectors.builds import materialized, query_builds
from connectors.builds.materialized import TooMany, driver_rows
from connectors.builds.query_builds import BuildRequest, QueryBuilds
from pruning.options import PruningOptions
from pruning.reasons import Reason, ReasonCode

FAILED = Reason(ReasonCode.BUILD_FAILED, "k")


@dataclass
class Plan:
    """A plan that is equal to no other."""

    def canonicalized(self) -> Plan:
        return self

    def hashCode(self) -> int:  # noqa: N802 - Java's name
        return id(self)


@dataclass
class Scheduler:
    """Jobs that all fail."""

    options: PruningOptions = field(default_factory=PruningOptions)
    spark: object = None
    remaining: float = 100.0
    ran: int = 0

    def run_all(self, builds):
        self.ran += len(builds)
        return [FAILED for _ in builds]


@dataclass
class Driver:
    """A driver that takes `seconds` for each build, and its clock."""

    seconds: float
    rows: TooMany | None
    now: float = 0.0
    given: list[float] = field(default_factory=list)

    def perf_counter(self) -> float:
        return self.now

    def driver_rows(self, spark, plan, name, limits):  # noqa: ARG002 - of the function
        self.given.append(limits.driver_scan_seconds)
        self.now += min(self.seconds, limits.driver_scan_seconds)
        return self.rows


def run(monkeypatch, driver: Driver, builds: int, scheduler: Scheduler) -> list[float]:
    monkeypatch.setattr(query_builds, "driver_rows", driver.driver_rows)
    monkeypatch.setattr(query_builds, "time", driver)
    found = QueryBuilds(scheduler)
    # Every build is a level of its own.
    for _ in range(builds):
        found.run([BuildRequest(Plan(), None, "k", 0, must_fit=True)])
    return driver.given


@pytest.mark.parametrize(
    ("seconds", "rows", "given", "jobs"),
    [(0.75, None, [1.0, 0.25, 0.0], 3), (2.0, None, [1.0, 0.0, 0.0], 3), (0.75, TooMany(7), [1.0, 1.0, 1.0], 0)],
)
def test_query_loses_the_time_of_one_build(monkeypatch, seconds, rows, given, jobs):
    scheduler = Scheduler()
    assert given == pytest.approx(run(monkeypatch, Driver(seconds, rows), 3, scheduler))
    assert jobs == scheduler.ran


def test_no_build_takes_more_than_all_have_left(monkeypatch):
    assert [0.5] == run(monkeypatch, Driver(0.0, None), 1, Scheduler(remaining=0.5))
    assert [0.0] == run(monkeypatch, Driver(0.0, None), 1, Scheduler(remaining=-1.0))


def test_error_of_spark_is_left_to_the_job(monkeypatch):
    def failing(*args):
        raise AnalysisException(str(args))

    monkeypatch.setattr(materialized, "before_execution", failing)
    assert driver_rows(SimpleNamespace(), Plan(), "k") is None
