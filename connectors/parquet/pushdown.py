"""Predicates that Spark's Parquet reader takes, by the type of a column in each file, and those it compares wrongly.

Spark makes a predicate for a file only if the leaf has one of these types and the literal fits it. Otherwise all row
groups of that file are read, whatever their bounds are:

| Spark type | leaves with a predicate |
|---|---|
| tinyint, smallint, int | INT32, with or without a signed width |
| bigint | INT32 as above, only by literals of 32 bits; INT64 |
| float, double, boolean | FLOAT, DOUBLE, BOOLEAN |
| decimal | DECIMAL of the same scale in INT32, INT64 or a fixed length |
| string | BYTE_ARRAY annotated as a string, not as an enum or a document |
| binary | BYTE_ARRAY without an annotation |
| date | DATE |
| timestamp | TIMESTAMP in milliseconds or microseconds, adjusted to UTC |

Spark checks only the scale of a decimal literal. A literal with more digits than the file's numbers is cut to their
width, so that the predicate skips matching rows, or the read fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from connectors.parquet.schema import Annotation, LeafType
from pruning.values import encoding as code
from pruning.values.byte_strings import ByteStrings
from pruning.values.encoding import GREATEST, LEAST
from pruning.values.ranges import RangeSet
from pruning.values.types import INTEGER_BITS, Physical, ValueType

# Page skipping in the row-by-row reader of parquet-java can return a value of another row (parquet-java#3747).
VECTORISED_CONFS = ("spark.sql.parquet.enableVectorizedReader", "spark.sql.parquet.enableNestedColumnVectorizedReader")

_FLOATS = {"float": "FLOAT", "double": "DOUBLE", "boolean": "BOOLEAN"}
_DECIMALS = ("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY")
_UNITS = ("milliseconds", "microseconds")


def takes_predicate(leaf: LeafType, type_: ValueType) -> bool:
    """True if the reader skips row groups of a file with this leaf by a predicate on a column of `type_`."""
    kind = leaf.annotation.kind
    match type_.name:
        case name if name in INTEGER_BITS:
            return _is_plain_integer(leaf, wide=name == "bigint")
        case name if name in _FLOATS:
            return (leaf.physical, kind) == (_FLOATS[name], "NONE")
        case "decimal":
            return kind == "DECIMAL" and leaf.annotation.scale == type_.scale and leaf.physical in _DECIMALS
        case "string" | "binary":
            return (leaf.physical, kind) == ("BYTE_ARRAY", "STRING" if type_.name == "string" else "NONE")
        case "date":
            return (leaf.physical, kind) == ("INT32", "DATE")
        case "timestamp":
            return leaf.physical == "INT64" and leaf.annotation.is_utc and leaf.annotation.unit in _UNITS
        case _:
            return False


def _is_plain_integer(leaf: LeafType, *, wide: bool) -> bool:
    match leaf.physical, leaf.annotation:
        case "INT32", Annotation(kind="NONE") | Annotation(kind="INT", bits=8 | 16 | 32, is_signed=True):
            return True
        case "INT64", Annotation(kind="NONE") | Annotation(kind="INT", bits=64, is_signed=True):
            return wide
        case _:
            return False


def fewer_digits(leaf: LeafType, type_: ValueType) -> int | None:
    """The digits of the leaf's decimals, if the reader cuts a literal of `type_` to them; else None."""
    if type_.name != "decimal" or not takes_predicate(leaf, type_):
        return None
    return leaf.annotation.precision if leaf.annotation.precision < type_.precision else None


@dataclass(frozen=True, slots=True)
class ReaderLimits:
    """Limits of the reader of some files: literals that it compares wrongly, by the names of columns.

    - `misled`: bounds of a row group are in the wrong order, or a writer is known to get bounds or page indexes of the
      column wrong, so that a reader which trusts them skips matching rows
    - `digits`: the least number of digits of a file's decimals, where that is less than the column's
    """

    misled: frozenset[str] = frozenset()
    digits: Mapping[str, int] = field(default_factory=dict)

    def union(self, other: ReaderLimits) -> ReaderLimits:
        """The limits of all files of both."""
        names = {*self.digits, *other.digits}
        found = {name: [each.digits[name] for each in (self, other) if name in each.digits] for name in names}
        return ReaderLimits(self.misled | other.misled, {name: min(each) for name, each in found.items()})

    def storage_safe_ranges(self, column: str, ranges: RangeSet) -> RangeSet:
        """A superset of `ranges` with which the reader skips no row with a value in `ranges`."""
        if ranges.is_none:
            return ranges
        if column in self.misled:
            return RangeSet.all(ranges.type)
        return within_digits(ranges, self.digits[column]) if column in self.digits else ranges


NO_LIMITS = ReaderLimits()


def within_digits(ranges: RangeSet, digits: int) -> RangeSet:
    """A superset of decimal ranges whose ends have at most `digits` digits; larger numbers become an open end.

    >>> type_ = ValueType("decimal", 4, 0)
    >>> within_digits(RangeSet.of_codes(type_, np.array([3, 50, 7000])), 2)
    RangeSet[decimal(4,0)]{3, 50, [99, ...)}
    """
    most = 10**digits - 1
    if ranges.overlaps(_up_to(ranges.type, -most - 1)):
        ranges = ranges.union(_up_to(ranges.type, -most))
    return ranges.union(_from(ranges.type, most)) if ranges.overlaps(_from(ranges.type, most + 1)) else ranges


def _up_to(type_: ValueType, unscaled: int) -> RangeSet:
    if type_.physical is Physical.INT64:
        return RangeSet(type_, np.array([LEAST]), np.array([unscaled]))
    return RangeSet(type_, ByteStrings.of([b""]), ByteStrings.of([code.long_decimal_code(unscaled)]))


def _from(type_: ValueType, unscaled: int) -> RangeSet:
    if type_.physical is Physical.INT64:
        return RangeSet(type_, np.array([unscaled]), np.array([GREATEST]))
    low = ByteStrings.of([code.long_decimal_code(unscaled)])
    return RangeSet(type_, low, low, unbounded=True)
