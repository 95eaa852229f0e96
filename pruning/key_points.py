"""Keys of several columns as points, and containers as boxes: one in which no point lies holds no row of these keys.

Each column for itself may leave a box that no key lies in: of shops and numbers of their orders, say, where every shop
begins to count at 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pruning import codes as code
from pruning.byte_strings import IntArray
from pruning.codes import Codes
from pruning.intervals import BoolArray
from pruning.key_summary import KeyRows
from pruning.ranges import RangeSet
from pruning.statistics import ColumnStatistics
from pruning.value_type import ValueType


@dataclass(frozen=True, eq=False)
class KeyPoints:
    """The rows of an exact key set over the columns `names`, as codes of the columns' own `types`."""

    names: tuple[str, ...]
    types: tuple[ValueType, ...]
    rows: KeyRows

    def lie_in(self, columns: Mapping[str, ColumnStatistics]) -> BoolArray:
        """For each container, whether a point may lie in it; `columns` are statistics by name, of one at least.

        Columns are asked in pairs, the first one with each other one, so of three or more some boxes without a point
        are not found. A column without statistics, or of floats (NaN lies in no bounds), keeps every box open.
        """
        first, *others = (self._places(at, columns.get(name)) for at, name in enumerate(self.names))
        count = len(next(iter(columns.values())))
        ranks = self._ranks[0]
        begins, ends = (np.searchsorted(ranks, each, "left") for each in _span(first, count, len(ranks)))
        found: BoolArray = begins < ends
        for at, other in enumerate(others, start=1):
            if other is not None:
                found &= _any_between(self._ranks[at], (begins, ends), other)
        return found

    def _places(self, at: int, column: ColumnStatistics | None) -> tuple[IntArray, IntArray] | None:
        """The places, among the different values of a key column, of those that a container may hold; None if all.

        From, and up to but not.
        """
        if column is None or self.types[at].is_float:
            return None
        distinct = self._distinct[at]
        (keys, _), (lows, highs), _ = column.against(RangeSet(self.types[at], distinct, distinct))
        return np.searchsorted(keys, lows, "left"), np.searchsorted(keys, highs, "right")

    @cached_property
    def _distinct(self) -> tuple[Codes, ...]:
        return tuple(map(code.sort_unique, self.rows.columns))

    @cached_property
    def _ranks(self) -> tuple[IntArray, ...]:
        """Each value of each row as its place among the different ones; those of the first column ascend."""
        return tuple(map(_rank, self._distinct, self.rows.columns))


def _rank(distinct: Codes, values: Codes) -> IntArray:
    keys, places = code.on_one_line(distinct, values)
    return np.searchsorted(keys, places, "left")


def _span(places: tuple[IntArray, IntArray] | None, count: int, rows: int) -> tuple[IntArray, IntArray]:
    """The same for all containers of a column that says nothing."""
    return (np.zeros(count, np.int64), np.full(count, rows, np.int64)) if places is None else places


def _any_between(values: IntArray, rows: tuple[IntArray, IntArray], wanted: tuple[IntArray, IntArray]) -> BoolArray:
    """For each i, whether one of `values[rows[0][i] : rows[1][i]]` lies in `wanted[0][i] <= value < wanted[1][i]`.

    Rows are cut into blocks of one, two, four, ... rows, each sorted in itself: any stretch of rows is two blocks of
    each size at the most. So each size takes a sort of all rows and two searches a stretch, however long that is.
    """
    begins, ends = rows
    found = np.zeros(len(begins), bool)
    # Blocks lie beside each other on one line, so far apart that what is searched in one is found in no other.
    span = int(values.max(initial=0)) + 2
    size, blocks = 1, values
    while (is_open := (begins < ends) & ~found).any():
        # The rest of the rows, too few for a block, is asked for in smaller ones alone.
        blocks = np.sort(blocks[: len(values) // size * size].reshape(-1, size), axis=1, kind="stable").ravel()
        line = blocks + np.arange(len(blocks)) // size * span
        for block, is_asked in ((begins, is_open & (begins % 2 == 1)), (ends - 1, is_open & (ends % 2 == 1))):
            asked = np.flatnonzero(is_asked)
            at = block[asked] * span
            place = np.searchsorted(line, at + wanted[0][asked], "left")
            is_there = place < len(line)
            found[asked[is_there]] |= line[place[is_there]] < (at + wanted[1][asked])[is_there]
        begins, ends, size = (begins + 1) // 2, ends // 2, 2 * size
    return found
