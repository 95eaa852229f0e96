"""Statistics of containers (files, row groups), one array entry each.

`line_of()` encodes byte strings as integers by their position among sorted ranges, without sorting either again:

| place | integer |
|---|---|
| before range `i` | `4 i - 1` |
| the low end of range `i` | `4 i` |
| within range `i` | `4 i + 1` |
| the high end of range `i`, where it is another | `4 i + 2` |

Strings between the same two ends share an integer, so their integers do not show their own order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np
import numpy.typing as npt

from pruning.reasons import ReasonCode
from pruning.values import encoding as code
from pruning.values.byte_strings import ByteStrings, IntArray, above, places
from pruning.values.domain import Domain
from pruning.values.encoding import GREATEST, LEAST, Codes, is_number
from pruning.values.ranges import BoolArray, Intervals, RangeSet
from pruning.values.types import ValueType

UNKNOWN = -1


class ContainerKind(Enum):
    """The kind of a container, which is skipped as a whole."""

    FILE = "file"
    ROW_GROUP = "row group"


@dataclass(frozen=True, slots=True, eq=False)
class ColumnStatistics:
    """Bounds and null counts of one column in `n` containers.

    `lows` and `highs` hold `n` codes of `type`; an entry counts only where `has_low`, `has_high` are True and is
    arbitrary elsewhere. Bounds are sound: no value but NaN lies outside of them, so a connector widens bounds that its
    storage truncates. `null_count` is `UNKNOWN` where storage does not record it. `may_have_nan` is False only where
    NaN is known to be absent. `is_partition` marks exact values from the layout. `file_only` marks row groups that
    their reader cannot skip by the column, since it takes no predicate on the column as the file stores it; None marks
    none. `distinct` estimates the different values of each container, `UNKNOWN` where storage does not tell; no skip
    rests on it. `has_bloom_filter` is False for row groups in which a reader finds no bloom filter of the column; None
    where that is not known of any. `missing` says why bounds are missing, where they are.
    """

    type: ValueType
    lows: Codes
    highs: Codes
    has_low: BoolArray
    has_high: BoolArray
    null_count: IntArray
    may_have_nan: BoolArray
    is_partition: bool = False
    file_only: BoolArray | None = None
    distinct: IntArray | None = None
    has_bloom_filter: BoolArray | None = None
    missing: ReasonCode = ReasonCode.NO_STATISTICS

    def __post_init__(self) -> None:
        arrays = (self.lows, self.highs, self.has_low, self.has_high, self.null_count, self.may_have_nan)
        if len({len(array) for array in arrays}) > 1:
            # numpy would silently broadcast an array of one entry to all containers.
            msg = (
                f"Cannot describe a column by arrays of {[len(array) for array in arrays]} entries: expected one length"
            )
            raise ValueError(msg)

    @staticmethod
    def unknown(type_: ValueType, count: int) -> ColumnStatistics:
        """Statistics of `count` containers about which nothing is known."""
        return ColumnStatistics.of(type_, [(None, None, None)] * count)

    @staticmethod
    def of(
        type_: ValueType, rows: Sequence[tuple[object, object, int | None]], *, may_have_nan: bool | None = None
    ) -> ColumnStatistics:
        """From Python values `(low, high, null count)` per container, None for unknown; for tests and small use."""
        lows, has_low = _encoded(type_, [low for low, _, _ in rows])
        highs, has_high = _encoded(type_, [high for _, high, _ in rows])
        return ColumnStatistics(
            type_,
            lows,
            highs,
            has_low,
            has_high,
            null_count=np.array([UNKNOWN if nulls is None else nulls for _, _, nulls in rows], np.int64),
            may_have_nan=np.full(len(rows), type_.is_float if may_have_nan is None else may_have_nan),
        )

    def __len__(self) -> int:
        return len(self.null_count)

    def take(self, indices: npt.NDArray[np.integer]) -> ColumnStatistics:
        """The statistics of the containers at `indices`."""
        return replace(
            self,
            lows=self.lows.take(indices),
            highs=self.highs.take(indices),
            has_low=self.has_low[indices],
            has_high=self.has_high[indices],
            null_count=self.null_count[indices],
            may_have_nan=self.may_have_nan[indices],
            file_only=None if self.file_only is None else self.file_only[indices],
            distinct=None if self.distinct is None else self.distinct[indices],
            has_bloom_filter=None if self.has_bloom_filter is None else self.has_bloom_filter[indices],
        )

    @property
    def has_bounds(self) -> bool:
        """True if some container has a bound."""
        return bool((self.has_low | self.has_high).any())

    @property
    def may_have_bloom_filters(self) -> bool:
        """False if a reader finds no bloom filter of the column in any of the containers."""
        return self.has_bloom_filter is None or bool(self.has_bloom_filter.any())

    def seen_by_reader(self) -> ColumnStatistics:
        """The statistics by which the reader skips row groups: unknown where `file_only`."""
        if self.file_only is None or not self.file_only.any():
            return self
        return replace(
            self,
            has_low=self.has_low & ~self.file_only,
            has_high=self.has_high & ~self.file_only,
            null_count=np.where(self.file_only, UNKNOWN, self.null_count),
            may_have_nan=self.may_have_nan | self.file_only,
        )

    def domain(self, index: int, rows: int = UNKNOWN) -> Domain:
        """The values that container `index` of `rows` rows may hold."""
        if rows == 0:
            return Domain.none(self.type)
        one = self.take(np.array([index]))
        if one.all_null(np.array([rows]))[0]:
            return Domain.only_null(self.type)
        everything = RangeSet.all(self.type)
        ranges = everything
        if one.has_low[0]:
            ranges = RangeSet(self.type, one.lows, everything.highs, everything.unbounded)
        if one.has_high[0]:
            ranges = ranges.intersect(RangeSet.of_ranges(self.type, everything.lows, one.highs))
        if ranges.is_none or one.has_nan_bound()[0]:
            ranges = everything
        return Domain(ranges, null=bool(one.null_count[0] != 0), nan=self.type.is_float and bool(one.may_have_nan[0]))

    def all_null(self, rows: IntArray) -> BoolArray:
        """An array: True for each container of `rows` rows that are all NULL; False if it has bounds all the same."""
        counted: BoolArray = (self.null_count == rows) & (rows != UNKNOWN)
        return counted & ~self.has_low & ~self.has_high

    def has_nan_bound(self) -> BoolArray:
        """An array: True for each container with a NaN bound, which some writers store; neither bound is valid then."""
        if not self.type.is_float:
            return np.zeros(len(self), bool)
        return (self.has_low & ~is_number(self.lows)) | (self.has_high & ~is_number(self.highs))

    def against(self, ranges: RangeSet) -> tuple[Intervals, Intervals, BoolArray]:
        """`ranges` and the bounds of each container as comparable integers, and True where both bounds are known.

        An unknown bound is the least or the greatest integer. Bounds that are NaN or in the wrong order are a writer's
        error, so both count as unknown. Integers of bytes are only comparable with `ranges`: bounds that lie between
        the same two ends share an integer.
        """
        if self.type != ranges.type:
            msg = f"Cannot compare bounds of {self.type} with keys of {ranges.type}: coerce the keys first"
            raise ValueError(msg)
        (keys, key_highs), (lows, highs), is_inverted = self._on_line_of(ranges)
        if ranges.unbounded:
            key_highs = np.append(key_highs[:-1], GREATEST)
        wrong = (self.has_low & self.has_high & is_inverted) | self.has_nan_bound()
        has_low, has_high = self.has_low & ~wrong, self.has_high & ~wrong
        bounds = np.where(has_low, lows, LEAST), np.where(has_high, highs, GREATEST)
        return (keys, key_highs), bounds, has_low & has_high

    def _on_line_of(self, ranges: RangeSet) -> tuple[Intervals, Intervals, BoolArray]:
        """`ranges` and the stored bounds as comparable integers, and an array: True where a low lies above its high."""
        match (ranges.lows, ranges.highs, self.lows, self.highs):
            case (ByteStrings() as firsts, ByteStrings() as lasts, ByteStrings() as lows, ByteStrings() as highs):
                keys, (low_line, high_line) = line_of(firsts, lasts, lows, highs)
                is_inverted = low_line > high_line
                # Two bounds between the same ends share an integer, so their bytes are compared.
                alike = np.flatnonzero((low_line == high_line) & (low_line % 2 != 0))
                is_inverted[alike] = lows is not highs and above(lows.take(alike), highs.take(alike))
                return keys, (low_line, high_line), is_inverted
            case _:
                first, last, low_line, high_line = code.merged_ranks(ranges.lows, ranges.highs, self.lows, self.highs)
                return (first, last), (low_line, high_line), low_line > high_line


def why_missing(columns: Iterable[ColumnStatistics]) -> ReasonCode:
    """The reason why no container has a bound of a column, by its statistics on all levels: that of the first level.

    Files of which a log could tell have row groups whose footers cannot.
    """
    return next((each.missing for each in columns), ReasonCode.NO_STATISTICS)


@dataclass(frozen=True, slots=True)
class Container:
    """The description of one container in messages and reports."""

    kind: ContainerKind
    name: str
    rows: int
    size: int
    domains: Mapping[str, Domain]


@dataclass(frozen=True, slots=True, eq=False)
class Containers:
    """The `n` containers of a table, or of some of its files.

    `rows` may be `UNKNOWN`; `sizes` are bytes. `columns` maps a column's name to its statistics; a column that is
    absent is unknown everywhere. `parents` holds for each row group the index of its file. `is_listed` is False where
    one container stands for any number of them. At most `deleted` of the `rows` are marked as deleted; None means none.
    """

    kind: ContainerKind
    names: Sequence[str]
    rows: IntArray
    sizes: IntArray
    columns: Mapping[str, ColumnStatistics] = field(default_factory=dict)
    parents: IntArray | None = None
    is_listed: bool = True
    deleted: IntArray | None = None

    def __post_init__(self) -> None:
        lengths = {name: len(column) for name, column in self.columns.items()}
        wrong = {name: length for name, length in lengths.items() if length != len(self.rows)}
        if wrong or len(self.sizes) != len(self.rows):
            msg = f"Cannot describe {len(self.rows)} containers: found {wrong or len(self.sizes)} entries instead"
            raise ValueError(msg)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, indices: IntArray) -> Containers:
        """The containers at `indices`, with unchanged parents."""
        return replace(
            self,
            names=[self.names[index] for index in indices.tolist()],
            rows=self.rows[indices],
            sizes=self.sizes[indices],
            columns={name: column.take(indices) for name, column in self.columns.items()},
            parents=None if self.parents is None else self.parents[indices],
            deleted=None if self.deleted is None else self.deleted[indices],
        )

    def seen_by_reader(self, file_only: Collection[str] = ()) -> Containers:
        """The row groups with only the statistics by which their reader skips them: none of the columns `file_only`."""
        seen = {name: each.seen_by_reader() for name, each in self.columns.items() if name not in file_only}
        return replace(self, columns=seen)

    def __getitem__(self, index: int) -> Container:
        rows = int(self.rows[index])
        domains = {name: column.domain(index, rows) for name, column in self.columns.items()}
        return Container(self.kind, self.names[index], rows, int(self.sizes[index]), domains)


def _encoded(type_: ValueType, values: Sequence[object]) -> tuple[Codes, BoolArray]:
    """The codes of Python values, and an array: True where a value is known, so neither None nor NaN."""
    known = [value is not None and value == value for value in values]  # noqa: PLR0124  NaN alone differs from itself
    filler: object = {"string": "", "binary": b""}.get(type_.name, 0)
    encoded = code.encode(type_, [value if is_known else filler for value, is_known in zip(values, known, strict=True)])
    return encoded, np.array(known, bool)


def line_of(lows: ByteStrings, highs: ByteStrings, *others: ByteStrings) -> tuple[Intervals, tuple[IntArray, ...]]:
    """The sorted, disjoint ranges `[lows[i], highs[i]]` and other strings, encoded as the table above says."""
    at = np.arange(len(lows), dtype=np.int64) * 4
    line = (at, at if highs is lows else at + 2 * _differs(lows, highs))
    # An array that is passed twice, as both ends of single values, is encoded once.
    known = {id(each): each for each in others}
    placed = {key: _placed(lows, highs, each) for key, each in known.items()}
    return line, tuple(placed[id(each)] for each in others)


def _placed(lows: ByteStrings, highs: ByteStrings, strings: ByteStrings) -> IntArray:
    below_lows, is_low = places(lows, strings)
    if highs is lows:
        return 4 * below_lows - 1 + is_low
    below_highs, is_high = places(highs, strings)
    return 2 * (below_lows + below_highs) - 1 + (is_low | is_high)


def _differs(first: ByteStrings, second: ByteStrings) -> IntArray:
    # The high end of a range is never below its low end, so this is 0 or 1.
    return above(second, first).astype(np.int64)
