"""`Spans`: values between two ends for each of `n` containers, and how functions carry them in both directions.

    dt = CAST(at AS DATE) lies within [2024-01-05, 2024-01-06]:  at within [2024-01-04T06:00, 2024-01-07T18:00)
    at lies within [2024-01-05T12:00, 2024-01-05T13:00]:         dt within [2024-01-04, 2024-01-06]

The spans hold in every time zone, and each value may have been computed in another one. An end that is not known stays
so, and so do both where the function may have wrapped around.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pruning.values.byte_strings import ByteStrings, IntArray, above
from pruning.values.coercion import DAY_MICROS, ZONE_MARGIN
from pruning.values.encoding import GREATEST, LEAST, Codes
from pruning.values.functions import (
    CLOCK_MARGIN,
    MONTH,
    OFFSETS_MARGIN,
    Function,
    FunctionKind,
    above_extensions,
    bounds_of,
    first_characters,
    items,
    negated,
    plus,
)
from pruning.values.ranges import BoolArray
from pruning.values.types import ValueType

_EPOCH_YEAR = 1970
# Bytes that a log writes in the place of those that are no text.
_REPLACED = "\ufffd".encode()
# Texts at most whose characters are counted, 4 microseconds for each end.
_MOST_TEXTS = 1 << 16
# Values with the same result lie in no single interval.
_WITHOUT_SPANS = frozenset({FunctionKind.TEXT, FunctionKind.DATE_TEXT, FunctionKind.OR_CONSTANT})
# So do values with a result of these, since one that has wrapped around may be any.
_WITHOUT_SOURCES = _WITHOUT_SPANS | {FunctionKind.MULTIPLY, FunctionKind.SHORTEN}


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """`n` spans of codes of `type`; an end counts only where `has_low`, `has_high` are True."""

    type: ValueType
    lows: Codes
    highs: Codes
    has_low: BoolArray
    has_high: BoolArray

    @property
    def is_inverted(self) -> BoolArray:
        """An array: True where a low lies above its high, which is an error of a writer."""
        match self.lows, self.highs:
            case (ByteStrings() as lows, ByteStrings() as highs):
                is_above = above(lows, highs)
            case _:
                is_above = np.asarray(self.lows) > np.asarray(self.highs)
        return self.has_low & self.has_high & is_above

    def without(self, unknown: BoolArray) -> Spans:
        """The spans with neither end known where `unknown` is True."""
        return replace(self, has_low=self.has_low & ~unknown, has_high=self.has_high & ~unknown)

    def read_as(self, type_: ValueType) -> Spans | None:
        """The spans as those of another type; None if a value has another code in it."""
        if self.type == type_:
            return self
        return replace(self, type=type_) if self.type.is_integer and type_.is_integer else None

    def ends(self) -> tuple[IntArray, IntArray]:
        """The ends of numbers, the least and the greatest integer where they are not known."""
        lows, highs = np.asarray(self.lows), np.asarray(self.highs)
        return np.where(self.has_low, lows, LEAST), np.where(self.has_high, highs, GREATEST)

    def moved(self, type_: ValueType, lows: IntArray, highs: IntArray, is_sure: BoolArray) -> Spans:
        """Spans of another type with these ends, where they are sure and the type holds them."""
        least, greatest = bounds_of(type_)
        has_low, has_high = self.has_low & is_sure & (lows > least), self.has_high & is_sure & (highs < greatest)
        return Spans(type_, lows, highs, has_low, has_high)


def source_spans(functions: Sequence[Function], results: Spans, type_: ValueType) -> Spans | None:
    """The values of `type_` whose results by functions, the innermost first, lie in each span; None if not known.

    Results of values on which a function gives NULL are not told from others: see `Function.margins`.
    """
    found: Spans | None = results.without(results.is_inverted)
    for each in reversed(functions):
        found = found and found.read_as(each.result)
        found = found and _source(each, found)
    return found and found.read_as(type_)


def result_spans(functions: Sequence[Function], sources: Spans, type_: ValueType) -> Spans | None:
    """The results of type `type_` of the values in each span, by functions, the innermost first; None if not known."""
    found: Spans | None = sources.without(sources.is_inverted)
    for each in functions:
        found = found and found.read_as(each.source)
        found = found and _result(each, found)
    return found and found.read_as(type_)


def _source(function: Function, spans: Spans) -> Spans | None:
    if function.kind in _WITHOUT_SOURCES:
        return None
    if function.kind is FunctionKind.PREFIX:
        return _extensions(spans, int(function.number)) if len(spans.lows) <= _MOST_TEXTS else None
    (low, high), (least, greatest) = spans.ends(), bounds_of(function.result)
    # A result that has wrapped around lies as near to an end of its type.
    margin = max(function.margins)
    is_sure = (low >= least + margin) & (high <= greatest - margin) if margin else np.ones(len(low), bool)
    return spans.moved(function.source, *function.ends(low, high), is_sure)


def _result(function: Function, spans: Spans) -> Spans | None:
    if function.kind is FunctionKind.PREFIX:
        return _prefixes(spans, int(function.number)) if len(spans.lows) <= _MOST_TEXTS else None
    (low, high), (least, greatest) = spans.ends(), bounds_of(function.source)
    below, beyond = function.margins
    is_sure = np.ones(len(low), bool)
    if below or beyond:
        is_sure = (low >= least + below) & (high <= greatest - beyond)
    ends = _result_ends(function, low, high)
    return ends and spans.moved(function.result, *ends, is_sure)


def _result_ends(function: Function, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray] | None:
    """The least and the greatest result of the values between two ends; None if they are not known."""
    source = _moment_ends if function.source.is_temporal else _number_ends
    return source(function, low, high)


def _moment_ends(function: Function, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray] | None:
    by = int(function.number)
    match function.kind:
        case FunctionKind.TO_DATE:
            margin = ZONE_MARGIN if function.source.name == "timestamp" else 0
            return plus(low, -margin) // DAY_MICROS, plus(high, margin) // DAY_MICROS
        case FunctionKind.TRUNCATE_TIMESTAMP:
            return plus(low, -by - CLOCK_MARGIN), plus(high, CLOCK_MARGIN)
        case FunctionKind.SET_CLOCK:
            return plus(low, -CLOCK_MARGIN), plus(high, CLOCK_MARGIN)
        case FunctionKind.TRUNCATE_DATE:
            return plus(low, -by), high
        case FunctionKind.LAST_DAY:
            return low, plus(high, MONTH)
        case FunctionKind.YEAR:
            return _years(low), _years(high)
        case FunctionKind.UNIX_TIME:
            return low // by, high // by + (high % by != 0)
        case FunctionKind.ADD_MICROSECONDS:
            return plus(plus(low, by), -OFFSETS_MARGIN), plus(plus(high, by), OFFSETS_MARGIN)
        case FunctionKind.ADD_DAYS:
            return plus(low, by), plus(high, by)
        case _:
            return None


def _number_ends(function: Function, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray] | None:
    by = int(function.number)
    match function.kind:
        case FunctionKind.ADD:
            return plus(low, by), plus(high, by)
        case FunctionKind.NEGATE:
            return negated(low, high)
        case FunctionKind.MULTIPLY:
            return low * by, high * by
        case FunctionKind.SHORTEN:
            return low, high
        case FunctionKind.FLOOR:
            return low // by, high // by
        case FunctionKind.CEIL:
            return low // by + (low % by != 0), high // by + (high % by != 0)
        case FunctionKind.DIVIDE:
            return _quotients(low, by), _quotients(high, by)
        case _:
            # Quotients of doubles are rounded.
            return None


def _years(days: IntArray) -> IntArray:
    inside = np.clip(days, *bounds_of(ValueType("date")))
    years: IntArray = inside.astype("datetime64[D]").astype("datetime64[Y]").astype(np.int64)
    return years + _EPOCH_YEAR


def _quotients(values: IntArray, by: int) -> IntArray:
    """Values divided by a number above 0; the remainder is cut off towards 0."""
    found: IntArray = values // by + ((values < 0) & (values % by != 0))
    return found


def _extensions(spans: Spans, length: int) -> Spans:
    """The texts whose prefixes lie in each span: none is below its prefix."""
    strings = [[*items(each)] if isinstance(each, ByteStrings) else [] for each in (spans.lows, spans.highs)]
    after = [above_extensions(first_characters(each, length)) for each in strings[1]]
    is_replaced = np.array([_REPLACED in low or _REPLACED in high for low, high in zip(*strings, strict=True)], bool)
    has_high = spans.has_high & np.array([each is not None for each in after], bool)
    highs = ByteStrings.of(each or b"" for each in after)
    return replace(spans, highs=highs, has_high=has_high).without(is_replaced)


def _prefixes(spans: Spans, length: int) -> Spans:
    ends = [
        ByteStrings.of(first_characters(each, length) for each in items(strings))
        for strings in (spans.lows, spans.highs)
        if isinstance(strings, ByteStrings)
    ]
    return replace(spans, lows=ends[0], highs=ends[1])
