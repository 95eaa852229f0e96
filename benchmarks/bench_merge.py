"""Seconds and bytes of MERGE in a session that prunes and in one that does not, by turns on one table.

The table has orders of 400 days, of which a source updates a stretch and adds some: nine in ten of its rows match. In
the clustered layout each file has the orders of a few days, in the spread one of all days. The table is restored before
each run, and each pair of runs has to leave equal rows. Bytes are those that Spark counts, which it does for reads that
are not vectored.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.counters import Stretch
from benchmarks.resume import resumed
from connectors.cli.command import default_folder
from connectors.measure.status_store import finished_executions, last_execution, stage_reads
from connectors.spark.session import spark_session
from pruning import disable, enable, history

_DAYS = 400
_STOCK, _ENABLED = "stock", "enabled"
_SEARCH = "scanning files for matches"
_CONFS = {
    "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",
    "spark.buffer.size": "4096",
    # Files that a run has written are removed after it.
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}
# An odd number that is no multiple of 5: multiples of it by all numbers below a power of ten are all of these numbers.
_STEP = 7_368_787
_KEYS = {
    "order": "t.order_id = s.order_id",
    "day and order": "t.order_day = s.order_day AND t.order_id = s.order_id",
}


@dataclass(frozen=True, slots=True)
class Size:
    """The rows and files of the table, the share of rows in each source, and the timed runs; one more warms up."""

    rows: int
    files: int
    shares: tuple[float, ...]
    runs: int


_COMMON = 0.001
# About 2.4 GB.
FULL = Size(32_000_000, 64, (0.0001, _COMMON, 0.01, 0.1), 3)
QUICK = Size(1_000_000, 16, (_COMMON, 0.1), 1)


@dataclass(frozen=True, slots=True)
class Case:
    """One MERGE: how rows lie in files, the columns of the join, the share of rows in the source, deletion vectors."""

    layout: str
    key: str
    share: float
    vectors: bool

    @property
    def name(self) -> str:
        """The name that tells it from the other cases."""
        return f"{self.layout}, {self.key}, {self.share:.2%}{', deletion vectors' if self.vectors else ''}"


def cases(size: Size) -> Iterator[Case]:
    """Every share by each key where orders are clustered, by one where they are spread; one with deletion vectors."""
    for layout, keys in (("clustered", [*_KEYS]), ("spread", ["order"])):
        for key in keys:
            for share in size.shares:
                yield Case(layout, key, share, vectors=False)
        yield Case(layout, "order", _COMMON, vectors=True)


def run(size: Size = FULL, names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """One entry for each case and way; cases that an interrupted call has measured are not measured again."""
    known = {each.name: each for each in cases(size) if not names or each.name in names}
    with _session() as spark:
        folder = default_folder() / f"merge-{size.rows}"

        def measure(name: str) -> dict[str, Any]:
            return {"rows": _measured(spark, known[name], size, folder)}

        found = resumed(f"merge-{size.rows}", known, measure)
    return [row for each in found for row in each["rows"]]


@contextmanager
def _session() -> Iterator[SparkSession]:
    with tempfile.TemporaryDirectory() as logs:
        spark = spark_session("scanprune benchmark: merge", conf=_CONFS, log=Path(logs, "spark.log"))
        try:
            yield spark
        finally:
            spark.stop()


def _measured(spark: SparkSession, case: Case, size: Size, folder: Path) -> list[dict[str, Any]]:
    target, source = _table(spark, case, size, folder), folder / f"source-{case.share:g}"
    if not source.exists():
        _source(spark, size, case.share).write.format("delta").save(str(source))
    runs: dict[str, list[dict[str, Any]]] = {_STOCK: [], _ENABLED: []}
    sums: dict[str, Any] = {}
    for _ in range(1 + size.runs):
        for way, found in runs.items():
            found.append(_once(spark, way, target, source, _KEYS[case.key]))
            sums[way] = _checksum(spark, target)
            spark.sql(f"RESTORE TABLE delta.`{target}` TO VERSION AS OF 0").collect()
            spark.sql(f"VACUUM delta.`{target}` RETAIN 0 HOURS").collect()
    rows = [_entry(case, way, found[1:], equal=sums[_STOCK] == sums[_ENABLED]) for way, found in runs.items()]
    rows = [{"rows": size.rows, "runs": size.runs, **each} for each in rows]
    stock, enabled = rows
    for name in ("seconds", "search_seconds", "search_bytes", "bytes"):
        enabled[f"stock_to_enabled_{name}"] = stock[name] / enabled[name] if enabled[name] else None
    return rows


def _entry(case: Case, way: str, runs: Sequence[dict[str, Any]], *, equal: bool) -> dict[str, Any]:
    facts = {"layout": case.layout, "key": case.key, "share": case.share, "vectors": case.vectors, "way": way}
    medians = {name: statistics.median(each[name] for each in runs) for name in runs[0]}
    return {**facts, **medians, "rows_equal": equal}


def _once(spark: SparkSession, way: str, target: Path, source: Path, condition: str) -> dict[str, Any]:
    """One MERGE: its seconds by the clock, and by Delta's history those of the search and of the rewriting."""
    stretch, after = Stretch(spark), last_execution(spark)
    if way == _ENABLED:
        enable(spark)
    try:
        began = time.perf_counter()
        spark.sql(f"""
            MERGE INTO delta.`{target}` t USING delta.`{source}` s ON {condition}
            WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""").collect()
        seconds = time.perf_counter() - began
    finally:
        disable(spark)
    metrics = spark.sql(f"DESCRIBE HISTORY delta.`{target}` LIMIT 1").collect()[0]["operationMetrics"]
    return {
        "seconds": seconds,
        "search_seconds": int(metrics["scanTimeMs"]) / 1e3,
        "rewrite_seconds": int(metrics["rewriteTimeMs"]) / 1e3,
        "search_bytes": _search_bytes(spark, after),
        "bytes": stretch.bytes().counted,
        "files_rewritten": int(metrics["numTargetFilesRemoved"]),
        "files_searched": _files_searched(spark) if way == _ENABLED else 0,
    }


