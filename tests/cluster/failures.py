"""Failures in the middle of queries: rows do not change, nor do the counts of the scans.

Failure catalogue 40 (a filter that changes while a scan runs), 41 and 46 (a build that runs twice), 45 (a fetch failure
that reruns some map tasks), 59 (a kept build whose blocks are lost and made again).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import duckdb
from pyspark.sql import DataFrame, SparkSession

from connectors.builds import query_builds
from connectors.spark.jvm import jvm_context
from pruning import explain, prune, report
from sample_data.object_store.shape import UNSHAPED, Shape
from sample_data.object_store.store import ObjectStore
from sample_data.rows import Rows
from tests.cluster.faults import SLOW_SECONDS, Fault, Faults, Place, rows_then_strike
from tests.cluster.outcomes import Found, Skipped
from tests.cluster.sessions import wait_for_executors
from tests.cluster.standalone import Cluster
from tests.cluster.star import BY_TASKS, FILES_READ, GROUPS, GROUPS_READ, ROWS_READ
from tests.oracle.test_tpcds import TROUBLE
from tests.queries.star import BY_JOB, FILES

_DISTANT = Shape(latency=0.4)
_SECONDS_TO_FAIL, _SECONDS_BETWEEN_LOOKS = 60.0, 0.02
# S3A repeats a refused request more often than this, so no task fails.
_REFUSALS = 6


@dataclass(slots=True)
class Failures:
    """The failure cases, each for a query."""

    spark: SparkSession
    duck: duckdb.DuckDBPyConnection
    store: ObjectStore
    cluster: Cluster
    faults: Faults
    _rows: dict[str, Rows] = field(default_factory=dict)

    def nothing(self, sql: str) -> Found:
        """Runs the query without a failure."""
        return self._found(self.undisturbed(sql), 0)

    def in_python(self, sql: str, place: Place, fault: Fault) -> Found:
        """Runs the pruned query with a fault of a Python worker behind its scan or in its build."""
        rows = self.undisturbed(sql)
        with self._failing() as failed:
            began = time.monotonic()
            self.faults.arm(place, fault)
            result = self._pruned(sql, **(BY_TASKS if place is Place.KEYS else {}))
            asked = result.mapInArrow(rows_then_strike, result.schema) if place is Place.ROWS else result
            found = self._answer(asked)
            seconds = time.monotonic() - began
            assert [] == self.faults.disarm(), "the fault did not strike"
        # Spark's own count of rows includes rows that were read twice.
        self._compare(result, found, rows, most_read=ROWS_READ * (2 if place is Place.ROWS else 1))
        if fault is Fault.SLEEPS:
            assert seconds < SLOW_SECONDS, f"nobody ran the slow task again: {seconds:.1f} s"
        else:
            assert failed(), "no task failed"
        return self._found(found, failed())

    def build_on_executors_that_end(self, sql: str) -> Found:
        """Kills all executors in the middle of a build that runs in Java."""
        rows = self.undisturbed(sql)
        local_rows, ended = query_builds.local_rows, list[int]()

        def run(*arguments: Any) -> Any:
            with self._ended_once_busy(ended) if not ended else nullcontext():
                return local_rows(*arguments)

        with self._failing() as failed:
            self.store.reshape(_DISTANT)
            try:
                with patch.object(query_builds, "local_rows", run):
                    result = self._pruned(sql)
            finally:
                self.store.reshape(UNSHAPED)
            assert ended, "no executor was ended"
            assert failed(), "no task failed"
            found = self._answer(result)
        self._compare(result, found, rows)
        return self._found(found, failed())

    def broadcasts_of_executors_that_end(self, sql: str) -> Found:
        """Runs the query, kills all executors, which have its broadcasts, and runs the query once more."""
        rows = self.undisturbed(sql)
        with self._failing() as failed:
            result = self._pruned(sql)
            self._compare(result, self._answer(result), rows)
            plan = str(result._jdf.queryExecution().executedPlan())
            assert "BroadcastHashJoin" in plan, plan
            self.cluster.kill_executors()
            found = self._answer(result)
        self._compare(result, found, rows)
        return self._found(found, failed())

    def refused(self, sql: str, *, while_pruned: bool) -> Found:
        """Makes the store answer some reads by 503, from the start of `prune()` or of the query."""
        rows = self.undisturbed(sql)
        with self._failing() as failed:
            try:
                if while_pruned:
                    self.store.refuse(_REFUSALS)
                result = self._pruned(sql)
                if not while_pruned:
                    self.store.refuse(_REFUSALS)
                found = self._answer(result)
            finally:
                left = self.store.refuse(0)
        assert not left, f"{left} requests were not refused"
        assert not failed(), f"{failed()} tasks failed"
        self._compare(result, found, rows)
        return self._found(found, failed())

    def undisturbed(self, sql: str) -> Rows:
        """The rows on which stock Spark, pruned Spark and DuckDB agree, after a check of the counts."""
        if sql not in self._rows:
            wait_for_executors(self.spark)
            rows = Rows(self.spark.sql(sql).collect())
            assert rows == Rows(self.duck.execute(sql).fetchall())
            result = self._pruned(sql)
            self._compare(result, self._answer(result), rows)
            self._rows[sql] = rows
        return self._rows[sql]

    def _pruned(self, sql: str, **limits: int) -> DataFrame:
        result = prune(self.spark.sql(sql), options=BY_JOB.with_limits(**limits))
        reasons = explain(result).reasons
        assert set() == TROUBLE & {each.code for each in reasons}, [str(each) for each in reasons]
        return result

    @staticmethod
    def _answer(df: DataFrame) -> Rows:
        return Rows(df.collect())

    @staticmethod
    def _compare(result: DataFrame, found: Rows, rows: Rows, most_read: int = ROWS_READ) -> None:
        """Checks the rows, and the planned and measured counts of the only scan with a filter."""
        assert rows == found, f"{len(found)} rows instead of {len(rows)}"
        (table,) = report(result).tables
        planned, measured = table.planned, table.measured
        assert measured is not None, "nothing was measured"
        counts = planned.files_kept, planned.files_total, planned.row_groups_kept, planned.row_groups_total
        assert counts == (FILES_READ, FILES, GROUPS_READ, GROUPS), counts
        assert measured.files_read == FILES_READ, measured
        assert ROWS_READ <= (measured.rows_scanned or 0) <= most_read, measured

    @staticmethod
    def _found(rows: Rows, failed: int) -> Found:
        return Found(len(rows), Skipped(1, (FILES_READ, FILES), (GROUPS_READ, GROUPS)), failed)

    @contextmanager
    def _failing(self) -> Iterator[Callable[[], int]]:
        """Waits for both executors; yields a function that counts tasks that have failed since."""
        wait_for_executors(self.spark)
        before = failed_tasks(self.spark)
        yield lambda: failed_tasks(self.spark) - before

    @contextmanager
    def _ended_once_busy(self, ended: list[int]) -> Iterator[None]:
        """Kills all executors as soon as a task runs, and adds their ids to `ended`."""
        is_over = threading.Event()

        def end() -> None:
            tracker = self.spark.sparkContext.statusTracker()
            until = time.monotonic() + _SECONDS_TO_FAIL
            while not is_over.is_set() and time.monotonic() < until:
                stages = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
                if any(each is not None and each.numActiveTasks for each in stages):
                    ended.extend(self.cluster.kill_executors())
                    return
                time.sleep(_SECONDS_BETWEEN_LOOKS)

        thread = threading.Thread(target=end)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


def failed_tasks(spark: SparkSession) -> int:
    """The number of failed task attempts in all jobs of the session."""
    jobs = jvm_context(spark).statusStore().jobsList(None)
    return sum(int(jobs.apply(at).numFailedTasks()) for at in range(jobs.size()))
