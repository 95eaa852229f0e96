"""`PruneReport`: planned numbers beside measured ones, and the blocks of tables that explanations show, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pruning.cost.estimate import short
from pruning.reasons import ReasonCode, size
from pruning.results.blocks import Block, as_html, as_rich, as_text
from pruning.results.query_lines import BuildLine
from pruning.results.query_origin import QueryOrigin
from pruning.results.table_explanation import FilterExplanation, TableExplanation
from pruning.results.verdict import verdict_of_rows, verdict_of_scans
from pruning.scan.key_filter import FIRST_ROWS


@dataclass(frozen=True, slots=True)
class Measured:
    """The engine's own counters of one finished action for one scan.

    - `files_read`, `rows_scanned`: exact, None if the engine's record is incomplete; rows read before any row filter
    - `bytes_scanned`: bytes that the scan's tasks read from storage; None if the counter is wrong, for the reason in
      `bytes_note`
    - `seconds`: wall time of the whole action
    - `scan_seconds`: time that all tasks spent on reading and decoding; None if the engine has not recorded it
    """

    action: str
    files_read: int | None
    rows_scanned: int | None
    bytes_scanned: int | None
    bytes_note: str
    vectorised: bool
    seconds: float
    scan_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class TableReport:
    """The plan of one table and, after an action, its measured counters.

    Planned totals are those of the same snapshot and columns without the filters. `actions` counts
    the finished actions found; the latest is `measured`. `scan_seconds` are those of tasks that the cost model expects
    for reading and decoding, with the filters and without them; None if nothing was weighed. Where actions cannot be
    found, their number is None, and `unmeasured` says why.
    """

    planned: TableExplanation
    measured: Measured | None
    actions: int | None
    scan_seconds: tuple[float | None, float | None] | None = None
    unmeasured: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values; `measured` is None before the first action, and where nothing is measured."""
        measured = asdict(self.measured) if self.measured is not None else None
        return {
            "table": self.planned.table,
            "planned": self.planned.to_dict(),
            "measured": measured,
            "actions": self.actions,
            "unmeasured": self.unmeasured,
            "planned_scan_seconds": self.scan_seconds,
        }


@dataclass(frozen=True, slots=True)
class PruneReport:
    """Planned and measured numbers of each table and each build.

    `nothing` is the reason why nothing was skipped, with a remedy; its tables, if there are any, were read whole.
    `query` tells which query of a session it was; None outside of `history()`.
    """

    tables: tuple[TableReport, ...]
    nothing: str = ""
    builds: tuple[BuildLine, ...] = ()
    query: QueryOrigin | None = None

    @property
    def verdict(self) -> str:
        """One line: the files and bytes that were read of all, and by which keys; or why nothing was skipped."""
        if self.nothing or not self.tables:
            return self.nothing or verdict_of_rows(len(self.builds))
        has_run = any(each.measured is not None for each in self.tables)
        return verdict_of_scans([each.planned for each in self.tables], has_run=has_run)

    @property
    def measured(self) -> Measured | None:
        """The measurement of the one table; `ValueError` for a report of several."""
        (table,) = self.tables
        return table.measured

    def to_dict(self) -> dict[str, Any]:
        """Plain values for machines."""
        return {
            "verdict": self.verdict,
            "tables": [each.to_dict() for each in self.tables],
            "builds": [asdict(each) for each in self.builds],
            "query": None if self.query is None else asdict(self.query),
        }

    def __str__(self) -> str:
        return report_text(self)

    def __rich__(self) -> object:
        return report_rich(self)

    def _repr_html_(self) -> str:
        return report_html(self)


_SAVED = (
    "seconds that a build saves are those of the whole query on all its cores: reading, and the rows that are then not "
    "shuffled, sorted and joined"
)
# The public names of actions that PySpark runs under internal ones.
_ACTIONS = {
    "showString": "show",
    "collectToPython": "collect",
    "collectAsArrowToPython": "toArrow or toPandas",
    "toPythonIterator": "toLocalIterator",
}


def report_text(report: PruneReport) -> str:
    """Plain text, no colours."""
    return as_text(_report_blocks(report))


def report_rich(report: PruneReport) -> object:
    """A rich renderable."""
    return as_rich(_report_blocks(report))


def report_html(report: PruneReport) -> str:
    """An HTML fragment."""
    return as_html(_report_blocks(report))


def table_blocks(tables: Sequence[TableExplanation]) -> list[Block]:
    """The plan of each table and its filters."""
    return [block for table in tables for block in _plan_blocks(table)]


def _plan_blocks(table: TableExplanation) -> list[Block]:
    return [_planned_block(table), *([_filter_block(table)] if table.filters else [])]


