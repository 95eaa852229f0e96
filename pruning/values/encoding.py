"""Codes: the values of a type as sortable arrays whose order is Spark's order.

| type | code |
|---|---|
| integers, boolean | the number |
| date, timestamp, timestamp_ntz | days, microseconds since 1970-01-01 |
| decimal, up to 18 digits | the unscaled number |
| float, double | the bits of the double, changed so that they sort as the values do; NaN has no code |
| decimal, more digits | 16 big-endian bytes of the unscaled number + 2**127 |
| string, binary | the bytes (UTF-8) |

The first four are int64 arrays, the others `ByteStrings`. NULL and NaN are never codes: they are flags.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pruning.values.byte_strings import ByteStrings, IntArray, ranks, sorted_distinct
from pruning.values.types import FLOATS, INTEGER_BITS, Physical, ValueType

Codes: TypeAlias = IntArray | ByteStrings

LEAST = int(np.iinfo(np.int64).min)
GREATEST = int(np.iinfo(np.int64).max)
_MAGNITUDE = np.int64(GREATEST)
_LONG_DECIMAL_OFFSET = 1 << 127
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_MICROSECOND = dt.timedelta(microseconds=1)


def float_codes(values: npt.NDArray[np.floating[Any]]) -> IntArray:
    """Order-preserving codes of floats; -0.0 and 0.0 have one code, and `is_number` is False for the codes of NaN.

    >>> bool(float_codes(np.array([-0.0]))[0] == float_codes(np.array([0.0]))[0])
    True
    """
    # Adding 0.0 turns -0.0 into 0.0 and changes no other value. Bounds from a file may be any NaN.
    with np.errstate(invalid="ignore"):
        bits = (values.astype(np.float64) + 0.0).view(np.int64)
    return bits ^ ((bits >> 63) & _MAGNITUDE)


def float_values(codes: IntArray) -> npt.NDArray[np.float64]:
    """The floats of codes that `float_codes` made."""
    return (codes ^ ((codes >> 63) & _MAGNITUDE)).view(np.float64)


def is_number(codes: Codes) -> npt.NDArray[np.bool_]:
    """An array: True where a code of a float type is that of a number, False for NaN."""
    least, greatest = float_codes(np.array([-np.inf, np.inf]))
    inside: npt.NDArray[np.bool_] = (np.asarray(codes) >= least) & (np.asarray(codes) <= greatest)
    return inside


def empty(type_: ValueType) -> Codes:
    """An empty array of codes of `type_`."""
    return np.zeros(0, np.int64) if type_.physical is Physical.INT64 else ByteStrings.of(())


def encode(type_: ValueType, values: Iterable[object]) -> Codes:
    """Codes of Python values, none of them None or NaN; for tests, literals and small key lists."""
    to_code = _encoder(type_)
    codes = [to_code(value) for value in values]
    if type_.physical is Physical.INT64:
        return np.array(codes, np.int64)
    return ByteStrings.of(codes)


def decode(type_: ValueType, codes: Codes) -> list[Any]:
    """Python values of codes; temporal ones as ISO text, since Python's own types end at year 9999."""
    from_code = _decoder(type_)
    return [from_code(codes[index]) for index in range(len(codes))]


def concat(type_: ValueType, parts: Sequence[Codes]) -> Codes:
    """All codes of `parts`, one part after the other."""
    if type_.physical is Physical.INT64:
        return np.concatenate([np.zeros(0, np.int64), *[part for part in parts if isinstance(part, np.ndarray)]])
    return ByteStrings.concat(part for part in parts if isinstance(part, ByteStrings))


def sort_unique(codes: Codes) -> Codes:
    """The distinct codes in ascending order."""
    if isinstance(codes, ByteStrings):
        return sorted_distinct(codes)
    # np.unique hashes integers before it sorts them, which takes far longer than sorting.
    ordered = np.sort(codes)
    is_first = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def merged_ranks(*arrays: Codes) -> tuple[IntArray, ...]:
    """Integers that compare across all `arrays` as their codes do: ranks for bytes, the codes themselves else.

    Ranks leave room between neighbours, so that two different byte strings never count as adjacent.
    """
    if all(isinstance(array, np.ndarray) for array in arrays):
        return tuple(array for array in arrays if isinstance(array, np.ndarray))
    # The array of single values is both lows and highs, and is ranked once.
    distinct = {id(array): array for array in arrays if isinstance(array, ByteStrings)}
    ranked = ranks(ByteStrings.concat(distinct.values())) * 2
    ends = np.cumsum([len(array) for array in distinct.values()])
    lines = dict(zip(distinct, np.split(ranked, ends[:-1]), strict=True))
    return tuple(lines[id(array)] for array in arrays)


