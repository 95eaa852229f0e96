"""Shuffles and broadcasts of a plan: where keys reduce their rows, which exchanges Spark reuses, which sides fit.

- The benefit of a filter is estimated before its keys are known: bytes of the scan, rows of a shuffle or hash table.
- A filter on only one consumer of a reused exchange makes Spark run the exchange again for the others.
- Sides to broadcast follow from the sizes of finished builds, as in Flink's adaptive broadcast join (FLIP-483).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from pruning.limits import LIMITS, Limits
from pruning.options import BroadcastStrategy
from pruning.query.join_condition import BuildSide
from pruning.query.lineage import ProbeColumn
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
from pruning.scan.statistics import ColumnStatistics
from pruning.values.byte_strings import ByteStrings, IntArray
from pruning.values.ranges import RangeSet

_IN_PLACE = (Filter, Project, Generate, Union)


def unprunable_fraction(column: ColumnStatistics, sizes: IntArray, limits: Limits = LIMITS) -> float:
    """The share, 0 to 1, of all bytes in containers that a single key in the midst of the column's values keeps.

    Containers with unknown bounds count as those with known ones; without any bound all are kept.

    >>> from pruning.values.types import ValueType
    >>> days = ColumnStatistics.of(ValueType("int"), [(1, 10, 0), (11, 20, 0), (1, 20, 0)])
    >>> round(unprunable_fraction(days, np.array([100, 100, 200])), 2)
    0.75
    """
    known = column.has_low & column.has_high
    total = int(sizes[known].sum())
    if int(sizes.sum()) <= 0:
        return 0.0
    if total <= 0 or len(sizes) == 1:
        return 1.0
    if isinstance(column.lows, ByteStrings) or isinstance(column.highs, ByteStrings) or not column.type.has_density:
        return _share_at_a_bound(column.take(np.flatnonzero(known)), sizes[known], total)
    lows, highs = column.lows[known].astype(np.float64), column.highs[known].astype(np.float64)
    shares = (highs - lows + 1) / (highs.max() - lows.min() + 1)
    shares = np.where(shares >= limits.nearly_all, 1.0, np.clip(shares, 0.0, 1.0))
    return float((shares * sizes[known]).sum() / total)


def _share_at_a_bound(column: ColumnStatistics, sizes: IntArray, total: int) -> float:
    """The share of all bytes in containers that hold the lower bound of one of them, on average.

    Values without density, such as texts, have no distance: the bounds themselves stand for keys.
    """
    _, (lows, highs), _ = column.against(RangeSet.of_codes(column.type, column.lows))
    by_low, by_high = np.argsort(lows, kind="stable"), np.argsort(highs, kind="stable")
    begun = np.concatenate([[0], np.cumsum(sizes[by_low])])[np.searchsorted(lows[by_low], lows, "right")]
    ended = np.concatenate([[0], np.cumsum(sizes[by_high])])[np.searchsorted(highs[by_high], lows, "left")]
    return float(np.clip(np.average(begun - ended) / total, 0.0, 1.0))


def between(top: Node, relation: Relation) -> Iterator[tuple[Node, Node]]:
    """Each node on the path from `top` down to a scan, with its child on that path."""
    node = top
    while node is not relation and node.id != relation.id:
        child = next(
            each for each in (*node.children, *node.subqueries) if each.subtree_start <= relation.id <= each.id
        )
        yield node, child
        node = child


def stays_in_place(node: Node) -> bool:
    """True if an operator other than a join does not shuffle its rows."""
    if isinstance(node, Passthrough):
        return node.kind in {"SubqueryAlias", "ReturnAnswer"}
    return isinstance(node, _IN_PLACE)


# A class of equal nodes, and the columns that partition their rows.
_ReusedRows = tuple[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ExchangeReuse:
    """Exchanges that Spark runs once for several places of a plan, by `Node.id`, and the places of each."""

    _exchanges: Mapping[int, tuple[_ReusedRows, Node]]
    _places: Mapping[_ReusedRows, Sequence[Node]]
    _sides: Mapping[_ReusedRows, Sequence[tuple[Join, Node]]]

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
        return ExchangeReuse(exchanges, places, sides)

    def sides(self) -> Iterator[Sequence[tuple[Join, Node]]]:
        """The joins of each exchange that is run once for sides of several joins, with these sides."""
        return (each for each in self._sides.values() if len(each) > 1)

    def others(self, build_side: BuildSide, probe: ProbeColumn) -> Sequence[Node]:
        """The other places of each exchange that a filter of the probe column would make Spark run again.

        Only subtrees that contain an aggregate or a window are protected; re-reading a plain scan is cheap, and keys
        reduce it.
        """
        found: dict[int, Node] = {}
        for _, child in between(build_side.join, probe.relation):
            if child.id in self._exchanges:
                key, own = self._exchanges[child.id]
                found |= {each.id: each for each in self._places[key] if each.id != own.id}
        return tuple(found.values())


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
            if part.kind in {"EqualTo", "EqualNullSafe"}
            for child in part.children
            if child.columns and child.columns <= places.keys()
        )
    )


def _placed(expression: Expression, places: Mapping[int, str]) -> str:
    if expression.column is not None:
        return places[expression.column]
    below = ",".join(_placed(each, places) for each in expression.children)
    return f"{expression.kind}({below}){expression.type} {expression.text}"


# Join types that allow a broadcast of the side: a row of it without a match does not reach the result.
_LEFT_MAY = frozenset({"Inner", "Cross", "RightOuter"})
_RIGHT_MAY = frozenset({"Inner", "Cross", "LeftOuter", "LeftSemi", "LeftAnti", "ExistenceJoin", "LeftSingle"})


class BroadcastSide(Enum):
    """The side of a join to broadcast; the values are the names that the engine's Java code reads."""

    LEFT = "left"
    RIGHT = "right"
    NEITHER = "neither"


