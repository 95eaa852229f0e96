"""The command `python -m benchmarks model`: planned against actual seconds of the cost model over a whole workload."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.contest.__main__ import asked_queries
from benchmarks.fit_rates import fit, fit_text
from benchmarks.model_chart import PREFIX, picture
from benchmarks.model_error import errors_text
from benchmarks.resume import forget, resumed
from benchmarks.run import RESULTS
from benchmarks.workload_runs import (
    QueryNames,
    ResultsFolder,
    Resume,
    Scale,
    TablesFolder,
    WorkloadName,
    engine_over,
    named_workload,
    record_queries,
    recorded_or_none,
)
from connectors.cli.command import default_folder
from sample_data.workload import TPCDS, WORKLOADS


@dataclass(frozen=True, slots=True)
class Settings:
    """One measurement: the queries of a workload at a scale, `runs` times each way, with additional confs."""

    workload: str
    scale: float
    queries: tuple[str, ...]
    runs: int = 1
    conf: tuple[str, ...] = ()

    @property
    def results(self) -> str:
        """The name of the file of results."""
        return f"{PREFIX}{self.workload}-sf{self.scale:g}"

    @property
    def name(self) -> str:
        """The name that equal measurements share, so that an interrupted one can be resumed."""
        same = json.dumps([self.queries, self.runs, self.conf])
        return f"{self.results}-{zlib.crc32(same.encode()):08x}"

    @property
    def head(self) -> dict[str, Any]:
        """The fields of every row."""
        told = {"conf": ", ".join(self.conf)} if self.conf else {}
        return {"workload": self.workload, "scale": self.scale, **told}


def main(  # noqa: PLR0913, PLR0917 - options of a command
    workload: WorkloadName = TPCDS.name,
    scale: Scale = 10.0,
    query: QueryNames = None,
    runs: Annotated[int, typer.Option(min=1, help="Timed runs each way; one more warms up if several.")] = 1,
    conf: Annotated[list[str] | None, typer.Option(help="name=value for the session; several times.")] = None,
    resume: Resume = False,  # noqa: FBT002
    fit_only: Annotated[  # noqa: FBT002
        bool, typer.Option("--fit", help="Measure nothing: fit the default rates to what is recorded.")
    ] = False,
    tables: TablesFolder = None,
    results: ResultsFolder = RESULTS,
) -> None:
    """Runs queries stock and pruned in one session; rows of earlier runs stay unless measured again."""
    chosen = named_workload(workload, scale)
    settings = Settings(workload, scale, asked_queries(chosen, query or ["all"]), runs, tuple(conf or ()))
    path = results / f"{settings.results}.json"
    if fit_only:
        _print_fit(path)
        return
    if not resume:
        forget(settings.name)
    rows = record_queries(path, chosen, partial(run, settings, tables or default_folder()))
    path.with_suffix(".svg").write_text(picture(rows), encoding="utf-8")
    typer.echo(errors_text(rows))
    typer.echo(f"Written to {str(path)!r}", err=True)


def _print_fit(path: Path) -> None:
    try:
        found = fit(recorded_or_none(path))
    except ValueError as error:
        raise typer.BadParameter(f"{error}; read {str(path)!r}") from None
    typer.echo(fit_text(found))


def run(settings: Settings, folder: Path) -> list[dict[str, Any]]:
    """A row for each query; resumes an interrupted call with equal settings."""
    # The charts and the fit need no Spark.
    from benchmarks.model_run import Measurer, measured_rows  # noqa: PLC0415

    workload = WORKLOADS[settings.workload]
    engine, known = engine_over(workload, settings.scale, settings.queries, folder, settings.conf)
    measurer = Measurer(engine, settings.runs, settings.head)
    return measured_rows(measurer, known, partial(resumed, settings.name, settings.queries))


if __name__ == "__main__":
    typer.run(main)
