"""The table of results that the demo prints."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from benchmarks.demo.run import Result
from pruning.reasons import size
from pruning.results.prune_report import Measured

_TITLES = {"delta": "Delta", "parquet": "Parquet"}
# The second line of each header says if the numbers were measured or planned.
_COLUMNS = (
    ("files", "measured"),
    ("row groups", "planned"),
    ("MiB read", "measured"),
    ("less", ""),
    ("seconds", "measured"),
    ("rows", "equal?"),
)
_NOTES = (
    "Each pair: stock Spark → pruned_read().",
    "files, MiB: Spark's counters for the scan of store_sales; row groups: footers.",
    "seconds: whole queries, keys and planning included, by turns; {runs}.",
    "A small table on a local disk may be read faster than skipping is planned.",
    "rows: = where stock Spark, pruned_read() and DuckDB agree in every run.",
)
_ARROW = "→"
_WORTH_SHOWING = 1.5


def results_table(results: Sequence[Result]) -> RenderableType:
    """The table of all joins, before -> after, one section for each format, with notes on joins and columns."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1))
    table.add_column("star join", overflow="fold")
    for name, kind in _COLUMNS:
        table.add_column(Text.assemble(name, "\n", (kind, "dim")), justify="right", no_wrap=True)
    for format_ in dict.fromkeys(each.format for each in results):
        table.add_section()
        table.add_row(Text(_TITLES[format_], "bold"))
        for each in results:
            if each.format == format_:
                table.add_row(*_cells(each))
    shown = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    for name, shows in {each.join.name: each.join.shows for each in results}.items():
        shown.add_row(Text(name, "dim"), Text(shows, "dim"))
    notes = (Text(note.format(runs=_runs(results)), "dim") for note in _NOTES)
    return Group(table, Text(), shown, Text(), *notes)


def _runs(results: Sequence[Result]) -> str:
    fewest, most = min(each.runs for each in results), max(each.runs for each in results)
    if most == 1:
        return "one run"
    return f"median of {most}" if fewest == most else f"median of {fewest} to {most}"


def verdict(results: Sequence[Result]) -> Text:
    """One line with the result of the comparison of rows and the bytes read in all."""
    wrong = [f"{each.join.name} ({each.format})" for each in results if not each.rows_equal]
    if wrong:
        return Text(f"Rows differ: {', '.join(wrong)}", style="bold red")
    before = sum(_bytes(each.before.measured) or 0 for each in results)
    after = sum(_bytes(each.after.measured) or 0 for each in results)
    return Text(
        f"Rows equal in all {len(results)} comparisons; read {size(before)} unpruned, {size(after)} pruned",
        style="bold green",
    )


def _cells(each: Result) -> tuple[Text, ...]:
    before, after, plan = each.before.measured, each.after.measured, each.after.planned
    total, kept = (None, None) if plan is None else (plan.row_groups_total, plan.row_groups_kept)
    equal = Text(f"{len(each.after.rows):,} =", "green") if each.rows_equal else Text("DIFFER", "bold red")
    return (
        Text(each.join.name),
        Text(f"{_files(before)} {_ARROW} {_files(after)}"),
        Text(f"{_known(total)} {_ARROW} {_known(kept)}"),
        Text(f"{_mebibytes(before)} {_ARROW} {_mebibytes(after)}"),
        _less(_bytes(before), _bytes(after)),
        Text(f"{each.seconds_before:.2f} {_ARROW} {each.seconds_after:.2f}"),
        equal,
    )


def _less(before: int | None, after: int | None) -> Text:
    """The ratio of bytes read before and after."""
    if before is None or after is None:
        return Text("?", "dim")
    if not after:
        return Text("all" if before else "-", "bold green" if before else "dim")
    ratio = before / after
    return Text(f"{ratio:.1f}x", "bold green" if ratio >= _WORTH_SHOWING else "dim")


def _files(measured: Measured | None) -> str:
    return "?" if measured is None or measured.files_read is None else f"{measured.files_read:,}"


def _bytes(measured: Measured | None) -> int | None:
    return None if measured is None else measured.bytes_scanned


def _mebibytes(measured: Measured | None) -> str:
    count = _bytes(measured)
    return "?" if count is None else f"{count / (1 << 20):,.1f}"


def _known(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"
