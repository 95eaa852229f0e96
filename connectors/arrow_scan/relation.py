"""The input of a scan by pyarrow: a relation of task numbers, and the value that every task gets beside its number."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Generic, TypeVar

from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession

from connectors.spark.jvm import JavaFile, frame_of, instance, jvm_broadcast, query_execution

_IDS = JavaFile("connectors.arrow_scan", "TaskIds")


def task_ids(spark: SparkSession, count: int, like: DataFrame) -> DataFrame:
    """The numbers from 0 to `count` - 1, each in a partition of its own, with the statistics of `like`'s plan.

    Spark estimates a map over this relation by its `sizeInBytes`, and would otherwise broadcast the scan as if it were
    as small as the numbers are.
    """
    ids = spark.range(0, count, 1, count)
    execution, wanted = (query_execution(each) for each in (ids, like))
    plan = instance(spark, _IDS, execution).plan(wanted.analyzed(), "scanprune_task")
    return frame_of(spark, plan)


T = TypeVar("T")

# Bytes of a pickled value. PySpark broadcasts a function of more than 1 MiB by itself and never deletes its file.
_MOST_BYTES = 512 << 10
# Spark releases a broadcast once no plan refers to it, but not the file on the driver that Python wrote it to.
_FILE = JavaFile("connectors.arrow_scan", "BroadcastFile")


@dataclass(frozen=True, slots=True)
class TaskPayload(Generic[T]):
    """A value for tasks, sent with their function while it is small, else as a broadcast.

    Tasks may ask for it as often and as late as a plan that refers to it exists.
    """

    _held: T | Broadcast[T]

    @staticmethod
    def of(spark: SparkSession, value: T) -> TaskPayload[T]:
        """The payload of `value` as it is at this moment, in a classic session."""
        if len(pickle.dumps(value, pickle.HIGHEST_PROTOCOL)) <= _MOST_BYTES:
            return TaskPayload(value)
        held = spark.sparkContext.broadcast(value)
        path, broadcast = jvm_broadcast(held)
        instance(spark, _FILE, path).endsWith(broadcast)
        return TaskPayload(held)

    @property
    def value(self) -> T:
        """The value; a broadcast one is held once by each worker for all tasks that it runs."""
        return self._held.value if isinstance(self._held, Broadcast) else self._held
