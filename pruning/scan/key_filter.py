"""`KeyFilter`: collected keys converted to the types of the columns they filter.

`KeyPoints` are keys of several columns as points, and the bounds of a container are a box: a container whose box holds
no point has no matching row. A test of each column alone may keep such a box: with keys of a shop and its order
number, say, where the orders of every shop are counted from 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from pruning.keys.summary import KeyRows, KeySummary
from pruning.limits import Limits
from pruning.reasons import Reason, ReasonCode
from pruning.scan.statistics import ColumnStatistics
from pruning.values import encoding as code
from pruning.values.byte_strings import IntArray
from pruning.values.coercion import coerce
from pruning.values.domain import Domain
from pruning.values.encoding import Codes
from pruning.values.ranges import BoolArray, RangeSet
from pruning.values.types import INTEGER_BITS, ValueType

# The kind of a filter that is not made of keys.
FIRST_ROWS = "first rows"
# Rows of keys of several columns that test containers as points: each container takes a sort of all rows.
_MOST_POINTS = 1 << 22


class FilteredColumn(Protocol):
    """A column that keys are compared with: its name, its type, and the reason against pruning by it if it has none."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def type(self) -> ValueType | None: ...  # noqa: D102
    @property
    def refusal(self) -> Reason | None: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class RowWorth:
    """The worth of a row filter in a query.

    - `passing`: an estimate from above of the share of rows that pass, 0 to 1; bounds and keys may tell a larger one
    - `spared`: nanoseconds of a core that a dropped row spares above the scan
    """

    passing: float
    spared: float

    @staticmethod
    def of_unknown_query(keys: int, limits: Limits) -> RowWorth:
        """The worth where no query is known: few keys are expected to be broadcast, more to be shuffled."""
        is_broadcast = keys <= limits.joined_rows
        return RowWorth(0.0, limits.costs.joined_row if is_broadcast else limits.costs.shuffled_row)

    def pays(self, ratio: float, test: float) -> bool:
        """True where a test of `test` nanoseconds, which a share `ratio` of the rows passes, spares more."""
        return (1.0 - ratio) * self.spared > test


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """One entry of `keys`, converted to the types of its probe columns.

    `domains` holds the values that a matching row may have in each column; an absent column is not pruned by, for one
    of the `reasons`. `is_exact` says that a row whose values lie in the domains does match a key, which needs a single
    column. `distinct` is None where there were too many keys to count. `is_empty`: no row can match. `is_order`: a
    top-k filter, whose domain comes from an order, not from keys. `points` are the keys of several columns together,
    if each of them is known in the columns' own types. `worth` is None where no query tells it. `any_of` are filters of
    which a row has to pass one; then there are no domains.
    """

    columns: tuple[str, ...]
    domains: Mapping[str, Domain]
    rows: int
    distinct: int | None
    is_exact: bool
    is_empty: bool
    has_bloom: bool
    source: str
    reasons: tuple[Reason, ...] = ()
    is_order: bool = False
    points: KeyPoints | None = None
    worth: RowWorth | None = None
    any_of: tuple[KeyFilter, ...] = ()

    @property
    def kind(self) -> str:
        """The form of the keys for messages."""
        match self:
            case KeyFilter(is_empty=True):
                return "no keys"
            case KeyFilter(is_order=True):
                return FIRST_ROWS
            case KeyFilter(any_of=(_, *_)):
                return "one of several"
            case KeyFilter(domains={}) if not self.domains:
                return "always true"
            case KeyFilter(distinct=None):
                return "ranges and bloom filter" if self.has_bloom else "ranges"
            case _:
                return "exact set"

    @staticmethod
    def unknown(columns: Sequence[FilteredColumn], source: str, *reasons: Reason) -> KeyFilter:
        """A filter whose keys are not known: always true."""
        names = tuple(column.name for column in columns)
        return KeyFilter(
            names, {}, 0, None, is_exact=False, is_empty=False, has_bloom=False, source=source, reasons=reasons
        )


def _hashes_agree(columns: Sequence[FilteredColumn], summary: KeySummary) -> bool:
    """True if a bloom filter over the keys' own types can test rows: equal values must have equal hashes.

    Integers can be cast to the keys' width first; a value that does not fit it has no match.
    """
    if summary.bloom is None and summary.key_rows is None:
        return False
    pairs = [(column.type, type_) for column, type_ in zip(columns, summary.types, strict=True)]
    return all(probe == key or (probe is not None and probe.is_integer and key.is_integer) for probe, key in pairs)


