"""All parts of a run, over one cluster and one store."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb
from pyspark.sql import SparkSession

from sample_data.object_store.store import ObjectStore
from sample_data.plain_duckdb import plain_duckdb
from sample_data.tpcds_queries import duckdb_tables
from tests.cluster import missing_package, sessions, star
from tests.cluster.failures import Failures
from tests.cluster.faults import Fault, Faults, Place
from tests.cluster.leftovers import Before
from tests.cluster.outcomes import Found, Outcomes
from tests.cluster.random_lake import check_random, random_engines
from tests.cluster.standalone import Cluster
from tests.cluster.star import GROUPED, JOIN
from tests.cluster.supervisor import WORKER_HOSTS
from tests.cluster.tpcds import Tpcds, sources_of, views, write

TPCDS, RANDOM, FAILURES, MISSING = PARTS = ("tpcds", "random", "failures", "missing")
_IN_PYTHON = (
    ("a Python worker is killed behind a scan", JOIN, Place.ROWS, Fault.WORKER_ENDS),
    ("an executor is killed behind a scan", JOIN, Place.ROWS, Fault.EXECUTOR_ENDS),
    ("outputs of a scan are lost with an executor", GROUPED, Place.ROWS, Fault.EXECUTOR_ENDS),
    ("a slow task is run twice", JOIN, Place.ROWS, Fault.SLEEPS),
    ("a task of a build raises", JOIN, Place.KEYS, Fault.RAISES),
    ("an executor is killed in a build by Python", JOIN, Place.KEYS, Fault.EXECUTOR_ENDS),
)


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """The parts to run, TPC-DS queries by number, seeds of random tables, and the number of queries for each seed."""

    parts: Sequence[str]
    numbers: Sequence[int]
    seeds: Sequence[int]
    queries: int
    case: str = ""
    """A pattern that selects failure cases by their name, such as `in a build`."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the parts over one cluster and store, with its outcomes."""

    cluster: Cluster
    store: ObjectStore
    folder: Path
    asked: BuildRequest
    outcomes: Outcomes

    def all(self, cache: Path) -> None:
        """Runs all requested parts; generated tables are kept in `cache`."""
        confs = sessions.conf(self.cluster.master, self.store.access, self.folder)
        log = self.folder / "spark.log"
        with plain_duckdb() as duck:
            with sessions.session("rows and failures", confs, log) as spark:
                with self.outcomes.timed("tables of the star"):
                    place = star.write(spark, self.store.bucket)
                    views(spark, place, star.TABLES)
                    star.fill(duck, spark)
                self._with_package(spark, duck, cache)
            if MISSING in self.asked.parts:
                for name, hosts in (("everywhere", ",".join(WORKER_HOSTS)), ("on one host", WORKER_HOSTS[1])):
                    with sessions.session(name, sessions.hidden_on(hosts, confs), log) as spark:
                        views(spark, place, star.TABLES)
                        self._without_package(spark, duck, name)

    def _with_package(self, spark: SparkSession, duck: duckdb.DuckDBPyConnection, cache: Path) -> None:
        if FAILURES in self.asked.parts:
            self._failures(spark, duck)
        if RANDOM in self.asked.parts:
            self._random(spark)
        if TPCDS in self.asked.parts:
            self._tpcds(spark, cache)

    def _tpcds(self, spark: SparkSession, cache: Path) -> None:
        sources = sources_of(self.folder, cache)
        with self.outcomes.timed("tables of TPC-DS"):
            views(spark, write(spark, self.store, sources, self.folder), sources.paths)
        with duckdb_tables(sources.paths) as duck:
            known = Tpcds(spark, duck)
            for number in self.asked.numbers:
                self.outcomes.run(TPCDS, f"q{number}", partial(known.check, number))

    def _random(self, spark: SparkSession) -> None:
        for seed in self.asked.seeds:
            with random_engines(spark, self.store, self.folder, seed) as both:
                for number in range(self.asked.queries):
                    self.outcomes.run(RANDOM, f"seed {seed} query {number}", partial(check_random, both, seed, number))
                # An unchanged query passes every comparison of rows, so some queries must have filters.
                least = self.asked.queries // 5
                self.outcomes.run(RANDOM, f"seed {seed}: filters", partial(_at_least, least, len(both.filtered)))

    def _failures(self, spark: SparkSession, duck: duckdb.DuckDBPyConnection) -> None:
        faults = Faults(self.folder / sessions.FAULTS)
        failures = Failures(spark, duck, self.store, self.cluster, faults)
        for name, sql in (("nothing fails", JOIN), ("nothing fails, with an exchange", GROUPED)):
            self.outcomes.run(FAILURES, name, partial(failures.nothing, sql))
        # State that a session keeps for its tables exists by now, so it does not count as a leftover.
        before = Before.of(spark)
        for name, check in _cases(failures):
            if re.search(self.asked.case, name):
                self.outcomes.run(FAILURES, name, check)
                faults.disarm()
        self.outcomes.run(FAILURES, "nothing is left", before.check)

    def _without_package(self, spark: SparkSession, duck: duckdb.DuckDBPyConnection, name: str) -> None:
        self.outcomes.run(MISSING, f"a scan, {name}", partial(missing_package.check_scan, spark, duck))
        self.outcomes.run(MISSING, f"a build, {name}", partial(missing_package.check_build, spark, duck))


def _cases(failures: Failures) -> Iterator[tuple[str, Callable[[], Found]]]:
    for name, sql, place, fault in _IN_PYTHON:
        yield name, partial(failures.in_python, sql, place, fault)
    yield "executors are killed in a build", partial(failures.build_on_executors_that_end, JOIN)
    yield "broadcasts are lost with all executors", partial(failures.broadcasts_of_executors_that_end, JOIN)
    yield "the store refuses while pruning", partial(failures.refused, JOIN, while_pruned=True)
    yield "the store refuses while running", partial(failures.refused, JOIN, while_pruned=False)


def _at_least(least: int, found: int) -> Found:
    assert found >= least, f"{found} queries had a filter, expected {least}"
    return Found(rows=found)
