"""The bytes that any key keeps, and the path from a join to a scan."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pruning.query.plan import Node
from pruning.scan.statistics import ColumnStatistics
from pruning.values.byte_strings import ByteStrings, IntArray
from pruning.values.ranges import RangeSet

# Share of a column's span with which a container is taken to hold some key, whatever the keys are; share of all bytes
# without bounds beside which those of the others tell nothing.
_NEARLY_ALL = 0.95


def unprunable_fraction(column: ColumnStatistics, sizes: IntArray) -> float:
    """The share, 0 to 1, of all bytes in containers that a single key in the midst of the column's values keeps.

    Containers with unknown bounds count as those with known ones; where nearly none has a bound, all are kept.

    >>> from pruning.values.types import ValueType
    >>> days = ColumnStatistics.of(ValueType("int"), [(1, 10, 0), (11, 20, 0), (1, 20, 0)])
    >>> round(unprunable_fraction(days, np.array([100, 100, 200])), 2)
    0.75
    """
    known = column.has_low & column.has_high
    total, every = int(sizes[known].sum()), int(sizes.sum())
    if every <= 0:
        return 0.0
    if total <= (1.0 - _NEARLY_ALL) * every or len(sizes) == 1:
        return 1.0
    if isinstance(column.lows, ByteStrings) or isinstance(column.highs, ByteStrings) or not column.type.has_density:
        return _share_at_a_bound(column.take(np.flatnonzero(known)), sizes[known], total)
    lows, highs = column.lows[known].astype(np.float64), column.highs[known].astype(np.float64)
    shares = (highs - lows + 1) / (highs.max() - lows.min() + 1)
    shares = np.where(shares >= _NEARLY_ALL, 1.0, np.clip(shares, 0.0, 1.0))
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


def between(top: Node, place: int) -> Iterator[tuple[Node, Node]]:
    """Each node on the path from `top` down to the node at a place, with its child on that path."""
    node = top
    while node.id != place:
        child = next(each for each in (*node.children, *node.subqueries) if each.contains(place))
        yield node, child
        node = child
