"""Row-group statistics as statistics of the files they lie in."""

from __future__ import annotations

import numpy as np

from pruning import codes as code
from pruning.byte_strings import IntArray
from pruning.intervals import BoolArray
from pruning.statistics import UNKNOWN, ColumnStatistics, Containers


def fold_rows(groups: Containers, count: int) -> IntArray:
    """Rows of each of `count` files, `UNKNOWN` where a row group of it is unknown."""
    return _summed(groups.rows, parents_of(groups), count)


def fold_column(column: ColumnStatistics, groups: Containers, count: int) -> ColumnStatistics:
    """The statistics of one column for each of `count` files, known only where every row group tells.

    Row groups that are empty or hold NULL alone have no bounds and take none away.
    """
    if not len(column):
        return ColumnStatistics.unknown(column.type, count)
    parents = parents_of(groups)
    counts = ~column.all_null(groups.rows) & (groups.rows != 0)
    wrong = _wrong(column)
    nan = np.zeros(count, bool)
    np.logical_or.at(nan, parents, column.may_have_nan & counts)
    lows, highs = code.on_one_line(column.lows, column.highs)
    # The complement reverses the order where a minus sign would overflow.
    least, has_low = _least(lows, column.has_low & ~wrong, counts, parents, count)
    greatest, has_high = _least(~highs, column.has_high & ~wrong, counts, parents, count)
    return ColumnStatistics(
        column.type,
        column.lows.take(least),
        column.highs.take(greatest),
        has_low,
        has_high,
        _summed(column.null_count, parents, count),
        nan,
    )


def parents_of(groups: Containers) -> IntArray:
    """The index of the file of each row group."""
    if groups.parents is None:
        msg = f"Cannot tell the files of {len(groups)} containers: they are {groups.kind.value}s"
        raise ValueError(msg)
    return groups.parents


def _wrong(column: ColumnStatistics) -> BoolArray:
    lows, highs = code.on_one_line(column.lows, column.highs)
    return (column.has_low & column.has_high & (lows > highs)) | column.has_nan_bound()


def _summed(numbers: IntArray, parents: IntArray, count: int) -> IntArray:
    total, unknown = np.zeros(count, np.int64), np.zeros(count, bool)
    np.add.at(total, parents, np.where(numbers == UNKNOWN, 0, numbers))
    np.logical_or.at(unknown, parents, numbers == UNKNOWN)
    return np.where(unknown, UNKNOWN, total)


def _least(
    line: IntArray, known: BoolArray, counts: BoolArray, parents: IntArray, count: int
) -> tuple[IntArray, BoolArray]:
    """Of each file the index of the row group with the least value, and whether all its groups have one."""
    used = np.flatnonzero(counts & known)
    ordered = used[np.lexsort((line[used], parents[used]))]
    files, first = np.unique(parents[ordered], return_index=True)
    chosen, has = np.zeros(count, np.int64), np.zeros(count, bool)
    chosen[files], has[files] = ordered[first], True
    has[parents[counts & ~known]] = False
    return chosen, has
