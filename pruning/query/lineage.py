"""`trace`: from a column of a plan down to the columns of scans, by a whitelist of operators that keys may pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from types import MappingProxyType

from pruning.keys.summary import KeySummary, through
from pruning.query.join_types import JoinType
from pruning.query.key_functions import KeyPath, key_path, probed_column
from pruning.query.plan import (
    COLLATED,
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
from pruning.values.functions import Functions
from pruning.values.types import ValueType

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
    """A column of a scan that keys may filter.

    `whole_for` is empty, or the expression between scan and join that may raise on a part of the rows of a key: the
    scan has to give all rows of a key or none. `functions` make a key of a value of the column, the innermost first.
    """

    relation: Relation
    column: int
    whole_for: str = ""
    functions: Functions = ()

    @property
    def name(self) -> str:
        """The column's name in its table."""
        return self.relation.name_of(self.column)

    @property
    def type(self) -> ValueType | None:
        """The column's type; None for types that are not pruned by."""
        return ValueType.known(self.relation.type_of(self.column))

    @property
    def width(self) -> float:
        """About as many values of the column are one value of a key; 1 for the column itself."""
        return prod(each.width for each in self.functions)

    def values_of(self, keys: KeySummary) -> KeySummary | Reason:
        """The values of the column whose key is one of `keys`; a `Reason` if every row may have one."""
        return through(keys, self.functions, self.name) if self.functions else keys


def trace(node: Node, column: int, *, raises: str = "") -> Iterator[ProbeColumn | Reason]:
    """The scans that keys for a column of `node` may filter, and the reason at each place where the walk ends.

    Rows whose value is not a key may be removed below every node that the walk passes, without any change to the rows
    whose value is one, and without an error. `raises` is an expression above `node` that may raise on rows without a
    key.
    """
    return _Walk(equivalence=True, passes_functions=False).down(node, column, _Above(raises))


def trace_key(node: Node, path: KeyPath, *, equivalence: bool, raises: str) -> Iterator[ProbeColumn | Reason]:
    """The scans that keys may filter, as `trace` finds them, by a walk that also passes functions of columns.

    Without `equivalence` the walk does not follow columns that joins on its way set equal.
    """
    above = _Above(raises, functions=path.functions)
    return _Walk(equivalence, passes_functions=True).down(node, path.column, above)


@dataclass(frozen=True, slots=True)
class _Above:
    """The expressions between the join that drops rows without a key and a node of the walk.

    They meet rows without a key that the query does not have without pruning: parts of a group, and rows of an outer
    or anti join that have lost their matches. An error for such a row would be new.

    - `raises`: the first expression that may raise; empty if none may
    - `whole_for`: the first that may raise on a part of a group; empty if none may, or nothing was grouped
    - `functions`: those that make a key of the column of the walk, the innermost first
    """

    raises: str = ""
    whole_for: str = ""
    functions: Functions = ()

    def through(self, node: Node) -> _Above:
        """The expressions down to below a node."""
        raises = self.raises or node.may_raise
        return _Above(raises, self.whole_for or (raises if isinstance(node, Grouping) else ""), self.functions)


