"""`trace`: from a column of a plan down to the columns of scans, by a whitelist of operators that keys may pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pruning.errors import UnsupportedTypeError
from pruning.query.expressions import probed_column
from pruning.query.plan import (
    Expression,
    Filter,
    Generate,
    Grouping,
    Join,
    Node,
    Passthrough,
    Project,
    Relation,
    Union,
    conjuncts_at,
)
from pruning.reasons import Reason, ReasonCode
from pruning.values.types import ValueType

# Join types in which rows of that side without a match do not reach the result.
LEFT_NEEDS_MATCH = frozenset({"Inner", "Cross", "LeftSemi", "RightOuter"})
RIGHT_NEEDS_MATCH = frozenset({"Inner", "Cross", "LeftSemi", "LeftOuter", "LeftAnti", "ExistenceJoin", "LeftSingle"})
# Join types in which removing a row of that side removes only the results of that row.
_LEFT_STANDS_ALONE = frozenset({"Inner", "Cross", "LeftSemi", "LeftOuter", "LeftAnti", "ExistenceJoin"})
_RIGHT_STANDS_ALONE = frozenset({"Inner", "Cross", "RightOuter"})
_STOPS: Mapping[str, ReasonCode] = MappingProxyType(
    {
        "GlobalLimit": ReasonCode.LIMITED,
        "LocalLimit": ReasonCode.LIMITED,
        "Offset": ReasonCode.LIMITED,
        "Tail": ReasonCode.LIMITED,
        "Sample": ReasonCode.SAMPLED,
        "Expand": ReasonCode.GROUPING_SETS,
        "InMemoryRelation": ReasonCode.CACHED,
        "LocalRelation": ReasonCode.NOT_FILES,
        "Range": ReasonCode.NOT_FILES,
        "OneRowRelation": ReasonCode.NOT_FILES,
        "LogicalRDD": ReasonCode.NOT_FILES,
    }
)


@dataclass(frozen=True, slots=True)
class ProbeColumn:
    """A column of a scan that keys may filter."""

    relation: Relation
    column: int

    @property
    def name(self) -> str:
        """The column's name in its table."""
        return self.relation.names[self.relation.output.index(self.column)]

    @property
    def type(self) -> ValueType | None:
        """The column's type; None for types that are not pruned by."""
        try:
            return ValueType.parse(self.relation.types[self.relation.output.index(self.column)])
        except UnsupportedTypeError:
            return None


def trace(node: Node, column: int, *, equivalence: bool = True) -> Iterator[ProbeColumn | Reason]:
    """The scans that keys for a column of `node` may filter, and the reason at each place where the walk ends.

    Rows whose value is not a key may be removed below every node that the walk passes, without any change to the rows
    whose value is one. Without `equivalence` the walk does not follow columns that joins on its way set equal.
    """
    return _Walk(equivalence).down(node, column)


@dataclass(frozen=True, slots=True)
class _Walk:
    """The walk of `trace`; `_seen` holds columns already walked, since several equalities may lead to one column."""

    equivalence: bool
    _seen: set[tuple[int, int]] = field(default_factory=set)

    def down(self, node: Node, column: int) -> Iterator[ProbeColumn | Reason]:
        if (node.id, column) not in self._seen:
            self._seen.add((node.id, column))
            yield from self._step(node, column)

    def _step(self, node: Node, column: int) -> Iterator[ProbeColumn | Reason]:
        match node:
            case Relation():
                yield ProbeColumn(node, column)
            case Passthrough():
                yield from self.down(node.children[0], column)
            case Filter() | Project() | Grouping() | Generate() if not node.is_deterministic:
                yield stop(node, ReasonCode.NONDETERMINISTIC)
            case Filter():
                yield from self.down(node.children[0], column)
            case Project(made=made) if made is not None:
                yield from self._below(node, made.get(column), ReasonCode.COMPUTED)
            case Grouping(groups=groups) if groups is not None:
                otherwise = ReasonCode.COMPUTED if column in groups else ReasonCode.NOT_GROUPED
                yield from self._below(node, groups.get(column), otherwise)
            case Generate() if column in node.children[0].output:
                yield from self.down(node.children[0], column)
            case Generate():
                yield stop(node, ReasonCode.COMPUTED)
            case Union():
                place = node.output.index(column)
                for child in node.children:
                    yield from self.down(child, child.output[place])
            case Join():
                yield from self._through_join(node, column)
            case _:
                yield stop(node, _STOPS.get(node.kind, ReasonCode.OPAQUE))

    def _below(
        self, node: Node, expression: Expression | None, otherwise: ReasonCode
    ) -> Iterator[ProbeColumn | Reason]:
        """The walk below the column that an expression is or losslessly casts; else the end."""
        column = None if expression is None else probed_column(expression)
        if column is None:
            yield stop(node, otherwise)
        else:
            yield from self.down(node.children[0], column)

    def _through_join(self, join: Join, column: int) -> Iterator[ProbeColumn | Reason]:
        in_left, in_right = column in join.left.output, column in join.right.output
        if in_left == in_right:
            yield stop(join, ReasonCode.COMPUTED)
            return
        if join.type == "LeftSingle":
            # A correlated scalar subquery, whose several rows for one row of the left side raise an error.
            yield stop(join, ReasonCode.OUTER_SIDE, "a row with several matches raises an error")
            return
        own, stands_alone = (join.left, _LEFT_STANDS_ALONE) if in_left else (join.right, _RIGHT_STANDS_ALONE)
        if join.type in stands_alone and join.is_deterministic:
            yield from self.down(own, column)
        else:
            yield stop(join, ReasonCode.OUTER_SIDE if join.is_deterministic else ReasonCode.NONDETERMINISTIC)
        # If one of two equal columns holds one of the keys, so does the other.
        other, needs_match = (join.right, RIGHT_NEEDS_MATCH) if in_left else (join.left, LEFT_NEEDS_MATCH)
        if self.equivalence and join.type in needs_match and join.is_deterministic:
            for partner in _probed_partners(join, column):
                if partner in other.output:
                    yield from self.down(other, partner)


def partners(join: Join, column: int) -> Iterator[int]:
    """The columns that a join sets equal to `column`."""
    for _, part in conjuncts_at(join.condition):
        if part.kind == "EqualTo":
            first, second = (each.column for each in part.children)
            if first == column and second is not None:
                yield second
            if second == column and first is not None:
                yield first


def _probed_partners(join: Join, column: int) -> Iterator[int]:
    """The columns that a join sets equal to `column`, plain or with a lossless cast: keys can be converted to each.

    If `column` itself is cast, its partner is left out, since different dates may share an instant.
    """
    for _, part in conjuncts_at(join.condition):
        if part.kind == "EqualTo":
            for this, other in (part.children, part.children[::-1]):
                partner = probed_column(other)
                if this.column == column and partner is not None:
                    yield partner


def stop(node: Node, code: ReasonCode, detail: str = "") -> Reason:
    """The reason why the walk does not pass a node."""
    name = f"{node.type} join" if isinstance(node, Join) else node.kind
    return Reason(code, name, detail)
