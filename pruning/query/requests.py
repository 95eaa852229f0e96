"""The questions and commands of `QueryPlanner` to its driver, each with the form of its answer."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from pruning.keys.summary import KeySummary
from pruning.query.filter_plan import RuntimeFilter
from pruning.query.join_condition import BuildSide
from pruning.query.join_graph import KeyTuple
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Node, Relation
from pruning.query.plan_statistics import Cardinality
from pruning.query.top_k import TopK
from pruning.reasons import Reason
from pruning.scan.key_filter import KeyFilter
from pruning.scan.scan_plan import ScanPlan
from pruning.values.domain import Domain


class BuildRows(Protocol):
    """The rows of a build, held by the engine; `nbytes` is their size there."""

    @property
    def nbytes(self) -> int:
        """Bytes in the form in which the engine would broadcast them."""


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
        """Rows read and the share of them that passes; None if some container does not tell its rows."""

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Everything that was left out, weakened or refused."""


class ScanFilter(Protocol):
    """A filter of a scan that the engine made of keys that come from no build."""

    @property
    def filter(self) -> KeyFilter:
        """Its columns and domains, in the types of the table."""


class BuildAnswer(Protocol):
    """The result of one build."""

    @property
    def keys(self) -> KeySummary | Reason:
        """All keys of the build; a `Reason` if it failed, took too long or gave too many rows."""

    @property
    def rows(self) -> BuildRows | None:
        """All rows, where they are few enough to be joined as they are."""

    @property
    def from_cache(self) -> bool:
        """True if the build did not run for this query."""


@dataclass(frozen=True, slots=True)
class PinFiles:
    """List the files of these scans once, so that builds and query read the same.

    Answer: a `Reason` by `Relation.id` for each scan that cannot be pinned.
    """

    relations: tuple[Relation, ...]


@dataclass(frozen=True, slots=True)
class RunBuilds:
    """Run these build sides at the same time. Answer: a `BuildAnswer` for each, in order."""

    filters: tuple[RuntimeFilter, ...]


@dataclass(frozen=True, slots=True)
class BoundKeys:
    """Bound the keys of a build side by the statistics of its files. Answer: `KeySummary`, or a `Reason`."""

    build_side: BuildSide
    probe: ProbeColumn


@dataclass(frozen=True, slots=True, eq=False)
class SummarizeTuples:
    """Summarize several columns of a build's rows together. Answer: `KeySummary`, or a `Reason`."""

    node: Node
    rows: BuildRows
    columns: KeyTuple


@dataclass(frozen=True, slots=True, eq=False)
class JoinRows:
    """Put the rows of a build in the place of its plan, in later builds and in the query. Answer: None."""

    node: Node
    rows: BuildRows


@dataclass(frozen=True, slots=True)
class ProveFirstRows:
    """Find keys that enough rows below a limit surely have. Answer: a `Domain`, None if unknown, or a `Reason`."""

    top: TopK


@dataclass(frozen=True, slots=True)
class MakeTopKFilter:
    """Make a filter of a scan of such keys. Answer: a `ScanFilter`, or a `Reason`."""

    top: TopK
    probe: ProbeColumn
    keys: Domain


@dataclass(frozen=True, slots=True, eq=False)
class PruneScan:
    """Plan a scan by all its filters, and use it if its plan acts. Answer: a `PlannedScan`, or a `Reason`."""

    relation: Relation
    keys: Mapping[int, Sequence[KeySummary]]
    tuples: Mapping[tuple[int, ...], Sequence[KeySummary]]
    top_filters: Sequence[ScanFilter]


@dataclass(frozen=True, slots=True)
class ChooseReader:
    """Weigh Spark's reader against pyarrow for a scan. Answer: the `PlannedScan` with the choice in its plan."""

    relation: Relation


@dataclass(frozen=True, slots=True)
class ReadByArrow:
    """Have pyarrow read a scan. Answer: the `PlannedScan`, or a `Reason` if Spark's reader keeps it."""

    relation: Relation


Request: TypeAlias = (
    PinFiles
    | RunBuilds
    | BoundKeys
    | SummarizeTuples
    | JoinRows
    | ProveFirstRows
    | MakeTopKFilter
    | PruneScan
    | ChooseReader
    | ReadByArrow
)
Requests: TypeAlias = Generator[Request, Any, None]
Steps: TypeAlias = "Generator[Request, Any, KeySummary | Reason]"
