"""`Function`: a function of one value, and the values that it maps to keys.

    to_date(at) = d:  at >= midnight of d  and  at < midnight of the next day

The values of `preimage()` are a superset: ranges are widened where a time zone, rounding or a cut remainder matters.
The local time of an instant differs from UTC by at most 18 hours, and clocks are set by at most a day, so the result
holds for every time zone. Values on which a function may raise an error, or wrap around, are always among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import reduce
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pruning.reasons import Reason, ReasonCode
from pruning.values.byte_strings import ByteStrings, IntArray
from pruning.values.coercion import DAY_MICROS, ZONE_MARGIN, coerce
from pruning.values.date_texts import days_between_texts, days_of_texts, follows_days
from pruning.values.domain import Domain
from pruning.values.encoding import GREATEST, LEAST
from pruning.values.ranges import RangeSet
from pruning.values.types import INTEGER_BITS, ValueType

# Days that the last one of a month is after another.
MONTH = 30
# Clocks of a zone that changed the side of the date line were set by a day.
CLOCK_MARGIN = DAY_MICROS
# The most by which two offsets of a zone differ, which may lie decades apart.
OFFSETS_MARGIN = 2 * ZONE_MARGIN
# Years whose days have 32 bits lie far inside.
_LAST_YEAR = 10_000_000
_EPOCH_YEAR = 1970
# Doubles have 53 bits: products of them are this near to the true ones.
_ROUNDING, _EXACT = 2.0**-48, 2.0**50
# Texts that are parsed one by one.
_MOST_TEXTS = 1 << 20
# Ranges of texts whose ends are looked up, which takes 0.1 ms for one.
_MOST_RANGES = 1 << 10
# The first byte of a character that has so many bytes or more.
_TWO_BYTES, _THREE_BYTES, _FOUR_BYTES = 0xC2, 0xE0, 0xF0
_CANONICAL = re.compile(rb"0|-?[1-9][0-9]{0,18}")


class FunctionKind(Enum):
    """The functions, by their SQL for an argument.

    The `number` of a truncation is the longest span of its unit, that of a time since 1970 its microseconds, and that
    of a decimal, rounded to an integer, the steps of its type from 0 to 1.
    """

    TO_DATE = "CAST({argument} AS DATE)"
    TRUNCATE_TIMESTAMP = "date_trunc('{unit}', {argument})"
    TRUNCATE_DATE = "trunc({argument}, '{unit}')"
    YEAR = "year({argument})"
    ADD_DAYS = "date_add({argument}, {number})"
    ADD_MICROSECONDS = "{argument} + {number} microseconds"
    SET_CLOCK = "CAST({argument} AS {unit})"
    LAST_DAY = "last_day({argument})"
    UNIX_TIME = "{unit}({argument})"
    ADD = "{argument} + {number}"
    NEGATE = "-{argument}"
    MULTIPLY = "{argument} * {number}"
    DIVIDE = "{argument} DIV {number}"
    FLOOR_DIVIDE = "floor({argument} / {number})"
    CEIL_DIVIDE = "ceil({argument} / {number})"
    FLOOR = "floor({argument})"
    CEIL = "ceil({argument})"
    SHORTEN = "CAST({argument} AS {result})"
    TEXT = "CAST({argument} AS STRING)"
    DATE_TEXT = "date_format({argument}, '{unit}')"
    PREFIX = "substring({argument}, 1, {number})"
    OR_CONSTANT = "{argument} or a constant"


# Stands for the argument in the `text` of a choice.
ARGUMENT = "{argument}"


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a value of type `source` that gives one of `result`.

    It gives NULL for NULL alone, but for `OR_CONSTANT`: that gives its argument, NULL or one of the `constants`, as
    `coalesce` and CASE do. `text` is what messages show of such a choice.

    >>> to_date = Function(FunctionKind.TO_DATE, ValueType("timestamp_ntz"), ValueType("date"))
    >>> print(to_date.preimage(Domain.of(ValueType("date"), 1)))
    {[1970-01-02T00:00:00.000000, 1970-01-02T23:59:59.999999]}
    """

    kind: FunctionKind
    source: ValueType
    result: ValueType
    number: int | float = 0
    unit: str = ""
    constants: tuple[object, ...] = ()
    text: str = field(default="", compare=False)

    def sql(self, argument: str) -> str:
        """The function of an argument, as SQL writes it."""
        if self.kind is FunctionKind.OR_CONSTANT and self.text:
            return self.text.replace(ARGUMENT, argument)
        result = str(self.result).upper()
        argument = f"({argument})" if self.kind in _OPERATORS and not _NAME.fullmatch(argument) else argument
        return self.kind.value.format(argument=argument, number=self.number, unit=self.unit, result=result)

    @property
    def maps_ranges(self) -> bool:
        """False where values of a range of results lie in no range, as 10 gives the text '10', which is below '9'.

        True also for functions that reverse the order.
        """
        if self.kind is FunctionKind.DATE_TEXT:
            return follows_days(self.unit)
        return self.kind not in {FunctionKind.TEXT, FunctionKind.OR_CONSTANT}

    @property
    def width(self) -> float:
        """About as many values give the same result."""
        match self.kind:
            case FunctionKind.TO_DATE:
                return float(DAY_MICROS)
            case FunctionKind.YEAR:
                return 365.0
            case FunctionKind.LAST_DAY:
                return 31.0
            case FunctionKind.UNIX_TIME | FunctionKind.FLOOR | FunctionKind.CEIL:
                return self.number
            case FunctionKind.TRUNCATE_TIMESTAMP | FunctionKind.TRUNCATE_DATE | FunctionKind.DATE_TEXT:
                return self.number
            case FunctionKind.DIVIDE | FunctionKind.FLOOR_DIVIDE | FunctionKind.CEIL_DIVIDE:
                return max(1.0, self.number)
            case _:
                return 1.0

    def preimage(self, keys: Domain) -> Domain | Reason:
        """The values of `source` that the function maps to one of `keys`, which are of type `result`; a superset.

        A `Reason` if it may map NULL and every value to a key, which is a constant.
        """
        match self.kind:
            case FunctionKind.OR_CONSTANT:
                constants = Domain.of(self.result, *self.constants)
                if keys.intersect(constants).is_none:
                    return keys
                return Reason(ReasonCode.CONSTANT_KEY, self.sql("a column"), ", ".join(map(str, self.constants)))
            case FunctionKind.TEXT | FunctionKind.DATE_TEXT:
                ranges = self._of_texts(keys.ranges)
            case FunctionKind.PREFIX:
                ranges = _with_prefixes(keys.ranges, int(self.number))
            case _:
                lows, highs = self.ends(np.asarray(keys.ranges.lows), np.asarray(keys.ranges.highs))
                ranges = _within_type(RangeSet.of_ranges(self.source, lows, highs).union(self._beyond()))
        return Domain(ranges, keys.null)

    def _of_texts(self, texts: RangeSet) -> RangeSet:
        """The values with these texts; all where the texts are not listed, and do not follow the order of days."""
        most = _MOST_TEXTS if texts.is_points else _MOST_RANGES
        texts = texts.span() if self.maps_ranges and len(texts) > most else texts
        if not isinstance(texts.lows, ByteStrings) or not isinstance(texts.highs, ByteStrings):
            return RangeSet.all(self.source)
        if self.maps_ranges and not texts.is_points:
            highs: list[bytes | None] = [*items(texts.highs)]
            if texts.unbounded:
                highs[-1] = None
            return days_between_texts(zip(items(texts.lows), highs, strict=True), self.unit)
        if not texts.is_points or len(texts) > _MOST_TEXTS:
            return RangeSet.all(self.source)
        if self.kind is FunctionKind.DATE_TEXT:
            return days_of_texts(items(texts.lows), self.unit)
        least, greatest = bounds_of(self.source)
        written = (int(each) for each in items(texts.lows) if _CANONICAL.fullmatch(each))
        return RangeSet.of_codes(
            self.source, np.array([each for each in written if least <= each <= greatest], np.int64)
        )

    def ends(self, lows: IntArray, highs: IntArray) -> tuple[IntArray, IntArray]:
        """The least and the greatest value whose result lies between each low and its high."""
        return self._ends_of_moments(lows, highs) if self.source.is_temporal else self._ends_of_numbers(lows, highs)

    def _ends_of_moments(self, lows: IntArray, highs: IntArray) -> tuple[IntArray, IntArray]:
        by = int(self.number)
        match self.kind:
            case FunctionKind.TO_DATE:
                margin = ZONE_MARGIN if self.source.name == "timestamp" else 0
                return plus(_times(lows, DAY_MICROS), -margin), plus(_times(highs, DAY_MICROS), DAY_MICROS - 1 + margin)
            case FunctionKind.TRUNCATE_TIMESTAMP:
                return plus(lows, -CLOCK_MARGIN), plus(highs, by + CLOCK_MARGIN)
            case FunctionKind.SET_CLOCK:
                return plus(lows, -CLOCK_MARGIN), plus(highs, CLOCK_MARGIN)
            case FunctionKind.TRUNCATE_DATE:
                return lows, plus(highs, by)
            case FunctionKind.LAST_DAY:
                return plus(lows, -MONTH), highs
            case FunctionKind.YEAR:
                return _first_day(lows), _first_day(highs, following=1)
            case FunctionKind.UNIX_TIME:
                # Spark cuts the fraction of a second off, also of times before 1970.
                return plus(_times(lows, by), 1 - by), plus(_times(highs, by), by - 1)
            case FunctionKind.ADD_MICROSECONDS:
                # Days of an interval are those of the local time.
                return plus(plus(lows, -by), -OFFSETS_MARGIN), plus(plus(highs, -by), OFFSETS_MARGIN)
            case FunctionKind.ADD_DAYS:
                return plus(lows, -by), plus(highs, -by)
            case _:
                raise ValueError(f"found {self.kind}, expected a function of moments whose results are numbers")

    def _ends_of_numbers(self, lows: IntArray, highs: IntArray) -> tuple[IntArray, IntArray]:
        by = int(self.number)
        match self.kind:
            case FunctionKind.ADD:
                return plus(lows, -by), plus(highs, -by)
            case FunctionKind.NEGATE:
                return negated(lows, highs)
            case FunctionKind.SHORTEN:
                return lows, highs
            case FunctionKind.MULTIPLY:
                low, high = lows // by + (lows % by != 0), highs // by
                return np.where(lows == LEAST, LEAST, low), np.where(highs == GREATEST, GREATEST, high)
            case FunctionKind.FLOOR:
                return _times(lows, by), plus(_times(highs, by), by - 1)
            case FunctionKind.CEIL:
                return plus(_times(lows, by), 1 - by), _times(highs, by)
            case FunctionKind.DIVIDE:
                low, high = _times(lows, by), _times(highs, by)
                # The remainder is cut off towards 0.
                return np.where(lows > 0, low, plus(low, 1 - by)), np.where(highs < 0, high, plus(high, by - 1))
            case FunctionKind.FLOOR_DIVIDE:
                return _quotient_ends(lows, highs, float(self.number))
            case FunctionKind.CEIL_DIVIDE:
                # The least integer above a quotient is the greatest below that of the other sign, which loses no bit.
                return negated(*_quotient_ends(*negated(lows, highs), float(self.number)))
            case _:
                raise ValueError(f"found {self.kind}, expected a function of numbers whose results are numbers")

    @property
    def margins(self) -> tuple[int, int]:
        """Counts of the least and the greatest values of `source` on which it may raise an error, wrap or give NULL."""
        by, (least, greatest) = int(self.number), bounds_of(self.source)
        match self.kind:
            case FunctionKind.NEGATE:
                below, above = 1, 0
            case FunctionKind.MULTIPLY:
                below, above = -least - -least // by, greatest - greatest // by
            case FunctionKind.SHORTEN:
                low, high = bounds_of(self.result)
                below, above = low - least, greatest - high
            case FunctionKind.SET_CLOCK:
                below, above = CLOCK_MARGIN, CLOCK_MARGIN
            case FunctionKind.LAST_DAY:
                below, above = 0, MONTH
            case FunctionKind.ADD | FunctionKind.ADD_DAYS:
                below, above = max(0, -by), max(0, by)
            case FunctionKind.ADD_MICROSECONDS:
                below, above = max(0, -by) + OFFSETS_MARGIN, max(0, by) + OFFSETS_MARGIN
            case FunctionKind.TRUNCATE_TIMESTAMP:
                below, above = by + CLOCK_MARGIN, CLOCK_MARGIN
            case FunctionKind.TRUNCATE_DATE:
                below, above = by, 0
            case _:
                below, above = 0, 0
        return below, above

    def _beyond(self) -> RangeSet:
        """The values near the ends of `source` on which the function may raise an error, or wrap around."""
        (below, above), (least, greatest) = self.margins, bounds_of(self.source)
        ends = [(least, least + below - 1)] * (below > 0) + [(greatest - above + 1, greatest)] * (above > 0)
        return RangeSet.of_ranges(self.source, *np.array(ends, np.int64).reshape(-1, 2).T)