def render(type_: ValueType, codes: Codes, index: int) -> str:
    """The text of one value, cut to 40 characters."""
    text = str(_decoder(type_)(codes[index]))
    return text if len(text) <= 40 else f"{text[:37]}..."


def _encoder(type_: ValueType) -> Callable[[Any], Any]:
    match type_.name:
        case name if name in INTEGER_BITS:
            return lambda value: _integer_code(type_, value, 1 << (INTEGER_BITS[name] - 1))
        case "boolean":
            return lambda value: int(bool(value))
        case name if name in FLOATS:
            return lambda value: _float_code(type_, value)
        case "date":
            return _day
        case "timestamp" | "timestamp_ntz":
            return lambda value: value if isinstance(value, int) else _microseconds(value)
        case "decimal":
            return lambda value: _decimal_code(type_, value)
        case "string":
            return lambda value: value if isinstance(value, bytes) else value.encode("utf-8")
        case "binary":
            return bytes
        case _:
            msg = f"Cannot encode values of {type_}: no code is defined"
            raise ValueError(msg)


def _decoder(type_: ValueType) -> Callable[[Any], Any]:
    match type_.name:
        case name if name in INTEGER_BITS:
            return int
        case "boolean":
            return bool
        case name if name in FLOATS:
            return lambda code: float(float_values(np.array([code], np.int64))[0])
        case "date":
            return lambda code: str(np.datetime64(int(code), "D"))
        case "timestamp" | "timestamp_ntz":
            return lambda code: str(np.datetime64(int(code), "us"))
        case "decimal":
            return lambda code: decimal_of(type_, code)
        case "string":
            return lambda code: code.decode("utf-8", "replace")
        case "binary":
            return bytes
        case _:
            msg = f"Cannot decode values of {type_}: no code is defined"
            raise ValueError(msg)


def _integer_code(type_: ValueType, value: Any, half: int) -> int:
    number = operator.index(value)
    if not -half <= number < half:
        msg = f"Cannot encode {number} as {type_}: it is out of range"
        raise ValueError(msg)
    return number


def _float_code(type_: ValueType, value: float) -> int:
    if math.isnan(value):
        msg = f"Cannot encode NaN as {type_}: it has no code, a Domain holds it as a flag"
        raise ValueError(msg)
    # A value of type float has single precision; Python's float has double.
    with np.errstate(over="ignore"):
        single = float(np.float32(value)) if type_.name == "float" else value
    return int(float_codes(np.array([single], np.float64))[0])


def _day(value: int | dt.date) -> int:
    if isinstance(value, dt.datetime):
        msg = f"Cannot encode {value} as date: it has a time of day"
        raise TypeError(msg)
    return value if isinstance(value, int) else value.toordinal() - _EPOCH_DAY


def _microseconds(value: dt.datetime) -> int:
    instant = value.replace(tzinfo=dt.timezone.utc) if value.tzinfo is None else value
    return (instant - _EPOCH) // _MICROSECOND


def _decimal_code(type_: ValueType, value: object) -> int | bytes:
    sign, digits, exponent = Decimal(str(value)).as_tuple()
    shift = int(exponent) + type_.scale
    magnitude = int("".join(map(str, digits)))
    if shift < 0 and magnitude % 10**-shift:
        msg = f"Cannot encode {value} as {type_}: it has more digits after the point"
        raise ValueError(msg)
    unscaled = (magnitude * 10**shift if shift >= 0 else magnitude // 10**-shift) * (-1 if sign else 1)
    if abs(unscaled) >= 10**type_.precision:
        msg = f"Cannot encode {value} as {type_}: it is out of range"
        raise ValueError(msg)
    return unscaled if type_.physical is Physical.INT64 else long_decimal_code(unscaled)


def long_decimal_code(unscaled: int) -> bytes:
    """The 16-byte code of an unscaled number of up to 38 digits."""
    return (unscaled + _LONG_DECIMAL_OFFSET).to_bytes(16, "big")


def unscaled_of(type_: ValueType, code: int | bytes) -> int:
    """The unscaled number of a decimal's code."""
    if type_.physical is Physical.INT64 or isinstance(code, int):
        return int(code)
    return int.from_bytes(code, "big") - _LONG_DECIMAL_OFFSET


def decimal_of(type_: ValueType, code: int | bytes) -> Decimal:
    """The decimal of a code."""
    unscaled = unscaled_of(type_, code)
    digits = tuple(int(digit) for digit in str(abs(unscaled)))
    return Decimal((int(unscaled < 0), digits, -type_.scale))
