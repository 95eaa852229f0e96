"""Bytes read by star joins on TPC-DS: stock Spark, pruned Spark, and the row-group limit.

Each join runs on Delta and on Parquet, alternating without and with pruning, after one warm-up run of each. Rows of
every run are compared with DuckDB's. Bytes are Spark's counter for the scan of the fact table. For the whole query,
the results also have Spark's counter over all tasks and the operating system's counter of bytes read.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.counters import Bytes, Stretch
from benchmarks.demo.duckdb_answers import Oracle, oracle
from benchmarks.demo.run import made_tables
from benchmarks.demo.star_join import Lake, Run, StarJoin, run_pruned, run_stock
from benchmarks.row_group_limit import Limit, limit
from benchmarks.tpcds_joins import JOINS, TABLES
from connectors.cli.command import default_folder, progress_bar
from connectors.spark.session import COUNTABLE, spark_session

# For a fair comparison stock Spark uses its runtime bloom filter on scans of any size, not only above 10 GB.
RIVAL = {
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "true",
    "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "0",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Joins, formats and the number of timed `runs`; one more run warms up."""

    scale: float
    joins: tuple[StarJoin, ...] = JOINS
    formats: tuple[str, ...] = ("delta", "parquet")
    runs: int = 3


FULL = Settings(1.0)
QUICK = Settings(0.05, JOINS[:3], ("delta",), 1)


@dataclass(frozen=True, slots=True)
class _Counted:
    run: Run
    whole: Bytes


def run(settings: Settings) -> list[dict[str, Any]]:
    """One entry for each join and format."""
    with tempfile.TemporaryDirectory() as logs:
        spark = spark_session("scanprune benchmark: TPC-DS", conf={**COUNTABLE, **RIVAL}, log=Path(logs, "spark.log"))
        try:
            with progress_bar(Console(stderr=True)) as progress:
                return list(entries(spark, settings, default_folder(), progress))
        finally:
            spark.stop()


def entries(spark: SparkSession, settings: Settings, folder: Path, progress: Any) -> Iterator[dict[str, Any]]:
    """Yields one entry for each join and format; tables that are missing below `folder` are made first."""
    sources, lakes = made_tables(spark, folder, settings.scale, TABLES, progress)
    chosen = [lake for lake in lakes if lake.format in settings.formats]
    for at, join in enumerate(settings.joins):
        with oracle(sources.paths, [join]) as judge:
            for lake in chosen:
                progress(f"{join.name}, {lake.format}", 0.5 + 0.5 * at / len(settings.joins))
                yield entry(spark, lake, join, judge, settings.runs)


def entry(spark: SparkSession, lake: Lake, join: StarJoin, judge: Oracle, runs: int) -> dict[str, Any]:
    """The entry of one join on one format, measured without and with pruning."""
    stock, pruned = [], []
    for _ in range(runs + 1):
        stock.append(_counted(spark, lake, join, run_stock))
        pruned.append(_counted(spark, lake, join, run_pruned))
    keys = {each.probe: judge.keys(each) for each in join.filters}
    least = limit(join, Path(lake.folders[join.fact]), keys)
    right = judge.rows(join)
    return {
        "join": join.name,
        "format": lake.format,
        **_scans(stock, pruned, least),
        "seconds_stock": statistics.median(each.run.seconds for each in stock[1:]),
        "seconds": statistics.median(each.run.seconds for each in pruned[1:]),
        "rows": len(right),
        "rows_equal": all(each.run.rows == right for each in (*stock, *pruned)),
        **_whole("stock", stock[-1].whole),
        **_whole("pruned", pruned[-1].whole),
    }


def _counted(spark: SparkSession, lake: Lake, join: StarJoin, way: Any) -> _Counted:
    stretch = Stretch(spark)
    found = way(spark, lake, join)
    return _Counted(found, stretch.bytes())


def _scans(stock: Sequence[_Counted], pruned: Sequence[_Counted], least: Limit) -> dict[str, Any]:
    before, after = _last(stock).measured, _last(pruned).measured
    plan = _last(pruned).planned
    if before is None or after is None or plan is None:
        return {}
    return {
        "files_stock": before.files_read,
        "files": after.files_read,
        "files_limit": least.files,
        "row_groups_stock": least.row_groups_total,
        "row_groups_planned": plan.row_groups_kept,
        "row_groups_limit": least.row_groups,
        "rows_stock": before.rows_scanned,
        "rows_scanned": after.rows_scanned,
        "bytes_stock": before.bytes_scanned,
        "bytes": after.bytes_scanned,
        "bytes_planned_stock": least.bytes_total,
        "bytes_planned": plan.bytes_kept,
        "bytes_limit": least.bytes,
        "stock_to_pruned": _ratio(before.bytes_scanned, after.bytes_scanned),
        "pruned_to_limit": _ratio(after.bytes_scanned, least.bytes),
        "planned_to_limit": _ratio(plan.bytes_kept, least.bytes),
    }


def _last(counted: Sequence[_Counted]) -> Run:
    whole = [each.run for each in counted if each.run.measured and each.run.measured.bytes_scanned is not None]
    return (whole or [each.run for each in counted])[-1]


def _ratio(above: int | None, below: int | None) -> float | None:
    return above / below if above is not None and below else None


def _whole(name: str, whole: Bytes) -> dict[str, Any]:
    """Bytes of the whole query by both counters; the error is the share of the system's count that Spark misses."""
    error = None if not whole.seen else 1 - whole.counted / whole.seen
    return {f"query_bytes_{name}": whole.counted, f"system_bytes_{name}": whole.seen, f"count_error_{name}": error}


def main(
    scale: Annotated[float, typer.Option(help="TPC-DS scale factor.")] = FULL.scale,
    runs: Annotated[int, typer.Option(min=1, help="Timed runs of each join.")] = FULL.runs,
) -> None:
    """Measures star joins at any scale, and prints one JSON object a line."""
    for found in run(Settings(scale, runs=runs)):
        typer.echo(json.dumps(found))


if __name__ == "__main__":
    typer.run(main)
