"""`with_fields()`: a plan in which each field of a struct of a scan is a column, under the same id wherever it passes.

    Filter s.id > 5               Filter #-1 > 5
    +- Relation [s#7]             +- Relation [s#7, s.id#-1]

All decisions trace, compare and estimate columns, so a field needs no rules of its own. A struct passes through the
operators that hand on the columns of their children; elsewhere, as where it is computed, its fields stay expressions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TypeAlias

from pruning.query.expressions import EQUALITIES
from pruning.query.plan import (
    Expression,
    Filter,
    Generate,
    Grouping,
    Join,
    Limit,
    Node,
    Passthrough,
    Project,
    RankLimit,
    Relation,
    Sort,
    SortKey,
    conjuncts_at,
    relations_of,
)

_KIND = "GetStructField"
# The prefix of the names under which Spark projects fields: `s.id` is `_extract_id` above.
_EXTRACTED = "_extract_"
# The column of each field of a struct, by the names that lead to it from the struct.
_Fields: TypeAlias = Mapping[tuple[str, ...], Expression]
# These fields, by the id of the struct.
_Structs: TypeAlias = dict[int, _Fields]


def with_fields(root: Node) -> Node:
    """The plan with the fields of scans that some expression names as columns; all other fields are dropped."""
    relations = relations_of(root)
    if not any(each.fields for each in relations):
        return root
    least = min(each.column for relation in relations for each in relation.fields)
    # Spark copies conditions on the fields of one struct to one that is equal to it, which no rule would see.
    named = frozenset[str]() if _compares_structs(root) else frozenset(_named(root))
    return _Walk(named, count(least - 1, -1)).down(root)[0]


def _compares_structs(root: Node) -> bool:
    """True if a condition sets columns equal whose type is not atomic, perhaps within others."""
    conditions = (each.condition for each in root.walk() if isinstance(each, Filter | Join))
    equalities = (part for each in conditions for _, part in conjuncts_at(each) if part.kind in EQUALITIES)
    return any(operand.column is not None and not operand.type for part in equalities for operand in part.children)


def _named(root: Node) -> Iterator[str]:
    """The names of all fields that expressions take from structs."""
    for node in root.walk():
        for each in _expressions(node):
            yield from _fields_in(each)


def _fields_in(expression: Expression) -> Iterator[str]:
    if expression.kind == _KIND:
        yield expression.text
    for each in expression.children:
        yield from _fields_in(each)


def _expressions(node: Node) -> Iterator[Expression]:
    match node:
        case Filter(condition=Expression() as condition) | Join(condition=Expression() as condition):
            yield condition
        case Project(made=made) if made is not None:
            yield from made.values()
        case Sort(order=order):
            yield from (each.key for each in order)
        case RankLimit(order=order, groups=groups):
            yield from (each.key for each in order)
            yield from (groups or {}).values()
        case Grouping(groups=groups):
            yield from (groups or {}).values()
        case _:
            return


@dataclass(frozen=True, slots=True)
class _Walk:
    """Rewrites nodes, children first; `_names` has the name of each projected field by the id of its column."""

    wanted: frozenset[str]
    ids: Iterator[int]
    _names: dict[int, str] = field(default_factory=dict)

    def down(self, node: Node) -> tuple[Node, _Structs]:
        """A node with its fields as columns, and the fields of the structs of its output."""
        walked = [self.down(each) for each in node.children]
        below: _Structs = {}
        for _, structs in walked:
            below |= structs
        node = replace(
            node,
            children=tuple(each for each, _ in walked),
            subqueries=tuple(self.down(each)[0] for each in node.subqueries),
        )
        match node:
            case Relation():
                return self._scan(node)
            case Project(made=made) if made is not None:
                return self._projected(node, made, below)
            case Filter(condition=Expression() as condition) | Join(condition=Expression() as condition):
                return self._passed(replace(node, condition=self._rewritten(condition, below)), below)
            case Sort(order=order):
                return self._passed(replace(node, order=self._ordered(order, below)), below)
            case RankLimit(order=order, groups=groups):
                return replace(node, order=self._ordered(order, below), groups=self._grouped(groups, below)), {}
            case Grouping(groups=groups):
                return replace(node, groups=self._grouped(groups, below)), {}
            case Filter() | Join() | Passthrough() | Limit() | Generate():
                return self._passed(node, below)
            case _:
                return node, {}

    def _scan(self, relation: Relation) -> tuple[Relation, _Structs]:
        used = tuple(each for each in relation.fields if self.wanted.issuperset(each.path[1:]))
        output = (*relation.output[: len(relation.names)], *(each.column for each in used))
        structs: dict[int, dict[tuple[str, ...], Expression]] = {}
        for each in used:
            found = Expression("AttributeReference", (), each.column, each.type, each.name)
            structs.setdefault(each.struct, {})[each.path[1:]] = found
        return replace(relation, output=output, fields=used), {**structs}

    def _passed(self, node: Node, below: _Structs) -> tuple[Node, _Structs]:
        """A node that hands on columns of its children, and with each struct its fields."""
        structs = {column: fields for column, fields in below.items() if column in node.output}
        return _with_columns(node, structs), structs

    def _projected(self, node: Project, made: Mapping[int, Expression], below: _Structs) -> tuple[Node, _Structs]:
        structs: _Structs = {}
        own = {column: self._rewritten(each, below) for column, each in made.items()}
        for column, each in made.items():
            if own[column].column is not None and each.kind == _KIND:
                self._names[column] = own[column].text
            inside = {path: it for path, it in _inside(each, below).items() if path}
            if inside and each.column == column:
                structs[column] = inside
            elif inside:
                structs[column] = {path: replace(it, column=next(self.ids)) for path, it in inside.items()}
            for path, it in inside.items():
                if (at := structs[column][path].column) is not None:
                    own[at] = it
        return _with_columns(replace(node, made=own), structs), structs

    def _grouped(self, groups: Mapping[int, Expression] | None, below: _Structs) -> Mapping[int, Expression] | None:
        return None if groups is None else {column: self._rewritten(each, below) for column, each in groups.items()}

    def _ordered(self, order: tuple[SortKey, ...], below: _Structs) -> tuple[SortKey, ...]:
        return tuple(replace(each, key=self._rewritten(each.key, below)) for each in order)

    def _rewritten(self, expression: Expression, below: _Structs) -> Expression:
        if expression.column is not None:
            text = self._names.get(expression.column)
            is_named = text is not None and expression.text.startswith(_EXTRACTED)
            return replace(expression, text=text) if is_named and text is not None else expression
        if (found := _inside(expression, below).get(())) is not None:
            return found
        children = tuple(self._rewritten(each, below) for each in expression.children)
        # Most expressions have no field, and equal objects are compared faster if they are the same.
        is_same = all(one is other for one, other in zip(children, expression.children, strict=True))
        return expression if is_same else replace(expression, children=children)


def _inside(expression: Expression, below: _Structs) -> _Fields:
    """The columns of the fields of an expression that is a struct, or is a field itself, whose path is empty."""
    path: tuple[str, ...] = ()
    while expression.kind == _KIND:
        path = (expression.text, *path)
        expression = expression.children[0]
    fields = {} if expression.column is None else below.get(expression.column, {})
    return {each[len(path) :]: found for each, found in fields.items() if each[: len(path)] == path}


def _with_columns(node: Node, structs: _Structs) -> Node:
    own = tuple(each.column for fields in structs.values() for each in fields.values() if each.column is not None)
    return replace(node, output=(*node.output, *own)) if own else node
