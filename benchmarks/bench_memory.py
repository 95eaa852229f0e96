"""Memory of a session after many prunes, by `prune()` and by `enable()`: heap, this process, py4j objects, threads."""

from __future__ import annotations

import gc
import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from py4j.finalizer import ThreadSafeFinalizer
from pyspark.sql import SparkSession

from benchmarks.delta_session import delta_session
from connectors.cli.command import default_folder
from pruning import PruningOptions, enable, prune
from sample_data.tpcds import generate
from sample_data.tpcds_queries import queries

SCALE = 0.01
FULL, QUICK = 1000, 20
# Stars with one fact, a union, and a query that reads one table several times.
_NUMBERS = (3, 7, 71, 98)
# At this scale no filter pays.
_OPTIONS = PruningOptions(always=True)
# Limits of Spark's history of executions. With the default limits, the history would still grow within a thousand
# executions, and its growth would hide a leak.
_CONF = {
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    # Pages of hash tables of Spark's own joins, which take 64 MiB each otherwise, and go some time after their query.
    "spark.buffer.pageSize": "1m",
    "spark.sql.shuffle.partitions": "2",
}
_SAMPLES = 5
_ENABLED = "enable()"
# Each way with a factor: a session that is enabled runs its queries, too, and runs twice as many.
WAYS = {"prune()": 1, _ENABLED: 2}


def run(prunes: int, ways: Sequence[str] = tuple(WAYS)) -> list[dict[str, Any]]:
    """For each way one entry after each fifth of its prunes, then the growth between the first entry and the last."""
    found: list[dict[str, Any]] = []
    for way in ways:
        with delta_session("memory", SCALE, generate(SCALE, default_folder()), _CONF) as spark:
            found += [{"way": way, **each} for each in _sampled(spark, prunes * WAYS[way], way)]
    return found


def _sampled(spark: SparkSession, prunes: int, way: str) -> list[dict[str, Any]]:
    texts = [each.text for each in queries() if each.number in _NUMBERS]
    samples: list[tuple[int, Mapping[str, int]]] = []
    if way == _ENABLED:
        enable(spark, options=_OPTIONS)
    for done in range(prunes):
        df = spark.sql(texts[done % len(texts)])
        if way == _ENABLED:
            # The plan is pruned when it runs.
            df.collect()
        else:
            prune(df, options=_OPTIONS)
        if (done + 1) % (prunes // _SAMPLES) == 0:
            samples.append((done + 1, _held(spark)))
    (first, held_first), (last, held_last) = samples[0], samples[-1]
    added = {name: held_last[name] - held_first[name] for name in held_first}
    entries = [{"prunes": f"{count:,}", **held} for count, held in samples]
    return [*entries, {"prunes": f"from {first:,} to {last:,}", **added}]


def _held(spark: SparkSession) -> Mapping[str, int]:
    gc.collect()
    jvm: Any = spark._jvm  # noqa: SLF001 - Java's counters have no other door
    for _ in range(3):
        jvm.java.lang.System.gc()
        # Spark removes the broadcasts of queries that are gone in a thread of its own.
        time.sleep(1.0)
    memory = jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
    threads = jvm.java.lang.management.ManagementFactory.getThreadMXBean()
    return {
        "heap_bytes": memory.getHeapMemoryUsage().getUsed(),
        "python_bytes": _resident(),
        "java_objects": len(ThreadSafeFinalizer.finalizers),
        "java_threads": threads.getThreadCount(),
        "python_threads": threading.active_count(),
        "cached_rdds": spark.sparkContext._jsc.getPersistentRDDs().size(),  # noqa: SLF001
    }


def _resident() -> int:
    """Resident bytes of this process; zero on systems without `/proc`."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    for each in run(QUICK):
        print(json.dumps(each))
