"""The command `python -m benchmarks doors`: what a session and `prune()` decide for a query, and the jobs that it runs.

Compared are the filters, the files and the builds that the two doors plan, and the Spark jobs of stock Spark, of the
session, and of its builds. These are counts, which other load does not change, but for builds on the driver: one that
is too slow there runs as a job.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from benchmarks.contest.__main__ import asked_queries
from benchmarks.contest.pool import SESSION
from benchmarks.markdown import markdown_table
from benchmarks.resume import forget, resumed
from benchmarks.run import RESULTS
from benchmarks.workload_runs import (
    PRUNED,
    STOCK,
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
from connectors.spark.jvm import jvm_context
from pruning import prune, report
from pruning.options import SESSION as RATES_OF_SESSION
from pruning.options import PruningOptions
from pruning.results.prune_report import PruneReport
from sample_data.decided import decided
from sample_data.tpcds_answers import pruned_difference
from sample_data.tpcds_queries import Answer, Query
from sample_data.workload import TPCDS, WORKLOADS

if TYPE_CHECKING:
    from benchmarks.contest.spark_engine import SparkEngine

PREFIX = "doors-"
COMPARED = ("files", "filters", "builds")


def builds_by_jobs(told: PruneReport) -> int:
    """The number of builds that Spark ran as jobs."""
    return sum(bool(each.reads) and not (each.on_driver or each.from_cache) for each in told.builds)


@dataclass(frozen=True, slots=True)
class Doors:
    """Both doors to one engine; `prune()` has the rates of a session, too."""

    engine: SparkEngine

    def row(self, query: Query) -> dict[str, Any]:
        """The fields of one query, which has run once before in each session."""
        engine = self.engine
        for way in (STOCK, PRUNED):
            engine.answer(way, query.text)
        stock, jobs_of_stock = self._jobs(lambda: engine.answer(STOCK, query.text))
        session, jobs_of_session = self._jobs(lambda: engine.answer(PRUNED, query.text))
        told = engine.report()
        by_prune = report(prune(engine.frame(STOCK, query.text), options=PruningOptions(cost_rates=RATES_OF_SESSION)))
        both = zip(COMPARED, decided(told), decided(by_prune), strict=True)
        return {
            "query": query.name,
            "differ": [name for name, one, other in both if one != other],
            **{name: len(found) for name, found in zip(COMPARED, decided(told), strict=True)},
            "builds_by_jobs": builds_by_jobs(told),
            "jobs_stock": jobs_of_stock,
            "jobs_session": jobs_of_session,
            "rows_differ": pruned_difference(query, session, stock, lambda: engine.answer(STOCK, query.unlimited)),
        }

    def _jobs(self, call: Callable[[], Answer]) -> tuple[Answer, int]:
        """The answer of a call, and the number of Spark jobs that began meanwhile."""
        scheduler = jvm_context(self.engine.spark).dagScheduler()
        before = int(scheduler.numTotalJobs())
        return call(), int(scheduler.numTotalJobs()) - before


@dataclass(frozen=True, slots=True)
class Settings:
    """One comparison: the queries of a workload at a scale, with additional confs."""

    workload: str
    scale: float
    queries: tuple[str, ...]
    conf: tuple[str, ...] = ()

    @property
    def results(self) -> str:
        """The name of the file of results."""
        return f"{PREFIX}{self.workload}-sf{self.scale:g}"


def main(  # noqa: PLR0913, PLR0917 - options of a command
    workload: WorkloadName = TPCDS.name,
    scale: Scale = 10.0,
    query: QueryNames = None,
    conf: Annotated[list[str] | None, typer.Option(help="name=value for the session; several times.")] = None,
    resume: Resume = False,  # noqa: FBT002
    tables: TablesFolder = None,
    results: ResultsFolder = RESULTS,
) -> None:
    """Compares the doors query by query; rows of earlier runs stay unless compared again."""
    chosen = named_workload(workload, scale)
    settings = Settings(workload, scale, asked_queries(chosen, query or ["all"]), tuple(conf or ()))
    path = results / f"{settings.results}.json"
    if not resume:
        forget(settings.results)
    rows = record_queries(path, chosen, partial(run, settings, tables or default_folder()))
    path.with_suffix(".md").write_text(page(rows), encoding="utf-8")
    typer.echo(f"Written to {str(path)!r}", err=True)


def run(settings: Settings, folder: Path) -> list[dict[str, Any]]:
    """A row for each query; resumes an interrupted call with the same workload and scale."""
    engine, known = engine_over(
        WORKLOADS[settings.workload], settings.scale, settings.queries, folder, settings.conf, SESSION
    )
    doors = Doors(engine)
    return resumed(settings.results, settings.queries, lambda name: doors.row(known[name]))


def more_jobs(row: Mapping[str, Any]) -> int:
    """The jobs of a session beyond those of stock Spark and of its builds, 0 if it has fewer."""
    return max(0, int(row["jobs_session"] - row["jobs_stock"] - row["builds_by_jobs"]))


def page(rows: Sequence[Mapping[str, Any]]) -> str:
    """Markdown: a line for each query, and the sums."""
    names = (*COMPARED, "builds_by_jobs", "jobs_stock", "jobs_session")
    whole = {"query": "all", **{name: sum(row[name] for row in rows) for name in names}}
    lines = [(*_cells(row, names), ", ".join(row["differ"]), str(more_jobs(row) or "")) for row in rows]
    header = ("query", *(name.replace("_", " ") for name in names), "differ", "jobs too many")
    table = markdown_table(header, [*lines, (*_cells(whole, names), "", "")])
    equal = sum(not row["differ"] for row in rows)
    return f"""# Two doors

Made by `python -m benchmarks doors`: what an enabled session plans for each query, what `prune()` plans otherwise, and
Spark jobs. {equal} of {len(rows)} queries have the same files, filters and builds by both doors. Jobs too many are
those of a session beyond stock Spark's and one for each build that Spark runs.

{table}"""


def _cells(row: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    return str(row["query"]), *(f"{row[name]:,}" for name in names)


if __name__ == "__main__":
    typer.run(main)