def broadcast_sides(
    root: Node, sizes: Mapping[int, int], limit: int, strategy: BroadcastStrategy
) -> dict[int, BroadcastSide]:
    """The side to broadcast for joins of a plan, by `Join.id`; joins that are not in it stay as they are.

    `sizes` are the bytes of materialized nodes, by `Node.id`; those above `limit` are not broadcast.
    """
    if strategy is BroadcastStrategy.NONE:
        return {}
    few = {at: size for at, size in sizes.items() if size <= limit}
    chosen: dict[int, BroadcastSide] = {}
    for node in root.walk():
        if not isinstance(node, Join):
            continue
        side = _broadcast_side(node, few)
        if side is not BroadcastSide.NEITHER or strategy is BroadcastStrategy.RUNTIME_ONLY:
            chosen[node.id] = side
    return chosen


def reuses_kept(
    shared: Iterable[Sequence[tuple[Join, Node]]],
    chosen: Mapping[int, BroadcastSide],
    pruned: Collection[int],
) -> dict[int, BroadcastSide]:
    """The joins that have to stay shuffled, by `Join.id`, so that shuffles of equal sides stay one.

    - `shared`: the joins that shuffle equal sides, with these sides; `chosen`: joins whose broadcast side is known
    - `pruned`: pruned scans and materialized nodes, by `Node.id`

    Where keys have made the other side of a join smaller, Spark would broadcast it, by its size or as soon as its stage
    has ended, and run the equal side once more in place of the shuffle.
    """
    kept: dict[int, BroadcastSide] = {}
    for joins in shared:
        open_joins = [each for each in joins if each[0].id not in chosen]
        if len(open_joins) > 1:
            others = ((join, join.right if side is join.left else join.left) for join, side in open_joins)
            kept |= {
                join.id: BroadcastSide.NEITHER
                for join, other in others
                if any(each.id in pruned for each in other.walk())
            }
    return kept


def may_be_broadcast(join: Join, side: Node) -> bool:
    """True if the type of a join allows Spark to broadcast `side`."""
    return join.type in (_LEFT_MAY if side is join.left else _RIGHT_MAY)


def _broadcast_side(join: Join, few: Mapping[int, int]) -> BroadcastSide:
    sides = (
        (BroadcastSide.LEFT, join.left, join.type in _LEFT_MAY),
        (BroadcastSide.RIGHT, join.right, join.type in _RIGHT_MAY),
    )
    known = [(few[node.id], side) for side, node, may in sides if may and node.id in few]
    return min(known, key=lambda each: each[0])[1] if known else BroadcastSide.NEITHER
