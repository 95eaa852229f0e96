"""The command `python -m benchmarks.contest`: compares contenders and writes `results/contest-sf<scale>.json`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from benchmarks.contest.contest import CONTENDERS, FULL, Settings, run
from benchmarks.contest.ratios import with_ratios
from benchmarks.contest.site import LOCAL, PLACES
from benchmarks.parts import PARTS
from benchmarks.record import record, recorded
from benchmarks.resume import forget
from benchmarks.run import INTERRUPTED, RESULTS
from benchmarks.view import measurements
from connectors.cli.command import default_folder
from pruning.errors import EnvironmentProblem
from sample_data.layouts import LAYOUTS
from sample_data.object_store.shape import SHAPED, Shape
from sample_data.tpcds import LEAST_SCALE
from sample_data.tpcds_queries import SELECTIVE

_ALL = "all"
_QUERIES = {f"q{number}": number for number in range(1, 100)}


def main(  # noqa: PLR0913, PLR0917 - options of a command
    scale: Annotated[float, typer.Option(min=LEAST_SCALE, help="TPC-DS scale factor.")] = FULL.scale,
    layout: Annotated[list[str] | None, typer.Option(help=f"One of {', '.join(LAYOUTS)}; all by default.")] = None,
    query: Annotated[
        list[str] | None, typer.Option(help=f"q1 to q99, or {_ALL}; {', '.join(map(str, SELECTIVE))} by default.")
    ] = None,
    contender: Annotated[
        list[str] | None, typer.Option(help=f"One of {', '.join(CONTENDERS)}; all by default.")
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
    label: Annotated[str, typer.Option(help="A word in the name of the results, as for other confs.")] = "",
    apart: Annotated[  # noqa: FBT002
        bool, typer.Option("--apart", help="A process for each contender, to compare peaks of memory.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where an interrupted run was.")] = False,  # noqa: FBT002
    tables: Annotated[Path | None, typer.Option(help="The folder of generated tables.")] = None,
    results: Annotated[Path, typer.Option(help="The folder of results.")] = RESULTS,
) -> None:
    """Compares contenders on the same files, query by query; rows of earlier runs stay unless measured again."""
    settings = Settings(
        scale,
        _chosen("layout", layout, tuple(LAYOUTS)),
        _numbers(query or []),
        _chosen("contender", contender, CONTENDERS),
        runs,
        timeout,
        tuple(conf or ()),
        _chosen("place", [place], PLACES)[0],
        Shape(latency / 1e3, bandwidth * 1e6),
        label,
        apart,
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


def merged(before: Iterable[Mapping[str, Any]], rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows sorted by layout, query and contender; each of `rows` replaces the row of `before` with the same three.

    Rows of `before` have their own commit, because the file that they are written to names only the commit of `rows`.
    """
    found = {(row["layout"], row["query"], row["contender"]): row for each in (before, rows) for row in each}
    layouts, contenders = list(LAYOUTS), list(CONTENDERS)
    order = {key: (layouts.index(key[0]), _QUERIES[key[1]], contenders.index(key[2])) for key in found}
    return with_ratios([found[key] for key in sorted(found, key=order.__getitem__)])


def _measured(settings: Settings, path: Path, folder: Path) -> Sequence[Mapping[str, Any]]:
    return merged(_recorded(path), run(settings, folder))


def _recorded(path: Path) -> Sequence[Mapping[str, Any]]:
    return recorded(path) if path.exists() else []


def _chosen(what: str, names: Sequence[str] | None, known: tuple[str, ...]) -> tuple[str, ...]:
    if unknown := [name for name in names or () if name not in known]:
        raise typer.BadParameter(f"there is no {what} {unknown[0]!r}; expected one of {', '.join(known)}")
    return tuple(name for name in known if not names or name in names)


def _numbers(names: Sequence[str]) -> tuple[int, ...]:
    if _ALL in names:
        return tuple(_QUERIES.values())
    asked = _chosen("query", [f"q{name.lower().removeprefix('q')}" for name in names], tuple(_QUERIES))
    return tuple(_QUERIES[name] for name in asked) if names else SELECTIVE


if __name__ == "__main__":
    typer.run(main)
