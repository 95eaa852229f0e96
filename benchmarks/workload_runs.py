"""Commands that run a workload query by query: the workload that they name, its engine, and their recorded rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from benchmarks.contest.place import Place
from benchmarks.contest.pool import PRUNE
from benchmarks.contest.site import Site
from benchmarks.record import record, recorded
from benchmarks.run import INTERRUPTED
from sample_data.tpcds_queries import Query
from sample_data.workload import WORKLOADS, Workload

if TYPE_CHECKING:
    from benchmarks.contest.spark_engine import SparkEngine

Rows = Sequence[Mapping[str, Any]]
STOCK, PRUNED = "stock", "pruned"
WAYS = (STOCK, PRUNED)
LAYOUT = "delta"
# Options of these commands.
WorkloadName = Annotated[str, typer.Option(help=f"One of {', '.join(WORKLOADS)}.")]
Scale = Annotated[float, typer.Option(help="Scale factor of the workload's tables.")]
QueryNames = Annotated[
    list[str] | None, typer.Option("--query", "--queries", help="Names such as q3, slices such as q1-q20, or all.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where an interrupted run was.")]
TablesFolder = Annotated[Path | None, typer.Option(help="The folder of generated tables.")]
ResultsFolder = Annotated[Path, typer.Option(help="The folder of results.")]


def named_workload(name: str, scale: float) -> Workload:
    """The workload of a name; `typer.BadParameter` if there is none, or if it has no such scale."""
    if name not in WORKLOADS:
        raise typer.BadParameter(f"there is no workload {name!r}; expected one of {', '.join(WORKLOADS)}")
    found = WORKLOADS[name]
    if scale < found.least_scale:
        raise typer.BadParameter(f"{scale:g} is no scale of {found.title}: the least is {found.least_scale:g}")
    return found


def engine_over(  # noqa: PLR0913, PLR0917 - a workload, and how to run it
    workload: Workload, scale: float, names: Sequence[str], folder: Path, conf: Sequence[str] = (), door: str = PRUNE
) -> tuple[SparkEngine, dict[str, Query]]:
    """Spark with the tables of some queries, which are generated if they are not in `folder`, and these queries."""
    # Commands that only read recorded rows need no Spark.
    from benchmarks.contest.spark_engine import SparkEngine  # noqa: PLC0415
    from benchmarks.contest.tables import tables  # noqa: PLC0415

    known = {each.name: each for each in workload.queries() if each.name in names}
    named = [table for table in workload.schema.tables if any(each.names(table) for each in known.values())]
    source = workload.generate(scale, folder, named)
    laid_out = tables(LAYOUT, source, folder, Site(Place(str(folder))))
    engine = SparkEngine(dict(each.split("=", 1) for each in conf), door=door)
    engine.tables(laid_out)
    return engine, known


def merged(workload: Workload, before: Iterable[Mapping[str, Any]], rows: Iterable[Mapping[str, Any]]) -> Rows:
    """Rows in the order of the workload's queries; each of `rows` replaces the row of `before` of the same query."""
    found = {row["query"]: row for each in (before, rows) for row in each}
    return [found[name] for name in workload.names if name in found]


def recorded_or_none(path: Path) -> Rows:
    """The rows of a file; none if it does not exist."""
    return recorded(path) if path.exists() else []


def record_queries(path: Path, workload: Workload, measure: Callable[[], Rows]) -> Rows:
    """The rows of a file after those of `measure` were added; ends the command if the user interrupts it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        record(path, path.stem, lambda: merged(workload, recorded_or_none(path), measure()), quick=False)
    except KeyboardInterrupt:
        typer.echo("Interrupted; --resume continues with what is left", err=True)
        raise typer.Exit(INTERRUPTED) from None
    return recorded(path)
