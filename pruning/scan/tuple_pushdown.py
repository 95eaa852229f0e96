"""Ranges of two columns together, in lexicographic order, for tables that are sorted by these columns.

Sorted keys leave gaps between them. A container whose bounds lie in one gap holds no key:

    (a > 1 OR a = 1 AND b >= 5) AND (a < 3 OR a = 3 AND b <= 7)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from pruning.limits import LIMITS, Limits
from pruning.scan.key_filter import KeyFilter, KeyPoints
from pruning.scan.pushdown import PushdownCapabilities
from pruning.scan.skipping import weights
from pruning.scan.statistics import Containers
from pruning.values import encoding as code
from pruning.values.byte_strings import IntArray
from pruning.values.ranges import BoolArray, RangeSet
from pruning.values.types import ValueType

# Columns of a key, since each pair of them is tried in both orders.
_MOST_COLUMNS = 3


@dataclass(frozen=True, slots=True, eq=False)
class PushedTupleRanges:
    """Ranges of keys of two `columns` that storage gets as a predicate, `lows` to `highs` as codes of `types`.

    Range `i` goes from the key `lows[0][i], lows[1][i]` to the key `highs[0][i], highs[1][i]`.
    """

    columns: tuple[str, str]
    types: tuple[ValueType, ValueType]
    lows: tuple[IntArray, IntArray]
    highs: tuple[IntArray, IntArray]
    containers_skipped: int
    bytes_skipped: int

    def __len__(self) -> int:
        return len(self.lows[0])

    def skips(self, level: Containers) -> BoolArray:
        """An array: True for each container that no range overlaps; storage evaluates each end of a range by itself."""
        bounds = _bounds(level, self.columns, self.types)
        if bounds is None:
            return np.zeros(len(level), bool)
        (low, high), (low2, high2) = bounds
        reached = np.zeros(len(level), bool)
        for first, second, last, last2 in zip(*self.lows, *self.highs, strict=True):
            from_below = (high > first) | ((low <= first) & (first <= high) & (high2 >= second))
            from_above = (low < last) | ((low <= last) & (last <= high) & (low2 <= last2))
            reached |= from_below & from_above
        is_null = np.logical_or.reduce([level.columns[name].all_null(level.rows) for name in self.columns])
        gone: BoolArray = ~reached | is_null
        return gone


def plan_tuple_predicates(
    levels: Sequence[Containers],
    kept: Sequence[BoolArray],
    filters: Sequence[KeyFilter],
    capabilities: PushdownCapabilities,
    limits: Limits = LIMITS,
) -> tuple[PushedTupleRanges, ...]:
    """The ranges by which keys of several columns skip containers that are otherwise `kept`, by level.

    Each filter gets the ordered pair of columns that skips most, since a table is sorted by few columns at best.
    """
    remaining = [np.where(each, weights(level), 0) for level, each in zip(levels, kept, strict=True)]
    found = (_best(levels, remaining, each.points, capabilities, limits) for each in filters if each.points is not None)
    return tuple(each for each in found if each is not None and each.containers_skipped)


def _best(
    levels: Sequence[Containers],
    remaining: Sequence[IntArray],
    points: KeyPoints,
    capabilities: PushdownCapabilities,
    limits: Limits,
) -> PushedTupleRanges | None:
    if capabilities.push_refusal is not None or len(points.rows) == 0 or not any(each.any() for each in remaining):
        return None
    stored = [at for at, name in enumerate(points.names) if not any(_is_partition(each, name) for each in levels)]
    plain = [at for at in stored if _is_plain(points, at, capabilities)][:_MOST_COLUMNS]
    predicates = [_predicate(levels, remaining, points, pair, limits.tuple_ranges) for pair in permutations(plain, 2)]
    return max(predicates, key=lambda each: each.bytes_skipped, default=None)


def _predicate(
    levels: Sequence[Containers], remaining: Sequence[IntArray], points: KeyPoints, pair: tuple[int, ...], most: int
) -> PushedTupleRanges:
    at, at2 = pair
    names, types = (points.names[at], points.names[at2]), (points.types[at], points.types[at2])
    first, second = _in_order(*(np.asarray(points.rows.columns[each]) for each in pair), is_sorted=pair == (0, 1))
    order = _TupleOrder.of(first, second)
    found = [_gaps(level, weight, names, types, order) for level, weight in zip(levels, remaining, strict=True)]
    gaps, worth = (np.concatenate(each) for each in zip(*found, strict=True))
    cuts = _heaviest(gaps, worth, len(first), most)
    begins, ends = np.concatenate([[0], cuts]), np.concatenate([cuts, [len(first)]]) - 1
    predicate = PushedTupleRanges(names, types, (first[begins], second[begins]), (first[ends], second[ends]), 0, 0)
    gone = [(weight > 0) & predicate.skips(level) for level, weight in zip(levels, remaining, strict=True)]
    size = sum(int(weight[each].sum()) for weight, each in zip(remaining, gone, strict=True))
    return replace(predicate, containers_skipped=sum(int(each.sum()) for each in gone), bytes_skipped=size)


def _is_partition(level: Containers, name: str) -> bool:
    """True if values come from folder names: file readers get no condition that names a partition column."""
    return name in level.columns and level.columns[name].is_partition


def _is_plain(points: KeyPoints, at: int, capabilities: PushdownCapabilities) -> bool:
    """True if storage compares bounds of a column without widening; else each end of a range would have to be moved."""
    type_, codes = points.types[at], points.rows.columns[at]
    if not isinstance(codes, np.ndarray) or not (type_.is_integer or type_.name == "date"):
        return False
    ranges = RangeSet.of_codes(type_, np.array([codes.min(), codes.max()]))
    return capabilities.widen(points.names[at], ranges) == ranges


def _in_order(first: IntArray, second: IntArray, *, is_sorted: bool) -> tuple[IntArray, IntArray]:
    if is_sorted:
        return first, second
    order = np.lexsort((second, first))
    return first[order], second[order]


@dataclass(frozen=True, slots=True)
class _TupleOrder:
    """Keys of two columns in lexicographic order, encoded so that pairs of values can be located among them.

    `numbers` are the ranks of the first values, multiplied so that the ranks of all `distinct` second values fit in
    between; `sums` has the sum of both ranks of each key.
    """

    first: IntArray
    distinct: IntArray
    numbers: IntArray
    sums: IntArray

    @staticmethod
    def of(first: IntArray, second: IntArray) -> _TupleOrder:
        """The encoded keys; they must be sorted by `first`, then by `second`."""
        distinct = np.asarray(code.sort_unique(second))
        changes = np.concatenate([[0], first[1:] != first[:-1]])
        numbers = np.cumsum(changes) * (len(distinct) + 1)
        return _TupleOrder(first, distinct, numbers, numbers + np.searchsorted(distinct, second, "left"))

    def below(self, first: IntArray, second: IntArray) -> IntArray:
        """The number of keys before each pair."""
        return self._places(first, np.searchsorted(self.distinct, second, "left"))

    def up_to(self, first: IntArray, second: IntArray) -> IntArray:
        """The number of keys up to and including each pair."""
        return self._places(first, np.searchsorted(self.distinct, second, "right"))

    def _places(self, first: IntArray, ranks: IntArray) -> IntArray:
        begins = np.searchsorted(self.first, first, "left")
        is_there = begins < np.searchsorted(self.first, first, "right")
        asked = self.numbers[np.minimum(begins, len(self.numbers) - 1)] + ranks
        return np.where(is_there, np.searchsorted(self.sums, asked, "left"), begins)


def _gaps(
    level: Containers, weight: IntArray, names: tuple[str, str], types: tuple[ValueType, ValueType], order: _TupleOrder
) -> tuple[IntArray, IntArray]:
    """The gaps between keys in which containers lie, each as the number of keys before it, and the bytes to skip."""
    bounds = _bounds(level, names, types)
    if bounds is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    (low, high), (low2, high2) = bounds
    before = order.below(low, low2)
    alone = np.flatnonzero((weight > 0) & (before == order.up_to(high, high2)))
    return before[alone], weight[alone]


def _heaviest(gaps: IntArray, worth: IntArray, keys: int, most: int) -> IntArray:
    """The gaps with the most bytes, ascending; those before the first key and after the last are always open."""
    inside = (gaps > 0) & (gaps < keys)
    distinct, which = np.unique(gaps[inside], return_inverse=True)
    sums = np.bincount(which, worth[inside], len(distinct))
    return np.sort(distinct[np.argsort(-sums, kind="stable")[: most - 1]])


def _bounds(
    level: Containers, names: tuple[str, str], types: tuple[ValueType, ValueType]
) -> tuple[tuple[IntArray, IntArray], tuple[IntArray, IntArray]] | None:
    found = [(level.columns[name], type_) for name, type_ in zip(names, types, strict=True) if name in level.columns]
    if len(found) < len(names):
        return None
    first, second = (each.against(RangeSet.none(type_))[1] for each, type_ in found)
    return first, second
