"""Seconds and jobs of a query of one partition of a table of 10,000 files: stock, by `prune()`, in an enabled session.

The query has no join. Each way reads a copy of the table's log of its own, which nobody has read before: `cold` is the
first query, `other` the same query of another partition, and `again` the first one once more.
"""

from __future__ import annotations

import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from connectors.spark.session import spark_session
from pruning import disable, enable, prune

# Files, and rounds; the first round warms Spark up.
FULL, QUICK = (10_000, 5), (200, 1)
_FILES_PER_PARTITION = 100
_ROWS = 100
STOCK, PRUNE, SESSION = "stock", "prune()", "session"
WAYS = (STOCK, PRUNE, SESSION)
# The partitions that are read one after the other.
_READ = {"cold": 0, "other": 1, "again": 0}


def run(files: int, rounds: int) -> list[dict[str, Any]]:
    """One entry for each way and query, with the medians of all rounds but the first."""
    with tempfile.TemporaryDirectory() as directory:
        spark = spark_session("scanprune benchmark: one partition", log=Path(directory, "spark.log"))
        try:
            table = Path(directory, "table")
            _write(table, files)
            spark.sql(f"CONVERT TO DELTA parquet.`{table}` PARTITIONED BY (p INT)").collect()
            found: dict[tuple[str, str], list[tuple[float, int]]] = {}
            for number in range(1 + rounds):
                for way in WAYS:
                    copy = _copied(table, Path(directory, f"{way.strip('()')}-{number}"))
                    for query, measured in _measured(spark, way, copy):
                        found.setdefault((way, query), []).append(measured)
            return [_entry(files, *named, all_rounds[1:]) for named, all_rounds in found.items()]
        finally:
            spark.stop()


def _entry(files: int, way: str, query: str, rounds: list[tuple[float, int]]) -> dict[str, Any]:
    seconds, jobs = zip(*rounds, strict=True)
    return {
        "files": files,
        "way": way,
        "query": query,
        "seconds": statistics.median(seconds),
        "jobs": statistics.median(jobs),
    }


def _write(folder: Path, files: int) -> None:
    for at in range(files):
        part = folder / f"p={at // _FILES_PER_PARTITION}"
        part.mkdir(parents=True, exist_ok=True)
        values = pa.table({"id": pa.array(np.arange(at * _ROWS, (at + 1) * _ROWS)), "x": np.full(_ROWS, at)})
        pq.write_table(values, part / f"part-{at:05}.parquet")


def _copied(table: Path, target: Path) -> Path:
    """Another table of the same files, with a log of its own."""
    target.mkdir()
    shutil.copytree(table / "_delta_log", target / "_delta_log")
    for part in table.glob("p=*"):
        (target / part.name).symlink_to(part)
    return target


def _measured(spark: SparkSession, way: str, table: Path) -> Iterator[tuple[str, tuple[float, int]]]:
    session = spark.newSession()
    if way == SESSION:
        enable(session)
    try:
        for query, partition in _READ.items():
            group = f"{table.name} {query}"
            session.sparkContext.setJobGroup(group, group)
            began = time.perf_counter()
            rows = _result(session, way, table, partition).collect()
            seconds = time.perf_counter() - began
            first = partition * _FILES_PER_PARTITION * _ROWS
            if [(first, _FILES_PER_PARTITION * _ROWS)] != [(row[0], row[1]) for row in rows]:
                message = f"{way} read {rows} of partition {partition}"
                raise RuntimeError(message)
            yield query, (seconds, len(session.sparkContext.statusTracker().getJobIdsForGroup(group)))
    finally:
        disable(session)


def _result(session: SparkSession, way: str, table: Path, partition: int) -> DataFrame:
    df = session.sql(f"SELECT min(id), count(*) FROM delta.`{table}` WHERE p = {partition} AND x >= 0")
    return prune(df) if way == PRUNE else df


if __name__ == "__main__":
    for each in run(*QUICK):
        print(json.dumps(each))
