"""`Sizes` and `PlanStatistics`: the facts about a plan's scans on which build selection decides, without their rows.

`KnownStatistics` has them from answers about metadata, each asked for when a rule first depends on it.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np

from pruning.errors import UnsupportedTypeError
from pruning.options import BroadcastStrategy, PruningOptions
from pruning.query.exchanges import (
    ExchangeReuse,
    crosses_shuffle,
    is_hash_build_side,
    joined_sides,
    may_be_broadcast,
    unprunable_fraction,
)
from pruning.query.join_condition import BuildSide
from pruning.query.key_origins import domain_from_statistics, origins_of
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Filter, Grouping, Join, Node, Passthrough, Project, Relation
from pruning.query.requests import (
    A,
    DescribeFiles,
    DescribeRowGroups,
    DescribeRows,
    EstimateBytes,
    Request,
    ScanContainers,
    Unanswered,
)
from pruning.reasons import Reason, ReasonCode
from pruning.scan.statistics import UNKNOWN
from pruning.values.byte_strings import IntArray
from pruning.values.types import ValueType

# Joins that give each row of the left side at most once.
_LEFT_ONCE = frozenset({"LeftSemi", "LeftAnti", "ExistenceJoin"})


@dataclass(frozen=True, slots=True)
class Cardinality:
    """The `rows` that a scan reads, and the share of them, 0 to 1, that pass its row filters."""

    rows: int
    ratio: float

    @property
    def passing(self) -> float:
        """Rows that pass the row filters."""
        return self.rows * self.ratio


def only_scan(node: Node, materialized: Collection[int]) -> Relation | None:
    """The only scan below a node that is not materialized; None if there are several or none."""
    remaining = [each for each in node.walk() if isinstance(each, Relation) and each.id not in materialized]
    return remaining[0] if len(remaining) == 1 else None


def expected_rows(node: Node, scans: Mapping[int, Cardinality], materialized: Collection[int]) -> float | None:
    """An estimate of the most rows that a node gives; None where nothing bounds them.

    A join with a `materialized` build is assumed to be many-to-one, like a fact joined to a dimension. Conditions of
    the plan itself are assumed to drop nothing.
    """
    match node:
        case Relation():
            found = scans.get(node.id)
            return None if found is None else found.passing
        case Filter() | Project() | Passthrough() | Grouping():
            return expected_rows(node.children[0], scans, materialized)
        case Join(type=type_) if type_ in _LEFT_ONCE:
            return expected_rows(node.left, scans, materialized)
        case Join(type="Inner") if node.right.id in materialized:
            return expected_rows(node.left, scans, materialized)
        case Join(type="Inner") if node.left.id in materialized:
            return expected_rows(node.right, scans, materialized)
        case _:
            return None


class PlanStatistics(Protocol):
    """Answers from metadata, looked up only where a selection rule depends on them."""

    @property
    def problems(self) -> tuple[Reason, ...]:
        """The reasons why some metadata could not be read so far."""

    def has_few_keys(self, build_side: BuildSide, probe: ProbeColumn) -> bool:
        """True where an unfiltered build side has few rows by metadata, compared with the values of a probe column."""

    def unprunable_fraction(self, probe: ProbeColumn) -> float:
        """The share, 0 to 1, of a probe column's bytes in containers that any key keeps."""

    def crosses_shuffle(self, build_side: BuildSide, probe: ProbeColumn) -> bool:
        """True where a shuffle moves rows of a probe column before the join drops them."""

    def is_hash_build_side(self, build_side: BuildSide, probe: ProbeColumn) -> bool:
        """True where rows of a probe column become a broadcast hash table before the join drops them."""

    def rows(self, relation: Relation) -> int:
        """Rows that a scan reads without filters; 0 if not known."""

    def needed_share(self, relation: Relation) -> float:
        """The share, 0 to 1, of the bytes of a scan's files in columns that the query uses."""

    def are_few(self, node: Node, rows: float) -> bool:
        """True where `rows` rows of a node are few enough to be joined as a local relation."""

    def is_same_table(self, first: Relation, second: Relation) -> bool:
        """True where two scans read the same table at the same version."""

    def shared_places(self, build_side: BuildSide, probe: ProbeColumn) -> Sequence[Node]:
        """The other places of a reused exchange, if the keys of a build side would filter only one of them."""


