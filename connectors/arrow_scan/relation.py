"""Numbers of tasks as a DataFrame, of which Spark believes that it leads to as many bytes as another one has.

What tasks are given beside their function: together with it while it is small, else as a broadcast.

Pruned queries that are cached, found again though their scans are made by pyarrow.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from py4j.protocol import Py4JError
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession

from connectors.spark.jvm import JavaFile, frame_of, instance, jvm_broadcast, jvm_frame, query_execution

# What the name of the numbers begins with, by which a scan is known in a plan.
PREFIX = "scanprune_"
_IDS = JavaFile("connectors.arrow_scan", "TaskIds")


def task_ids(spark: SparkSession, count: int, like: DataFrame, digest: str) -> DataFrame:
    """The numbers below `count`, each in a task of its own; for Spark they, and a map of them, are as large as `like`.

    That is what Spark estimates of its plan as it is analysed. `digest` tells what is made of the numbers.
    """
    ids = spark.range(0, count, 1, count)
    execution, wanted = (query_execution(each) for each in (ids, like))
    plan = instance(spark, _IDS, execution).plan(wanted.analyzed(), f"{PREFIX}{digest}")
    return frame_of(spark, plan)


T = TypeVar("T")

# A function of more than a megabyte PySpark broadcasts by itself, and leaves the file of it behind.
_MOST_BYTES = 512 << 10
# Spark releases a broadcast once no plan leads to it, but for the file that Python wrote it to, which stays as long as
# the context: on the driver it is what tasks read.
_FILE = JavaFile("connectors.arrow_scan", "BroadcastFile")


@dataclass(frozen=True, slots=True)
class TaskPayload(Generic[T]):
    """A value for tasks: they may run as often, and as late, as a plan that leads to them is there.

    Values of the same `digest` are equal.
    """

    digest: str
    _held: T | Broadcast[T]

    @staticmethod
    def of(spark: SparkSession, value: T) -> TaskPayload[T]:
        """The value as it is at this moment; a classic session is needed."""
        pickled = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        digest = hashlib.blake2b(pickled, digest_size=16).hexdigest()
        if len(pickled) <= _MOST_BYTES:
            return TaskPayload(digest, value)
        held = spark.sparkContext.broadcast(value)
        path, broadcast = jvm_broadcast(held)
        instance(spark, _FILE, path).endsWith(broadcast)
        return TaskPayload(digest, held)

    @property
    def value(self) -> T:
        """The value, of which a worker holds one for all tasks that it runs."""
        return self._held.value if isinstance(self._held, Broadcast) else self._held


logger = logging.getLogger("scanprune")

# Spark answers from its cache what has the plan of a cached query. Of functions of Python it takes only the very same
# one for the same, so scans that read the same as those of a cached query become these, but only where Spark then does
# answer from its cache: whatever is read anew is counted for itself. Spark has no door to the plans that it has cached.
_SCANS = JavaFile("connectors.arrow_scan", "CachedScans")


def as_cached(df: DataFrame) -> DataFrame:
    """The same rows, from Spark's cache where a query of the same plan, with scans that read the same, is there."""
    own: Any = jvm_frame(df)
    try:
        found = instance(df.sparkSession, _SCANS, own, PREFIX).found()
    except Py4JError:
        logger.debug("Looking for cached scans failed", exc_info=True)
        return df
    return df if found.equals(own) else DataFrame(found, df.sparkSession)
