"""Outcomes of cases, one row for each, as a table and as JSON."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

_SHOWN = 400


@dataclass(frozen=True, slots=True)
class Skipped:
    """Sums `(read, total)` over the scans that have a filter; unknown row groups are left out."""

    scans: int = 0
    files: tuple[int, int] = (0, 0)
    row_groups: tuple[int, int] = (0, 0)

    def __add__(self, other: Skipped) -> Skipped:
        return Skipped(
            self.scans + other.scans,
            (self.files[0] + other.files[0], self.files[1] + other.files[1]),
            (self.row_groups[0] + other.row_groups[0], self.row_groups[1] + other.row_groups[1]),
        )


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a case that passed; `failed_tasks` counts attempts that Spark repeated."""

    rows: int = 0
    skipped: Skipped = Skipped()
    failed_tasks: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one case, which passed if `problem` is empty."""

    part: str
    case: str
    seconds: float
    found: Found = Found()
    problem: str = ""

    def to_row(self) -> dict[str, Any]:
        """The object for JSON."""
        found = asdict(self.found)
        skipped = found.pop("skipped")
        own = {"part": self.part, "case": self.case, "seconds": self.seconds}
        return {**own, **found, **skipped, "problem": self.problem}


@dataclass(slots=True)
class Outcomes:
    """The outcomes of a run, printed as they arrive."""

    console: Console
    all: list[Outcome] = field(default_factory=list)

    def run(self, part: str, case: str, check: Callable[[], Found]) -> None:
        """Runs one case; an error becomes the problem of the case and does not stop the run."""
        began = time.monotonic()
        found, problem = Found(), ""
        try:
            found = check()
        except Exception as error:  # noqa: BLE001 - any error is shown with its case
            problem = _told(error)
        outcome = Outcome(part, case, round(time.monotonic() - began, 2), found, problem)
        self.all.append(outcome)
        said = "ok  " if not problem else "FAIL"
        self.console.print(Text(f"{said} {part}: {case} {outcome.seconds:.1f} s {problem[:_SHOWN]}"))

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Prints the seconds of a step that is not a case."""
        began = time.monotonic()
        yield
        self.console.print(Text(f"     {what} {time.monotonic() - began:.1f} s", "dim"))

    @property
    def problems(self) -> list[Outcome]:
        """The outcomes that did not pass."""
        return [each for each in self.all if each.problem]

    def write(self, path: Path) -> None:
        """Writes all outcomes as JSON, one object for each case."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([each.to_row() for each in self.all], indent=1) + "\n", encoding="utf-8")


def table(outcomes: Sequence[Outcome]) -> RenderableType:
    """A table with a line for each part."""
    shown = Table(title=Text("On a cluster"), title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("part", "cases", "passed", "rows", "scans", "files read", "row groups", "failed tasks", "s"):
        shown.add_column(name, justify="left" if name == "part" else "right")
    for part, group in _groups(outcomes).items():
        skipped = sum((each.found.skipped for each in group), Skipped())
        shown.add_row(
            Text(part),
            str(len(group)),
            Text(str(sum(not each.problem for each in group)), "red" if any(each.problem for each in group) else ""),
            f"{sum(each.found.rows for each in group):,}",
            f"{skipped.scans:,}",
            _of(skipped.files),
            _of(skipped.row_groups),
            str(sum(each.found.failed_tasks for each in group)),
            f"{sum(each.seconds for each in group):.1f}",
        )
    return shown


def _groups(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {}
    for each in outcomes:
        found.setdefault(each.part, []).append(each)
    return found


def _of(pair: tuple[int, int]) -> str:
    return f"{pair[0]:,} of {pair[1]:,}" if pair[1] else ""


def _told(error: Exception) -> str:
    """An error in one line, with the function and line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{frames[-1].name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__} in {where}: {' '.join(str(error).split())[:2000]}"