def _points(columns: Sequence[FilteredColumn], summary: KeySummary) -> KeyPoints | Reason | None:
    """The keys of several columns as points; None for one column, unknown keys, or a column that is not pruned by.

    Integers have the same codes whatever their width. Keys of another type than the column's are only used one column
    at a time.
    """
    names, types = tuple(column.name for column in columns), [column.type for column in columns if column.type]
    if summary.key_rows is None or len(types) < len(columns):
        return None
    if len(summary.key_rows) > _MOST_POINTS:
        return Reason(ReasonCode.COLUMNS_APART, ", ".join(names), f"{len(summary.key_rows):,} keys")
    for name, type_, keys in zip(names, types, summary.types, strict=True):
        if type_ != keys and not (type_.is_integer and keys.is_integer):
            return Reason(ReasonCode.COLUMNS_APART, ", ".join(names), f"{name} is {type_}, its keys are {keys}")
    return KeyPoints(names, tuple(types), _within(types, summary.key_rows))


def _within(types: Sequence[ValueType], rows: KeyRows) -> KeyRows:
    """The rows whose integers all fit the types of their columns: others match nothing, and have no literal."""
    held = np.ones(len(rows), bool)
    for type_, codes in zip(types, rows.columns, strict=True):
        if type_.is_integer and isinstance(codes, np.ndarray):
            most = 1 << INTEGER_BITS[type_.name] - 1
            held &= (codes >= -most) & (codes <= most - 1)
    return rows if held.all() else KeyRows(tuple(codes.take(np.flatnonzero(held)) for codes in rows.columns))


def key_filter(columns: Sequence[FilteredColumn], summary: KeySummary) -> KeyFilter:
    """The filter that `summary`'s keys, in the order of `columns`, put on a scan.

    `InvalidKeysError` where keys and column have types that Spark would not compare.
    """
    domains: dict[str, Domain] = {}
    reasons: list[Reason] = list(summary.reasons)
    exact = summary.exact and len(columns) == 1
    for column, keys in zip(columns, summary.domains, strict=True):
        result = column.refusal if column.type is None else coerce(keys.without_null(), column.type, column.name)
        if result is None or isinstance(result, Reason):
            exact = False
            reasons += [result] if result is not None else []
            continue
        domains[column.name] = result.domain
        exact = exact and result.is_exact
    points = _points(columns, summary)
    if isinstance(points, Reason):
        reasons.append(points)
    is_empty = summary.rows == summary.null_rows or any(domain.is_none for domain in domains.values())
    return KeyFilter(
        columns=tuple(column.name for column in columns),
        domains=domains,
        rows=summary.rows,
        distinct=summary.distinct,
        is_exact=exact,
        is_empty=is_empty,
        has_bloom=exact or _hashes_agree(columns, summary),
        source=summary.source,
        reasons=tuple(reasons),
        points=points if isinstance(points, KeyPoints) else None,
    )


@dataclass(frozen=True, eq=False)
class KeyPoints:
    """The rows of an exact key set over the columns `names`, as codes of the columns' `types`."""

    names: tuple[str, ...]
    types: tuple[ValueType, ...]
    rows: KeyRows

    def lie_in(self, columns: Mapping[str, ColumnStatistics]) -> BoolArray:
        """An array: True for each container that may hold a point; `columns` are statistics by name, at least one.

        Columns are tested in pairs, the first with each of the others, so with three or more columns some boxes without
        a point are kept. A column without statistics, or of floats (NaN lies in no bounds), keeps every box.
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
        """The half-open ranks, among the distinct values of a key column, that a container may hold; None for all."""
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
        """The rank of each value of each row among the distinct values of its column; the first column ascends."""
        return tuple(map(_rank, self._distinct, self.rows.columns))


def _rank(distinct: Codes, values: Codes) -> IntArray:
    keys, places = code.merged_ranks(distinct, values)
    return np.searchsorted(keys, places, "left")


def _span(places: tuple[IntArray, IntArray] | None, count: int, rows: int) -> tuple[IntArray, IntArray]:
    """The half-open ranks of each container; all ranks for a column without statistics."""
    return (np.zeros(count, np.int64), np.full(count, rows, np.int64)) if places is None else places


def _any_between(values: IntArray, rows: tuple[IntArray, IntArray], wanted: tuple[IntArray, IntArray]) -> BoolArray:
    """An array: True if some value of `values[rows[0][i] : rows[1][i]]` lies in `wanted[0][i] <= value < wanted[1][i]`.

    Rows are cut into blocks of 1, 2, 4, ... rows, each sorted: any slice of rows is at most two blocks of each size. So
    each size needs one sort of all rows and two searches per slice, however long the slice is.
    """
    begins, ends = rows
    found = np.zeros(len(begins), bool)
    # Blocks are offset so far from each other that one `searchsorted` finds a value only in its own block.
    span = int(values.max(initial=0)) + 2
    size, blocks = 1, values
    while (is_open := (begins < ends) & ~found).any():
        # The last rows, too few for a block of this size, are searched in smaller blocks.
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