@dataclass(frozen=True, slots=True)
class _Walk:
    """The walk of `trace`; `_seen` holds columns already walked, since several equalities may lead to one column."""

    equivalence: bool
    passes_functions: bool
    _seen: set[tuple[int, int]] = field(default_factory=set)

    def down(self, node: Node, column: int, above: _Above) -> Iterator[ProbeColumn | Reason]:
        if (node.id, column) not in self._seen:
            self._seen.add((node.id, column))
            yield from self._step(node, column, above)

    def _step(self, node: Node, column: int, above: _Above) -> Iterator[ProbeColumn | Reason]:
        below = above.through(node)
        match node:
            case Relation() if above.functions and above.whole_for:
                # Rows of a key have several values, of which one may be skipped and another read.
                yield stop(node, ReasonCode.MAY_RAISE, above.whole_for)
            case Relation():
                yield ProbeColumn(node, column, above.whole_for, above.functions)
            case Passthrough():
                yield from self.down(node.children[0], column, below)
            case Filter() | Project() | Grouping() | Generate() if not node.is_deterministic:
                yield stop(node, ReasonCode.NONDETERMINISTIC)
            case Filter():
                yield from self.down(node.children[0], column, below)
            case Project(made=made) if made is not None:
                yield from self._below(node, made.get(column), ReasonCode.COMPUTED, below)
            case Grouping(groups=groups) if groups is not None:
                otherwise = ReasonCode.COMPUTED if column in groups else ReasonCode.NOT_GROUPED
                yield from self._below(node, groups.get(column), otherwise, below)
            case Generate() if column in node.children[0].output:
                yield from self.down(node.children[0], column, below)
            case Generate():
                yield stop(node, ReasonCode.COMPUTED)
            case Union():
                yield from self._into_union(node, column, above)
            case Join():
                yield from self._through_join(node, column, above)
            case _:
                yield stop(node, _STOPS.get(node.kind, ReasonCode.OPAQUE))

    def _below(
        self, node: Node, expression: Expression | None, otherwise: ReasonCode, below: _Above
    ) -> Iterator[ProbeColumn | Reason]:
        """The walk below the column of an expression that loses no key; else the end."""
        path = None if expression is None else key_path(expression)
        if path is None or (path.functions and not self.passes_functions):
            yield stop(node, otherwise) if expression is None else computed(expression)
        else:
            functions = (*path.functions, *below.functions)
            yield from self.down(node.children[0], path.column, replace(below, functions=functions))

    def _into_union(self, union: Union, column: int, above: _Above) -> Iterator[ProbeColumn | Reason]:
        if above.whole_for:
            # Rows of a key come from several scans, of which one may keep them and another drop them.
            yield stop(union, ReasonCode.MAY_RAISE, above.whole_for)
            return
        place = union.output.index(column)
        for child in union.children:
            yield from self.down(child, child.output[place], above.through(union))

    def _through_join(self, join: Join, column: int, above: _Above) -> Iterator[ProbeColumn | Reason]:
        in_left, in_right = column in join.left.output, column in join.right.output
        if in_left == in_right:
            yield stop(join, ReasonCode.COMPUTED)
            return
        if JoinType.of(join.type).is_scalar:
            yield stop(join, ReasonCode.OUTER_SIDE, "a row with several matches raises an error")
            return
        (own, of_own), (other, of_other) = join.sides if in_left else join.sides[::-1]
        if of_own.stands_alone and join.is_deterministic:
            yield from self.down(own, column, above.through(join))
        else:
            yield stop(join, ReasonCode.OUTER_SIDE if join.is_deterministic else ReasonCode.NONDETERMINISTIC)
        # If one of two equal columns holds one of the keys, so does the other.
        if self.equivalence and of_other.needs_match and join.is_deterministic:
            yield from self._to_other_side(join, column, other, above, loses_matches=not of_own.needs_match)

    def _to_other_side(
        self, join: Join, column: int, other: Node, above: _Above, *, loses_matches: bool
    ) -> Iterator[ProbeColumn | Reason]:
        """The walk to the equal columns of the side of a join that does not have `column`.

        Where the join gives rows of the own side without a match, those without a key lose theirs: they are padded
        or survive, and reach the expressions above.
        """
        columns = [each for each in _probed_partners(join, column) if each in other.output]
        if loses_matches and above.raises and columns:
            yield stop(join, ReasonCode.MAY_RAISE, above.raises)
            return
        for each in columns:
            yield from self.down(other, each, above.through(join))


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


def computed(key: Expression) -> Reason:
    """The reason why the walk does not pass an expression, or what the engine made of a column to compare it."""
    if key.kind == COLLATED:
        return Reason(ReasonCode.COLLATED, str(key))
    return Reason(ReasonCode.CHAR_PADDED if key.is_padded else ReasonCode.COMPUTED, str(key), _of_texts(key))


def _of_texts(key: Expression) -> str:
    """The cause why a cast of a text tells no values of it; empty for any other expression."""
    to = ValueType.known(key.type) if key.kind == "Cast" and key.children[0].type == "string" else None
    if to is None:
        return ""
    if to.is_temporal:
        return f"a text that is no {to} may stand between any two, and raise an error"
    return "texts do not follow the order of numbers, and several are the same number"


def stop(node: Node, code: ReasonCode, detail: str = "") -> Reason:
    """The reason why the walk does not pass a node."""
    name = f"{node.type} join" if isinstance(node, Join) else node.kind
    return Reason(code, name, detail)
