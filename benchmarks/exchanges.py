"""The command `python -m benchmarks exchanges`: rows that each query sends through exchanges, stock and pruned.

Rows are counts of Spark's own metrics, so other load does not change them. Rows of builds that run as queries of their
own count as pruned Spark's; a reused exchange counts once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import typer

from benchmarks.contest.__main__ import asked_queries
from benchmarks.exchange_rows import BROADCAST, SHUFFLE, Exchange
from benchmarks.markdown import markdown_table
from benchmarks.resume import forget, resumed
from benchmarks.run import RESULTS
from benchmarks.workload_runs import (
    WAYS,
    QueryNames,
    ResultsFolder,
    Resume,
    Scale,
    TablesFolder,
    WorkloadName,
    engine_over,
    named_workload,
    record_queries,
)
from connectors.cli.command import default_folder
from sample_data.workload import TPCDS, WORKLOADS

PREFIX = "exchanges-"
# Exchanges of fewer rows are counted and not listed.
_LISTED_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Settings:
    """One count: the queries of a workload at a scale."""

    workload: str
    scale: float
    queries: tuple[str, ...]

    @property
    def results(self) -> str:
        """The name of the file of results."""
        return f"{PREFIX}{self.workload}-sf{self.scale:g}"


def main(  # noqa: PLR0913, PLR0917 - options of a command
    workload: WorkloadName = TPCDS.name,
    scale: Scale = 10.0,
    query: QueryNames = None,
    resume: Resume = False,  # noqa: FBT002
    tables: TablesFolder = None,
    results: ResultsFolder = RESULTS,
) -> None:
    """Counts rows through exchanges; rows of earlier runs stay unless counted again."""
    chosen = named_workload(workload, scale)
    settings = Settings(workload, scale, asked_queries(chosen, query or ["all"]))
    path = results / f"{settings.results}.json"
    if not resume:
        forget(settings.results)
    rows = record_queries(path, chosen, partial(run, settings, tables or default_folder()))
    path.with_suffix(".md").write_text(page(rows), encoding="utf-8")
    typer.echo(f"Written to {str(path)!r}", err=True)


def run(settings: Settings, folder: Path) -> list[dict[str, Any]]:
    """A row for each query; resumes an interrupted call with the same workload and scale."""
    workload = WORKLOADS[settings.workload]
    engine, known = engine_over(workload, settings.scale, settings.queries, folder)

    def measure(name: str) -> dict[str, Any]:
        return {"query": name, **row_of({way: engine.exchanges(way, known[name].text) for way in WAYS})}

    return resumed(settings.results, settings.queries, measure)


def row_of(found: Mapping[str, Sequence[Exchange]]) -> dict[str, Any]:
    """The fields of a row: rows through shuffles and broadcasts by way, and the exchanges of many rows."""
    row: dict[str, Any] = {}
    for way, exchanges in found.items():
        row[f"shuffled_{way}"] = sum(each.rows for each in exchanges if each.kind == SHUFFLE)
        row[f"broadcast_{way}"] = sum(each.rows for each in exchanges if each.kind == BROADCAST)
        largest = sorted(exchanges, key=lambda each: -each.rows)
        row[way] = [each.to_json() for each in largest if each.rows >= _LISTED_ROWS]
    return row


def page(rows: Sequence[Mapping[str, Any]]) -> str:
    """Markdown: the rows through exchanges of each query, then the sums."""
    fields = [f"{kind}_{way}" for kind in ("shuffled", "broadcast") for way in WAYS]
    whole = {"query": "all", **{name: sum(row[name] for row in rows) for name in fields}}
    header = ("query", "rows shuffled, stock", "pruned", "share", "rows broadcast, stock", "pruned", "share")
    table = markdown_table(header, map(_cells, (*rows, whole)))
    return f"""# Rows through exchanges

Made by `python -m benchmarks exchanges`: rows that all exchanges of a query send, stock Spark and pruned, by Spark's
own metrics. Rows of builds that ran as queries count as pruned. The JSON file beside this one has each exchange of
{_LISTED_ROWS:,} rows or more.

{table}"""


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    cells = [str(row["query"])]
    for kind in ("shuffled", "broadcast"):
        stock, pruned = (row[f"{kind}_{way}"] for way in WAYS)
        cells += [f"{stock:,}", f"{pruned:,}", f"{pruned / stock:.2f}" if stock else "-"]
    return tuple(cells)


if __name__ == "__main__":
    typer.run(main)