# Functions that are written as operators.
_OPERATORS = frozenset(
    {
        *(FunctionKind.ADD, FunctionKind.NEGATE, FunctionKind.MULTIPLY, FunctionKind.DIVIDE, FunctionKind.FLOOR_DIVIDE),
        *(FunctionKind.CEIL_DIVIDE, FunctionKind.ADD_MICROSECONDS),
    }
)
# A column, or a call of a function.
_NAME = re.compile(r"[\w.`]+(\([^()]*\))?")

Functions: TypeAlias = tuple[Function, ...]


def functions_sql(functions: Functions, argument: str) -> str:
    """The text of functions of each other, the innermost of an argument."""
    return reduce(lambda text, function: function.sql(text), functions, argument)


def preimage(functions: Sequence[Function], keys: Domain) -> Domain | Reason:
    """The values that several functions, the innermost first, map to one of `keys`; a superset.

    A `Reason` where keys and results have types whose values cannot be compared soundly, or where every value may be
    mapped to a key. Casts between functions, which lose nothing, need no function of their own.
    """
    found = keys
    for each in reversed(functions):
        coerced = coerce(found, each.result, each.sql("a column"))
        if isinstance(coerced, Reason):
            return coerced
        values = each.preimage(coerced.domain)
        if isinstance(values, Reason):
            return values
        found = values
    return found


