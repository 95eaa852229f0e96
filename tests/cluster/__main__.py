"""The command `python -m tests.cluster`: runs all parts, prints the results, and writes `.cache/cluster.json`.

The exit code is 1 if any case failed. No process is left behind.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from connectors.cli.command import default_folder
from pruning.errors import EnvironmentProblem
from sample_data.object_store.store import object_store
from tests.cluster.outcomes import Found, Outcomes, table
from tests.cluster.run import PARTS, BuildRequest, Run
from tests.cluster.sessions import FAULTS
from tests.cluster.standalone import is_running, standalone
from tests.cluster.tpcds import NUMBERS

_RESULTS = Path(__file__).resolve().parents[2] / ".cache" / "cluster.json"
_INTERRUPTED = 130
_ALL, _LAST = "all", range(1, 100)
_SECONDS_TO_END, _SECONDS_BETWEEN_LOOKS = 10.0, 0.1
_WIDTH = 140


def main(
    part: Annotated[list[str] | None, typer.Option(help=f"One of {', '.join(PARTS)}; all by default.")] = None,
    query: Annotated[list[str] | None, typer.Option(help=f"q1 to q99, or {_ALL}; a few by default.")] = None,
    seeds: Annotated[str, typer.Option(help="Seeds of random tables, as 1-5.")] = "1",
    queries: Annotated[int, typer.Option(min=1, help="Random queries for each seed.")] = 8,
    case: Annotated[str, typer.Option(help="Only failures that this pattern is found in.")] = "",
    logs: Annotated[Path | None, typer.Option(help="A folder that keeps logs; none are kept by default.")] = None,
) -> None:
    """Compares pruned and unpruned queries on a local cluster, while processes of the cluster are killed."""
    asked = BuildRequest(_parts(part or ()), _numbers(query or ()), _seeds(seeds), queries, case)
    # Without a terminal, lines are not cut to the default width.
    console = Console() if Console().is_terminal else Console(width=_WIDTH)
    outcomes = Outcomes(console)
    try:
        _run(asked, outcomes, logs)
    except EnvironmentProblem as error:
        typer.echo(error, err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise typer.Exit(_INTERRUPTED) from None
    outcomes.write(_RESULTS)
    console.print(table(outcomes.all))
    for each in outcomes.problems:
        console.print(Text(f"{each.part}: {each.case}: {each.problem}", "red"))
    typer.echo(f"Written to {str(_RESULTS)!r}", err=True)
    raise typer.Exit(1 if outcomes.problems else 0)


def _run(asked: BuildRequest, outcomes: Outcomes, logs: Path | None) -> None:
    with _folder(logs) as folder:
        (folder / FAULTS).mkdir()
        processes = set[int]()
        with object_store() as store, standalone(folder) as cluster:
            try:
                Run(cluster, store, folder, asked, outcomes).all(default_folder())
            finally:
                processes |= cluster.everything()
        outcomes.run("processes", "all have ended", partial(_all_ended, processes))


@contextmanager
def _folder(logs: Path | None) -> Iterator[Path]:
    """The folder of this run: a new folder below `logs` that is kept, or a temporary folder."""
    if logs is not None:
        logs.mkdir(parents=True, exist_ok=True)
        yield Path(tempfile.mkdtemp(dir=logs))
        return
    with tempfile.TemporaryDirectory(prefix="scanprune-cluster-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def _all_ended(processes: Iterable[int]) -> Found:
    """Checks that all processes have ended; Spark's workers end a moment after their parents."""
    until = time.monotonic() + _SECONDS_TO_END
    while (left := [each for each in processes if is_running(each)]) and time.monotonic() < until:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    assert not left, f"{left} still run"
    return Found(note=f"{len(list(processes))} processes")


def _parts(names: Sequence[str]) -> tuple[str, ...]:
    if unknown := [name for name in names if name not in PARTS]:
        raise typer.BadParameter(f"there is no part {unknown[0]!r}; expected one of {', '.join(PARTS)}")
    return tuple(name for name in PARTS if not names or name in names)


def _numbers(names: Sequence[str]) -> tuple[int, ...]:
    """The numbers of queries from their names.

    >>> _numbers(["q3", "96"]), _numbers([]) == NUMBERS, len(_numbers(["all"]))
    ((3, 96), True, 99)
    """
    if _ALL in names:
        return tuple(_LAST)
    known = {f"q{number}": number for number in _LAST}
    wanted = [f"q{name.lower().removeprefix('q')}" for name in names]
    if unknown := [name for name in wanted if name not in known]:
        raise typer.BadParameter(f"there is no query {unknown[0]!r}; expected q1 to q99, or {_ALL}")
    return tuple(known[name] for name in wanted) or NUMBERS


def _seeds(text: str) -> tuple[int, ...]:
    first, _, last = text.partition("-")
    if not (first.isdecimal() and (last or first).isdecimal()):
        raise typer.BadParameter(f"{text!r} are no seeds; expected one, or two with a dash, as 1-5")
    return tuple(range(int(first), int(last or first) + 1))


if __name__ == "__main__":
    typer.run(main)
