"""`Sizes`, `QueryFacts`, `PlanStatistics`: the facts about the scans of a plan on which decisions rest."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pruning.query.exchange_reuse import SharedExchange
from pruning.query.join_condition import BuildSide
from pruning.query.lessons import Lesson
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Join, Node, Relation
from pruning.reasons import Reason, ReasonCode
from pruning.values.domain import Domain


@dataclass(frozen=True, slots=True)
class Cardinality:
    """The `rows` that a scan reads, and the share of them, 0 to 1, that pass its row filters."""

    rows: int
    ratio: float

    @property
    def passing(self) -> float:
        """Rows that pass the row filters."""
        return self.rows * self.ratio


class PlanStatistics(Protocol):
    """Answers from metadata, looked up only where a decision depends on them."""

    @property
    def problems(self) -> tuple[Reason, ...]:
        """The reasons why some metadata could not be read so far."""

    def unprunable_fraction(self, probe: ProbeColumn) -> float:
        """The share, 0 to 1, of a probe column's bytes in containers that any key keeps."""

    def missing_bounds(self, probe: ProbeColumn) -> ReasonCode | None:
        """The reason why no container has bounds of a probe column, as far as known; None where some may have."""

    def rows(self, relation: Relation) -> int:
        """Rows of a scan's table; 0 if not known."""

    def leaf_rows(self, leaf: Node) -> float:
        """The engine's estimate of the rows of a leaf that reads no files, such as cached rows; 0 if not known."""

    def row_width(self, node: Node) -> float:
        """The bytes of a node's rows beside those of four numbers, by which rates are measured; at least 1."""

    def decoded_values(self, relation: Relation) -> float:
        """The numbers whose decoding takes as long as that of one row of the columns that a query uses of a scan."""

    def files(self, relation: Relation) -> int:
        """Files of a scan's table; 0 if not known."""

    def domain_size(self, relation: Relation, column: int) -> float | None:
        """The different values of a column: the most by its bounds, else by its row groups; None if unknown."""

    def numbers_between(self, relation: Relation, column: int) -> float | None:
        """The numbers between the bounds of a column's files; None if not known."""

    def least_values(self, relation: Relation, column: int) -> float | None:
        """The least different values of a column that row groups tell; None where bounds or nothing tell of them."""

    def may_have_nulls(self, relation: Relation, column: int) -> bool:
        """False where statistics of all files, or of all row groups, prove that a column has no NULL."""

    def is_sparse(self, relation: Relation, column: int) -> bool:
        """True where each row may have another value, or where values repeat, and nothing tells how often."""

    def rows_together(self, relation: Relation, column: int) -> float:
        """The rows with one value of a column that stand together, as those of an order do; 1 if not known."""

    def matching_share(self, relation: Relation, column: int, domain: Domain) -> float | None:
        """The share, 0 to 1, of a table's rows whose value lies in `domain`, if values are spread evenly."""

    def needed_share(self, relation: Relation) -> float:
        """The share, 0 to 1, of the bytes of a scan's files in columns that the query uses."""

    def is_broadcast(self, join: Join) -> bool:
        """True where the engine is expected to broadcast one side of a join instead of shuffling both."""

    def is_broadcast_side(self, join: Join, side: Node) -> bool:
        """True where the engine is expected to broadcast this side of a join."""

    def are_few(self, node: Node, rows: float) -> bool:
        """True where `rows` rows of a node are few enough to be joined as a local relation."""

    def shared_exchanges(self, build_side: BuildSide, probe: ProbeColumn) -> Sequence[SharedExchange]:
        """The exchanges that the engine would run for one place alone after a filter of the probe column."""

    def shared_shuffles(self) -> Sequence[Sequence[tuple[Join, Node]]]:
        """The joins whose equal sides the engine shuffles once for all of them, with these sides."""


