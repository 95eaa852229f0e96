"""The command `python -m benchmarks.contest`: compares contenders and writes `results/contest-sf<scale>.json`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from benchmarks.contest.contest import CONTENDERS, FULL, Settings, run
from benchmarks.contest.pool import DOORS, SESSION
from benchmarks.contest.ratios import with_ratios
from benchmarks.contest.site import LOCAL, PLACES
from benchmarks.parts import PARTS
from benchmarks.record import record, recorded
from benchmarks.resume import forget
from benchmarks.run import INTERRUPTED, RESULTS
from benchmarks.view import measurements
from benchmarks.workload_runs import named_workload
from connectors.cli.command import default_folder
from pruning.errors import EnvironmentProblem
from sample_data.layouts import LAYOUTS
from sample_data.object_store.shape import SHAPED, Shape
from sample_data.workload import TPCDS, WORKLOADS, Workload

_ALL = "all"


def main(  # noqa: PLR0913, PLR0917 - options of a command
    workload: Annotated[str, typer.Option(help=f"One of {', '.join(WORKLOADS)}.")] = TPCDS.name,
    scale: Annotated[float, typer.Option(help="Scale factor of the workload's tables.")] = FULL.scale,
    layout: Annotated[list[str] | None, typer.Option(help=f"One of {', '.join(LAYOUTS)}; all by default.")] = None,
    query: Annotated[
        list[str] | None,
        typer.Option(
            "--query",
            "--queries",
            help=f"Names such as q3, slices such as q1-q20, or {_ALL}, separated by commas; by default the selective"
            " queries of the workload, or all if none are known to be.",
        ),
    ] = None,
    contender: Annotated[
        list[str] | None, typer.Option(help=f"One of {', '.join(CONTENDERS)}; all but always by default.")
    ] = None,
    runs: Annotated[int, typer.Option(min=3, help="Timed runs of each query; one more warms up.")] = FULL.runs,
    timeout: Annotated[float, typer.Option(min=1.0, help="Seconds that a run may take.")] = FULL.seconds,
    conf: Annotated[list[str] | None, typer.Option(help="name=value for both Sparks; several times.")] = None,
    place: Annotated[
        str, typer.Option(help="local: files of this machine; s3: an object store on it, whose server Go builds once.")
    ] = LOCAL,
    latency: Annotated[
        float, typer.Option(min=0.0, help="Milliseconds that the object store adds to each request.")
    ] = 1e3 * SHAPED.latency,
    bandwidth: Annotated[float, typer.Option(min=1.0, help="MB that the object store serves in a second.")] = 1e-6
    * SHAPED.bytes_per_second,
    door: Annotated[str, typer.Option(help=f"One of {', '.join(DOORS)}: an enabled session, or prune().")] = SESSION,
    label: Annotated[str, typer.Option(help="A word in the name of the results, as for other confs.")] = "",
    apart: Annotated[  # noqa: FBT002
        bool, typer.Option("--apart", help="A process for each contender, to compare peaks of memory.")
    ] = False,
    once: Annotated[  # noqa: FBT002
        bool,
        typer.Option("--once", help="Each query once in the session of each contender, in an order drawn by lot."),
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where an interrupted run was.")] = False,  # noqa: FBT002
    tables: Annotated[Path | None, typer.Option(help="The folder of generated tables.")] = None,
    results: Annotated[Path, typer.Option(help="The folder of results.")] = RESULTS,
) -> None:
    """Compares contenders on the same files, query by query; rows of earlier runs stay unless measured again."""
    chosen = named_workload(workload, scale)
    settings = Settings(
        scale,
        _chosen("layout", layout, tuple(LAYOUTS)),
        asked_queries(chosen, query or []),
        _chosen("contender", contender or FULL.contenders, CONTENDERS),
        runs,
        timeout,
        tuple(conf or ()),
        _chosen("place", [place], PLACES)[0],
        Shape(latency / 1e3, bandwidth * 1e6),
        label,
        apart,
        chosen.name,
        once,
        _chosen("door", [door], DOORS)[0],
    )
    if not resume:
        forget(settings.name)
    path = results / f"{settings.results}.json"
    results.mkdir(parents=True, exist_ok=True)
    try:
        record(path, path.stem, partial(_measured, settings, path, tables or default_folder()), quick=False)
    except EnvironmentProblem as error:
        typer.echo(error, err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo("Interrupted; --resume continues with what is left", err=True)
        raise typer.Exit(INTERRUPTED) from None
    part = next(each for each in PARTS if each.name.startswith("contest"))
    Console().print(measurements(part, _recorded(path)))
    typer.echo(f"Written to {str(path)!r}", err=True)


def merged(
    workload: Workload, before: Iterable[Mapping[str, Any]], rows: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Rows sorted by layout, query and contender; each of `rows` replaces the row of `before` with the same three.

    Rows of `before` have their own commit, because the file that they are written to names only the commit of `rows`.
    """
    found = {(row["layout"], row["query"], row["contender"]): row for each in (before, rows) for row in each}
    names = ([*LAYOUTS], workload.names, CONTENDERS)
    order = {key: tuple(each.index(name) for each, name in zip(names, key, strict=True)) for key in found}
    return with_ratios([found[key] for key in sorted(found, key=order.__getitem__)])


def _measured(settings: Settings, path: Path, folder: Path) -> Sequence[Mapping[str, Any]]:
    return merged(WORKLOADS[settings.workload], _recorded(path), run(settings, folder))


def _recorded(path: Path) -> Sequence[Mapping[str, Any]]:
    return recorded(path) if path.exists() else []


def _chosen(what: str, names: Sequence[str] | None, known: tuple[str, ...]) -> tuple[str, ...]:
    if unknown := [name for name in names or () if name not in known]:
        raise typer.BadParameter(f"there is no {what} {unknown[0]!r}; expected one of {', '.join(known)}")
    return tuple(name for name in known if not names or name in names)


def asked_queries(workload: Workload, asked: Sequence[str]) -> tuple[str, ...]:
    """The names of the asked queries in the order of the workload."""
    parts = [each.strip().lower() for text in asked for each in text.split(",")]
    if _ALL in parts:
        return workload.names
    if not parts:
        return workload.selective or workload.names
    return _chosen("query", [name for part in parts for name in _slice(workload.names, part)], workload.names)


def _slice(names: tuple[str, ...], part: str) -> Sequence[str]:
    """The names that a part such as `q3`, `3` or `q1-q20` asks for."""
    ends = [f"{names[0][0]}{each}" if each[:1].isdigit() else each for each in part.split("-")]
    if len(ends) == 1:
        return ends
    if len(ends) > 2 or not set(ends) <= set(names) or names.index(ends[0]) > names.index(ends[1]):
        raise typer.BadParameter(f"there is no slice {part!r}; expected one such as {names[0]}-{names[-1]}")
    return names[names.index(ends[0]) : names.index(ends[1]) + 1]


if __name__ == "__main__":
    typer.run(main)
