"""Milliseconds that an enabled session adds to the planning of queries that have nothing to prune.

The tables are so small that no filter pays. The time is that which Spark counts for the session's rule, with all that
the rule does in Python; differences between whole plannings are smaller than their noise. The first run of a query
finds that there is nothing to prune, later ones know it.
"""

from __future__ import annotations

import json
import re
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
_RULE = re.compile(r"^SessionRule +\d+ / (\d+) ", re.MULTILINE)
_NANOSECONDS = 1e6


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
    measured = ("stock_ms", "first_added_ms", "added_ms")
    middle = {name: statistics.median(each[name] for each in entries) for name in measured}
    return [
        *entries,
        {"query": f"median of {len(entries)}", **middle, "pruned": sum(each["pruned"] for each in entries)},
    ]


def _measured(stock: SparkSession, enabled: SparkSession, query: str, text: str, runs: int) -> dict[str, Any]:
    """The entry of one query; its first runs, in the session that is not enabled, warm Spark."""
    plain = [_run(stock, text)[0] for _ in range(1 + runs)][1:]
    (_, first), *known = [_run(enabled, text) for _ in range(1 + runs)]
    return {
        "query": query,
        "stock_ms": statistics.median(plain),
        "first_added_ms": first,
        "added_ms": statistics.median(added for _, added in known),
        "pruned": sum(bool(table.planned.filters) for table in history(enabled)[0].tables),
    }


def _run(spark: SparkSession, text: str) -> tuple[float, float]:
    """The milliseconds of the optimisation of a query that runs, and of the rule therein; 0 where it is not enabled."""
    rules: Any = spark._jvm.org.apache.spark.sql.catalyst.rules.RuleExecutor  # type: ignore[union-attr]  # noqa: SLF001 - Spark's counters have no other door
    rules.resetMetrics()
    df = spark.sql(text)
    df.collect()
    phases: Any = df._jdf.queryExecution().tracker().phases()  # noqa: SLF001 - the same
    found = _RULE.search(str(rules.dumpTimeSpent()))
    return float(phases.get(_PHASE).get().durationMs()), int(found[1]) / _NANOSECONDS if found else 0.0


if __name__ == "__main__":
    for each in run(QUICK):
        print(json.dumps(each))