class UnknownStatistics:
    """Answers without metadata, which refuse no filter."""

    @property
    def problems(self) -> tuple[Reason, ...]:
        """Always empty."""
        return ()

    def has_few_keys(self, build_side: BuildSide, probe: ProbeColumn) -> bool:  # noqa: ARG002 - a protocol's
        """Always False."""
        return False

    def unprunable_fraction(self, probe: ProbeColumn) -> float:  # noqa: ARG002 - a protocol's
        """Always 0."""
        return 0.0

    def crosses_shuffle(self, build_side: BuildSide, probe: ProbeColumn) -> bool:  # noqa: ARG002 - a protocol's
        """Always True."""
        return True

    def is_hash_build_side(self, build_side: BuildSide, probe: ProbeColumn) -> bool:  # noqa: ARG002 - a protocol's
        """Always False."""
        return False

    def rows(self, relation: Relation) -> int:  # noqa: ARG002 - a protocol's
        """Always 0, which means unknown."""
        return 0

    def needed_share(self, relation: Relation) -> float:  # noqa: ARG002 - a protocol's
        """Always 1."""
        return 1.0

    def are_few(self, node: Node, rows: float) -> bool:  # noqa: ARG002 - a protocol's
        """Always False."""
        return False

    def is_same_table(self, first: Relation, second: Relation) -> bool:  # noqa: ARG002 - a protocol's
        """Always False."""
        return False

    def shared_places(self, build_side: BuildSide, probe: ProbeColumn) -> Sequence[Node]:  # noqa: ARG002 - a protocol's
        """Always empty."""
        return ()


@dataclass(frozen=True, slots=True)
class Sizes:
    """The state of a query's scans at one moment, all by `Relation.id`.

    - `scanned`: bytes that each scan reads; `files`: scans that read files; `pruned`: scans with a filter
    - `materialized`: nodes that are not run again, since a build holds their rows
    - `expected`: rows of pruned scans
    - `refused`: why a scan of files cannot be pruned, for scans that are not in `files` for that reason
    """

    scanned: Mapping[int, int]
    files: Collection[int]
    pruned: Collection[int]
    materialized: Collection[int] = ()
    expected: Mapping[int, Cardinality] = field(default_factory=dict)
    statistics: PlanStatistics = field(default_factory=UnknownStatistics)
    refused: Mapping[int, Reason] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueryFacts:
    """Facts about a query that its plan alone does not tell.

    - `sizes`: bytes that each scan reads, by `Relation.id`
    - `files`: scans of files, whose rows may be keys; `unpinned`: those of them that list their files at each run
    - `first_leaf`: the first scan that reads the same files and columns, by `Relation.id`
    - `equal`: the first equal node of nodes that have one, by `Node.id`; empty if the engine reuses no exchange
    - `partitions`: columns by which Spark itself prunes partitions
    - `uses_input_file`: the query contains `input_file_name()` or a related expression; `may_use_input_file`: a
      query over its result could contain one
    - `broadcast_limit`: bytes up to which the engine broadcasts a side of a join by itself; negative for never
    """

    sizes: Mapping[int, int]
    files: frozenset[int]
    unpinned: frozenset[int] = frozenset()
    first_leaf: Mapping[int, int] = field(default_factory=dict)
    equal: Mapping[int, int] = field(default_factory=dict)
    partitions: frozenset[int] = frozenset()
    uses_input_file: bool = False
    may_use_input_file: bool = False
    broadcast_limit: int = -1


