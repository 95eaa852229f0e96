"""Explanations and reports as text for a terminal and as HTML for a notebook."""

from __future__ import annotations

import html
import io
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pruning.reasons import ReasonCode

if TYPE_CHECKING:
    from pruning.explanation import Explanation, FilterExplanation, TableExplanation
    from pruning.prune_report import PruneReport, TableReport
    from pruning.query_explanation import QueryExplanation

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_TEXT_WIDTH = 110
# What a person calls the actions that PySpark runs under names of its own.
_ACTIONS = {
    "showString": "show",
    "collectToPython": "collect",
    "collectAsArrowToPython": "toArrow or toPandas",
    "toPythonIterator": "toLocalIterator",
}


@dataclass(frozen=True, slots=True)
class Block:
    """A titled table of words with notes below: what both text and HTML are made from."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def size(count: int | None) -> str:
    """Bytes as a person reads them.

    >>> size(1536), size(12), size(None)
    ('1.5 KiB', '12 B', 'unknown')
    """
    if count is None:
        return "unknown"
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{count} B" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def explanation_text(explanation: Explanation) -> str:
    """Plain text, no colours."""
    return _text(_explanation_blocks(explanation))


def explanation_rich(explanation: Explanation) -> object:
    """A rich renderable."""
    return _rich(_explanation_blocks(explanation))


def explanation_html(explanation: Explanation) -> str:
    """An HTML fragment."""
    return _html(_explanation_blocks(explanation))


def report_text(report: PruneReport) -> str:
    """Plain text, no colours."""
    return _text(_report_blocks(report))


def report_rich(report: PruneReport) -> object:
    """A rich renderable."""
    return _rich(_report_blocks(report))


def report_html(report: PruneReport) -> str:
    """An HTML fragment."""
    return _html(_report_blocks(report))


def query_text(query: QueryExplanation) -> str:
    """Plain text, no colours."""
    return _text(_query_blocks(query))


def query_rich(query: QueryExplanation) -> object:
    """A rich renderable."""
    return _rich(_query_blocks(query))


def query_html(query: QueryExplanation) -> str:
    """An HTML fragment."""
    return _html(_query_blocks(query))


def _query_blocks(query: QueryExplanation) -> list[Block]:
    scans = tuple((name, size(count)) for name, count in query.scans.items())
    edges = tuple((each.join, each.probe, each.keys, ", ".join((*each.reaches, *each.stops))) for each in query.edges)
    feeds = tuple((str(each.level), each.keys, each.target) for each in query.feeds)
    title = "Filters" if query.ran_builds else "Filters that prune() would try, if their builds leave out rows"
    return [
        Block("Scans", ("scan", "bytes without filters"), scans, ()),
        Block("Join graph", ("join", "may filter", "by keys of", "reaches"), edges, ()),
        Block(title, ("level", "keys", "filter"), feeds, tuple(map(str, query.reasons))),
        *_table_blocks(query.tables),
    ]


def _explanation_blocks(explanation: Explanation) -> list[Block]:
    return _table_blocks(explanation.tables)


def _table_blocks(tables: Sequence[TableExplanation]) -> list[Block]:
    return [block for table in tables for block in (_planned_block(table), _filter_block(table))]


def _planned_block(table: TableExplanation) -> Block:
    version = "" if table.version is None else f", version {table.version}"
    title = f"Planned: {table.table} ({table.format}{version})"
    if _is_switched_off(table):
        return Block(
            title, (), (), ("all of it, nothing was looked up: pruning is switched off", *map(str, table.reasons))
        )
    rows = (
        ("files", *_pair(table.files_total, table.files_kept), _causes(table.files_skipped_by)),
        ("row groups", *_pair(table.row_groups_total, table.row_groups_kept), _causes(_row_group_causes(table))),
        ("rows", *_pair(table.rows_total, table.rows_kept), _share(table.rows_total, table.rows_kept)),
        ("bytes", size(table.bytes_total), size(table.bytes_kept), _share(table.bytes_total, table.bytes_kept)),
    )
    notes = (f"bytes are {table.bytes_basis}", *map(str, table.reasons))
    return Block(title, ("", "total", "kept", "skipped"), rows, notes)


def _is_switched_off(table: TableExplanation) -> bool:
    codes = {reason.code for each in table.filters for reason in each.reasons}
    return ReasonCode.SWITCHED_OFF in codes and table.files_total is None


def _row_group_causes(table: TableExplanation) -> dict[str, int]:
    """Also those in files that are skipped, so that all causes add up to what is not kept."""
    causes = dict(table.row_groups_skipped_by)
    if table.row_groups_total is None or table.row_groups_kept is None:
        return causes
    others = table.row_groups_total - table.row_groups_kept - sum(causes.values())
    return {"with their files": others, **causes} if others else causes


def _filter_block(table: TableExplanation) -> Block:
    rows = tuple(_filter_row(each) for each in table.filters)
    notes = tuple(str(reason) for each in table.filters for reason in each.reasons)
    header = ("filter on", "keys", "kept by it alone", "ranges pushed", "row test")
    return Block("Filters", header, rows, notes)


def _filter_row(each: FilterExplanation) -> tuple[str, ...]:
    ranges = ", ".join(str(count) for count in each.ranges.values()) or "none"
    return (", ".join(each.columns), _keys(each), _kept_alone(each), ranges, _row_test(each))


def _keys(each: FilterExplanation) -> str:
    if any(reason.code is ReasonCode.SWITCHED_OFF for reason in each.reasons):
        return "not collected: switched off"
    if each.keys is None and each.rows == 0:
        return f"not collected ({each.kind}) from {each.source}"
    count = "too many to count" if each.keys is None else f"{each.keys:,}"
    return f"{count} ({each.kind}) from {each.source}"


def _kept_alone(each: FilterExplanation) -> str:
    known = [
        _count(count, what)
        for count, what in ((each.files_kept, "file"), (each.row_groups_kept, "row group"))
        if count is not None
    ]
    return ", ".join([*known, size(each.bytes_kept)]) if known else "unknown"


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def _row_test(each: FilterExplanation) -> str:
    if each.kind == "no keys":
        return f"{each.row_test}, no row can match"
    if each.keys is None and each.rows == 0:
        return each.row_test
    return f"{each.row_test}, {each.pass_ratio:.1%} expected to pass"


def _report_blocks(report: PruneReport) -> list[Block]:
    return [
        block
        for each in report.tables
        for block in (_planned_block(each.planned), _filter_block(each.planned), _measured_block(each))
    ]


def _measured_block(report: TableReport) -> Block:
    measured, table = report.measured, report.planned
    if measured is None:
        return Block("Measured", (), (), ("no action has read this DataFrame yet",))
    rows = (
        ("files", f"{measured.files_read:,}", *reversed(_pair(table.files_total, table.files_kept))),
        ("rows", f"{measured.rows_scanned:,}", *reversed(_pair(table.rows_total, table.rows_kept))),
        ("bytes", size(measured.bytes_scanned), size(table.bytes_kept), size(table.bytes_total)),
        ("seconds", f"{measured.seconds:.2f}", "", ""),
    )
    notes = tuple(note for note in (f"planned bytes are {table.bytes_basis}", measured.bytes_note) if note)
    header = ("", "measured", "planned", "planned without filters")
    return Block(f"Measured: {_ACTIONS.get(measured.action, measured.action)}", header, rows, notes)


def _pair(total: int | None, kept: int | None) -> tuple[str, str]:
    return tuple("unknown" if each is None else f"{each:,}" for each in (total, kept))  # type: ignore[return-value]


def _causes(causes: Any) -> str:
    return ", ".join(f"{cause}: {count:,}" for cause, count in causes.items())


def _share(total: int | None, kept: int | None) -> str:
    return f"{1 - kept / total:.1%}" if total and kept is not None else ""


def _plain(text: str) -> str:
    """The text without what would change a terminal: names in tables and paths may hold anything."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _rich(blocks: Sequence[Block]) -> Any:
    from rich.console import Group  # noqa: PLC0415 - only who prints pays for loading it
    from rich.text import Text  # noqa: PLC0415

    parts: list[Any] = []
    for block in blocks:
        parts.append(Text(_plain(block.title), style="bold"))
        parts += [_rich_table(block)] if block.header else []
        parts += [Text(f"  {_plain(note)}") for note in block.notes]
    return Group(*parts)


