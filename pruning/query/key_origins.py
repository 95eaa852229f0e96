"""Origins of keys: the scan columns that hold every key of a build side, so that file statistics bound its keys.

- `origins_of()` finds these columns without running the build side.
- `domain_from_statistics()` gives the values that such a column may hold in the files that conditions leave.
- `statistics_columns()` lists the columns whose statistics the decisions on a query's filters may need.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from pruning.query.join_graph import JoinGraph
from pruning.query.key_functions import probed_column
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
from pruning.scan.statistics import Containers
from pruning.values.domain import Domain
from pruning.values.ranges import BoolArray, RangeSet
from pruning.values.types import TEMPORAL, ValueType

# Operators that pass on some of the rows of their one child, unchanged.
_SOME_ROWS = frozenset({"GlobalLimit", "LocalLimit", "Offset", "Tail", "Sample"})


@dataclass(frozen=True, slots=True)
class KeyOrigin:
    """A column of a scan, and conditions that every row of the scan fulfils if it reaches the key."""

    relation: Relation
    column: int
    conditions: tuple[Expression, ...]

    @property
    def width(self) -> float:
        """The values of the column that are one value of the key: each is one itself."""
        return 1.0


KeyOrigins: TypeAlias = tuple[KeyOrigin, ...]


def origins_of(node: Node, key: Expression) -> KeyOrigins:
    """Columns of scans that together hold every value but NULL of a key of `node`; empty if they are not known."""
    # Different dates may share an instant, so the dates in a file do not bound dates that are compared as instants.
    column = key.column if key.type in TEMPORAL else probed_column(key)
    found = [] if column is None else list(_origins(node, column, ()))
    return () if None in found else tuple(each for each in found if each is not None)


def _origins(node: Node, column: int, conditions: tuple[Expression, ...]) -> Iterator[KeyOrigin | None]:
    match node:
        case Relation():
            yield KeyOrigin(node, column, _about(conditions, node.output))
        case Filter(condition=condition):
            parts = (part for _, part in conjuncts_at(condition))
            yield from _origins(node.children[0], column, (*conditions, *parts))
        case Passthrough() | Generate() if column in node.children[0].output:
            yield from _origins(node.children[0], column, _about(conditions, node.children[0].output))
        case Project(made=made) if made is not None and node.is_deterministic:
            yield from _below(node, made, column, conditions)
        case Grouping(groups=groups) if groups is not None and column in groups:
            yield from _below(node, groups, column, conditions)
        case Union():
            # The conditions name columns of the union, whose ids a branch may use for other columns.
            for child in node.children:
                yield from _origins(child, child.output[node.output.index(column)], ())
        case Join() if (column in node.left.output) is not (column in node.right.output):
            own, other = (node.left, node.right) if column in node.left.output else (node.right, node.left)
            own_columns = set(own.output).difference(other.output) if conditions else ()
            yield from _origins(own, column, _about(conditions, own_columns))
        case _ if node.kind in _SOME_ROWS and column in node.children[0].output:
            yield from _origins(node.children[0], column, conditions)
        case _:
            yield None


def _below(
    node: Node, made: Mapping[int, Expression], column: int, conditions: tuple[Expression, ...]
) -> Iterator[KeyOrigin | None]:
    expression = made.get(column)
    if expression is None or expression.column is None:
        yield None
        return
    # Most columns are traced without conditions, so the columns that conditions may use are not looked for.
    unchanged = {at for at, each in made.items() if each.column == at} if conditions else ()
    yield from _origins(node.children[0], expression.column, _about(conditions, unchanged))


def _about(conditions: tuple[Expression, ...], columns: Collection[int]) -> tuple[Expression, ...]:
    """The conditions that use only `columns`; elsewhere in the plan an id may name another column."""
    return tuple(each for each in conditions if each.columns <= set(columns))


def domain_from_statistics(containers: Containers, name: str, kept: BoolArray, type_: ValueType) -> Domain:
    """The values but NULL that the containers where `kept` is True may hold in a column: one range per container."""
    column = containers.columns.get(name)
    kept = kept & (containers.rows != 0)
    if column is None:
        return Domain(RangeSet.all(type_), nan=type_.is_float) if kept.any() else Domain.none(type_)
    some = column.take(np.flatnonzero(kept & ~column.all_null(containers.rows)))
    # Bounds in the wrong order would give an empty range, which would be unsound.
    _, _, is_known = some.against(RangeSet.none(type_))
    ordered = RangeSet.of_ranges(type_, some.lows, some.highs) if is_known.all() else RangeSet.all(type_)
    return Domain(ordered, nan=type_.is_float and bool(some.may_have_nan.any()))


def conditions_of(root: Node, relation: Relation) -> tuple[Expression, ...]:
    """The conditions of the filters directly above a scan, which all its rows have to fulfil."""
    found = filters_above(root).get(relation.id, ())
    return tuple(each.condition for each in found if each.condition is not None)


def filters_above(root: Node) -> dict[int, tuple[Filter, ...]]:
    """The filters directly above each scan, by `Relation.id`."""
    found: dict[int, tuple[Filter, ...]] = {}
    waiting: list[tuple[Node, tuple[Filter, ...]]] = [(root, ())]
    while waiting:
        node, above = waiting.pop()
        below: tuple[Filter, ...] = ()
        match node:
            case Relation():
                found[node.id] = above
            case Filter():
                below = (*above, node)
            case Passthrough():
                below = above
            case _:
                pass
        waiting += [(each, below) for each in node.children]
        waiting += [(each, ()) for each in node.subqueries]
    return found


def statistics_columns(graph: JoinGraph) -> Mapping[int, frozenset[int]]:
    """Columns by `Relation.id` that keys may filter or come from, and those in conditions directly above a scan."""
    found: dict[int, set[int]] = {}
    for at, column in _asked(graph):
        found.setdefault(at, set()).add(column)
    own = {each.id: set(each.output) for each in graph.relations}
    return {at: frozenset(columns & own[at]) for at, columns in found.items()}


def _asked(graph: JoinGraph) -> Iterator[tuple[int, int]]:
    for node, expression in _estimated(graph.root):
        yield from ((each.relation.id, each.column) for each in origins_of(node, expression))
    for edge in graph.edges:
        yield from ((each.relation.id, each.column) for each in edge.probes)
        for origin in origins_of(edge.build_side.node, edge.build_side.key):
            yield origin.relation.id, origin.column
            yield from ((origin.relation.id, column) for column in _named(*origin.conditions))
    for at, filters in filters_above(graph.root).items():
        conditions = (each.condition for each in filters if each.condition is not None)
        yield from ((at, column) for column in _named(*conditions))


def _estimated(root: Node) -> Iterator[tuple[Node, Expression]]:
    """Columns of nodes whose values an estimate of rows counts: those of conditions and of groups."""
    for node in root.walk():
        if isinstance(node, Filter) and node.condition is not None:
            for column in node.condition.columns:
                yield node.children[0], Expression("AttributeReference", (), column)
        elif isinstance(node, Grouping):
            yield from ((node.children[0], each) for each in (node.groups or {}).values())


def _named(*conditions: Expression) -> Iterator[int]:
    for each in conditions:
        yield from each.columns
