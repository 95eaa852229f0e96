"""The progress bar of a command: what is being done, and the share of the command that is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

# Called with the name of a step and the share of the whole command that is done, from 0 to 1.
Report: TypeAlias = Callable[[str, float], None]


@contextmanager
def progress_bar(console: Console) -> Iterator[Report]:
    """A bar on a terminal; elsewhere one line a step."""
    if not console.is_terminal:
        yield _lines(console)
        return
    columns = (TextColumn("{task.description:<36}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("Starting Spark", total=1.0)
        yield lambda what, share: progress.update(task, description=what, completed=share)


def _lines(console: Console) -> Report:
    last = ""

    def line(what: str, share: float) -> None:
        nonlocal last
        if what != last:
            console.print(f"{share:4.0%} {what}", highlight=False, soft_wrap=True)
        last = what

    return line