def _planned_block(table: TableExplanation) -> Block:
    version = "" if table.version is None else f", version {table.version}"
    title = f"Planned: {table.table} ({table.format}{version})"
    if _is_switched_off(table):
        return Block(
            title,
            (),
            (),
            ("the whole table, no statistics were read: pruning is switched off", *map(str, table.reasons)),
        )
    rows = (
        ("files", *_pair(table.files_total, table.files_kept), _causes(table.files_skipped_by)),
        ("row groups", *_pair(table.row_groups_total, table.row_groups_kept), _causes(_row_group_causes(table))),
        ("rows", *_pair(table.rows_total, table.rows_kept), _share(table.rows_total, table.rows_kept)),
        ("bytes", size(table.bytes_total), size(table.bytes_kept), _share(table.bytes_total, table.bytes_kept)),
    )
    basis = () if table.bytes_total is None else (f"bytes are {table.bytes_basis}",)
    notes = (*basis, *map(str, table.reasons))
    return Block(title, ("", "total", "kept", "skipped"), rows, notes)


def _is_switched_off(table: TableExplanation) -> bool:
    codes = {reason.code for each in table.filters for reason in each.reasons}
    return ReasonCode.SWITCHED_OFF in codes and table.files_total is None


def _row_group_causes(table: TableExplanation) -> dict[str, int]:
    """Skipped row groups by cause, with those in skipped files, so that the sum is total minus kept."""
    causes = dict(table.row_groups_skipped_by)
    if table.row_groups_total is None or table.row_groups_kept is None:
        return causes
    others = table.row_groups_total - table.row_groups_kept - sum(causes.values())
    return {"with their files": others, **causes} if others else causes


def _filter_block(table: TableExplanation) -> Block:
    rows = tuple(_filter_row(each) for each in table.filters)
    notes = tuple(str(reason) for each in table.filters for reason in each.reasons)
    header = ("filter on", "keys", "kept by it alone", "ranges pushed", "row filter")
    return Block("Filters", header, rows, notes)


def _filter_row(each: FilterExplanation) -> tuple[str, ...]:
    ranges = ", ".join(str(count) for count in each.ranges.values()) or "none"
    return (", ".join(each.columns), _keys(each), _kept_alone(each), ranges, _row_test(each))


def _keys(each: FilterExplanation) -> str:
    if any(reason.code is ReasonCode.SWITCHED_OFF for reason in each.reasons):
        return "not collected: switched off"
    if each.keys is None and each.rows == 0:
        return f"not collected ({each.kind}) from {each.source}"
    if each.kind == FIRST_ROWS:
        return each.source
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
    if each.pass_ratio is None:
        return f"{each.row_test}, share of rows that pass unknown"
    return f"{each.row_test}, {each.pass_ratio:.1%} expected to pass"


def _report_blocks(report: PruneReport) -> list[Block]:
    tables = [block for each in report.tables for block in (*_plan_blocks(each.planned), _measured_block(each))]
    return [Block(report.verdict, (), ()), *tables, *([_builds_block(report.builds)] if report.builds else [])]


def _builds_block(builds: Sequence[BuildLine]) -> Block:
    """The seconds of each build: expected, taken, and expected to be saved by its keys."""
    notes = (_SAVED,) if any(each.benefit is not None for each in builds) else ()
    return Block(
        "Builds", ("keys", "expected", "took", "where", "saves the query"), tuple(map(_build_row, builds)), notes
    )


def _build_row(build: BuildLine) -> tuple[str, ...]:
    benefit, took = build.benefit, build.seconds
    where = "cache" if build.from_cache else "driver" if build.on_driver else "job" if build.reads else "statistics"
    return (
        build.keys,
        "" if benefit is None else f"{short(benefit.run)} s",
        "" if took is None else f"{short(took)} s",
        where,
        "" if benefit is None else str(benefit.saved),
    )


def _measured_block(report: TableReport) -> Block:
    measured, table = report.measured, report.planned
    if measured is None:
        return Block("Measured", (), (), (report.unmeasured or "no action has read this DataFrame yet",))
    rows = (
        ("files", _number(measured.files_read), *reversed(_pair(table.files_total, table.files_kept))),
        ("rows", _number(measured.rows_scanned), *reversed(_pair(table.rows_total, table.rows_kept))),
        ("bytes", size(measured.bytes_scanned), size(table.bytes_kept), size(table.bytes_total)),
        (
            "seconds of reading, all tasks",
            *map(_seconds, (measured.scan_seconds, *(report.scan_seconds or (None, None)))),
        ),
        ("seconds of the query", f"{measured.seconds:.2f}", "", ""),
    )
    notes = tuple(note for note in (f"planned bytes are {table.bytes_basis}", measured.bytes_note) if note)
    header = ("", "measured", "planned", "planned without filters")
    return Block(f"Measured: {_ACTIONS.get(measured.action, measured.action)}", header, rows, notes)


def _pair(total: int | None, kept: int | None) -> tuple[str, str]:
    return _number(total), _number(kept)


def _number(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"


def _seconds(seconds: float | None) -> str:
    return "unknown" if seconds is None else short(seconds)


def _causes(causes: Any) -> str:
    return ", ".join(f"{cause}: {count:,}" for cause, count in causes.items())


def _share(total: int | None, kept: int | None) -> str:
    return f"{1 - kept / total:.1%}" if total and kept is not None else ""