def _rich_table(block: Block) -> Any:
    from rich.table import Table  # noqa: PLC0415 - only who prints pays for loading it
    from rich.text import Text  # noqa: PLC0415

    table = Table()
    for name in block.header:
        table.add_column(name, overflow="fold")
    for row in block.rows:
        table.add_row(*(Text(_plain(cell)) for cell in row))
    return table


def _text(blocks: Sequence[Block]) -> str:
    from rich.console import Console  # noqa: PLC0415 - only who prints pays for loading it

    out = io.StringIO()
    console = Console(file=out, width=_TEXT_WIDTH, color_system=None, legacy_windows=False)
    for block in blocks:
        # A path is copied from here: no line ends in the middle of it, however long it is.
        out.write(f"{_plain(block.title)}\n")
        if block.header:
            console.print(_rich_table(block))
        out.writelines(f"{_note(note)}\n" for note in block.notes)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _note(note: str) -> str:
    return textwrap.fill(
        _plain(note),
        _TEXT_WIDTH,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _html(blocks: Sequence[Block]) -> str:
    return "<div>" + "".join(_html_block(block) for block in blocks) + "</div>"


def _html_block(block: Block) -> str:
    head = _html_row("th", block.header) if block.header else ""
    body = "".join(_html_row("td", row) for row in block.rows)
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in block.notes)
    table = f"<table><thead>{head}</thead><tbody>{body}</tbody></table>" if head else ""
    return f"<h4>{html.escape(block.title)}</h4>{table}" + (f"<ul>{notes}</ul>" if notes else "")


def _html_row(tag: str, cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"
