"""`KeySummary`: the keys of a build side in exact or widened form, made once all rows were seen.

`bounded()` widens it to one side of the keys for a range join: a row with `probe >= build` has a partner only where
its value is at least the least key, and with `probe <= build` only where it is at most the greatest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType

import numpy as np

from pruning.keys.bloom import BloomFilter
from pruning.reasons import Reason, ReasonCode
from pruning.values.byte_strings import ByteStrings
from pruning.values.domain import Domain
from pruning.values.encoding import GREATEST, Codes
from pruning.values.functions import Functions, functions_sql, preimage
from pruning.values.ranges import RangeSet
from pruning.values.types import ValueType


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """One key column.

    `nulls` and `nans` count rows. `domain` holds the values of rows without NULL in any key column, since no
    other row can equal anything; so it never holds NULL, and `<=>` would have to add NULL where `nulls` is not 0.
    """

    domain: Domain
    nulls: int
    nans: int

    @property
    def type(self) -> ValueType:
        """The type of the values."""
        return self.domain.type


@dataclass(frozen=True, slots=True, eq=False)
class KeyRows:
    """The distinct rows of several key columns: row `i` is `columns[0][i], columns[1][i], ...`, as codes.

    Rows ascend, ordered by the first column first, and hold no NULL. NaN has the code `key_set.NAN_CODE`.
    """

    columns: tuple[Codes, ...]

    def __len__(self) -> int:
        return len(self.columns[0])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KeyRows):
            return NotImplemented
        pairs = zip(self.columns, other.columns, strict=False)
        return len(self.columns) == len(other.columns) and all(_same_codes(*pair) for pair in pairs)

    def __hash__(self) -> int:
        return hash((len(self.columns), len(self)))


@dataclass(frozen=True, slots=True, eq=False)
class KeySummary:
    """The keys of one or several columns, counted to the last row: made by `KeyBuilder.finish`, or of such by `united`.

    Each row of this table describes the keys more widely than the row before, and never more narrowly than they are:

    | keys | domain of each column | rows of several columns | bloom |
    |---|---|---|---|
    | no row without NULL | nothing | none | |
    | within the limits | each value | each row | |
    | over the limits | coarse ranges; for bytes the least to the greatest | | of all rows |
    | too many for a bloom | the same | | |

    `rows` were seen, `null_rows` of them with NULL in some key column. `distinct` counts the different rows
    without NULL; it is None where they were over the limits, and `exact` is False there. `key_rows` are
    those rows, for an exact summary of several columns. `bloom` holds Spark's `xxhash64` of the rows in the
    types `hashed_as`: a bloom filter of ints cannot test bigints. `versions` maps each versioned table that was read
    to its version.
    """

    columns: tuple[KeyColumn, ...]
    rows: int
    null_rows: int
    distinct: int | None
    key_rows: KeyRows | None
    bloom: BloomFilter | None
    hashed_as: tuple[ValueType, ...]
    source: str
    partitions: int
    versions: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    reasons: tuple[Reason, ...] = ()

    def __post_init__(self) -> None:
        for wrong, found in self._contradictions():
            if wrong:
                msg = f"Cannot make a KeySummary of {self.source!r}: {found}"
                raise ValueError(msg)

    def _contradictions(self) -> Sequence[tuple[bool, str]]:
        matchable = self.rows - self.null_rows
        return (
            (not self.columns, "it has no key column"),
            (not 0 <= self.null_rows <= self.rows, f"{self.null_rows} of {self.rows} rows have NULL"),
            (any(each.null for each in self.domains), "NULL is in a domain, where an equality cannot match it"),
            (
                any(each.is_none for each in self.domains) is not (matchable == 0),
                f"{matchable} rows can match, the domains are {', '.join(map(str, self.domains))}",
            ),
            (
                self.distinct is not None and not min(matchable, 1) <= self.distinct <= matchable,
                f"{self.distinct} different keys in {matchable} rows",
            ),
            (self.bloom is not None and len(self.hashed_as) != len(self.columns), "its bloom filter has no types"),
            (
                self.key_rows is not None and len(self.key_rows) != self.distinct,
                f"it lists {len(self.key_rows or ())} of {self.distinct} different keys",
            ),
        )

    @property
    def types(self) -> tuple[ValueType, ...]:
        """The type of each key column."""
        return tuple(column.type for column in self.columns)

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The values of each key column in rows without NULL."""
        return tuple(column.domain for column in self.columns)

    @property
    def exact(self) -> bool:
        """True where the domains hold exactly the values that occur."""
        return self.distinct is not None

    @property
    def is_none(self) -> bool:
        """True where no row can match: the build is empty or every key is NULL."""
        return self.rows == self.null_rows

    @property
    def version(self) -> int | None:
        """The version of the one table that was read, None where there is not exactly one."""
        return next(iter(self.versions.values())) if len(self.versions) == 1 else None

    @property
    def nbytes(self) -> int:
        """Memory held by arrays, in bytes."""
        listed = sum(codes.nbytes for codes in self.key_rows.columns) if self.key_rows else 0
        filtered = self.bloom.nbytes if self.bloom else 0
        return int(listed + filtered + sum(each.domain.ranges.nbytes for each in self.columns))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KeySummary):
            return NotImplemented
        mine, theirs = (each.bloom.to_bytes() if each.bloom else None for each in (self, other))
        return self._facts() == other._facts() and mine == theirs

    def __hash__(self) -> int:
        return hash((self.types, self.rows, self.null_rows, self.distinct, self.source))

    def _facts(self) -> tuple[object, ...]:
        counts = (self.rows, self.null_rows, self.distinct, self.source, dict(self.versions))
        return (*counts, self.columns, self.key_rows, self.hashed_as, self.reasons)

    def __str__(self) -> str:
        counted = f"{self.distinct:,}" if self.distinct is not None else "too many"
        types = ", ".join(map(str, self.types))
        nulls = f", {self.null_rows:,} with NULL" if self.null_rows else ""
        return f"{counted} different keys ({types}) in {self.rows:,} rows{nulls}"


