"""Skipping of containers that cannot hold a matching row.

Soundness: a skipped container holds no row that the join could use; a container with unknown statistics is kept.

- `prune_containers()` skips by the domain of each column, `prune_by_filters()` also by keys of several columns
  together, and by filters of which a row passes one.
- `fold_rows()` and `fold_column()` derive statistics of files from those of their row groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pruning.scan.key_filter import KeyFilter, KeyPoints
from pruning.scan.statistics import UNKNOWN, ColumnStatistics, Containers
from pruning.values import encoding as code
from pruning.values import ranges as intervals
from pruning.values.byte_strings import IntArray
from pruning.values.domain import Domain
from pruning.values.ranges import BoolArray


class SkipReason(IntEnum):
    """The reason why a container is skipped; `KEPT` if it is not. The first member that applies is recorded."""

    KEPT = 0
    NO_ROWS = 1
    NO_KEYS = 2
    PARTITION = 3
    ALL_NULL = 4
    STATISTICS = 5

    @property
    def label(self) -> str:
        """The cause in plain words."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True, slots=True, eq=False)
class PruningResult:
    """The outcome for `n` containers: `kept[i]`, and the cause where it is False."""

    kept: BoolArray
    causes: npt.NDArray[np.int8]

    @property
    def kept_count(self) -> int:
        """The number of kept containers."""
        return int(np.count_nonzero(self.kept))

    def without(self, gone: BoolArray) -> PruningResult:
        """A result that also skips, with the cause STATISTICS, the kept containers where `gone` is True."""
        gone = self.kept & gone
        return PruningResult(self.kept & ~gone, np.where(gone, np.int8(SkipReason.STATISTICS), self.causes))

    def take(self, indices: IntArray) -> PruningResult:
        """The outcome for the containers at `indices`."""
        return PruningResult(self.kept[indices], self.causes[indices])

    def skipped_by(self) -> dict[str, int]:
        """The number of containers that each cause skipped; causes that skipped none are left out."""
        counts = np.bincount(self.causes, minlength=len(SkipReason))
        return {
            cause.label: int(counts[cause]) for cause in SkipReason if cause is not SkipReason.KEPT and counts[cause]
        }


def weights(containers: Containers) -> IntArray:
    """The bytes that skipping each container saves; 0 for a container without rows, which is never read."""
    return np.where(containers.rows == 0, 0, np.maximum(containers.sizes, 1))


def skipped_share(filter_: KeyFilter, files: Containers) -> float:
    """The share, 0 to 1, of the bytes of files with rows that hold none of a filter's keys."""
    if filter_.is_empty:
        return 1.0
    saved, skipped = weights(files), ~prune_containers(files, filter_.domains).kept
    return float(saved[skipped].sum() / saved.sum()) if saved.any() else 0.0


def prune_containers(containers: Containers, domains: Mapping[str, Domain]) -> PruningResult:
    """Keep the containers that may hold a row whose every column of `domains` lies in its domain.

    Columns without statistics keep everything. One pass per column over arrays; no Python object per container.
    """
    causes = np.where(containers.rows == 0, np.int8(SkipReason.NO_ROWS), np.int8(SkipReason.KEPT))
    for name, domain in domains.items():
        if domain.is_none:
            causes = _first(causes, np.full(len(causes), SkipReason.NO_KEYS, np.int8))
        elif name in containers.columns:
            causes = _first(causes, column_causes(containers.columns[name], containers, domain))
    return PruningResult(causes == SkipReason.KEPT, causes)


def skip_all(containers: Containers) -> PruningResult:
    """Skip every container, since there is no key that a row could match."""
    causes = np.where(containers.rows == 0, np.int8(SkipReason.NO_ROWS), np.int8(SkipReason.NO_KEYS))
    return PruningResult(np.zeros(len(containers), bool), causes)


def column_causes(column: ColumnStatistics, containers: Containers, domain: Domain) -> npt.NDArray[np.int8]:
    """The `SkipReason` of each container under the domain of one column."""
    all_null = column.all_null(containers.rows)
    keys, bounds, _ = column.against(domain.ranges)
    value = ~all_null & intervals.overlap(keys, *bounds)
    null = domain.null & (column.null_count != 0)
    nan = domain.nan & column.may_have_nan & ~all_null
    out = np.int8(SkipReason.PARTITION if column.is_partition else SkipReason.STATISTICS)
    cause = np.where(all_null & (not column.is_partition), np.int8(SkipReason.ALL_NULL), out)
    return np.where(value | null | nan, np.int8(SkipReason.KEPT), cause)


