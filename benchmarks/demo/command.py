"""The command of the demo: its session, its progress bar and its table."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from benchmarks.demo.run import check, results
from benchmarks.demo.view import results_table, verdict
from connectors.cli.command import progress_bar, session


def show(folder: Path, scale: float, runs: int | None) -> bool:
    """Runs the demo with a progress bar and prints its table; returns False if any rows differ."""
    check(folder, scale)
    out, errors = Console(), Console(stderr=True)
    with progress_bar(errors) as progress, session("demo", folder, {}) as spark:
        found = list(results(spark, folder, scale, runs, progress))
    out.print(results_table(found))
    out.print(verdict(found))
    out.print(f"Tables are kept in {str(folder)!r}", style="dim", highlight=False, soft_wrap=True)
    return all(each.rows_equal for each in found)
