"""Counters of the tasks of an Arrow scan, sent to the driver when each task ends."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pyspark import TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam, _accumulatorRegistry
from pyspark.sql import SparkSession

from connectors.arrow_scan.reader import Counts
from pruning.limits import LIMITS

_EXECUTION = "spark.sql.execution.id"


@dataclass(frozen=True, slots=True)
class TaskRead:
    """The counts of one task attempt, and the numbers of the scan's shares that it read completely."""

    attempt: int
    counts: Counts
    shares: frozenset[int]

    def then(self, other: TaskRead) -> TaskRead:
        """The sum of both if they are of one attempt, which may read several shares; else the later attempt."""
        if self.attempt != other.attempt:
            return other
        return TaskRead(self.attempt, self.counts + other.counts, self.shares | other.shares)


# By execution, then by stage and partition, so that a repeated task counts once.
ByTask: TypeAlias = dict[int, dict[tuple[int, int], TaskRead]]


class _ByTask(AccumulatorParam[ByTask]):
    def __init__(self, executions: int) -> None:
        self._most = executions

    def zero(self, value: ByTask) -> ByTask:  # noqa: ARG002 - PySpark's signature
        """The empty counts."""
        return {}

    def addInPlace(self, value1: ByTask, value2: ByTask) -> ByTask:  # noqa: N802 - PySpark's name
        """Both counts merged, for the latest executions."""
        for execution, tasks in value2.items():
            known = value1.setdefault(execution, {})
            for task, read in tasks.items():
                known[task] = known[task].then(read) if task in known else read
        for old in sorted(value1)[: -self._most]:
            del value1[old]
        return value1


@dataclass(frozen=True, eq=False)
class ScanCounter:
    """Counts of one scan of `shares` shares, over all actions that run it."""

    # No `slots=True`: `weakref.finalize` below needs a weak-referenceable instance.

    shares: int
    _by_task: Accumulator[ByTask]

    @staticmethod
    def of(spark: SparkSession, shares: int, executions: int = LIMITS.counted_executions) -> ScanCounter:
        """A new counter, which keeps the counts of the latest `executions` executions."""
        found = ScanCounter(shares, spark.sparkContext.accumulator({}, _ByTask(executions)))
        # PySpark's registry keeps every accumulator alive; it ignores updates of unregistered ones.
        weakref.finalize(found, _accumulatorRegistry.pop, found._by_task.aid, None)
        return found

    def add(self, counts: Counts, shares: frozenset[int]) -> None:
        """Adds the counts of a task, inside the task."""
        context = TaskContext.get()
        assert context is not None  # noqa: S101
        execution = int(context.getLocalProperty(_EXECUTION) or -1)
        read = TaskRead(context.taskAttemptId(), counts, shares)
        self._by_task.add({execution: {(context.stageId(), context.partitionId()): read}})

    def by_execution(self, work_of: Callable[[int], Hashable]) -> Mapping[int, Counts]:
        """The sums of each execution that has read every share completely, for use on the driver.

        Other executions stopped early, as with a limit, and their last tasks send no counts. `work_of` is equal for
        stages that run the same work, so that a stage repeated after the loss of an executor counts once.
        """
        found: dict[int, Counts] = {}
        for execution, tasks in list(self._by_task.value.items()):
            reads = _without_repeats(tasks, work_of)
            if len(frozenset[int]().union(*(each.shares for each in reads))) == self.shares:
                found[execution] = sum((each.counts for each in reads), Counts())
        return found


def _without_repeats(
    tasks: Mapping[tuple[int, int], TaskRead], work_of: Callable[[int], Hashable]
) -> Collection[TaskRead]:
    """The latest attempt for each partition of the same work."""
    stages = {stage for stage, _ in tasks}
    if len(stages) == 1:
        return tasks.values()
    work = {stage: work_of(stage) for stage in stages}
    ordered = sorted(tasks.items(), key=lambda item: item[1].attempt)
    return {(work[stage], partition): read for (stage, partition), read in ordered}.values()
