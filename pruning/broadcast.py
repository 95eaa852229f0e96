"""Which side of which join is broadcast, from the sizes that builds really had.

Source: Flink's adaptive broadcast join (FLIP-483): sides by join type, the smaller one of an inner join.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from pruning.query_plan import Join, Node

# A side may be on every machine where no row of it reaches the result for want of a match.
_LEFT_MAY = frozenset({"Inner", "Cross", "RightOuter"})
_RIGHT_MAY = frozenset({"Inner", "Cross", "LeftOuter", "LeftSemi", "LeftAnti", "ExistenceJoin", "LeftSingle"})


class BroadcastStrategy(Enum):
    """Who decides on broadcasts in a pruned query."""

    AUTO = "builds that have run by the size they had, all else as Spark plans it"
    RUNTIME_ONLY = "builds that have run by the size they had, no hash join on an estimate"
    NONE = "as Spark plans it: the query runs each build again"


class Side(Enum):
    """A side of a join, and the engine's word for a join of which none is to be broadcast."""

    LEFT = "left"
    RIGHT = "right"
    NEITHER = "neither"


def broadcast_sides(root: Node, sizes: Mapping[int, int], limit: int, strategy: BroadcastStrategy) -> dict[int, Side]:
    """What to tell the joins of a plan, by `Join.at`; those that are not in it stay as they are.

    `sizes` are the bytes of nodes whose rows are there, by `Node.at`; larger ones than `limit` are not broadcast.
    """
    if strategy is BroadcastStrategy.NONE:
        return {}
    few = {at: size for at, size in sizes.items() if size <= limit}
    told: dict[int, Side] = {}
    for node in root.walk():
        if not isinstance(node, Join):
            continue
        side = _side(node, few)
        if side is not Side.NEITHER or strategy is BroadcastStrategy.RUNTIME_ONLY:
            told[node.at] = side
    return told


def may_be_broadcast(join: Join, side: Node) -> bool:
    """Whether a join can be made where one of its sides is whole on every machine."""
    return join.type in (_LEFT_MAY if side is join.left else _RIGHT_MAY)


def _side(join: Join, few: Mapping[int, int]) -> Side:
    sides = (
        (Side.LEFT, join.left, join.type in _LEFT_MAY),
        (Side.RIGHT, join.right, join.type in _RIGHT_MAY),
    )
    known = [(few[node.at], side) for side, node, may in sides if may and node.at in few]
    return min(known, key=lambda each: each[0])[1] if known else Side.NEITHER
