"""Milliseconds to plan the filters of a query before any build runs, in a warm session.

The time of Spark's own optimiser is excluded: every query pays it, pruned or not.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from benchmarks.delta_session import delta_session
from connectors.cli.command import default_folder
from connectors.pipeline.plan_metadata import PlanMetadata
from connectors.pipeline.query_run import query_facts
from connectors.spark.plan_reader import SparkPlan
from pruning import PruningOptions
from pruning.query.filter_plan import FilterPlan
from pruning.query.join_graph import JoinGraph
from pruning.query.known_statistics import KnownStatistics
from pruning.query.plan_statistics import QueryFacts, Sizes
from pruning.query.requests import answered
from sample_data.tpcds import generate
from sample_data.tpcds_queries import queries

FULL, QUICK = 1.0, 0.05
_WAYS, _BRANCHES = 20, 50
_RUNS = 5
# Small queries, and the queries with the most nodes, scans and filters.
_QUICK_QUERIES = ("q3", "q7", "q14", "q23", "q64")


def run(scale: float) -> list[dict[str, Any]]:
    """One entry for each query of TPC-DS and for two large synthetic queries, then median and maximum of TPC-DS."""
    with delta_session("planning", scale, generate(scale, default_folder())) as spark:
        chosen = [each for each in queries() if scale > QUICK or each.name in _QUICK_QUERIES]
        frames = {each.name: spark.sql(each.text) for each in chosen}
        # Warms up Java's compiler: the first query of a session takes many times as long as later queries.
        for df in frames.values():
            _planned(df)
        entries = [{"query": name, **_measured(df)} for name, df in frames.items()]
        large = {f"join of {_WAYS}": _join(_WAYS), f"union of {_BRANCHES}": _union(_BRANCHES)}
        others = [{"query": name, **_measured(spark.sql(text))} for name, text in large.items()]
    found = [each["milliseconds"] for each in entries]
    whole = {"milliseconds_median": statistics.median(found), "milliseconds_most": max(found)}
    return [*entries, *others, {"query": f"all {len(found)}", **whole}]


def _measured(df: DataFrame) -> Mapping[str, Any]:
    """The measurements of the run with the median total time."""
    df._jdf.queryExecution().optimizedPlan()  # noqa: SLF001 - plans have no public door
    runs = sorted((_planned(df) for _ in range(_RUNS)), key=lambda each: each["milliseconds"])
    return runs[_RUNS // 2]


def _planned(df: DataFrame) -> Mapping[str, Any]:
    began = time.perf_counter()
    plan = SparkPlan.of(df)
    read = time.perf_counter()
    graph = JoinGraph.of(plan.root)
    traced = time.perf_counter()
    options = PruningOptions()
    metadata = PlanMetadata(plan, options.limits)
    facts = query_facts(metadata)
    sizes = sizes_before_builds(metadata, facts, options)
    sized = time.perf_counter()
    filters = answered(FilterPlan.before_builds(graph, sizes, options, facts), metadata.answer)
    done = time.perf_counter()
    return {
        "milliseconds": 1000 * (done - began),
        "milliseconds_read": 1000 * (read - began),
        "milliseconds_graph": 1000 * (traced - read),
        "milliseconds_sizes": 1000 * (sized - traced),
        "milliseconds_feeds": 1000 * (done - sized),
        "nodes": sum(1 for _ in plan.root.walk()),
        "scans": len(graph.relations),
        "filters": sum(map(len, filters.levels)),
    }


def sizes_before_builds(metadata: PlanMetadata, facts: QueryFacts, options: PruningOptions) -> Sizes:
    """The sizes of a query's scans before any build has run."""
    statistics = KnownStatistics(metadata.plan.root, facts, options)
    return Sizes(facts.sizes, facts.files, (), statistics=statistics, remote=facts.remote, cores=facts.cores)


def _join(ways: int) -> str:
    """A join of a fact and dimensions on one key, so that the keys of each dimension reach every other table."""
    days = (f"date_dim d{at} ON ss_sold_date_sk = d{at}.d_date_sk AND d{at}.d_dom > {at}" for at in range(1, ways))
    return " JOIN ".join(["SELECT count(*) FROM store_sales", *days])


def _union(branches: int) -> str:
    """A union of `branches` star joins."""
    branch = "SELECT ss_item_sk FROM store_sales JOIN date_dim ON ss_sold_date_sk = d_date_sk WHERE d_moy = {}"
    return " UNION ALL ".join(branch.format(1 + at % 12) for at in range(branches))


if __name__ == "__main__":
    for each in run(QUICK):
        print(json.dumps(each))
