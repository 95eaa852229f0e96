"""The command `python -m benchmarks.run`: runs every part, writes one JSON file for each, and prints tables."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.parts import PARTS, Part
from benchmarks.record import record
from benchmarks.resume import ROOT, is_newer_than_code
from benchmarks.view import measurements, targets

RESULTS = ROOT / "benchmarks" / "results"
# A quick run only checks that every part works; its numbers do not replace recorded results.
QUICK_RESULTS = ROOT / ".cache" / "benchmarks"
INTERRUPTED = 130


def main(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: minutes instead of an hour.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="One part; may be given several times.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Keep results newer than the code.")] = False,
    inside: Annotated[bool, typer.Option("--inside", hidden=True)] = False,
) -> None:
    """Measures all parts or those of `--only`, and prints the targets beside the measured numbers."""
    chosen = _chosen(only or [])
    folder = QUICK_RESULTS if quick else RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    if inside:
        for part in chosen:
            record(folder / f"{part.name}.json", part.name, partial(part.measure, quick), quick=quick)
        return
    try:
        _run_all(chosen, folder, quick=quick, resume=resume)
    except KeyboardInterrupt:
        typer.echo("Interrupted; --resume continues with what is left", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _chosen(names: Sequence[str]) -> list[Part]:
    known = {part.name: part for part in PARTS}
    if unknown := [name for name in names if name not in known]:
        raise typer.BadParameter(f"there is no part {unknown[0]!r}; expected one of {', '.join(known)}")
    return [known[name] for name in names] or list(PARTS)


def _run_all(chosen: Sequence[Part], folder: Path, *, quick: bool, resume: bool) -> None:
    console, done, failed = Console(), [], []
    for part in chosen:
        path = folder / f"{part.name}.json"
        if not (resume and is_newer_than_code(path)):
            console.print(f"Measuring: {part.title} ...", style="dim")
            # Each part has a process of its own, so that memory and the JVM of one part do not affect the next.
            command = [sys.executable, "-m", "benchmarks.run", "--inside", "--only", part.name]
            answer = subprocess.run([*command, *(["--quick"] if quick else [])], cwd=ROOT, check=False)  # noqa: S603
            if answer.returncode:
                failed.append(part.title)
                continue
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
        console.print(measurements(part, rows))
        done.append((part, rows))
    console.print(targets(done))
    console.print(f"Written to {str(folder)!r}", style="dim", soft_wrap=True)
    if failed:
        console.print(f"Not measured, see above: {', '.join(failed)}", style="bold red")
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
