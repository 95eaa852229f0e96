"""Runs every measurement, writes one JSON file for each, and prints tables: `python -m benchmarks.run`."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from benchmarks.parts import PARTS, Part, Row
from benchmarks.resume import ROOT, is_newer_than_code
from benchmarks.view import measurements, targets

RESULTS = ROOT / "benchmarks" / "results"
# A quick run shows that everything works; what it measures replaces no measurement.
QUICK_RESULTS = ROOT / ".cache" / "benchmarks"
_PACKAGES = ("numpy", "pyarrow", "pyspark", "delta-spark", "duckdb")
_INTERRUPTED = 130


def main(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: minutes instead of an hour.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="One part; may be given several times.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Keep results newer than the code.")] = False,
    inside: Annotated[bool, typer.Option("--inside", hidden=True)] = False,
) -> None:
    """Measures what the targets speak of, and shows the targets beside it."""
    chosen = _chosen(only or [])
    folder = QUICK_RESULTS if quick else RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    if inside:
        for part in chosen:
            _measure(part, folder, quick=quick)
        return
    try:
        _run_all(chosen, folder, quick=quick, resume=resume)
    except KeyboardInterrupt:
        typer.echo("Interrupted; --resume goes on from what was measured", err=True)
        raise typer.Exit(_INTERRUPTED) from None


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
            # In a process of its own: one part's memory and Java are none of the next one's.
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
        console.print(f"Not measured, as told above: {', '.join(failed)}", style="bold red")
        raise typer.Exit(1)


def _measure(part: Part, folder: Path, *, quick: bool) -> None:
    load, began = os.getloadavg()[0], time.perf_counter()
    rows: Sequence[Row] = part.measure(quick)
    found = {
        "part": part.name,
        "quick": quick,
        "machine": {**_machine(), "load_before": round(load, 1)},
        "seconds": round(time.perf_counter() - began, 1),
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT,
        "rows": [_rounded(row) for row in rows],
    }
    unfinished = folder / f".{part.name}.json"
    unfinished.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(folder / f"{part.name}.json")


# Linux counts kibibytes, macOS bytes.
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


def _machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _rounded(row: Row) -> dict[str, Any]:
    return {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in row.items()}


if __name__ == "__main__":
    typer.run(main)
