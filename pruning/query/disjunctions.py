"""`Disjunction`: an OR of a filter each of whose operands holds only for rows with a key of a build side.

    a IN (SELECT ...) OR b IN (SELECT ...)

The engine plans each IN and EXISTS of it as a join that marks the rows with a match, and filters by the marks:

    Filter (exists1 OR exists2)
    +- Join ExistenceJoin(exists2), b = ...
       +- Join ExistenceJoin(exists1), a = ...

No key alone filters a scan, all of them do: a container is kept if the keys of one operand keep it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pruning.keys.summary import COMPARISONS
from pruning.query.edges import Edge, RefusedComparison, build_side_of, edge_to
from pruning.query.join_condition import sides_of
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Expression, Filter, Join, Node, Passthrough, Project, Relation, conjuncts_at
from pruning.reasons import Reason, ReasonCode


@dataclass(frozen=True, slots=True)
class Disjunction:
    """An OR of a filter, with the edge of the keys that each operand needs; `keyless` is one that needs none."""

    filter: Filter
    edges: tuple[Edge, ...]
    keyless: Expression | None = None

    @property
    def joins(self) -> frozenset[int]:
        """The ids of the joins that mark rows."""
        return frozenset(each.join.id for each in self.edges)

    @property
    def refused(self) -> RefusedComparison | None:
        """The reason against filters by the OR, if one of its operands needs no key."""
        if self.keyless is None:
            return None
        reason = Reason(ReasonCode.KEYLESS_OPERAND, str(self.keyless))
        return RefusedComparison(self.filter.children[0], reason)

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The scans that the keys of every operand reach."""
        reached = [{probe.relation.id: probe.relation for probe in each.probes} for each in self.edges]
        return tuple(each for at, each in reached[0].items() if all(at in others for others in reached))

    def probes_of(self, relation: Relation) -> tuple[ProbeColumn, ...]:
        """The column of one of `relations` that the keys of each operand filter, in the order of `edges`."""
        return tuple(next(each for each in edge.probes if each.relation.id == relation.id) for edge in self.edges)

    def with_edges(self, edges: Sequence[Edge]) -> Disjunction:
        """This OR with other edges."""
        return replace(self, edges=tuple(edges))


def disjunctions_of(filter_: Filter, *, equivalence: bool) -> Iterator[Disjunction]:
    """The disjunctions among the conjuncts of a filter; those of which an operand needs no key have it as `keyless`."""
    if not filter_.is_deterministic:
        return
    for _, part in conjuncts_at(filter_.condition):
        if part.kind == "Or":
            edges = [(each, _edge(filter_, each, equivalence=equivalence)) for each in _operands(part)]
            known = tuple(each for _, each in edges if each is not None)
            if known:
                yield Disjunction(filter_, known, next((each for each, edge in edges if edge is None), None))


def _operands(part: Expression) -> Iterator[Expression]:
    if part.kind != "Or":
        yield part
        return
    for each in part.children:
        yield from _operands(each)


def _edge(filter_: Filter, operand: Expression, *, equivalence: bool) -> Edge | None:
    """The first edge whose keys a row needs for an operand to hold: one that reaches a scan, and an equality if any."""
    marks = [part.column for _, part in conjuncts_at(operand) if part.column is not None]
    joins = (found for each in marks if (found := _marking(filter_.children[0], each, filter_.may_raise)) is not None)
    edges = [edge for join, raises in joins for edge in _edges_of(join, raises, equivalence=equivalence)]
    return min(edges, key=lambda each: (not each.probes, each.build_side.condition.bound is not None), default=None)


def _marking(node: Node, mark: int, raises: str) -> tuple[Join, str] | None:
    """The join that makes a mark, and the first expression above it that may raise; None if rows change in between."""
    while True:
        match node:
            case Join(type="ExistenceJoin") if mark not in node.left.output and mark in node.output:
                return node, raises
            case Join(type="ExistenceJoin") if node.is_deterministic:
                below = node.left
            case Project(made=made) if made is not None and node.is_deterministic and mark in made:
                column = made[mark].column
                if column is None:
                    return None
                mark, below = column, node.children[0]
            case Filter() | Passthrough() if node.is_deterministic:
                below = node.children[0]
            case _:
                return None
        raises, node = raises or node.may_raise, below


def _edges_of(join: Join, raises: str, *, equivalence: bool) -> Iterator[Edge]:
    """The edges from the right side of a join, which marks the rows with a match, to the left."""
    if not join.is_deterministic:
        return
    for path, part in conjuncts_at(join.condition):
        sides = sides_of(join, part)
        if sides is not None:
            probe, build = sides
            build_side = build_side_of(join, part, path, build, COMPARISONS[part.kind][probe])
            if not build_side.condition.depends_on_null:
                key = part.children[probe]
                yield edge_to(build_side, join.left, key, equivalence=equivalence, raises=raises or join.may_raise)
