"""`Sizes` and `PlanStatistics`: the facts about a plan's scans on which build selection decides, without their rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pruning.query.join_condition import BuildSide
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Filter, Grouping, Join, Node, Passthrough, Project, Relation

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
    left = [each for each in node.walk() if isinstance(each, Relation) and each.id not in materialized]
    return left[0] if len(left) == 1 else None


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
    """

    scanned: Mapping[int, int]
    files: Collection[int]
    pruned: Collection[int]
    materialized: Collection[int] = ()
    expected: Mapping[int, Cardinality] = field(default_factory=dict)
    statistics: PlanStatistics = field(default_factory=UnknownStatistics)