@dataclass(slots=True, eq=False)
class KnownStatistics:
    """The statistics of a query's plan, from the answers so far; raises `Unanswered` for an answer that is missing.

    Metadata that cannot be read counts as unknown; `problems` says why.
    """

    root: Node
    facts: QueryFacts
    options: PruningOptions
    _answers: dict[Hashable, Any] = field(default_factory=dict)
    _fractions: dict[tuple[int, int], float] = field(default_factory=dict)
    _few: dict[Hashable, bool] = field(default_factory=dict)
    _bytes: dict[int, int] = field(default_factory=dict)
    _reuse: ExchangeReuse | None = None

    @property
    def problems(self) -> tuple[Reason, ...]:
        """The reasons why some metadata could not be read so far."""
        failed = (each for each in self._answers.values() if isinstance(each, Reason))
        return tuple(dict.fromkeys(each for each in failed if each.code is ReasonCode.STATISTICS_FAILED))

    def has_few_keys(self, build_side: BuildSide, probe: ProbeColumn) -> bool:
        """True where an unfiltered build side has few rows by metadata, compared with the values of a probe column.

        This estimates the filter ratio `1 - keys / values` before the build has run.
        """
        pair = (build_side.id, probe.relation.id, probe.column)
        if pair not in self._few:
            self._few[pair] = self._has_few_keys(build_side, probe)
        return self._few[pair]

    def _has_few_keys(self, build_side: BuildSide, probe: ProbeColumn) -> bool:
        if not _has_density(probe):
            return False
        origins = origins_of(build_side.node, build_side.key)
        counts = [self._row_count(each.relation) for each in origins]
        files = self._files(probe.relation, probe.column) if origins and None not in counts else None
        if not isinstance(files, ScanContainers) or files.type is None or not files.type.has_density:
            return False
        rows = files.containers.rows
        ranges = domain_from_statistics(files.containers, files.name, rows != 0, files.type).ranges
        values = None if ranges.is_all else ranges.point_count()
        if values is None or (rows == UNKNOWN).any():
            return False
        most = (1 - self.options.limits.min_filter_ratio) * min(values, int(rows.sum()))
        return sum(each or 0 for each in counts) <= most

    def unprunable_fraction(self, probe: ProbeColumn) -> float:
        """The share, 0 to 1, of a probe column's bytes in containers that any key keeps.

        If the statistics of files skip nothing, row groups of some large files are used instead.
        """
        at = probe.relation.id, probe.column
        if at not in self._fractions:
            self._fractions[at] = self._unprunable_fraction(probe)
        return self._fractions[at]

    def _unprunable_fraction(self, probe: ProbeColumn) -> float:
        files = self._files(probe.relation, probe.column)
        if isinstance(files, Reason) or files.type is None:
            return 0.0
        share = self._fraction_of(files)
        if 0.0 < share < 1.0:
            return share
        groups = self._largest_row_groups(probe.relation, files, probe.column)
        return share if isinstance(groups, Reason) or groups.column is None else self._fraction_of(groups)

    def _fraction_of(self, found: ScanContainers) -> float:
        if found.column is None:
            return 0.0
        return unprunable_fraction(found.column, found.containers.sizes, self.options.limits)

    def crosses_shuffle(self, build_side: BuildSide, probe: ProbeColumn) -> bool:
        """True where a shuffle moves rows of a probe column before the join drops them."""
        return crosses_shuffle(build_side, probe, self._is_broadcast)

    def is_hash_build_side(self, build_side: BuildSide, probe: ProbeColumn) -> bool:
        """True where rows of a probe column become a broadcast hash table before the join drops them."""
        return is_hash_build_side(build_side, probe, self._is_broadcast_side)

    def _is_broadcast(self, join: Join) -> bool:
        """True if a side that Spark may broadcast is small enough by Spark's estimate, before anything has run."""
        sides = (each for each in join.children if may_be_broadcast(join, each))
        return any(0 <= self._estimate(each) <= self.facts.broadcast_limit for each in sides)

    def _is_broadcast_side(self, join: Join, side: Node) -> bool:
        """True if Spark would broadcast this side by its estimates: the smaller one if it may broadcast both."""
        if not may_be_broadcast(join, side) or self._estimate(side) > self.facts.broadcast_limit:
            return False
        other = join.right if side is join.left else join.left
        return not may_be_broadcast(join, other) or self._estimate(side) < self._estimate(other)

    def rows(self, relation: Relation) -> int:
        """Rows that a scan reads without filters; 0 if not known."""
        return self._row_count(relation) or 0

    def _row_count(self, relation: Relation) -> int | None:
        files = self._files(relation)
        if isinstance(files, Reason) or (files.containers.rows == UNKNOWN).any():
            return None
        return int(files.containers.rows.sum())

    def needed_share(self, relation: Relation) -> float:
        """The share, 0 to 1, of the bytes of a scan's files in columns that the query uses, from some large files."""
        files = self._files(relation)
        if isinstance(files, Reason):
            return 1.0
        groups = self._largest_row_groups(relation, files)
        if isinstance(groups, Reason):
            return 1.0
        sizes = files.containers.sizes
        whole, part = int(sizes[self._largest(files)].sum()), int(groups.containers.sizes.sum())
        # If the files of a table identify columns only by id, no column is found by name.
        return part / whole if whole and part else 1.0

    def are_few(self, node: Node, rows: float) -> bool:
        """True where `rows` rows of a node, or somewhat more, are few enough to be joined as a local relation."""
        if self.options.broadcast_strategy == BroadcastStrategy.NONE.name:
            return False
        limits, shape = self.options.limits, self._ask(DescribeRows(node), node.id)
        # An `UnsafeRow` has eight bytes for each value, and more for long ones.
        width = 8 + 8 * len(node.output) + shape.value_bytes
        most = limits.joined_long_rows if shape.has_long_values else limits.joined_rows
        rows *= limits.joined_rows_margin
        return rows <= most and rows * width <= self.facts.broadcast_limit

    def is_same_table(self, first: Relation, second: Relation) -> bool:
        """True where two scans read the same table at the same version."""
        leaf = self.facts.first_leaf
        return leaf.get(first.id, first.id) == leaf.get(second.id, second.id)

    def shared_places(self, build_side: BuildSide, probe: ProbeColumn) -> Sequence[Node]:
        """The other places of a reused exchange, if the keys of a build side would filter only one of them."""
        if self._reuse is None:
            # All at once: with one request for each, the plan would be walked as often as it has joins.
            self._estimated(tuple(joined_sides(self.root, self.facts.equal)))
            self._reuse = ExchangeReuse.of(self.root, self.facts.equal, self._is_sent_to)
        return self._reuse.others(build_side, probe)

    def _is_sent_to(self, join: Join, side: Node) -> bool:
        return not self._is_broadcast(join) or self._is_broadcast_side(join, side)

    # Answers.

    def _files(self, relation: Relation, column: int | None = None) -> ScanContainers | Reason:
        return self._ask(DescribeFiles(relation, column), relation.id, column)

    def _largest_row_groups(
        self, relation: Relation, files: ScanContainers, column: int | None = None
    ) -> ScanContainers | Reason:
        return self._ask(DescribeRowGroups(relation, self._largest(files), column), relation.id, column)

    def _largest(self, files: ScanContainers) -> IntArray:
        return np.argsort(-files.containers.sizes)[: self.options.limits.sampled_files]

    def _estimate(self, node: Node) -> int:
        self._estimated((node,))
        return self._bytes[node.id]

    def _estimated(self, nodes: Sequence[Node]) -> None:
        missing = tuple(each for each in nodes if each.id not in self._bytes)
        if missing:
            ids = [each.id for each in missing]
            raise Unanswered(EstimateBytes(missing), lambda sizes: self._bytes.update(zip(ids, sizes, strict=True)))

    def _ask(self, request: Request[A], *subject: Hashable) -> A:
        key = (type(request), *subject)
        if key not in self._answers:
            raise Unanswered(request, partial(self._answers.__setitem__, key))
        answer: A = self._answers[key]
        return answer


def _has_density(probe: ProbeColumn) -> bool:
    """True for types of the plan whose values can be counted between two bounds."""
    relation = probe.relation
    try:
        return ValueType.parse(relation.types[relation.output.index(probe.column)]).has_density
    except UnsupportedTypeError:
        return False
