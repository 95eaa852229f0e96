"""How the demo looks: a progress bar while it works, then a table of what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from connectors.demo import Progress as Report
from connectors.demo import Result
from pruning.prune_report import Measured
from pruning.render import size

_NOTES = (
    "files, bytes: measured by Spark's own counters in the last run, for the scan of store_sales alone",
    "row groups: planned from the footers, since Spark does not count them",
    "time: seconds of the whole query, median of {runs} warm runs by turns; collecting keys and planning are in it",
    "rows: = where stock Spark, the pruned read and DuckDB gave the same rows in every run",
)


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


def results_table(results: Sequence[Result], runs: int) -> RenderableType:
    """Before -> after of every join, one section a format, with what the numbers are and what each join shows."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1))
    table.add_column("star join", no_wrap=True)
    for name in ("files", "row groups", "bytes read", "less", "time", "rows"):
        table.add_column(name, justify="right", no_wrap=True)
    for format_ in dict.fromkeys(each.format for each in results):
        table.add_section()
        table.add_row(Text(_title(format_), style="bold"))
        for each in results:
            if each.format == format_:
                table.add_row(*_cells(each))
    joins = {each.join.name: each.join.shows for each in results}
    notes = [f"{name}: {shows}" for name, shows in joins.items()]
    legend = [note.format(runs=runs) for note in _NOTES]
    return Group(table, Text(), *(Padding(Text(note, style="dim"), (0, 0, 0, 0)) for note in (*notes, "", *legend)))


def verdict(results: Sequence[Result]) -> Text:
    """One line: whether all rows were equal, and how much less was read in all."""
    wrong = [f"{each.join.name} ({each.format})" for each in results if not each.rows_equal]
    if wrong:
        return Text(f"Rows differ: {', '.join(wrong)}", style="bold red")
    before = sum(_bytes(each.before.measured) or 0 for each in results)
    after = sum(_bytes(each.after.measured) or 0 for each in results)
    return Text(
        f"{len(results)} comparisons, all rows equal; {size(before)} read without pruning, {size(after)} with it",
        style="bold green",
    )


def _title(format_: str) -> str:
    return {"delta": "Delta", "parquet": "Parquet"}[format_]


def _cells(each: Result) -> tuple[Text, ...]:
    before, after, plan = each.before.measured, each.after.measured, each.after.planned
    total, kept = (None, None) if plan is None else (plan.row_groups_total, plan.row_groups_kept)
    equal = Text(f"{len(each.after.rows):,} =", "green") if each.rows_equal else Text("DIFFER", "bold red")
    return (
        Text(f"  {each.join.name}"),
        Text(f"{_files(before)} → {_files(after)}"),
        Text(f"{_known(total)} → {_known(kept)}"),
        Text(f"{size(_bytes(before))} → {size(_bytes(after))}"),
        _less(_bytes(before), _bytes(after)),
        Text(f"{each.seconds_before:.2f} → {each.seconds_after:.2f}"),
        equal,
    )


def _less(before: int | None, after: int | None) -> Text:
    """How many times less was read."""
    if before is None or after is None:
        return Text("?", "dim")
    if not after:
        return Text("all" if before else "-", "bold green" if before else "dim")
    ratio = before / after
    return Text(f"{ratio:.1f}x", "bold green" if ratio >= 1.5 else "dim")


def _files(measured: Measured | None) -> str:
    return "?" if measured is None else f"{measured.files_read:,}"


def _bytes(measured: Measured | None) -> int | None:
    return None if measured is None else measured.bytes_scanned


def _known(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"
