"""Seconds of `prune()` with a warm `PruningCache` and without a cache, alternating in a warm session."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.delta_session import delta_session
from connectors.cli.command import default_folder
from pruning import PruningCache, explain, prune
from sample_data.tpcds import generate
from sample_data.tpcds_queries import queries

FULL, QUICK = 1.0, 0.05
_QUICK_QUERIES = ("q3", "q7", "q34")
_RUNS = 3


def run(scale: float, names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """One entry for each query with builds, then their totals."""
    names = names or (_QUICK_QUERIES if scale <= QUICK else ())
    with delta_session("cache", scale, generate(scale, default_folder())) as spark:
        measured = [_measured(spark, each.name, each.text) for each in queries() if not names or each.name in names]
    entries = [each for each in measured if each["builds"]]
    whole = {
        name: sum(each[name] for each in entries) for name in ("builds", "from_cache", "seconds", "seconds_cached")
    }
    ratio = statistics.geometric_mean(each["cached_to_uncached"] for each in entries)
    return [*entries, {"query": f"all {len(entries)}", **whole, "cached_to_uncached": ratio}]


def _measured(spark: SparkSession, query: str, text: str) -> dict[str, Any]:
    """The entry of one query. Each run analyses the query anew; untimed first runs warm the session and the cache."""
    cache, plain, cached = PruningCache(), [], []
    for _ in range(1 + _RUNS):
        plain.append(_seconds(spark, text, None)[0])
        cached.append(_seconds(spark, text, cache))
    builds = [each for each in explain(cached[-1][1]).builds if each.reads]
    seconds, seconds_cached = statistics.median(plain[1:]), statistics.median(each for each, _ in cached[1:])
    return {
        "query": query,
        "builds": len(builds),
        "from_cache": sum(each.from_cache for each in builds),
        "cache_bytes": cache.nbytes,
        "seconds": seconds,
        "seconds_cached": seconds_cached,
        "cached_to_uncached": seconds_cached / seconds,
    }


def _seconds(spark: SparkSession, text: str, cache: PruningCache | None) -> tuple[float, Any]:
    df = spark.sql(text)
    began = time.perf_counter()
    result = prune(df, cache=cache)
    return time.perf_counter() - began, result


if __name__ == "__main__":
    for each in run(QUICK):
        print(json.dumps(each))
