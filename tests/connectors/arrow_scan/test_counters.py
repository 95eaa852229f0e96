"""Counters of a scan by pyarrow, as tasks report them: in any order and more than once."""

from __future__ import annotations

import gc
from types import SimpleNamespace

import pytest
from pyspark.accumulators import Accumulator, _accumulatorRegistry

from connectors.arrow_scan.counters import ByTask, ScanCounter, TaskRead, _ByTask
from connectors.arrow_scan.reader import Counts

KEPT = 3


@pytest.fixture
def counted():
    """A function that reports task reads and returns the rows of each execution, for a scan of two partitions."""
    accumulator: Accumulator[ByTask] = Accumulator(-1, {}, _ByTask(KEPT))

    def count(*reads: tuple[int, int, int, int, set[int]]) -> dict[int, int]:
        for execution, partition, attempt, rows, shares in reads:
            read = TaskRead(attempt, Counts(rows=rows, files={"f"}), frozenset(shares))
            accumulator.add({execution: {(0, partition): read}})
        return {each: counts.rows for each, counts in ScanCounter(2, accumulator).by_execution(str).items()}

    return count


def test_retried_task_counts_once(counted):
    assert {7: 30} == counted((7, 0, 100, 10, {0}), (7, 1, 101, 20, {1}), (7, 1, 102, 20, {1}))


def test_partitions_of_one_task_add_up(counted):
    assert {7: 30} == counted((7, 0, 100, 10, {0}), (7, 0, 100, 20, {1}))


@pytest.mark.parametrize(
    ("work", "rows"),
    [({3: "a", 5: "a"}, 30), ({3: "a", 5: "b"}, 50)],
    ids=["the same again", "another scan of the same"],
)
def test_recomputed_stage_counts_once(work, rows):
    """Failure catalogue 45: Spark runs only the tasks again whose outputs were lost."""
    accumulator: Accumulator[ByTask] = Accumulator(-1, {}, _ByTask(KEPT))
    for stage, partition, attempt, read in [(3, 0, 100, 10), (3, 1, 101, 20), (5, 1, 108, 20)]:
        accumulator.add({7: {(stage, partition): TaskRead(attempt, Counts(rows=read), frozenset({partition}))}})
    found = ScanCounter(2, accumulator).by_execution(work.__getitem__)
    assert {7: rows} == {each: counts.rows for each, counts in found.items()}


def test_execution_without_all_partitions_is_not_counted(counted):
    assert {} == counted((7, 0, 100, 10, {0}), (7, 1, 101, 3, set()), (8, 1, 102, 20, {1}))
    assert {8: 50} == counted((8, 0, 103, 30, {0}))


def test_accumulator_ends_with_its_scan():
    """PySpark removes no accumulator, and a session may prune any number of scans."""
    context = SimpleNamespace(accumulator=lambda value, param: Accumulator(-2, value, param))
    counter = ScanCounter.of(SimpleNamespace(sparkContext=context), 3)
    assert {} == counter.by_execution(str)
    assert -2 in _accumulatorRegistry
    del counter
    gc.collect()
    assert -2 not in _accumulatorRegistry


def test_only_the_latest_executions_are_kept(counted):
    found = counted(*((at, 0, at, 1, {0, 1}) for at in range(KEPT + 5)))
    assert list(range(5, KEPT + 5)) == sorted(found)