def bounds_of(type_: ValueType) -> tuple[int, int]:
    """The least and the greatest number of a type."""
    bits = 32 if type_.name == "date" else INTEGER_BITS.get(type_.name, 64)
    return -(1 << bits - 1), (1 << bits - 1) - 1


def _within_type(ranges: RangeSet) -> RangeSet:
    """The values of the ranges that their type holds; an end at the least or the greatest of them is open."""
    (least, greatest), lows, highs = bounds_of(ranges.type), np.asarray(ranges.lows), np.asarray(ranges.highs)
    inside = np.flatnonzero((lows <= greatest) & (highs >= least))
    lows, highs = lows[inside], highs[inside]
    return RangeSet.of_ranges(
        ranges.type, np.where(lows <= least, LEAST, lows), np.where(highs >= greatest, GREATEST, highs)
    )


def plus(values: IntArray, by: int) -> IntArray:
    """Each value and a number, within int64."""
    return np.minimum(values, GREATEST - by) + by if by >= 0 else np.maximum(values, LEAST - by) + by


def negated(lows: IntArray, highs: IntArray) -> tuple[IntArray, IntArray]:
    """The ends of the same values with the other sign; an open end stays open."""
    low, high = (-np.maximum(each, LEAST + 1) for each in (highs, lows))
    return np.where(highs == GREATEST, LEAST, low), np.where(lows == LEAST, GREATEST, high)


