"""The requests of `QueryPlanner` that have something run, pinned or read, each with the type of its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pruning.keys.summary import KeySummary
from pruning.query.join_condition import BuildSide
from pruning.query.join_graph import KeyTuple
from pruning.query.plan import Node, Relation
from pruning.query.plan_statistics import Cardinality
from pruning.query.requests import Request, Steps, ask
from pruning.query.runtime_filter import RuntimeFilter
from pruning.reasons import Reason
from pruning.scan.key_filter import KeyFilter, RowWorth
from pruning.scan.scan_plan import ScanPlan
from pruning.values.ranges import BoolArray


class BuildRows(Protocol):
    """The rows of a build, materialized in the engine."""

    @property
    def count(self) -> int:
        """The number of rows, or the least that it may be if they are not local."""

    @property
    def nbytes(self) -> int:
        """Bytes in the form in which the engine would broadcast them, an estimate if they are not local."""

    @property
    def is_local(self) -> bool:
        """True if they are in the driver's memory, so that no job summarizes several columns together."""


class PlannedScan(Protocol):
    """A scan as the engine planned it for the filters known so far."""

    @property
    def plan(self) -> ScanPlan:
        """The containers kept, the pushed predicates and the row filters."""

    @property
    def planned_bytes(self) -> int:
        """Bytes of the containers kept: needed columns of row groups, or whole files without footers."""

    @property
    def expected(self) -> Cardinality | None:
        """Rows read and the share of them that passes; None if the row count of some container is unknown."""

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reasons for every filter that was left out, weakened or refused."""


class BuildAnswer(Protocol):
    """The result of one build."""

    @property
    def keys(self) -> KeySummary | Reason:
        """All keys of the build; a `Reason` if it failed, took too long or gave too many rows."""

    @property
    def rows(self) -> BuildRows | None:
        """All rows, if the query may join them instead of running the build side again."""

    @property
    def from_cache(self) -> bool:
        """True if the build did not run for this query."""

    @property
    def seconds(self) -> float:
        """The seconds that the build took; 0 where another answer has them, or the cache had the result."""

    @property
    def on_driver(self) -> bool:
        """True if the build was computed on the driver without a job."""

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reasons why the result was not cached."""


@dataclass(frozen=True, slots=True)
class PinFiles(Request[Mapping[int, Reason]]):
    """List the files of these scans once, so that builds and query read the same files.

    The answer has a `Reason` by `Relation.id` for each scan that cannot be pinned.
    """

    relations: tuple[Relation, ...]


@dataclass(frozen=True, slots=True)
class RunBuilds(Request[Sequence[BuildAnswer]]):
    """Run these build sides at the same time. The answer has the result of each, in order."""

    filters: tuple[RuntimeFilter, ...]


@dataclass(frozen=True, slots=True, eq=False)
class BoundKeys(Request[KeySummary | Reason]):
    """Bound the keys of a build side by the statistics of its files; `kept` are the files that pruned scans read."""

    build_side: BuildSide
    kept: Mapping[int, BoolArray]

    @property
    def failure_subject(self) -> str:
        """The name of the key."""
        return str(self.build_side.key)


def bounds_of(build_side: BuildSide, kept: Mapping[int, BoolArray]) -> Steps[KeySummary | Reason]:
    """The values of a probe key that match a key which the statistics of a build side's files allow."""
    found = yield from ask(BoundKeys(build_side, kept))
    return found if isinstance(found, Reason) else build_side.condition.bounds(found)


@dataclass(frozen=True, slots=True, eq=False)
class SummarizeTuples(Request[KeySummary | Reason]):
    """Summarize several columns of a build's rows together."""

    node: Node
    rows: BuildRows
    columns: KeyTuple


@dataclass(frozen=True, slots=True, eq=False)
class JoinRows(Request[None]):
    """Replace the plan of a build by its rows, in later builds and in the query.

    If `keeps_scan`, no rows are a scan, too: as a constant they would hide an error of the query.
    """

    node: Node
    rows: BuildRows
    keeps_scan: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class PruneScan(Request[PlannedScan | Reason]):
    """Plan a scan by all its filters, and use the plan if it acts.

    `keys` and `tuples` are by the columns that they filter; `first_rows` are filters of columns by first rows. If
    `keeps_scan`, a scan of no files stays a scan: as a constant without rows it would hide an error of the query.
    `worth` is that of testing rows by the keys of one column or of several together, by these columns. With
    `whole_for`, an expression that may raise on a part of the rows of a key, the scan gives all of them or none. A
    row has to have, for each of `disjunctions`, a key of one of its columns.
    """

    relation: Relation
    keys: Mapping[int, Sequence[KeySummary]]
    tuples: Mapping[tuple[int, ...], Sequence[KeySummary]]
    first_rows: Sequence[tuple[int, KeyFilter]] = ()
    keeps_scan: bool = False
    worth: Mapping[tuple[int, ...], RowWorth] = field(default_factory=dict)
    whole_for: str = ""
    disjunctions: Sequence[Sequence[tuple[int, KeySummary]]] = ()
