"""Counts of an Arrow scan as they come from tasks, in any order and more than once."""

from __future__ import annotations

import gc
from types import SimpleNamespace

import pytest
from pyspark.accumulators import Accumulator, _accumulatorRegistry

from connectors.arrow_scan.counters import ByTask, ScanCounter, TaskRead, _ByTask
from connectors.arrow_scan.reader import Counts

KEPT = 3


@pytest.fixture
def told():
    """Tells a driver of tasks, and gives what it makes of these for a scan of two shares."""
    accumulator: Accumulator[ByTask] = Accumulator(-1, {}, _ByTask(KEPT))

    def tell(*reads: tuple[int, int, int, int, set[int]]) -> dict[int, int]:
        for execution, partition, attempt, rows, shares in reads:
            read = TaskRead(attempt, Counts(rows=rows, files={"f"}), frozenset(shares))
            accumulator.add({execution: {(0, partition): read}})
        return {each: counts.rows for each, counts in ScanCounter(2, accumulator).by_execution(str).items()}

    return tell


def test_a_task_that_runs_again_counts_once(told):
    assert {7: 30} == told((7, 0, 100, 10, {0}), (7, 1, 101, 20, {1}), (7, 1, 102, 20, {1}))


def test_shares_that_one_task_reads_add_up(told):
    assert {7: 30} == told((7, 0, 100, 10, {0}), (7, 0, 100, 20, {1}))


@pytest.mark.parametrize(
    ("work", "rows"),
    [({3: "a", 5: "a"}, 30), ({3: "a", 5: "b"}, 50)],
    ids=["the same again", "another scan of the same"],
)
def test_what_a_later_stage_reads_again_counts_once(work, rows):
    """Failure catalogue 45: the outputs of some of its tasks were lost, and these alone run again."""
    accumulator: Accumulator[ByTask] = Accumulator(-1, {}, _ByTask(KEPT))
    for stage, partition, attempt, read in [(3, 0, 100, 10), (3, 1, 101, 20), (5, 1, 108, 20)]:
        accumulator.add({7: {(stage, partition): TaskRead(attempt, Counts(rows=read), frozenset({partition}))}})
    found = ScanCounter(2, accumulator).by_execution(work.__getitem__)
    assert {7: rows} == {each: counts.rows for each, counts in found.items()}


def test_an_execution_without_every_share_is_not_told(told):
    assert {} == told((7, 0, 100, 10, {0}), (7, 1, 101, 3, set()), (8, 1, 102, 20, {1}))
    assert {8: 50} == told((8, 0, 103, 30, {0}))


def test_an_accumulator_ends_with_the_scan_that_it_counts():
    """PySpark itself ends none, and a session may prune any number of scans."""
    context = SimpleNamespace(accumulator=lambda value, param: Accumulator(-2, value, param))
    counter = ScanCounter.of(SimpleNamespace(sparkContext=context), 3)
    assert {} == counter.by_execution(str)
    assert -2 in _accumulatorRegistry
    del counter
    gc.collect()
    assert -2 not in _accumulatorRegistry


def test_only_the_latest_executions_are_kept(told):
    found = told(*((at, 0, at, 1, {0, 1}) for at in range(KEPT + 5)))
    assert list(range(5, KEPT + 5)) == sorted(found)
