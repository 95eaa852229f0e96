"""The lines of a query's explanation: its scans, builds and filters as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pruning.reasons import Reason
from pruning.results.table_explanation import KindLine, TableExplanation


@dataclass(frozen=True, slots=True)
class EdgeLine:
    """One equality of a join: keys of one side for a column of the other, and the columns of scans that they reach."""

    join: str
    probe: str
    keys: str
    reaches: tuple[str, ...]
    stops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BuildLine:
    """One key set: the scans that its build reads, their `bytes` without filters, and its level, from 1.

    It reads none where its keys are known from the statistics of files, and was not run where they are `from_cache`.
    """

    name: str
    level: int
    keys: str
    reads: tuple[str, ...]
    bytes: int
    from_cache: bool = False


@dataclass(frozen=True, slots=True)
class FilterLine:
    """One filter: the keys of a build, by its name, for a column of a scan.

    `kinds`: what each kind of filter would keep at most, where no build ran and metadata tells.
    """

    level: int
    build: str
    keys: str
    scan: str
    column: str
    kinds: tuple[KindLine, ...] = ()

    @property
    def probe(self) -> str:
        """The column of the scan by its full name."""
        return f"{self.scan}.{self.column}"


@dataclass(frozen=True, slots=True)
class UnusedLine:
    """Keys that could filter a column of a scan, and why they do not."""

    join: str
    keys: str
    scan: str
    column: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class TopLine:
    """A limit that takes the first rows of an order, and one scan below it.

    `how` these filter the scan's column, None where there is a `reason` why they do not. Scan and column are empty
    where the way from the order down to scans ends for that reason.
    """

    top: str
    scan: str
    column: str
    how: str | None
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """Nothing of it was measured.

    - `ran_builds`: True for the plan of a pruned query, whose builds ran: `tables` are its pruned scans, in exact
      numbers. False for what `prune()` would try: every build is taken to leave something out
    - `scans`: bytes that each scan reads without filters, by its name; a table that is read several times is numbered
    - `edges`: every equality of a join by which one side could filter the other; `unused` says of those that reach a
      scan why they are no filter
    - `tops`: the same of limits that take the first rows of an order
    - `reasons`: everything that was left out, weakened or refused
    """

    ran_builds: bool
    scans: Mapping[str, int]
    edges: tuple[EdgeLine, ...]
    builds: tuple[BuildLine, ...]
    filters: tuple[FilterLine, ...]
    unused: tuple[UnusedLine, ...]
    tables: tuple[TableExplanation, ...]
    reasons: tuple[Reason, ...]
    tops: tuple[TopLine, ...] = ()