def _same_codes(first: Codes, second: Codes) -> bool:
    if isinstance(first, ByteStrings) and isinstance(second, ByteStrings):
        left, right = first.packed(), second.packed()
        return np.array_equal(left.offsets, right.offsets) and np.array_equal(left.data, right.data)
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.array_equal(first, second)
    return False


_OF_LISTS = frozenset({ReasonCode.KEYS_OVER_LIMIT, ReasonCode.BLOOM_TOO_FULL})


class Bound(Enum):
    """The side of the build's keys on which values of the probe may match one."""

    AT_LEAST = "at least"
    AT_MOST = "at most"


# The bound of each comparison for a probe as the first child, then as the second; strict comparisons become closed.
COMPARISONS: Mapping[str, tuple[Bound | None, Bound | None]] = MappingProxyType(
    {
        "EqualTo": (None, None),
        "EqualNullSafe": (None, None),
        "GreaterThan": (Bound.AT_LEAST, Bound.AT_MOST),
        "GreaterThanOrEqual": (Bound.AT_LEAST, Bound.AT_MOST),
        "LessThan": (Bound.AT_MOST, Bound.AT_LEAST),
        "LessThanOrEqual": (Bound.AT_MOST, Bound.AT_LEAST),
    }
)


def values_at_least(keys: Domain) -> Domain:
    """Every value that is at least one of `keys`, in Spark's order, where NaN is above all numbers.

    >>> from pruning.values.types import ValueType
    >>> print(values_at_least(Domain.of(ValueType("int"), 7, 3, None)))
    {[3, ...)}
    """
    return Domain(_upward(keys.ranges), nan=keys.nan or (keys.type.is_float and not keys.ranges.is_none))


def values_at_most(keys: Domain) -> Domain:
    """Every value that is at most one of `keys`; all numbers are below NaN.

    >>> from pruning.values.types import ValueType
    >>> print(values_at_most(Domain.of(ValueType("int"), 7, 3, None)))
    {(..., 7]}
    """
    return Domain(RangeSet.all(keys.type) if keys.nan else _downward(keys.ranges), nan=keys.nan)


def bounded(summary: KeySummary, bound: Bound) -> KeySummary:
    """A summary of every value on one side of the keys: ranges alone, since no single value can be listed.

    The keys must have the type in which they are compared: in a narrower type, the range would end at the limit of that
    type.
    """
    widen = values_at_least if bound is Bound.AT_LEAST else values_at_most
    return replace(
        summary,
        columns=tuple(replace(each, domain=widen(each.domain)) for each in summary.columns),
        distinct=None,
        key_rows=None,
        bloom=None,
        source=f"{bound.value} one of {summary.source}",
        # The least and the greatest key are known even if there were too many keys to list.
        reasons=tuple(each for each in summary.reasons if each.code not in _OF_LISTS),
    )


def through(summary: KeySummary, functions: Functions, name: str) -> KeySummary | Reason:
    """A summary of the values of the column `name` that functions map to the keys of one column: ranges alone.

    A `Reason` if every row may have a key.
    """
    (column,), source = summary.columns, functions[0].source
    domain = Domain.none(source) if summary.is_none else preimage(functions, column.domain)
    if isinstance(domain, Reason):
        return replace(domain, subject=functions_sql(functions, name))
    return replace(
        summary,
        columns=(replace(column, domain=domain),),
        null_rows=summary.rows if domain.is_none else summary.null_rows,
        distinct=0 if domain.is_none else None,
        key_rows=None,
        bloom=None,
        source=f"{summary.source} for {functions_sql(functions, name)}",
    )


def _upward(keys: RangeSet) -> RangeSet:
    if keys.is_none:
        return keys
    lows = keys.lows.take(np.array([0]))
    if isinstance(lows, ByteStrings):
        return RangeSet(keys.type, lows, lows, unbounded=True)
    return RangeSet(keys.type, lows, np.array([GREATEST]))


def _downward(keys: RangeSet) -> RangeSet:
    if keys.is_none or keys.unbounded:
        return RangeSet.all(keys.type) if keys.unbounded else keys
    least = RangeSet.all(keys.type).lows
    return RangeSet.of_ranges(keys.type, least, keys.highs.take(np.array([len(keys) - 1])))
