"""`PruneReport`: what was planned beside what the engine measured, never mixed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pruning import render
from pruning.explanation import TableExplanation


@dataclass(frozen=True, slots=True)
class Measured:
    """What one finished action read through one scan, by the engine's own counters.

    - `files_read`, `rows_scanned`: exact; rows are those that were read, before any test of rows
    - `bytes_scanned`: bytes that the scan's tasks read from storage; None where the counter would be wrong, and
      `bytes_note` says why
    - `seconds`: wall time of the whole action
    - `row_groups_read`: exact; None for Spark's own reader, which does not count them: compare `rows_scanned` with the
      planned rows
    """

    action: str
    files_read: int
    rows_scanned: int
    bytes_scanned: int | None
    bytes_note: str
    vectorised: bool
    seconds: float
    row_groups_read: int | None = None


@dataclass(frozen=True, slots=True)
class TableReport:
    """One table: its plan and, after an action, what that measured.

    The counterfactual is the planned total: the same snapshot and columns without the filters. `actions` counts
    the finished actions found; the latest is `measured`.
    """

    planned: TableExplanation
    measured: Measured | None
    actions: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values; `measured` is None before the first action."""
        measured = asdict(self.measured) if self.measured is not None else None
        return {
            "table": self.planned.table,
            "planned": self.planned.to_dict(),
            "measured": measured,
            "actions": self.actions,
        }


@dataclass(frozen=True, slots=True)
class PruneReport:
    """What was planned and what was measured, one entry a table."""

    tables: tuple[TableReport, ...]

    @property
    def measured(self) -> Measured | None:
        """What was measured of the one table; `ValueError` for a report of several."""
        (table,) = self.tables
        return table.measured

    def to_dict(self) -> dict[str, Any]:
        """Plain values for machines."""
        return {"tables": [each.to_dict() for each in self.tables]}

    def __str__(self) -> str:
        return render.report_text(self)

    def __rich__(self) -> object:
        return render.report_rich(self)

    def _repr_html_(self) -> str:
        return render.report_html(self)
