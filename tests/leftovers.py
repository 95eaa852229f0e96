"""Leftovers of a query that must not exist: jobs, stages, threads, job tags, broadcasts and stored rows of builds."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from connectors.spark.jvm import JavaFile, instance

_BROADCASTS = JavaFile("tests", "BroadcastBlocks")


def broadcasts(spark: SparkSession) -> set[str]:
    """The blocks of broadcasts that are still referenced."""
    gc.collect()
    spark._jvm.System.gc()
    return blocks(spark)


def blocks(spark: SparkSession) -> set[str]:
    """The blocks of all broadcasts that Spark has not released."""
    found = spark.sparkContext._jsc.sc().env().blockManager().getMatchingBlockIds(instance(spark, _BROADCASTS))
    return {str(found.apply(at)) for at in range(found.size())}


def rows(spark: SparkSession) -> set[str]:
    """The rows of builds that are stored, or are to be when they are read."""
    found = spark.sparkContext._jsc.getPersistentRDDs()
    names = [str(found[at].toString()) for at in found]
    return {each for each in names if each.startswith("rows of ")}


def running(spark: SparkSession) -> tuple[list[int], list[int], list[str], set[str]]:
    """Jobs, stages, threads of builds, and job tags."""
    tracker = spark.sparkContext.statusTracker()
    names = [each.name for each in threading.enumerate() if each.name.startswith(("build of", "end of"))]
    return list(tracker.getActiveJobsIds()), list(tracker.getActiveStageIds()), names, spark.sparkContext.getJobTags()


@pytest.fixture
def assert_no_leftovers(spark: SparkSession) -> Callable[[], None]:
    """A check, called at the end, that only the jobs, threads, tags and broadcasts from before the test remain."""
    known, before = broadcasts(spark), running(spark)

    def check() -> None:
        deadline = time.monotonic() + 150
        # Spark's cleaner runs after the garbage collection, in a thread of its own.
        while (running(spark) != before or broadcasts(spark) - known) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert before == running(spark)
        assert set() == broadcasts(spark) - known

    return check
