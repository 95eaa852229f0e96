"""Spark's `=` between two types, one value at a time with Python's exact numbers: the oracle for `coerce`.

A *mode* is one of the ways a session may compare. The driver does not know the mode when it decides.

- integers and decimals compare exactly, in one mode
- compared with a float or double, the exact number is rounded to double; an integer compared with a float is rounded to
  single precision where ANSI mode is off
- a date is its midnight; compared with an instant, dates and local timestamps are read in the session's time zone, up
  to 18 hours from UTC; a value that does not fit a timestamp fails the query, so it equals nothing
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from pruning.values import encoding as code
from pruning.values.coercion import Coerced
from pruning.values.types import INTEGER_BITS, ValueType
from tests.pruning.samples import MOMENTS, Spec, decimal, nasty

HOUR = 3_600_000_000
DAY = 24 * HOUR
LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
# The farthest time zones, a negative and a positive one, and Stockholm's offset until 1878.
OFFSETS = (-18 * HOUR, -(11 * HOUR + 1), 0, 53 * 60_000_000 + 28_000_000, 18 * HOUR)


def assert_matches_spark(keys: Spec, column: ValueType, found: Coerced) -> None:
    """Every value that equals a key in some mode is in the domain; if exact, every value in it equals a key in all
    modes.
    """
    probes = near(keys, column)
    inside = found.domain.ranges.contains(code.encode(column, probes)).tolist()
    for value, is_in in zip(probes, inside, strict=True):
        matching = [some_key_equals(keys, column, value, mode) for mode in modes(keys.type, column)]
        assert is_in or not any(matching), value
        assert not (is_in and found.is_exact) or all(matching), value


def modes(source: ValueType, column: ValueType) -> tuple[Any, ...]:
    """The ways in which a session may compare the two types."""
    if source in MOMENTS:
        return OFFSETS if "timestamp" in (source.name, column.name) else (0,)
    integer_beside_single = "float" in (source.name, column.name) and (source.is_integer or column.is_integer)
    if source.is_exact_number and column.is_exact_number:
        return (Fraction,)
    return (as_double, as_single) if integer_beside_single else (as_double,)


def some_key_equals(keys: Spec, column: ValueType, value: Any, mode: Any) -> bool:
    """True if `value` of the column equals one of the keys in that mode."""
    if keys.type in MOMENTS:
        found = _moment_that_equals(keys.type, column, value, mode)
        return found is not None and keys.holds(found)
    if keys.type.is_exact_number and column.is_exact_number:
        return any(Fraction(low) <= Fraction(value) <= Fraction(high) for low, high in keys.pairs) and _is_of(
            keys.type, value
        )
    if keys.type.is_float:
        rounded = value if column.is_float else mode(Fraction(value))
        return _is_of(keys.type, rounded) and keys.holds(rounded)
    return any(mode(number) == value for number in _closest_numbers(keys, value))


def as_double(number: Fraction) -> float:
    """The nearest double, ties to even."""
    return number.numerator / number.denominator


def as_single(number: Fraction) -> float:
    """The nearest single-precision number, ties to even, in one rounding."""
    guess = np.float32(as_double(number))
    around = (guess, np.nextafter(guess, np.float32(-np.inf)), np.nextafter(guess, np.float32(np.inf)))
    return float(min(around, key=lambda each: (abs(Fraction(float(each)) - number), int(each.view(np.uint32)) & 1)))


def near(keys: Spec, column: ValueType) -> tuple[Any, ...]:
    """Values of the column at which a match may begin or end."""
    ends = [end for pair in keys.pairs for end in pair]
    around = [value for end in ends for value in _values_around(keys.type, end, column)]
    return (*around, *nasty(column))


def _is_of(type_: ValueType, value: Any) -> bool:
    match type_.name:
        case name if name in INTEGER_BITS:
            half = 1 << (INTEGER_BITS[name] - 1)
            return Fraction(value).denominator == 1 and -half <= value < half
        case "decimal":
            unscaled = Fraction(value) * 10**type_.scale
            return unscaled.denominator == 1 and abs(unscaled) < 10**type_.precision
        case "float":
            with np.errstate(over="ignore"):
                return float(np.float32(value)) == value
        case _:
            return True


def _closest_numbers(keys: Spec, value: float) -> Iterator[Fraction]:
    """The exact numbers of each range next to `value`. Rounding is monotone: if any number equals it, one of these
    does.
    """
    unit = 10**keys.type.scale
    for low, high in keys.pairs:
        first, last = Fraction(low) * unit, Fraction(high) * unit
        if math.isinf(value) or first > last:
            continue
        for candidate in (math.floor(Fraction(value) * unit), math.ceil(Fraction(value) * unit)):
            yield Fraction(max(first, min(candidate, last)), unit)


def _moment_that_equals(source: ValueType, column: ValueType, value: int, offset: int) -> int | None:
    """The one key that equals `value` in a time zone `offset` from UTC."""
    instant = _as_instant(column, value, offset)
    if instant is None:
        return None
    local = instant if source.name == "timestamp" else instant + offset
    if source.name != "date":
        return local if LEAST <= local <= GREATEST else None
    return local // DAY if local % DAY == 0 else None


def _as_instant(type_: ValueType, value: int, offset: int) -> int | None:
    micros = value * DAY if type_.name == "date" else value
    instant = micros if type_.name == "timestamp" else micros - offset
    return instant if LEAST <= micros <= GREATEST and LEAST <= instant <= GREATEST else None


def _values_around(source: ValueType, end: Any, column: ValueType) -> Iterator[Any]:
    if source in MOMENTS:
        yield from _moments_around(source, end, column)
    elif column.is_float:
        yield from _floats_around(end, column)
    elif not (source.is_float and math.isinf(end)):
        middle = Fraction(end) * 10**column.scale
        steps = (0, 1, 2, 63, 64, 65, 128, 511, 512, 513, 1024, 1025, 1 << 36, 1 << 38, 10**column.scale)
        for step in {*steps, *(-each for each in steps)}:
            number = Fraction(math.floor(middle) + step, 10**column.scale)
            if _is_of(column, number):
                yield number.numerator if column.is_integer else decimal(column, math.floor(middle) + step)


def _floats_around(end: Any, column: ValueType) -> Iterator[float]:
    kind = np.float32 if column.name == "float" else np.float64
    numbers = [end] if isinstance(end, float) else [as_double(Fraction(end)), as_single(Fraction(end))]
    with np.errstate(over="ignore"):
        for number in map(kind, numbers):
            yield from map(float, (number, np.nextafter(number, kind(-np.inf)), np.nextafter(number, kind(np.inf))))


def _moments_around(source: ValueType, end: int, column: ValueType) -> Iterator[int]:
    micros = end * DAY if source.name == "date" else end
    for offset in (*OFFSETS, *(-each for each in OFFSETS), 19 * HOUR, -19 * HOUR):
        for step in (-1, 0, 1):
            moved = micros + offset + step
            if column.name == "date":
                yield from (day for day in (moved // DAY, moved // DAY + 1) if abs(day) < 1 << 31)
            elif LEAST <= moved <= GREATEST:
                yield moved
