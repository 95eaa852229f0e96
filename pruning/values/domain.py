"""`Domain`: the possible values of a column or a key: ranges, a NULL flag and a NaN flag."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from pruning.values import encoding as code
from pruning.values.encoding import Codes
from pruning.values.ranges import RangeSet
from pruning.values.types import ValueType


@dataclass(frozen=True, slots=True)
class Domain:
    """A set of values of one type, of NULL and of NaN.

    Build keys and container statistics are both Domains, and a container may be skipped iff the two do not
    overlap. Unknown values are `Domain.all()`, which overlaps everything but `none()`.

    Three files of a bigint column against the keys {5, 70}:

    | file | statistics as a Domain | overlaps | |
    |---|---|---|---|
    | a | {[0, 9]} | yes | kept |
    | b | {[10, 60]}, NULL | no | skipped |
    | c | all (no statistics) | yes | kept |

    Normal form: NULL and NaN are flags, never range ends; -0.0 is 0.0; `nan` is False for types without NaN.

    >>> bigint = ValueType("bigint")
    >>> keys = Domain.of(bigint, 5, 70)
    >>> [keys.overlaps(each) for each in (Domain.between(bigint, 0, 9), Domain.between(bigint, 10, 60))]
    [True, False]
    >>> print(keys.union(Domain.of(bigint, 6, None)))
    {[5, 6], 70} or NULL
    """

    ranges: RangeSet
    null: bool = False
    nan: bool = False

    def __post_init__(self) -> None:
        if self.nan and not self.type.is_float:
            msg = f"Cannot put NaN in a Domain of {self.type}: only float and double have it"
            raise ValueError(msg)

    @property
    def type(self) -> ValueType:
        """The type of the values."""
        return self.ranges.type

    @staticmethod
    def none(type_: ValueType) -> Domain:
        """The empty domain, without NULL."""
        return Domain(RangeSet.none(type_))

    @staticmethod
    def all(type_: ValueType) -> Domain:
        """Every value, NULL and NaN: the domain of unknown values."""
        return Domain(RangeSet.all(type_), null=True, nan=type_.is_float)

    @staticmethod
    def only_null(type_: ValueType) -> Domain:
        """NULL alone."""
        return Domain(RangeSet.none(type_), null=True)

    @staticmethod
    def of(type_: ValueType, *values: object) -> Domain:
        """The domain of these Python values; None is NULL."""
        present = [value for value in values if value is not None]
        numbers = [value for value in present if not _is_nan(value)]
        ranges = RangeSet.of_codes(type_, code.encode(type_, numbers))
        return Domain(ranges, null=len(present) < len(values), nan=len(numbers) < len(present))

    @staticmethod
    def of_codes(type_: ValueType, codes: Codes, *, null: bool = False, nan: bool = False) -> Domain:
        """The domain of these codes, in any order."""
        return Domain(RangeSet.of_codes(type_, codes), null, nan)

    @staticmethod
    def between(type_: ValueType, low: object, high: object) -> Domain:
        """Values from `low` to `high`, both included; None leaves that end open."""
        ends = RangeSet.all(type_)
        lows = ends.lows if low is None else code.encode(type_, [low])
        if high is None:
            return Domain(RangeSet(type_, lows, ends.highs if ends.highs is not ends.lows else lows, ends.unbounded))
        return Domain(RangeSet.of_ranges(type_, lows, code.encode(type_, [high])))

    @property
    def is_none(self) -> bool:
        """True if the domain is empty."""
        return self.ranges.is_none and not self.null and not self.nan

    @property
    def is_all(self) -> bool:
        """True if every value, NULL and NaN are in the domain."""
        return self.null and self.nan is self.type.is_float and self.ranges.is_all

    def intersect(self, other: Domain) -> Domain:
        """The intersection of both."""
        return Domain(self.ranges.intersect(other.ranges), self.null and other.null, self.nan and other.nan)

    def union(self, other: Domain) -> Domain:
        """The union of both."""
        return Domain(self.ranges.union(other.ranges), self.null or other.null, self.nan or other.nan)

    def overlaps(self, other: Domain) -> bool:
        """True if the two domains share a value."""
        return (self.null and other.null) or (self.nan and other.nan) or self.ranges.overlaps(other.ranges)

    def contains(self, value: object) -> bool:
        """True if a Python value, None for NULL, is in the domain."""
        if value is None:
            return self.null
        if _is_nan(value):
            return self.nan
        return bool(self.ranges.contains(code.encode(self.type, [value]))[0])

    def contains_all(self, other: Domain) -> bool:
        """True if `other` is a subset of this domain."""
        return self.union(other) == self

    def span(self) -> Domain:
        """The single range from the least to the greatest value, with the same flags."""
        return Domain(self.ranges.span(), self.null, self.nan)

    def simplify(self, most: int) -> Domain:
        """A wider domain of at most `most` ranges."""
        return Domain(self.ranges.simplify(most), self.null, self.nan)

    def without_null(self) -> Domain:
        """The domain without NULL: what an equality can match."""
        return Domain(self.ranges, nan=self.nan)

    def __str__(self) -> str:
        if self.is_all:
            return "all"
        flags: Iterable[str] = (name for name, on in (("NULL", self.null), ("NaN", self.nan)) if on)
        return " or ".join([str(self.ranges), *flags])


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