def _times(values: IntArray, by: int) -> IntArray:
    """Each value times a number above 0, within int64; an open end stays open."""
    most = GREATEST // by
    found = np.clip(values, -most, most) * by
    return np.where(values > most, GREATEST, np.where(values < -most, LEAST, found))


def _first_day(years: IntArray, following: int = 0) -> IntArray:
    """The first day of each year, or the last before that of a following year; an open end stays open."""
    inside = np.clip(years, -_LAST_YEAR, _LAST_YEAR) + following - _EPOCH_YEAR
    days = inside.astype("datetime64[Y]").astype("datetime64[D]").astype(np.int64) - following
    return np.where(years > _LAST_YEAR, GREATEST if following else days, np.where(years < -_LAST_YEAR, LEAST, days))


def _quotient_ends(lows: IntArray, highs: IntArray, divisor: float) -> tuple[IntArray, IntArray]:
    """The least and the greatest integer whose quotient by a double, rounded down, lies between two numbers."""
    # The products and errors of huge divisors are infinite, and so beyond every integer.
    with np.errstate(over="ignore", invalid="ignore"):
        low, below = lows.astype(float) * divisor, (highs.astype(float) + 1.0) * divisor
        least = _whole(np.ceil(low - _error(low, divisor)))
        greatest = _whole(np.ceil(below + _error(below, divisor)) - 1.0)
    # Quotients beyond 64 bits become the least or the greatest of them.
    return np.where(lows == LEAST, LEAST, least), np.where(highs == GREATEST, GREATEST, greatest)


