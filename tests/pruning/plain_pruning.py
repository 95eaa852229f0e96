"""Pruning in plain Python, one container and one value at a time: the oracle for the vectorised core."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from pruning.scan.compaction import Evidence, compact
from pruning.scan.skipping import PruningResult, SkipReason, prune_containers
from pruning.scan.statistics import UNKNOWN, ColumnStatistics, ContainerKind, Containers
from pruning.values import ranges as intervals
from pruning.values.domain import Domain
from pruning.values.ranges import BoolArray, RangeSet
from pruning.values.types import ValueType
from tests.pruning.samples import Spec, order

Rows = Sequence[Any]


@dataclass(frozen=True)
class Knowledge:
    """The statistics that a container has: False is unknown."""

    low: bool = True
    high: bool = True
    nulls: bool = True
    rows: bool = True
    nans: bool = True


ALL_KNOWN = Knowledge()
NOTHING_KNOWN = Knowledge(low=False, high=False, nulls=False, rows=False, nans=False)
PARTLY_KNOWN = {name: replace(ALL_KNOWN, **{name: False}) for name in ("low", "high", "nulls", "rows", "nans")}


@dataclass(frozen=True)
class Column:
    """One column of some containers: its values in each, and the statistics that each has."""

    type: ValueType
    contents: tuple[Rows, ...]
    known: tuple[Knowledge, ...]

    def bounds(self, index: int) -> tuple[Any, Any]:
        """The least and the greatest number of a container, None where unknown or where there is none."""
        present = sorted(numbers(self.contents[index]), key=lambda value: order(self.type, value))
        known = self.known[index]
        return (present[0] if present and known.low else None), (present[-1] if present and known.high else None)

    def nulls(self, index: int) -> int | None:
        """The number of NULL values of a container, None where unknown."""
        return sum(value is None for value in self.contents[index]) if self.known[index].nulls else None

    def may_have_nan(self, index: int) -> bool:
        """True if NaN may be in a container."""
        return self.type.is_float and (not self.known[index].nans or any(map(is_nan, self.contents[index])))

    def statistics(self) -> ColumnStatistics:
        """The column as statistics of the core."""
        indices = range(len(self.contents))
        column = ColumnStatistics.of(self.type, [(*self.bounds(index), self.nulls(index)) for index in indices])
        return replace(column, may_have_nan=np.array([self.may_have_nan(index) for index in indices], bool))

    def cause(self, index: int, keys: Spec) -> SkipReason:
        """The reason to skip a container under the keys of one column, KEPT if it cannot be skipped."""
        if _is_empty(keys):
            return SkipReason.NO_KEYS
        rows, nulls, (low, high) = self.rows(index), self.nulls(index), self.bounds(index)
        all_null = rows is not None and rows == nulls
        null = keys.null and nulls != 0
        nan = keys.nan and self.may_have_nan(index) and not all_null
        value = not all_null and any(self._meet(pair, low, high) for pair in keys.pairs)
        return SkipReason.KEPT if value or null or nan else SkipReason.ALL_NULL if all_null else SkipReason.STATISTICS

    def rows(self, index: int) -> int | None:
        """The number of rows of a container, None where unknown."""
        return len(self.contents[index]) if self.known[index].rows else None

    def _meet(self, pair: tuple[Any, Any], low: Any, high: Any) -> bool:
        return all(self._at_most(*ends) for ends in (pair, (pair[0], high), (low, pair[1])))

    def _at_most(self, low: Any, high: Any) -> bool:
        return low is None or high is None or order(self.type, low) <= order(self.type, high)


@dataclass(frozen=True)
class Table:
    """Files that hold some columns, as plain Python values and as containers of the core."""

    columns: Mapping[str, Column]
    known: Sequence[Knowledge]

    @cached_property
    def files(self) -> Containers:
        """The files as containers of the core."""
        contents = next(iter(self.columns.values())).contents
        rows = [len(values) if each.rows else UNKNOWN for values, each in zip(contents, self.known, strict=True)]
        statistics = {name: column.statistics() for name, column in self.columns.items()}
        names = [str(index) for index in range(len(rows))]
        return Containers(ContainerKind.FILE, names, np.array(rows, np.int64), np.full(len(rows), 10), statistics)

    @cached_property
    def domains(self) -> list[Mapping[str, Domain]]:
        """The domains that the core derives for each file."""
        return [self.files[index].domains for index in range(len(self.files))]

    def prune(self, keys: Mapping[str, Spec]) -> PruningResult:
        """The result of the core, checked: no matching row is lost, all that statistics allow is skipped, causes are
        right.
        """
        domains = {name: spec.domain() for name, spec in keys.items()}
        found = prune_containers(self.files, domains)
        nothing = any(map(_is_empty, keys.values()))
        for index, kept in enumerate(found.kept.tolist()):
            assert kept or not self._matches(index, keys), f"lost a row of file {index}"
            parts = self.domains[index]
            overlap = all(domains[name].overlaps(parts[name]) for name in domains if name in parts)
            assert kept is (overlap and not nothing), f"file {index} differs from its domains"
        assert [self._cause(index, keys) for index in range(len(self.files))] == found.causes.tolist()
        return found

    def _matches(self, index: int, keys: Mapping[str, Spec]) -> bool:
        names = [name for name in keys if name in self.columns]
        rows = zip(*(self.columns[name].contents[index] for name in names), strict=True)
        return any(all(keys[name].holds(value) for name, value in zip(names, row, strict=True)) for row in rows)

    def _cause(self, index: int, keys: Mapping[str, Spec]) -> SkipReason:
        causes = [self.columns[name].cause(index, spec) for name, spec in keys.items() if name in self.columns]
        causes += [SkipReason.NO_KEYS for spec in keys.values() if _is_empty(spec)]
        if next(iter(self.columns.values())).rows(index) == 0:
            return SkipReason.NO_ROWS
        return min((cause for cause in causes if cause is not SkipReason.KEPT), default=SkipReason.KEPT)


def _is_empty(keys: Spec) -> bool:
    closed = [pair for pair in keys.pairs if None not in pair]
    opened = len(closed) < len(keys.pairs)
    holds = opened or any(order(keys.type, low) <= order(keys.type, high) for low, high in closed)
    return not (holds or keys.null or keys.nan)


def numbers(values: Iterable[Any]) -> Iterator[Any]:
    """The values that are neither NULL nor NaN."""
    return (value for value in values if value is not None and not is_nan(value))


def is_nan(value: Any) -> bool:
    """True if a value is NaN."""
    return isinstance(value, float) and value != value  # noqa: PLR0124  only NaN differs from itself


def best_skip(keys: Sequence[int], files: Sequence[tuple[int, int]], weights: Sequence[int], most: int) -> int:
    """The most bytes that at most `most` ranges around sorted distinct integers can skip, found by trying them all."""
    gaps = range(1, len(keys))
    return max(_bytes_skipped(keys, chosen, files, weights) for chosen in combinations(gaps, min(most - 1, len(gaps))))


def _bytes_skipped(
    keys: Sequence[int], kept: Sequence[int], files: Sequence[tuple[int, int]], weights: Sequence[int]
) -> int:
    starts, ends = (0, *kept), (*(gap - 1 for gap in kept), len(keys) - 1)
    ranges = [(keys[start], keys[end]) for start, end in zip(starts, ends, strict=True)]
    outside = [all(high < start or end < low for start, end in ranges) for low, high in files]
    return sum(weight for weight, out in zip(weights, outside, strict=True) if out)


def skippable(ranges: RangeSet, column: ColumnStatistics) -> BoolArray:
    """A mask of the containers whose bounds lie in a gap of `ranges`."""
    keys, bounds, _ = column.against(ranges)
    return ~intervals.overlap(keys, *bounds)


def assert_compacts_well(
    keys: Sequence[int], files: Sequence[tuple[int, int]], weights: Sequence[int], most: int
) -> None:
    """`compact` keeps every key and its budget, skips nothing new, and skips as many bytes as the best choice."""
    ranges = RangeSet.of_codes(ValueType("bigint"), np.array(keys, np.int64))
    column, worth = (
        ColumnStatistics.of(ValueType("bigint"), [(*file, 0) for file in files]),
        np.array(weights, np.int64),
    )
    found = compact(ranges, [Evidence(column, worth)], most)
    before, after = skippable(ranges, column), skippable(found, column)
    assert found.contains_all(ranges)
    assert len(found) <= max(most, min(1, len(ranges)))
    assert not (after & ~before).any()
    if len(ranges) <= most:
        assert (before & (worth > 0)).tolist() == (after & (worth > 0)).tolist()
    if keys:
        assert best_skip(sorted(set(keys)), files, weights, most) == int(worth[after].sum())
