"""Leftovers of ended queries that must not exist: jobs, threads, tags, broadcasts, and files of broadcasts."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from tests.cluster.outcomes import Found
from tests.leftovers import broadcasts, running

_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Before:
    """The broadcasts and files that existed before the queries."""

    spark: SparkSession
    broadcasts: frozenset[str]
    files: frozenset[str]

    @staticmethod
    def of(spark: SparkSession) -> Before:
        """The present state of a session."""
        return Before(spark, frozenset(broadcasts(spark)), files(spark))

    def check(self) -> Found:
        """Checks that no leftovers remain after a while; Spark's cleaner runs after garbage collections."""
        until = time.monotonic() + _SECONDS
        while (left := self.left()) and time.monotonic() < until:
            time.sleep(0.2)
        assert not left, left
        return Found()

    def left(self) -> str:
        """The leftovers in words; empty if there are none."""
        jobs, stages, threads, tags = running(self.spark)
        blocks = broadcasts(self.spark) - self.broadcasts
        found = {
            "jobs": jobs,
            "stages": stages,
            "threads": threads,
            "tags": tags,
            "broadcasts": blocks,
            "files": files(self.spark) - self.files,
        }
        return ", ".join(f"{name}: {sorted(each)[:5]}" for name, each in found.items() if each)


def files(spark: SparkSession) -> frozenset[str]:
    """Temporary files of the session's Python side: values of broadcasts, and rows on their way to Java."""
    folder = Path(spark.sparkContext._temp_dir)
    return frozenset(each.name for each in folder.iterdir() if each.is_file())
