"""Comparisons of a join: what `probe >= build` or `probe <= build` says of the probe, once the build's keys are known.

A row of the probe side matches some key only where it is at least the least of them, or at most the greatest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from types import MappingProxyType

import numpy as np

from pruning.byte_strings import ByteStrings
from pruning.codes import GREATEST
from pruning.domain import Domain
from pruning.key_summary import KeySummary
from pruning.ranges import RangeSet
from pruning.reasons import ReasonCode

_OF_LISTS = frozenset({ReasonCode.KEYS_OVER_LIMIT, ReasonCode.BLOOM_TOO_FULL})


class Bound(Enum):
    """The side of the build's keys on which values of the probe may match one."""

    AT_LEAST = "at least"
    AT_MOST = "at most"


# For each comparison what its first child is to the second, then the second to the first; strict ones are closed.
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

    >>> from pruning.value_type import ValueType
    >>> print(values_at_least(Domain.of(ValueType("int"), 7, 3, None)))
    {[3, ...)}
    """
    return Domain(_upward(keys.ranges), nan=keys.nan or (keys.type.is_float and not keys.ranges.is_none))


def values_at_most(keys: Domain) -> Domain:
    """Every value that is at most one of `keys`; under NaN lie all numbers.

    >>> from pruning.value_type import ValueType
    >>> print(values_at_most(Domain.of(ValueType("int"), 7, 3, None)))
    {(..., 7]}
    """
    return Domain(RangeSet.all(keys.type) if keys.nan else _downward(keys.ranges), nan=keys.nan)


def bounded(summary: KeySummary, bound: Bound) -> KeySummary:
    """A summary of every value on one side of the keys: ranges alone, since no single value can be listed.

    The keys must have the type in which they are compared: of a narrower one, the values on one side end where that
    type ends.
    """
    widen = values_at_least if bound is Bound.AT_LEAST else values_at_most
    return replace(
        summary,
        columns=tuple(replace(each, domain=widen(each.domain)) for each in summary.columns),
        distinct=None,
        key_rows=None,
        bloom=None,
        source=f"{bound.value} one of {summary.source}",
        # Of keys that were too many to be listed the ends are known all the same.
        reasons=tuple(each for each in summary.reasons if each.code not in _OF_LISTS),
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
