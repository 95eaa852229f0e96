"""The command `python -m benchmarks exchanges`: rows that each query sends through exchanges, stock and pruned.

Rows are counts of Spark's own metrics, so other load does not change them. Rows of builds that run as queries of their
own count as pruned Spark's; a reused exchange counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.contest.__main__ import asked_queries
from benchmarks.contest.place import Place
from benchmarks.contest.site import Site
from benchmarks.exchange_rows import BROADCAST, SHUFFLE, Exchange
from benchmarks.record import record, recorded
from benchmarks.resume import forget, resumed
from benchmarks.run import INTERRUPTED, RESULTS
from connectors.cli.command import default_folder
from sample_data.workload import TPCDS, WORKLOADS, Workload

STOCK, PRUNED = "stock", "pruned"
WAYS = (STOCK, PRUNED)
PREFIX = "exchanges-"
_LAYOUT = "delta"
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
    workload: Annotated[str, typer.Option(help=f"One of {', '.join(WORKLOADS)}.")] = TPCDS.name,
    scale: Annotated[float, typer.Option(help="Scale factor of the workload's tables.")] = 10.0,
    query: Annotated[
        list[str] | None, typer.Option("--query", "--queries", help="Names such as q3, slices such as q1-q20, or all.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where an interrupted run was.")] = False,  # noqa: FBT002
    tables: Annotated[Path | None, typer.Option(help="The folder of generated tables.")] = None,
    results: Annotated[Path, typer.Option(help="The folder of results.")] = RESULTS,
) -> None:
    """Counts rows through exchanges; rows of earlier runs stay unless counted again."""
    if workload not in WORKLOADS:
        raise typer.BadParameter(f"there is no workload {workload!r}; expected one of {', '.join(WORKLOADS)}")
    chosen = WORKLOADS[workload]
    settings = Settings(workload, scale, asked_queries(chosen, query or ["all"]))
    path = results / f"{settings.results}.json"
    if not resume:
        forget(settings.results)
    results.mkdir(parents=True, exist_ok=True)
    try:
        record(path, path.stem, partial(_merged, settings, path, tables or default_folder()), quick=False)
    except KeyboardInterrupt:
        typer.echo("Interrupted; --resume continues with what is left", err=True)
        raise typer.Exit(INTERRUPTED) from None
    rows = recorded(path)
    path.with_suffix(".md").write_text(page(rows), encoding="utf-8")
    typer.echo(f"Written to {str(path)!r}", err=True)


def merged(
    workload: Workload, before: Iterable[Mapping[str, Any]], rows: Iterable[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Rows in the order of the workload's queries; each of `rows` replaces the row of `before` of the same query."""
    found = {row["query"]: row for each in (before, rows) for row in each}
    return [found[name] for name in workload.names if name in found]


def _merged(settings: Settings, path: Path, folder: Path) -> Sequence[Mapping[str, Any]]:
    before = recorded(path) if path.exists() else []
    return merged(WORKLOADS[settings.workload], before, run(settings, folder))


def run(settings: Settings, folder: Path) -> list[dict[str, Any]]:
    """A row for each query; resumes an interrupted call with the same workload and scale."""
    # The page needs no Spark.
    from benchmarks.contest.spark_engine import SparkEngine  # noqa: PLC0415
    from benchmarks.contest.tables import tables  # noqa: PLC0415

    workload = WORKLOADS[settings.workload]
    known = {each.name: each for each in workload.queries() if each.name in settings.queries}
    named = [table for table in workload.schema.tables if any(each.names(table) for each in known.values())]
    source = workload.generate(settings.scale, folder, named)
    engine = SparkEngine({})
    engine.tables(tables(_LAYOUT, source, folder, Site(Place(str(folder)))))

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
    """Markdown: the rows through exchanges of each query, then the sums, then the largest exchanges that are left."""
    fields = [f"{kind}_{way}" for kind in ("shuffled", "broadcast") for way in WAYS]
    whole = {"query": "all", **{name: sum(row[name] for row in rows) for name in fields}}
    header = ("query", "rows shuffled, stock", "pruned", "share", "rows broadcast, stock", "pruned", "share")
    lines = [header, ("---",) * len(header), *(_cells(row) for row in (*rows, whole))]
    table = "".join(f"| {' | '.join(line)} |\n".replace(" --- ", "---") for line in lines)
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
