"""Statistics of a column from those of another one in the same table, of which one is a function of the other.

    dt DATE GENERATED ALWAYS AS (CAST(at AS DATE)):  bounds of dt bound at, and bounds of at bound dt

Both are sound, so a container has the narrower of derived and own bounds. A derived bound need not be a value, as no
bound of a column needs to be.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pruning.scan.statistics import UNKNOWN, ColumnStatistics
from pruning.values.byte_strings import ByteStrings, IntArray, above
from pruning.values.encoding import Codes
from pruning.values.function_spans import Spans, result_spans, source_spans
from pruning.values.functions import Functions, functions_sql
from pruning.values.ranges import BoolArray
from pruning.values.types import ValueType


@dataclass(frozen=True, slots=True)
class GeneratedColumn:
    """A column `name` whose values are `functions`, the innermost first, of those of the column `source`.

    It is NULL where the source is, and nowhere else, but for values within `Function.margins`.
    """

    name: str
    source: str
    functions: Functions

    def __str__(self) -> str:
        return f"{self.name} = {functions_sql(self.functions, self.source)}"

    @property
    def is_sure(self) -> bool:
        """True if no value gives NULL."""
        return not any(any(each.margins) for each in self.functions)

    def of_source(self, generated: ColumnStatistics, type_: ValueType) -> ColumnStatistics | None:
        """The statistics of the source, of type `type_`, by those of the generated column; None if nothing is told."""
        has_null = generated.null_count != 0
        # Writers put NULL in the place of an empty value of a partition.
        is_text = generated.is_partition and generated.type.name in ("string", "binary")
        unknown = np.zeros(len(generated), bool) if self.is_sure and not is_text else has_null
        spans = source_spans(self.functions, _spans(generated).without(unknown), type_)
        return None if spans is None else _statistics(spans, np.where(unknown, UNKNOWN, generated.null_count))

    def of_result(self, source: ColumnStatistics, type_: ValueType) -> ColumnStatistics | None:
        """The statistics of the generated column, of type `type_`, by those of its source; None if nothing is told."""
        spans = result_spans(self.functions, _spans(source), type_)
        if spans is None:
            return None
        # Both ends are known where no value may give NULL, or wrap around.
        is_told = np.full(len(source), self.is_sure) | (spans.has_low & spans.has_high)
        return _statistics(spans, np.where(is_told, source.null_count, UNKNOWN))


def narrowed(own: ColumnStatistics, derived: ColumnStatistics) -> ColumnStatistics:
    """The narrower of two bounds of each container, and a count of NULL where one of both is known."""
    lows, has_low = _chosen((own.lows, own.has_low), (derived.lows, derived.has_low), is_low=True)
    highs, has_high = _chosen((own.highs, own.has_high), (derived.highs, derived.has_high), is_low=False)
    nulls = np.where(own.null_count == UNKNOWN, derived.null_count, own.null_count)
    return replace(own, lows=lows, highs=highs, has_low=has_low, has_high=has_high, null_count=nulls)


def _spans(column: ColumnStatistics) -> Spans:
    return Spans(column.type, column.lows, column.highs, column.has_low, column.has_high)


def _statistics(spans: Spans, null_count: IntArray) -> ColumnStatistics:
    may_have_nan = np.full(len(null_count), spans.type.is_float)
    return ColumnStatistics(
        spans.type, spans.lows, spans.highs, spans.has_low, spans.has_high, null_count, may_have_nan
    )


def _chosen(own: tuple[Codes, BoolArray], derived: tuple[Codes, BoolArray], *, is_low: bool) -> tuple[Codes, BoolArray]:
    """The greater of two lows, or the lesser of two highs, and True where one of them is known."""
    (ours, has_ours), (theirs, has_theirs) = own, derived
    least, greatest = (ours, theirs) if is_low else (theirs, ours)
    match least, greatest:
        case (ByteStrings() as first, ByteStrings() as second):
            is_narrower = above(second, first)
        case _:
            is_narrower = np.asarray(greatest) > np.asarray(least)
    takes = has_theirs & (~has_ours | is_narrower)
    match ours, theirs:
        case (ByteStrings() as first, ByteStrings() as second):
            rows = np.arange(len(takes))
            codes: Codes = ByteStrings.concat([first, second]).take(np.where(takes, rows + len(takes), rows))
        case _:
            codes = np.where(takes, np.asarray(theirs), np.asarray(ours))
    return codes, has_ours | has_theirs
