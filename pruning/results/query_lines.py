"""Parts of a query's explanation: its scans, builds, filters and unused keys as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pruning.query.benefit import Benefit
from pruning.reasons import Reason, why_nothing
from pruning.results.table_explanation import KindLine, TableExplanation
from pruning.results.verdict import NOTHING_TO_PRUNE, verdict_of_rows, verdict_of_scans, verdict_to_come


@dataclass(frozen=True, slots=True)
class EdgeLine:
    """One comparison of a join: the keys of one side, the column of the other, and the scan columns that they reach."""

    join: str
    probe: str
    keys: str
    reaches: tuple[str, ...]
    stops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BuildLine:
    """One key set: the scans that its build reads, their `bytes` without filters, and its level, from 1.

    `reads` is empty for keys that statistics of files give. A build with keys `from_cache` was not run; the
    rows of one `on_driver` were computed there without a job. `benefit` has the seconds that the build was expected to
    cost and all its keys to save, None where nothing was weighed; `seconds` are those that it took.
    """

    name: str
    level: int
    keys: str
    reads: tuple[str, ...]
    bytes: int
    from_cache: bool = False
    on_driver: bool = False
    benefit: Benefit | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class FilterLine:
    """One filter of a scan's column by the keys of the build named `build`.

    `kinds`: the most that each kind of filter would keep, as far as metadata shows it before a build has run.
    `benefit`: the seconds that keys by the statistics of files cost and save; None for those of a build.
    """

    level: int
    build: str
    keys: str
    scan: str
    column: str
    kinds: tuple[KindLine, ...] = ()
    benefit: Benefit | None = None

    @property
    def probe(self) -> str:
        """The column with the name of its scan."""
        return f"{self.scan}.{self.column}"


@dataclass(frozen=True, slots=True)
class UnusedLine:
    """Keys that could filter a column of a scan, and the reason why they do not."""

    join: str
    keys: str
    scan: str
    column: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class TopLine:
    """A limit over an order, and one scan below it.

    `benefit`: the seconds that the filter of the column by the first rows costs and saves; None if there is no filter,
    for the `reason`. Scan and column are empty if the walk from the sort key to scans ended for that reason.
    """

    top: str
    scan: str
    column: str
    benefit: Benefit | None
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The planned filters of a query; no number is measured.

    - `ran_builds`: True for a pruned query: builds ran, and `tables` are its pruned scans with exact numbers. False
      for the filters that `prune()` would try, as if every build left out some keys
    - `scans`: bytes that each scan reads without filters, by its name; a table that is read several times is numbered
    - `edges`: every comparison of a join by which one side could filter the other; `unused` has the reason against
      each of them that reaches a scan
    - `tops`: the same for limits over an order
    - `reasons`: everything that was left out, weakened or refused; `has_join` is False for a query without any join
    - `causes`: the reasons of which one is the verdict's, where nothing is pruned: all but those against other scans
      than the largest; empty for the same as `reasons`
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
    has_join: bool = True
    causes: tuple[Reason, ...] = ()

    @property
    def why_nothing(self) -> str:
        """The sentence for a query of which no scan has a filter."""
        has_more = self.has_join or self.edges or self.tops or self.reasons
        return why_nothing(self.causes or self.reasons) if has_more else NOTHING_TO_PRUNE

    @property
    def verdict(self) -> str:
        """One line: the files and bytes that are read of all, and by which keys; or why nothing is skipped."""
        if self.tables:
            return verdict_of_scans(self.tables, has_run=False)
        by_rows = [f"{each.scan}.{each.column} by {each.top}" for each in self.tops if each.benefit is not None]
        to_come = [f"{each.probe} by {each.keys}" for each in self.filters]
        if self.ran_builds and self.builds:
            return verdict_of_rows(len(self.builds))
        return verdict_to_come([*to_come, *by_rows]) if to_come or by_rows else self.why_nothing