class UnknownStatistics:
    """Answers without metadata."""

    @property
    def problems(self) -> tuple[Reason, ...]:
        """Always empty."""
        return ()

    def unprunable_fraction(self, probe: ProbeColumn) -> float:  # noqa: ARG002 - a protocol's
        """Always 0, so that each container may be skipped."""
        return 0.0

    def missing_bounds(self, probe: ProbeColumn) -> ReasonCode | None:  # noqa: ARG002 - a protocol's
        """Always None, so that each container may have bounds."""
        return None

    def rows(self, relation: Relation) -> int:  # noqa: ARG002 - a protocol's
        """Always 0, which means unknown."""
        return 0

    def leaf_rows(self, leaf: Node) -> float:  # noqa: ARG002 - a protocol's
        """Always 0, which means unknown."""
        return 0.0

    def row_width(self, node: Node) -> float:  # noqa: ARG002 - a protocol's
        """Always 1."""
        return 1.0

    def decoded_values(self, relation: Relation) -> float:  # noqa: ARG002 - a protocol's
        """Always 0."""
        return 0.0

    def files(self, relation: Relation) -> int:  # noqa: ARG002 - a protocol's
        """Always 0, which means unknown."""
        return 0

    def domain_size(self, relation: Relation, column: int) -> float | None:  # noqa: ARG002 - a protocol's
        """Always None."""
        return None

    def numbers_between(self, relation: Relation, column: int) -> float | None:  # noqa: ARG002 - a protocol's
        """Always None."""
        return None

    def least_values(self, relation: Relation, column: int) -> float | None:  # noqa: ARG002 - a protocol's
        """Always None."""
        return None

    def may_have_nulls(self, relation: Relation, column: int) -> bool:  # noqa: ARG002 - a protocol's
        """Always True."""
        return True

    def is_sparse(self, relation: Relation, column: int) -> bool:  # noqa: ARG002 - a protocol's
        """Always False."""
        return False

    def rows_together(self, relation: Relation, column: int) -> float:  # noqa: ARG002 - a protocol's
        """Always 1."""
        return 1.0

    def matching_share(self, relation: Relation, column: int, domain: Domain) -> float | None:  # noqa: ARG002 - a protocol's
        """Always None."""
        return None

    def needed_share(self, relation: Relation) -> float:  # noqa: ARG002 - a protocol's
        """Always 1."""
        return 1.0

    def is_broadcast(self, join: Join) -> bool:  # noqa: ARG002 - a protocol's
        """Always False."""
        return False

    def is_broadcast_side(self, join: Join, side: Node) -> bool:  # noqa: ARG002 - a protocol's
        """Always False."""
        return False

    def are_few(self, node: Node, rows: float) -> bool:  # noqa: ARG002 - a protocol's
        """Always False."""
        return False

    def shared_exchanges(self, build_side: BuildSide, probe: ProbeColumn) -> Sequence[SharedExchange]:  # noqa: ARG002 - a protocol's
        """Always empty."""
        return ()

    def shared_shuffles(self) -> Sequence[Sequence[tuple[Join, Node]]]:
        """Always empty."""
        return ()


@dataclass(frozen=True, slots=True)
class Sizes:
    """The state of a query's scans at one moment, all by `Relation.id`.

    - `scanned`: bytes that each scan reads; `files`: scans that read files; `pruned`: scans with a filter
    - `materialized`: nodes that are not run again, since a build holds their rows; `rows` has the number of these rows
      by the `Node.id` of each build
    - `expected`: rows of pruned scans; `applied`: the number of keys that filter a column of a scan
    - `refused`: why a scan of files cannot be pruned, for scans that are not in `files` for that reason
    - `remote`: scans of an object store; `cores`: tasks that run at a time
    - `streams`: scans of the rows of a micro-batch, which are the same in each run; none of them is in `files`
    - `highest`: the highest join or limit, by `Node.id`, whose keys filter a scan
    """

    scanned: Mapping[int, int]
    files: Collection[int]
    pruned: Collection[int]
    materialized: Collection[int] = ()
    expected: Mapping[int, Cardinality] = field(default_factory=dict)
    statistics: PlanStatistics = field(default_factory=UnknownStatistics)
    refused: Mapping[int, Reason] = field(default_factory=dict)
    rows: Mapping[int, int] = field(default_factory=dict)
    applied: Mapping[int, Mapping[int, float]] = field(default_factory=dict)
    remote: Collection[int] = ()
    cores: int = 2
    streams: Collection[int] = ()
    highest: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueryFacts:
    """Facts about a query that its plan alone does not tell.

    - `sizes`: bytes that each scan reads, by `Relation.id`
    - `files`: scans of files, whose rows may be keys; `unpinned`: those of them that list their files at each run
    - `first_leaf`: the first scan that reads the same files and columns, by `Relation.id`
    - `equal`: the first equal node of nodes that have one, by `Node.id`; empty if the engine reuses no exchange
    - `used`: columns that some expression or the result uses
    - `partitions`: columns by which Spark itself prunes partitions
    - `broadcast_limit`: bytes up to which the engine broadcasts a side of a join by itself; negative for never
    - `remote`: scans of an object store; `cores`: tasks that the engine runs at a time
    - `streams`: scans of the rows of a micro-batch, which are not filtered
    - `runs_on_driver`: the engine answers builds over one small scan without a job
    - `tests_rows`: filtered scans may test each row; those of a command, which counts the rows that it sees, may not
    - `lesson`: what earlier queries of the same shape have shown; None where nobody learns of this one
    """

    sizes: Mapping[int, int]
    files: frozenset[int]
    unpinned: frozenset[int] = frozenset()
    first_leaf: Mapping[int, int] = field(default_factory=dict)
    equal: Mapping[int, int] = field(default_factory=dict)
    used: frozenset[int] = frozenset()
    partitions: frozenset[int] = frozenset()
    broadcast_limit: int = -1
    remote: frozenset[int] = frozenset()
    cores: int = 2
    runs_on_driver: bool = False
    streams: frozenset[int] = frozenset()
    tests_rows: bool = True
    lesson: Lesson | None = None
