"""`PruneReport`: what was planned beside what the engine measured, never mixed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pruning import render
from pruning.explanation import Explanation


@dataclass(frozen=True, slots=True)
class Measured:
    """What one finished action read through one scan, by the engine's own counters.

    - `files_read`, `rows_scanned`: exact; rows are those that left the scan, before any row filter
    - `bytes_scanned`: bytes that the scan's tasks read from storage; None where the counter would be wrong, and
      `bytes_note` says why
    - `seconds`: wall time of the whole action
    Row groups have no counter in Spark: compare `rows_scanned` with the planned rows.
    """

    action: str
    files_read: int
    rows_scanned: int
    bytes_scanned: int | None
    bytes_note: str
    vectorised: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class PruneReport:
    """A plan and, after an action, what it measured.

    The counterfactual is the planned total: the same snapshot and columns without the filters. `actions` counts
    the finished actions found; the latest is `measured`.
    """

    planned: Explanation
    measured: Measured | None
    actions: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values for machines; `measured` is None before the first action."""
        measured = asdict(self.measured) if self.measured is not None else None
        return {**self.planned.to_dict(), "measured": measured, "actions": self.actions}

    def __str__(self) -> str:
        return render.report_text(self)

    def __rich__(self) -> object:
        return render.report_rich(self)

    def _repr_html_(self) -> str:
        return render.report_html(self)
