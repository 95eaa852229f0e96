"""The requests of `QueryPlanner` to its driver, each with the type of its answer."""

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
    """The rows of a build, materialized in the engine."""

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
        """Rows read and the share of them that passes; None if the row count of some container is unknown."""

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reasons for every filter that was left out, weakened or refused."""


class ScanFilter(Protocol):
    """A filter of a scan whose keys come from metadata, not from a build."""

    @property
    def filter(self) -> KeyFilter:
        """The columns and domains of the filter, in the types of the table."""


class BuildAnswer(Protocol):
    """The result of one build."""

    @property
    def keys(self) -> KeySummary | Reason:
        """All keys of the build; a `Reason` if it failed, took too long or gave too many rows."""

    @property
    def rows(self) -> BuildRows | None:
        """All rows, if they are few enough to be joined as a local relation."""

    @property
    def from_cache(self) -> bool:
        """True if the build did not run for this query."""


@dataclass(frozen=True, slots=True)
class PinFiles:
    """List the files of these scans once, so that builds and query read the same files.

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
    """Replace the plan of a build by its rows, in later builds and in the query. Answer: None."""

    node: Node
    rows: BuildRows


@dataclass(frozen=True, slots=True)
class ProveFirstRows:
    """Bound the keys of first rows below a limit by metadata. Answer: a `Domain`, None if unknown, or a `Reason`."""

    top: TopK


@dataclass(frozen=True, slots=True)
class MakeTopKFilter:
    """Make a filter of a scan from the keys of first rows. Answer: a `ScanFilter`, or a `Reason`."""

    top: TopK
    probe: ProbeColumn
    keys: Domain


@dataclass(frozen=True, slots=True, eq=False)
class PruneScan:
    """Plan a scan by all its filters, and use the plan if it acts. Answer: a `PlannedScan`, or a `Reason`."""

    relation: Relation
    keys: Mapping[int, Sequence[KeySummary]]
    tuples: Mapping[tuple[int, ...], Sequence[KeySummary]]
    top_filters: Sequence[ScanFilter]


@dataclass(frozen=True, slots=True)
class ChooseReader:
    """Choose between Spark's reader and pyarrow for a scan. Answer: the `PlannedScan` with the choice in its plan."""

    relation: Relation


@dataclass(frozen=True, slots=True)
class ReadByArrow:
    """Have pyarrow read a scan. Answer: the `PlannedScan`, or a `Reason` if Spark's reader reads it."""

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
