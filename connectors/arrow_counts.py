"""What the tasks of an Arrow scan have read, told to the driver as each ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pyspark import TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import SparkSession

from connectors.arrow_reader import Counts

_EXECUTION = "spark.sql.execution.id"

# By execution, stage and partition, so that a task that runs twice counts once.
ByTask: TypeAlias = dict[tuple[int, int, int], Counts]


class _LastOfEachTask(AccumulatorParam[ByTask]):
    def zero(self, value: ByTask) -> ByTask:  # noqa: ARG002 - PySpark's signature
        """Nothing."""
        return {}

    def addInPlace(self, value1: ByTask, value2: ByTask) -> ByTask:  # noqa: N802 - PySpark's name
        """Both."""
        value1.update(value2)
        return value1


@dataclass(frozen=True, slots=True)
class ScanCounter:
    """Counts of one scan, whichever actions run it."""

    _by_task: Accumulator[ByTask]

    @staticmethod
    def of(spark: SparkSession) -> ScanCounter:
        """Nothing counted yet."""
        return ScanCounter(spark.sparkContext.accumulator({}, _LastOfEachTask()))

    def add(self, counts: Counts) -> None:
        """In a task: what it has read."""
        context = TaskContext.get()
        assert context is not None  # noqa: S101
        execution = int(context.getLocalProperty(_EXECUTION) or -1)
        self._by_task.add({(execution, context.stageId(), context.partitionId()): counts})

    def by_execution(self) -> Mapping[int, Counts]:
        """On the driver: the sums of what the tasks of each execution have read."""
        found: dict[int, Counts] = {}
        for (execution, _, _), counts in self._by_task.value.items():
            found[execution] = found.get(execution, Counts()) + counts
        return found