def _first(known: npt.NDArray[np.int8], found: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """The first of two causes for each container, in the order of `SkipReason`; KEPT counts as no cause."""
    return np.where((known == SkipReason.KEPT) | ((found != SkipReason.KEPT) & (found < known)), found, known)


class ContainerFilter(Protocol):
    """The part of a filter that `prune_by_filters` needs."""

    @property
    def domains(self) -> Mapping[str, Domain]: ...  # noqa: D102
    @property
    def points(self) -> KeyPoints | None: ...  # noqa: D102
    @property
    def any_of(self) -> Sequence[ContainerFilter]: ...  # noqa: D102


def tested_columns(filters: Sequence[ContainerFilter]) -> tuple[str, ...]:
    """The columns of which the statistics of containers are compared with filters."""
    own = [name for each in filters for name in (*each.domains, *tested_columns(each.any_of))]
    return tuple(dict.fromkeys(own))


def column_domains(filters: Sequence[ContainerFilter]) -> dict[str, Domain]:
    """The domain of each column under all filters together."""
    domains: dict[str, Domain] = {}
    for each in filters:
        for name, domain in each.domains.items():
            domains[name] = domains[name].intersect(domain) if name in domains else domain
    return domains


def prune_by_filters(containers: Containers, filters: Sequence[ContainerFilter]) -> PruningResult:
    """Keep the containers that may hold a row that passes all filters."""
    found = prune_containers(containers, column_domains(filters))
    for each in filters:
        if each.points is not None:
            found = _without_points(containers, found, each.points)
        if each.any_of:
            gone = [~prune_by_filters(containers, [operand]).kept for operand in each.any_of]
            found = found.without(np.logical_and.reduce(gone))
    return found


def _without_points(containers: Containers, found: PruningResult, points: KeyPoints) -> PruningResult:
    remaining = np.flatnonzero(found.kept)
    columns = {name: containers.columns[name].take(remaining) for name in points.names if name in containers.columns}
    # Points of one column skip no more than the domain of that column.
    if len(columns) < 2 or not len(remaining):
        return found
    gone = np.zeros(len(containers), bool)
    gone[remaining] = ~points.lie_in(columns)
    return found.without(gone)


def fold_rows(groups: Containers, count: int) -> IntArray:
    """Rows of each of `count` files, `UNKNOWN` where a row group of it is unknown."""
    return _summed(groups.rows, parents_of(groups), count)


def fold_column(column: ColumnStatistics, groups: Containers, count: int) -> ColumnStatistics:
    """The statistics of one column for each of `count` files, known only where those of every row group are.

    Row groups that are empty or hold only NULL have no bounds and do not make those of their file unknown.
    """
    if not len(column):
        return replace(ColumnStatistics.unknown(column.type, count), missing=column.missing)
    parents = parents_of(groups)
    counts = ~column.all_null(groups.rows) & (groups.rows != 0)
    wrong = _wrong(column)
    nan = np.zeros(count, bool)
    np.logical_or.at(nan, parents, column.may_have_nan & counts)
    lows, highs = code.merged_ranks(column.lows, column.highs)
    # The complement reverses the order; a minus sign would overflow at the least integer.
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
        missing=column.missing,
    )


def parents_of(groups: Containers) -> IntArray:
    """The index of the file of each row group."""
    if groups.parents is None:
        msg = f"Cannot tell the files of {len(groups)} containers: they are {groups.kind.value}s"
        raise ValueError(msg)
    return groups.parents


def _wrong(column: ColumnStatistics) -> BoolArray:
    lows, highs = code.merged_ranks(column.lows, column.highs)
    return (column.has_low & column.has_high & (lows > highs)) | column.has_nan_bound()


def _summed(numbers: IntArray, parents: IntArray, count: int) -> IntArray:
    total, unknown = np.zeros(count, np.int64), np.zeros(count, bool)
    np.add.at(total, parents, np.where(numbers == UNKNOWN, 0, numbers))
    np.logical_or.at(unknown, parents, numbers == UNKNOWN)
    return np.where(unknown, UNKNOWN, total)


def _least(
    line: IntArray, known: BoolArray, counts: BoolArray, parents: IntArray, count: int
) -> tuple[IntArray, BoolArray]:
    """The index of the row group with the least value of each file, and True where all its row groups have one."""
    used = np.flatnonzero(counts & known)
    ordered = used[np.lexsort((line[used], parents[used]))]
    files, first = np.unique(parents[ordered], return_index=True)
    chosen, has = np.zeros(count, np.int64), np.zeros(count, bool)
    chosen[files], has[files] = ordered[first], True
    has[parents[counts & ~known]] = False
    return chosen, has
