"""Where boxes of a picture stand: in columns from left to right, in an order that leaves few arrows crossing."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

_SWEEPS = 6
_WIDEST_GAPS = 3


def untangled(columns: Sequence[Sequence[T]], links: Sequence[tuple[T, T]]) -> tuple[tuple[T, ...], ...]:
    """The items of each column in another order: each near the middle of what it is linked to in the next columns.

    >>> untangled([["a", "b"], ["c", "d"]], [("a", "d"), ("b", "c")])
    (('a', 'b'), ('d', 'c'))
    """
    neighbours: dict[T, list[T]] = {}
    for first, second in links:
        neighbours.setdefault(first, []).append(second)
        neighbours.setdefault(second, []).append(first)
    found = [list(column) for column in columns]
    for sweep in range(_SWEEPS):
        places = range(1, len(found)) if sweep % 2 == 0 else range(len(found) - 2, -1, -1)
        for place in places:
            other = found[place - 1 if sweep % 2 == 0 else place + 1]
            heights = {item: at / max(1, len(other) - 1) for at, item in enumerate(other)}
            found[place].sort(key=lambda item, heights=heights: _middle(item, neighbours, heights))  # type: ignore[misc]
    return tuple(map(tuple, found))


def _middle(item: T, neighbours: Mapping[T, Sequence[T]], heights: Mapping[T, float]) -> float:
    known = [heights[each] for each in neighbours.get(item, ()) if each in heights]
    return sum(known) / len(known) if known else 0.5


def stacked(columns: Sequence[Sequence[T]], heights: Mapping[T, int], gap: int) -> tuple[dict[T, int], int]:
    """The top of each item, and the height of all; shorter columns are centred, with wider gaps.

    >>> stacked([["a", "b"], ["c"]], {"a": 10, "b": 20, "c": 10}, gap=4)
    ({'a': 0, 'b': 14, 'c': 12}, 34)
    """
    totals = [sum(heights[item] for item in column) + gap * (len(column) - 1) for column in columns]
    tallest = max(totals, default=0)
    tops: dict[T, int] = {}
    for column, total in zip(columns, totals, strict=True):
        spread = min((tallest - total) // len(column), _WIDEST_GAPS * gap) if column else 0
        top = (tallest - total - spread * (len(column) - 1)) // 2
        for item in column:
            tops[item] = top
            top += heights[item] + gap + spread
    return tops, tallest
