"""Milliseconds that an enabled session adds to the planning of queries that have nothing to prune.

The tables are so small that no filter pays. Each query of TPC-DS runs in a session that is enabled and in one that is
not, by turns; the time is that of Spark's own phase of optimisation, in which the rule runs. The first run of a query
in the enabled session finds that there is nothing to prune, later ones know it.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.delta_session import delta_session
from connectors.cli.command import default_folder
from pruning import enable, history
from sample_data.layout import write_delta
from sample_data.tpcds import generate
from sample_data.tpcds_queries import queries, spark_tables

SCALE = 0.01
# Timed runs of each query in each session.
FULL, QUICK = 5, 1
_QUICK_QUERIES = ("q3", "q7", "q34")
_PHASE = "optimization"


def run(runs: int, names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """One entry for each query, then the medians of all."""
    names = names or (_QUICK_QUERIES if runs <= QUICK else ())
    sources = generate(SCALE, default_folder())
    with delta_session("session", SCALE, sources) as stock:
        enabled = stock.newSession()
        with spark_tables(enabled, write_delta(enabled, sources, default_folder() / f"delta-sf{SCALE:g}")):
            enable(enabled)
            chosen = [each for each in queries() if not names or each.name in names]
            entries = [_measured(stock, enabled, each.name, each.text, runs) for each in chosen]
    measured = ("stock_ms", "first_ms", "enabled_ms", "added_first_ms", "added_ms")
    middle = {name: statistics.median(each[name] for each in entries) for name in measured}
    return [
        *entries,
        {"query": f"median of {len(entries)}", **middle, "pruned": sum(each["pruned"] for each in entries)},
    ]


def _measured(stock: SparkSession, enabled: SparkSession, query: str, text: str, runs: int) -> dict[str, Any]:
    """The entry of one query; untimed first runs of the session that is not enabled warm Spark."""
    for _ in range(2):
        _milliseconds(stock, text)
    first = _milliseconds(enabled, text)
    plain, known = list[float](), list[float]()
    for at in range(runs):
        turns = [(stock, plain), (enabled, known)]
        for session, times in turns if at % 2 else reversed(turns):
            times.append(_milliseconds(session, text))
    middle = statistics.median(plain)
    return {
        "query": query,
        "stock_ms": middle,
        "first_ms": first,
        "enabled_ms": statistics.median(known),
        "added_first_ms": first - middle,
        "added_ms": statistics.median(known) - middle,
        "pruned": sum(bool(table.planned.filters) for table in history(enabled)[0].tables),
    }


def _milliseconds(spark: SparkSession, text: str) -> float:
    """The time of the optimisation of a query that runs."""
    df = spark.sql(text)
    df.collect()
    phases: Any = df._jdf.queryExecution().tracker().phases()  # noqa: SLF001 - Spark's timings have no other door
    return float(phases.get(_PHASE).get().durationMs())


if __name__ == "__main__":
    for each in run(QUICK):
        print(json.dumps(each))
