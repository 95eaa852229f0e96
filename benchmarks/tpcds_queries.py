"""The 99 queries of TPC-DS by `prune()`: filters found, scans pruned, bytes, and a comparison of the rows.

Filters are counted in the join graph (every column of a scan that some key set reaches) and in the plan (filters that
are worth their builds), each with and without global equivalence, which propagates keys to columns that further joins
make equal. Bytes of a whole query are Spark's counter over all of its tasks, including the tasks of builds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import duckdb
import typer
from pyspark.sql import DataFrame, SparkSession

from benchmarks.bench_planning import sizes_before_builds
from benchmarks.counters import Stretch
from benchmarks.delta_session import delta_session
from benchmarks.resume import resumed
from connectors.cli.command import default_folder
from connectors.pipeline.plan_metadata import PlanMetadata
from connectors.pipeline.query_run import query_facts
from connectors.spark.plan_reader import SparkPlan
from connectors.spark.session import COUNTABLE
from pruning import PruningOptions, prune, report
from pruning.query.edges import Edge
from pruning.query.filter_plan import FilterPlan
from pruning.query.join_graph import JoinGraph
from pruning.query.lineage import ProbeColumn
from pruning.query.requests import answered
from sample_data.tpcds import generate
from sample_data.tpcds_answers import disagreement, disagreement_beyond_ties
from sample_data.tpcds_queries import Answer, Query, by_spark, duckdb_tables, queries

# Spark broadcasts all customer demographics, 450 MB in memory, once for the stock query and once for the pruned one.
_CONF = {**COUNTABLE, "spark.driver.memory": "4g"}


@dataclass(frozen=True, slots=True)
class Settings:
    """Query numbers, the scale of the tables, and the option `always`: every sound filter, whether it pays or not."""

    scale: float
    numbers: Sequence[int] = range(1, 100)
    always: bool = False


FULL = Settings(1.0)
# At this scale no filter pays.
QUICK = Settings(0.05, (3, 7, 69), always=True)


def run(settings: Settings) -> list[dict[str, Any]]:
    """One entry for each query."""
    sources = generate(settings.scale, default_folder())
    options = PruningOptions(always=settings.always)
    known = {each.name: each for each in queries() if each.number in settings.numbers}
    with (
        delta_session("queries", settings.scale, sources, _CONF) as spark,
        duckdb_tables(sources.paths) as duck,
    ):
        return resumed(
            f"tpcds_queries-sf{settings.scale:g}" + ("-always" if settings.always else ""),
            list(known),
            lambda name: {"scale": settings.scale, **entry(spark, duck, known[name], options)},
        )


def entry(
    spark: SparkSession, duck: duckdb.DuckDBPyConnection, query: Query, options: PruningOptions
) -> dict[str, Any]:
    """The entry of one query, run without and with pruning."""
    df = spark.sql(query.text)
    found = {"query": query.name, **_filters(df, options)}
    stretch = Stretch(spark)
    stock = by_spark(df)
    before = stretch.bytes().counted
    stretch = Stretch(spark)
    result = prune(spark.sql(query.text), options=options)
    pruned = by_spark(result)
    after = stretch.bytes().counted
    tables = [each.planned for each in report(result).tables]
    return {
        **found,
        "scans_pruned": len(tables),
        "files_stock": sum(each.files_total or 0 for each in tables),
        "files": sum(each.files_kept or 0 for each in tables),
        "bytes_planned_stock": sum(each.bytes_total or 0 for each in tables),
        "bytes_planned": sum(each.bytes_kept or 0 for each in tables),
        "query_bytes_stock": before,
        "query_bytes_pruned": after,
        "stock_to_pruned": before / after if before and after else None,
        "rows": len(stock.rows),
        **_verdict(duck, query, stock, pruned),
    }


def _verdict(duck: duckdb.DuckDBPyConnection, query: Query, stock: Answer, pruned: Answer) -> Mapping[str, Any]:
    """The comparison of the rows; `differs` is "ties" if they are equal except for ties at a LIMIT."""
    differs = disagreement(query, duck, stock, pruned)
    beyond = disagreement_beyond_ties(query, duck, stock, pruned) if differs and query.limit is not None else differs
    return {"rows_equal": not beyond, "differs": beyond or ("ties" if differs else "")}


def _filters(df: DataFrame, options: PruningOptions) -> Mapping[str, int]:
    plan = SparkPlan.of(df)
    metadata = PlanMetadata(plan, options.limits)
    found: dict[str, int] = {}
    for name, equivalence in (("_alone", False), ("", True)):
        graph = JoinGraph.of(plan.root, equivalence=equivalence)
        facts = query_facts(metadata)
        sizes = sizes_before_builds(metadata, facts, options)
        filters = answered(FilterPlan.before_builds(graph, sizes, options, facts), metadata.answer)
        found["scans"] = len(graph.relations)
        found[f"reached{name}"] = len(
            {(*edge.build_side.id, probe.relation.id, probe.column) for edge, probe in _reached(graph)}
        )
        found[f"filters{name}"] = sum(map(len, filters.levels))
    return found


def _reached(graph: JoinGraph) -> list[tuple[Edge, ProbeColumn]]:
    return [(edge, probe) for edge in graph.edges for probe in edge.probes]


def main(
    scale: Annotated[float, typer.Option(help="TPC-DS scale factor.")] = FULL.scale,
    always: Annotated[bool, typer.Option("--always", help="Use filters that do not pay, too.")] = FULL.always,
    only: Annotated[list[int] | None, typer.Option(help="The number of a query; may be given several times.")] = None,
) -> None:
    """Measures filters, bytes and rows of the 99 queries at any scale, and prints one JSON object a line."""
    for found in run(Settings(scale, only or FULL.numbers, always)):
        typer.echo(json.dumps(found))


if __name__ == "__main__":
    typer.run(main)
