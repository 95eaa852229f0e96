"""The sides of joins to broadcast in a pruned query.

They follow from the sizes of finished builds, as in Flink's adaptive broadcast join (FLIP-483), and from expressions
that Spark evaluates only for rows with a match as long as it broadcasts the other side.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum

from pruning.options import BroadcastStrategy, PruningOptions
from pruning.query.join_graph import JoinGraph
from pruning.query.plan import GlobalAggregate, Grouping, Join, Node, Project
from pruning.query.plan_statistics import QueryFacts


class BroadcastSide(Enum):
    """The side of a join to broadcast; the values are the names that the engine's Java code reads."""

    LEFT = "left"
    RIGHT = "right"
    NEITHER = "neither"


def small_sides(
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


def broadcasts_kept(
    root: Node,
    is_broadcast_side: Callable[[Join, Node], bool],
    materialized: Collection[int],
    pruned: Collection[int],
) -> dict[int, BroadcastSide]:
    """The joins that have to broadcast the side which they broadcast without pruning, by `Join.id`.

    - `is_broadcast_side`: True for the side that Spark broadcasts by its estimates without pruning
    - `materialized`: nodes whose rows are known, so that nothing of them is evaluated again; `pruned`: these and pruned
      scans, by `Node.id`

    Generated code computes a column of the other, streamed side only where a row has a match. If that side became so
    small that Spark broadcast it, or if both were shuffled, an expression would be computed for all of its rows.
    """
    late = [
        node.id
        for node in root.walk()
        if node.may_raise and isinstance(node, Project | Grouping | GlobalAggregate) and node.id not in materialized
    ]
    kept: dict[int, BroadcastSide] = {}
    for join in (node for node in root.walk() if late and isinstance(node, Join)):
        if not _has_any(join, pruned):
            continue
        sides = ((join.left, join.right, BroadcastSide.RIGHT), (join.right, join.left, BroadcastSide.LEFT))
        for streamed, other, side in sides:
            if _has_any(streamed, late) and is_broadcast_side(join, other):
                kept[join.id] = side
    return kept


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
            kept |= {join.id: BroadcastSide.NEITHER for join, other in others if _has_any(other, pruned)}
    return kept


def _has_any(top: Node, places: Collection[int]) -> bool:
    """True if a node of a subtree is at one of the places."""
    return any(map(top.contains, places))


def may_be_broadcast(join: Join, side: Node) -> bool:
    """True if the type of a join allows Spark to broadcast `side`."""
    return any(rules.may_be_broadcast for node, rules in join.sides if node is side)


def _broadcast_side(join: Join, few: Mapping[int, int]) -> BroadcastSide:
    sides = zip((BroadcastSide.LEFT, BroadcastSide.RIGHT), join.sides, strict=True)
    known = [(few[node.id], side) for side, (node, rules) in sides if rules.may_be_broadcast and node.id in few]
    return min(known, key=lambda each: each[0])[1] if known else BroadcastSide.NEITHER


def effective_strategy(graph: JoinGraph, options: PruningOptions, facts: QueryFacts) -> BroadcastStrategy:
    """The broadcast strategy; NONE if Spark's dynamic partition pruning, which local relations end, is not replaced."""
    reached = {probe.column for edge in graph.edges for probe in edge.probes}
    is_reached = facts.partitions <= reached
    return BroadcastStrategy[options.broadcast_strategy] if is_reached else BroadcastStrategy.NONE
