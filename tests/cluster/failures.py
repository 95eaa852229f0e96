"""Failures in the middle of queries: the rows do not change, and each row group counts once.

Failure catalogue 40 (a filter that changes while a scan runs), 41 and 46 (a build that runs twice), 45 (a fetch failure
that reruns some map tasks), 55 (state that several readers share), 59 (a kept build whose blocks are lost and made
again).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import duckdb
from pyspark.sql import DataFrame, SparkSession

from connectors.builds import query_builds
from connectors.spark.jvm import jvm_context
from pruning import explain, prune, report
from pruning.results.prune_report import Measured
from pruning.results.table_explanation import TableExplanation
from sample_data.object_store.shape import UNSHAPED, Shape
from sample_data.object_store.store import ObjectStore
from sample_data.rows import Rows
from tests.cluster.faults import SLOW_SECONDS, Fault, Faults, Place, rows_then_strike
from tests.cluster.outcomes import Found, Skipped
from tests.cluster.sessions import wait_for_executors
from tests.cluster.standalone import Cluster
from tests.cluster.star import BY_TASKS, FILES_READ, GROUPS, GROUPS_READ, ROWS_READ, options
from tests.oracle.test_tpcds import TROUBLE
from tests.queries.arrow import refusals
from tests.queries.star import FILES

_DISTANT = Shape(latency=0.4)
_SECONDS_TO_FAIL, _SECONDS_BETWEEN_LOOKS = 60.0, 0.02
# A number of refusals that pyarrow's retries survive, and a number at which one of two tasks fails, by its sixth.
SOME_REFUSALS, MANY_REFUSALS = 6, 14

Counts = Mapping[str, tuple[tuple[int | None, ...], tuple[int | None, ...]]]


@dataclass(slots=True)
class Failures:
    """The failure cases, each for a query and a reader."""

    spark: SparkSession
    duck: duckdb.DuckDBPyConnection
    store: ObjectStore
    cluster: Cluster
    faults: Faults
    _whole: dict[tuple[str, str], tuple[Rows, Counts]] = field(default_factory=dict)

    def nothing(self, sql: str, scan: str) -> Found:
        """Runs the query without a failure."""
        return self._found(self.undisturbed(sql, scan)[0], 0)

    def in_python(self, sql: str, scan: str, place: Place, fault: Fault) -> Found:
        """Runs the pruned query with a fault of a Python worker in its scan or in its build."""
        rows, counts = self.undisturbed(sql, scan)
        with self._failing() as failed:
            began = time.monotonic()
            self.faults.arm(place, fault)
            result = self._pruned(sql, scan, **(BY_TASKS if place is Place.KEYS else {}))
            asked = result.mapInArrow(rows_then_strike, result.schema) if place is Place.ROWS else result
            found = self._answer(asked)
            seconds = time.monotonic() - began
            assert [] == self.faults.disarm(), "the fault did not strike"
        if scan == "PREDICATE" and place is Place.ROWS:
            # Spark's own count of rows includes rows that were read twice.
            counts = {
                name: (planned, (read[0], _read_again(result, read[1]))) for name, (planned, read) in counts.items()
            }
        self._compare(result, found, rows, counts)
        if fault is Fault.SLEEPS:
            assert seconds < SLOW_SECONDS, f"nobody ran the slow task again: {seconds:.1f} s"
        else:
            assert failed(), "no task failed"
        return self._found(found, failed())

    def build_on_executors_that_end(self, sql: str, scan: str) -> Found:
        """Kills all executors in the middle of a build that runs in Java."""
        rows, counts = self.undisturbed(sql, scan)
        local_rows, ended = query_builds.local_rows, list[int]()

        def run(*arguments: Any) -> Any:
            with self._ended_once_busy(ended) if not ended else nullcontext():
                return local_rows(*arguments)

        with self._failing() as failed:
            self.store.reshape(_DISTANT)
            try:
                with patch.object(query_builds, "local_rows", run):
                    result = self._pruned(sql, scan)
            finally:
                self.store.reshape(UNSHAPED)
            assert ended, "no executor was ended"
            assert failed(), "no task failed"
            found = self._answer(result)
        self._compare(result, found, rows, counts)
        return self._found(found, failed())

    def broadcasts_of_executors_that_end(self, sql: str, scan: str) -> Found:
        """Kills an executor that uses broadcasts of keys and rows, then all executors, and runs the query once more."""
        rows, counts = self.undisturbed(sql, scan)
        with self._failing() as failed:
            result = self._pruned(sql, scan, task_payload_bytes=0)
            if scan == "ARROW":
                self.faults.arm(Place.SCAN, Fault.EXECUTOR_ENDS)
                found = self._answer(result)
                assert [] == self.faults.disarm(), "the fault did not strike"
                self._compare(result, found, rows, counts)
            else:
                self._compare(result, self._answer(result), rows, counts)
            plan = str(result._jdf.queryExecution().executedPlan())
            assert "BroadcastHashJoin" in plan, plan
            self.cluster.kill_executors()
            found = self._answer(result)
        self._compare(result, found, rows, counts)
        return self._found(found, failed())

    def refused(self, sql: str, scan: str, requests: int, *, while_pruned: bool) -> Found:
        """Makes the store answer `requests` reads by 503, from the start of `prune()` or of the query."""
        rows, counts = self.undisturbed(sql, scan)
        with self._failing() as failed:
            try:
                if while_pruned:
                    self.store.refuse(requests)
                result = self._pruned(sql, scan)
                if not while_pruned:
                    self.store.refuse(requests)
                found = self._answer(result)
            finally:
                left = self.store.refuse(0)
        assert not left, f"{left} requests were not refused"
        assert (requests == MANY_REFUSALS) == bool(failed()), f"{failed()} tasks failed"
        self._compare(result, found, rows, counts)
        return self._found(found, failed())

    def undisturbed(self, sql: str, scan: str) -> tuple[Rows, Counts]:
        """The rows on which stock Spark, pruned Spark and DuckDB agree, and the counts of the scans."""
        if (sql, scan) not in self._whole:
            wait_for_executors(self.spark)
            rows = Rows(self.spark.sql(sql).collect())
            assert rows == Rows(self.duck.execute(sql).fetchall())
            result = self._pruned(sql, scan)
            assert rows == self._answer(result)
            assert _of_the_star(scan) == _without_bytes(_counts(result)), _counts(result)
            self._whole[sql, scan] = rows, _counts(result)
        return self._whole[sql, scan]

    def _pruned(self, sql: str, scan: str, **limits: int) -> DataFrame:
        # Small builds would take no executor.
        by_job = options(scan).with_limits(driver_scan_files=0, **limits)
        result = prune(self.spark.sql(sql), options=by_job)
        reasons = explain(result).reasons
        assert set() == TROUBLE & {each.code for each in reasons}, [str(each) for each in reasons]
        assert [] == refusals(result)
        return result

    @staticmethod
    def _answer(df: DataFrame) -> Rows:
        return Rows(df.collect())

    @staticmethod
    def _compare(result: DataFrame, found: Rows, rows: Rows, counts: Counts) -> None:
        assert rows == found, f"{len(found)} rows instead of {len(rows)}"
        assert counts == _counts(result), f"{_counts(result)} instead of {counts}"

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


def _counts(result: DataFrame) -> Counts:
    """The planned and the measured counts of each scan with a filter, by table."""
    return {each.planned.table: (_planned(each.planned), _read(each.measured)) for each in report(result).tables}


def _planned(table: TableExplanation) -> tuple[int | None, ...]:
    return table.files_kept, table.files_total, table.row_groups_kept, table.row_groups_total


def _read(measured: Measured | None) -> tuple[int | None, ...]:
    """Files and rows read; for scans by pyarrow also row groups and bytes, which Python workers count."""
    assert measured is not None, "nothing was measured"
    by_arrow = measured.row_groups_read is not None
    return (
        measured.files_read,
        measured.rows_scanned,
        *((measured.row_groups_read, measured.bytes_scanned) if by_arrow else ()),
    )


def _read_again(result: DataFrame, rows: int | None) -> int | None:
    """The measured row count if it is from `rows` to twice `rows`, as after a repeated task; else `rows`."""
    (table,) = report(result).tables
    counted = None if table.measured is None else table.measured.rows_scanned
    return counted if rows is not None and counted is not None and rows <= counted <= 2 * rows else rows


def _of_the_star(scan: str) -> Counts:
    read = (FILES_READ, ROWS_READ, *((GROUPS_READ,) if scan == "ARROW" else ()))
    return {"sales": ((FILES_READ, FILES, GROUPS_READ, GROUPS), read)}


def _without_bytes(counts: Counts) -> Counts:
    return {name: (planned, read[:3]) for name, (planned, read) in counts.items()}
