"""`ExchangeReuse`: equal parts of a plan that Spark runs once, and the filters that would make it run them again.

A filter on only one consumer of a reused exchange makes Spark run the exchange again for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pruning.query.exchanges import between
from pruning.query.expressions import EQUALITIES
from pruning.query.join_condition import BuildSide, equal_keys
from pruning.query.lineage import ProbeColumn, trace
from pruning.query.plan import (
    Expression,
    Filter,
    Generate,
    Grouping,
    Join,
    Node,
    Passthrough,
    Project,
    Union,
    conjuncts_at,
)

_IN_PLACE = (Filter, Project, Generate, Union)


def stays_in_place(node: Node) -> bool:
    """True if an operator other than a join does not shuffle its rows."""
    if isinstance(node, Passthrough):
        return node.kind in {"SubqueryAlias", "ReturnAnswer"}
    return isinstance(node, _IN_PLACE)


# A class of equal nodes, and the columns that partition their rows.
_ReusedRows = tuple[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class SharedExchange:
    """An exchange that Spark runs once for several places of a plan, one of which a filter would change."""

    place: Node
    others: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ExchangeReuse:
    """Exchanges that Spark runs once for several places of a plan, by `Node.id`, and the places of each.

    `_copies` are the columns to which Spark copies a condition of a scan's column, each below the join that sets both
    equal, by scan and column.
    """

    _exchanges: Mapping[int, tuple[_ReusedRows, Node]]
    _places: Mapping[_ReusedRows, Sequence[Node]]
    _sides: Mapping[_ReusedRows, Sequence[tuple[Join, Node]]]
    _copies: Mapping[tuple[int, int], Sequence[tuple[Join, ProbeColumn]]]

    @staticmethod
    def of(root: Node, equal: Mapping[int, int], crosses_shuffle: Callable[[Join, Node], bool]) -> ExchangeReuse:
        """The places of a plan.

        `equal` gives nodes that are not the only ones to make their rows, by `Node.id`, a number that is the same for
        all of these; `crosses_shuffle` says whether the rows of a join side go to other tasks. An aggregate is assumed
        to shuffle its rows, though Spark leaves that out where a join has partitioned them by the same keys.
        """
        candidates = equal.keys() & _with_groups(root)
        exchanges: dict[int, tuple[_ReusedRows, Node]] = {}
        places: dict[_ReusedRows, list[Node]] = {}
        sides: dict[_ReusedRows, list[tuple[Join, Node]]] = {}
        for node in root.walk():
            for child in node.children:
                whole = child if isinstance(node, Join) else node
                if whole.id not in candidates or stays_in_place(node):
                    continue
                if isinstance(node, Join) and not crosses_shuffle(node, child):
                    continue
                key = equal[whole.id], _keys(node, child) if isinstance(node, Join) else ()
                exchanges[child.id] = key, whole
                places.setdefault(key, []).append(whole)
                if isinstance(node, Join):
                    sides.setdefault(key, []).append((node, child))
        is_shared = any(len(each) > 1 for each in places.values())
        return ExchangeReuse(exchanges, places, sides, copied_conditions(root) if is_shared else {})

    def sides(self) -> Iterator[Sequence[tuple[Join, Node]]]:
        """The joins of each exchange that is run once for sides of several joins, with these sides."""
        return (each for each in self._sides.values() if len(each) > 1)

    def changed(self, build_side: BuildSide, probe: ProbeColumn) -> tuple[SharedExchange, ...]:
        """The exchanges that Spark would run for one place alone after a filter of the probe column.

        Only subtrees that contain an aggregate or a window are protected; re-reading a plain scan is cheap, and keys
        reduce it.
        """
        found: dict[tuple[int, ...], SharedExchange] = {}
        copies = self._copies.get((probe.relation.id, probe.column), ())
        for top, relation in ((build_side.join, probe.relation), *((join, each.relation) for join, each in copies)):
            for _, child in between(top, relation.id):
                if child.id in self._exchanges:
                    key, own = self._exchanges[child.id]
                    others = {each.id: each for each in self._places[key] if each.id != own.id}
                    if others:
                        found[(own.id, *others)] = SharedExchange(own, tuple(others.values()))
        return tuple(found.values())


def copied_conditions(root: Node) -> dict[tuple[int, int], list[tuple[Join, ProbeColumn]]]:
    """The columns to which Spark copies a condition of a scan's column, and the join that sets both equal.

    Spark infers from `a = b` and a condition of `a` the same condition of `b` (`InferFiltersFromConstraints`).
    """
    found: dict[tuple[int, int], list[tuple[Join, ProbeColumn]]] = {}
    for join in root.walk():
        if not isinstance(join, Join):
            continue
        for first, second in equal_keys(join, kinds=("EqualTo",)):
            left, right = _scanned(join.left, first), _scanned(join.right, second)
            (_, of_left), (_, of_right) = join.sides
            for own, other, rules in ((left, right, of_right), (right, left, of_left)):
                if rules.gets_conditions:
                    for each in own:
                        found.setdefault((each.relation.id, each.column), []).extend((join, it) for it in other)
    return found


def _scanned(side: Node, key: Expression) -> list[ProbeColumn]:
    return [] if key.column is None else [each for each in trace(side, key.column) if isinstance(each, ProbeColumn)]


def _with_groups(root: Node) -> set[int]:
    """The places of nodes that group rows, or have such a node below them."""
    found: set[int] = set()
    for node in reversed(list(root.walk())):
        if isinstance(node, Grouping) or any(each.id in found for each in node.children):
            found.add(node.id)
    return found


def _keys(join: Join, side: Node) -> tuple[str, ...]:
    """The equality keys of a join's side, each column written as its index in the output."""
    places = {column: str(at) for at, column in enumerate(side.output)}
    return tuple(
        sorted(
            _placed(child, places)
            for _, part in conjuncts_at(join.condition)
            if part.kind in EQUALITIES
            for child in part.children
            if child.columns and child.columns <= places.keys()
        )
    )


def _placed(expression: Expression, places: Mapping[int, str]) -> str:
    if expression.column is not None:
        return places[expression.column]
    below = ",".join(_placed(each, places) for each in expression.children)
    return f"{expression.kind}({below}){expression.type} {expression.text}"
