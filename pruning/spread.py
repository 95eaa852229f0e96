"""What keys may spare a scan before any is known: bytes that are not read, rows that are not sent elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from pruning.byte_strings import ByteStrings, IntArray
from pruning.join_graph import Source
from pruning.lineage import Target
from pruning.query_plan import Filter, Generate, Join, Node, Passing, Project, Relation, Union
from pruning.statistics import ColumnStatistics

# A container with so large a part of a column's values is taken to hold some key, whatever the keys are.
_NEARLY_ALL = 0.95
_IN_PLACE = (Filter, Project, Generate, Union)


def covered_share(column: ColumnStatistics, sizes: IntArray) -> float:
    """The share, 0 to 1, of all bytes in containers that a single key in the midst of the column's values keeps.

    A container whose bounds are unknown counts as one that is skipped: too much hope costs a build, too little a scan.

    >>> from pruning.value_type import ValueType
    >>> days = ColumnStatistics.of(ValueType("int"), [(1, 10, 0), (11, 20, 0), (1, 20, 0)])
    >>> round(covered_share(days, np.array([100, 100, 200])), 2)
    0.75
    """
    known = column.has_low & column.has_high
    total = int(sizes.sum())
    if not known.any() or total <= 0:
        return 0.0
    if len(sizes) == 1:
        return 1.0
    if isinstance(column.lows, ByteStrings) or isinstance(column.highs, ByteStrings) or not column.type.has_density:
        return 0.0
    lows, highs = column.lows[known].astype(np.float64), column.highs[known].astype(np.float64)
    shares = (highs - lows + 1) / (highs.max() - lows.min() + 1)
    shares = np.where(shares >= _NEARLY_ALL, 1.0, np.clip(shares, 0.0, 1.0))
    return float((shares * sizes[known]).sum() / total)


def is_sent(source: Source, target: Target, is_broadcast: Callable[[Join], bool]) -> bool:
    """Whether rows of a scan go to other tasks on their way through the join that drops them.

    Joins one of whose sides is broadcast, and what works row by row, leave them where they are.
    """
    return any(not _is_in_place(node, is_broadcast) for node, _ in between(source.join, target.relation))


def is_hashed(source: Source, target: Target, is_broadcast: Callable[[Join, Node], bool]) -> bool:
    """Whether rows of a scan are of the side that some join broadcasts, up to the one that drops them."""
    return any(
        isinstance(node, Join) and is_broadcast(node, child) for node, child in between(source.join, target.relation)
    )


def between(top: Node, relation: Relation) -> Iterator[tuple[Node, Node]]:
    """Each node on the way down to a scan, and its child there."""
    node = top
    while node is not relation and node.at != relation.at:
        child = next(each for each in (*node.children, *node.subqueries) if each.first <= relation.at <= each.at)
        yield node, child
        node = child


def stays_in_place(node: Node) -> bool:
    """Whether an operator that is no join leaves rows with the tasks that have them."""
    if isinstance(node, Passing):
        return node.kind in {"SubqueryAlias", "ReturnAnswer"}
    return isinstance(node, _IN_PLACE)


def _is_in_place(node: Node, is_broadcast: Callable[[Join], bool]) -> bool:
    return is_broadcast(node) if isinstance(node, Join) else stays_in_place(node)
