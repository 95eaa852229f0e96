"""The bytes that any key keeps, the path from a join to a scan, and the sides of joins to broadcast.

Sides to broadcast follow from the sizes of finished builds, as in Flink's adaptive broadcast join (FLIP-483).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum

import numpy as np

from pruning.limits import LIMITS, Limits
from pruning.options import BroadcastStrategy
from pruning.query.plan import Join, Node, Relation
from pruning.scan.statistics import ColumnStatistics
from pruning.values.byte_strings import ByteStrings, IntArray
from pruning.values.ranges import RangeSet


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


def may_be_broadcast(join: Join, side: Node) -> bool:
    """True if the type of a join allows Spark to broadcast `side`."""
    return any(rules.may_be_broadcast for node, rules in join.sides if node is side)


def _broadcast_side(join: Join, few: Mapping[int, int]) -> BroadcastSide:
    sides = zip((BroadcastSide.LEFT, BroadcastSide.RIGHT), join.sides, strict=True)
    known = [(few[node.id], side) for side, (node, rules) in sides if rules.may_be_broadcast and node.id in few]
    return min(known, key=lambda each: each[0])[1] if known else BroadcastSide.NEITHER