def _search_bytes(spark: SparkSession, after: int) -> int:
    """The bytes that the tasks of the search read, without those of builds."""
    found = [each for each in finished_executions(spark, after) if _SEARCH in str(each.description())]
    return sum(read.bytes for each in found for read in stage_reads(spark, each) if read is not None)


def _files_searched(spark: SparkSession) -> int:
    """The files of the target that the latest search kept; 0 if it left out none."""
    searches = (told for told in history(spark)[:2] if not told.nothing)
    kept = [table.planned.files_kept for told in searches for table in told.tables]
    return next((int(each) for each in kept if each is not None), 0)


def _table(spark: SparkSession, case: Case, size: Size, folder: Path) -> Path:
    path = folder / f"{case.layout}{'-vectors' if case.vectors else ''}"
    if not (path / "_delta_log").exists():
        at = "id" if case.layout == "clustered" else f"pmod(id * {_STEP}L, {size.rows}L)"
        rows = _orders(spark.range(0, size.rows, 1, size.files).selectExpr(f"{at} AS order_id"), size, "order")
        vectors = str(case.vectors).lower()
        rows.write.format("delta").option("delta.enableDeletionVectors", vectors).save(str(path))
    return path


def _source(spark: SparkSession, size: Size, share: float) -> DataFrame:
    """A stretch of the orders with other texts, and a tenth of its rows as new orders."""
    count = round(size.rows * share)
    old, first = count - count // 10, size.rows * 7 // 10
    known = spark.range(first, first + old, 1, 1)
    new = spark.range(size.rows, size.rows + count // 10, 1, 1)
    return _orders(known.union(new).selectExpr("id AS order_id"), size, "changed").coalesce(1)


def _orders(ids: DataFrame, size: Size, word: str) -> DataFrame:
    day = f"date_add(DATE'2024-01-01', cast(order_id DIV {max(1, size.rows // _DAYS)} AS int)) AS order_day"
    return ids.selectExpr(
        "order_id", day, "order_id % 1000003 AS customer", f"sha2(concat('{word}', order_id), 256) AS details"
    )


def _checksum(spark: SparkSession, target: Path) -> Any:
    table = spark.read.format("delta").load(str(target))
    return table.selectExpr("count(*)", "sum(order_id)", "sum(xxhash64(*) DIV 1048576)").collect()


if __name__ == "__main__":
    for each in run(QUICK):
        print(json.dumps(each))