def _error(products: npt.NDArray[np.float64], divisor: float) -> npt.NDArray[np.float64]:
    """The distance within which integers may have the quotient of a product: none while doubles hold both exactly."""
    is_exact = divisor.is_integer() & (np.abs(products) < _EXACT)
    return np.where(is_exact, 0.0, np.abs(products) * _ROUNDING + 1.0)


def _whole(values: npt.NDArray[np.float64]) -> IntArray:
    """Doubles as integers; an open end for those that 64 bits do not hold."""
    inside = np.abs(values) < 2.0**63
    return np.where(inside, np.where(inside, values, 0.0).astype(np.int64), np.where(values < 0, LEAST, GREATEST))


def _with_prefixes(prefixes: RangeSet, length: int) -> RangeSet:
    """Every text whose first characters, so many, are one of these texts or lie between two of them."""
    prefixes = prefixes.span() if len(prefixes) > _MOST_TEXTS else prefixes
    if not isinstance(prefixes.lows, ByteStrings) or not isinstance(prefixes.highs, ByteStrings):
        raise TypeError(f"found {prefixes.type}, expected texts")
    # A prefix that is at most a longer text is at most the first characters of that text.
    above = [above_extensions(first_characters(each, length)) for each in items(prefixes.highs)]
    if prefixes.unbounded:
        above[-1] = None
    closed = [at for at, each in enumerate(above) if each is not None]
    highs = ByteStrings.of(each for each in above if each is not None)
    found = RangeSet.of_ranges(prefixes.type, prefixes.lows.take(np.array(closed, np.int64)), highs)
    if len(closed) == len(above):
        return found
    # Ranges ascend, so all above the first without an end lie in it.
    first = prefixes.lows.take(np.array([above.index(None)]))
    return found.union(RangeSet(prefixes.type, first, first, unbounded=True))


def first_characters(text: bytes, count: int) -> bytes:
    """The first characters of a text, whose lengths their first bytes tell, as Spark counts them."""
    end = 0
    for _ in range(min(count, len(text))):
        if end >= len(text):
            break
        first = text[end]
        end += 1 if first < _TWO_BYTES else 2 if first < _THREE_BYTES else 3 if first < _FOUR_BYTES else 4
    return text[:end]


def above_extensions(text: bytes) -> bytes | None:
    """A text above all that begin with this one, for a cut that leaves characters; None if there is none."""
    if not text:
        return text
    stem = text.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


def items(strings: ByteStrings) -> Iterator[bytes]:
    """Each of the strings."""
    return (strings[at] for at in range(len(strings)))
