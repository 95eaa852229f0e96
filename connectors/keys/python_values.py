"""Python values as one Arrow array, in the type of the probe column if it holds them exactly.

Arrow by itself cuts 1.5 to 1 and a datetime to its date; here the conversion changes no value.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa

from connectors.arrow_values import arrow_of
from pruning.errors import InvalidKeysError
from pruning.values import encoding as code
from pruning.values.types import DECIMAL_DIGITS, INTEGER_BITS, ValueType

_DOUBLE_EXACT, _FLOAT_EXACT = 1 << 53, 1 << 24


class Family(Enum):
    """A kind of values that compare with each other."""

    NULL = "NULL"
    BOOLEAN = "bool"
    INTEGER = "int"
    FLOAT = "float"
    DECIMAL = "Decimal"
    STRING = "str"
    BINARY = "bytes"
    DATE = "date"
    NAIVE = "datetime without zone"
    AWARE = "datetime with zone"
    DATETIME64 = "numpy.datetime64"


_NUMBERS = {Family.INTEGER, Family.FLOAT, Family.DECIMAL}
_MOMENTS = {Family.DATE, Family.NAIVE, Family.AWARE, Family.DATETIME64}
# The order matters: a bool is an int, and a datetime is a date.
_CLASSES: tuple[tuple[type | tuple[type, ...], Family], ...] = (
    (type(None), Family.NULL),
    ((bool, np.bool_), Family.BOOLEAN),
    ((int, np.integer), Family.INTEGER),
    ((float, np.floating), Family.FLOAT),
    (Decimal, Family.DECIMAL),
    (str, Family.STRING),
    ((bytes, bytearray, memoryview), Family.BINARY),
    (dt.datetime, Family.NAIVE),
    (dt.date, Family.DATE),
    (np.datetime64, Family.DATETIME64),
)


def arrow_type(type_: ValueType) -> pa.DataType:
    """The Arrow type for values of `type_`."""
    return arrow_of(type_, code.empty(type_)).type


def families_of(type_: ValueType) -> set[Family]:
    """The kinds of values that compare with a column of `type_`."""
    match type_.name:
        case "boolean":
            return {Family.BOOLEAN}
        case "string":
            return {Family.STRING}
        case "binary":
            return {Family.BINARY}
        case "date" | "timestamp" | "timestamp_ntz":
            return _MOMENTS
        case _:
            return _NUMBERS


def python_array(values: Sequence[Any], probe: ValueType, name: str) -> pa.Array:
    """The values as an array of a type that holds each exactly; `InvalidKeysError` if there is no such type.

    None and pandas' NA and NaT become NULL, and so does NaN unless the type of the probe column has it. Numbers that no
    Spark type holds match nothing, so they become NULL, too.
    """
    kinds = {cls: _family(cls) for cls in {type(None), *map(type, values)}}
    if unknown := sorted(cls.__name__ for cls, family in kinds.items() if family is None):
        raise _mismatch(name, " and ".join(unknown), probe)
    values = _without_missing(values, kinds, probe)
    families = {kinds[cls] for cls in set(map(type, values))} - {Family.NULL}
    if Family.NAIVE in families:
        families = families - {Family.NAIVE} | {_awareness(value) for value in values if isinstance(value, dt.datetime)}
    if families - families_of(probe):
        raise _mismatch(name, " and ".join(sorted(family.value for family in families if family)), probe)
    try:
        return _array(values, families, probe)
    except (pa.ArrowException, UnicodeError, OverflowError, _MixedError) as error:
        found = " and ".join(sorted(family.value for family in families if family))
        raise _mismatch(name, f"{found} that no one type holds", probe, "values of one kind, ") from error


class _MixedError(Exception):
    pass


def _mismatch(name: str, found: str, probe: ValueType, only: str = "") -> InvalidKeysError:
    return InvalidKeysError(
        f"Cannot compare keys with {name!r} of type {probe}: found {found}; "
        f"expected {only}{kinds_of(probe)}: convert the keys"
    )


def kinds_of(type_: ValueType) -> str:
    """The kinds of values that compare with a column of `type_`, in words.

    >>> kinds_of(ValueType("bigint")), kinds_of(ValueType("string"))
    ('Decimal, float or int', 'str')
    """
    *others, last = sorted(family.value for family in families_of(type_))
    return f"{', '.join(others)} or {last}" if others else last


def _family(cls: type) -> Family | None:
    # pandas' NULL values, recognised without importing pandas.
    if cls.__name__ in {"NAType", "NaTType"} and cls.__module__.startswith("pandas."):
        return Family.NULL
    return next((family for classes, family in _CLASSES if issubclass(cls, classes)), None)


def _without_missing(values: Sequence[Any], kinds: dict[type, Family | None], probe: ValueType) -> Sequence[Any]:
    """The values with None for missing ones, so that the others decide the type."""
    odd = {cls for cls, family in kinds.items() if family is Family.NULL and cls is not type(None)}
    if not probe.is_float:
        odd |= {cls for cls, family in kinds.items() if family in {Family.FLOAT, Family.DATETIME64}}
    if not odd:
        return values
    missing = {cls for cls in odd if kinds[cls] is Family.NULL}
    # NaN and NaT differ from themselves.
    return [None if type(v) in missing or (type(v) in odd and v != v) else v for v in values]  # noqa: PLR0124


def _awareness(value: dt.datetime) -> Family:
    return Family.NAIVE if value.tzinfo is None or value.utcoffset() is None else Family.AWARE


def _array(values: Sequence[Any], families: set[Family | None], probe: ValueType) -> pa.Array:
    match sorted(family.name for family in families if family):
        case []:
            return pa.nulls(len(values), arrow_type(probe))
        case ["INTEGER"]:
            return _integers(values, probe)
        case ["FLOAT"] | ["FLOAT", "INTEGER"]:
            return _floats(values, probe)
        case ["DECIMAL"] | ["DECIMAL", "INTEGER"]:
            return _decimals(values, probe)
        case ["DATETIME64"]:
            return datetime64_array(np.array([np.datetime64("NaT") if each is None else each for each in values]))
        case [single] if single in _SINGLE:
            return pa.array(values, _SINGLE[single])
        case _:
            raise _MixedError


_SINGLE = {
    "BOOLEAN": pa.bool_(),
    "STRING": pa.large_string(),
    "BINARY": pa.large_binary(),
    "DATE": pa.date32(),
    "NAIVE": pa.timestamp("us"),
    "AWARE": pa.timestamp("us", "UTC"),
}


def datetime64_array(values: np.ndarray[Any, np.dtype[np.datetime64]]) -> pa.Array:
    """A numpy datetime array in a unit that Arrow has: whole days are dates, all else has no zone."""
    unit, _ = np.datetime_data(values.dtype)
    coarse = {"Y": "D", "M": "D", "W": "D", "D": "D", "generic": "D", "h": "s", "m": "s", "s": "s", "ms": "ms"}
    return pa.array(values.astype(f"datetime64[{coarse.get(unit, 'us')}]"))


def _integers(values: Sequence[Any], probe: ValueType) -> pa.Array:
    try:
        array = pa.array(values, pa.int64())
    except OverflowError:
        return _wide_integers(values, probe)
    return fitted(array, probe)


def _wide_integers(values: Sequence[Any], probe: ValueType) -> pa.Array:
    most = 10**DECIMAL_DIGITS
    held = [value if value is not None and abs(value) < most else None for value in values]
    if probe.is_float and held.count(None) > values.count(None):
        return _doubles(values)
    return pa.array(held, pa.decimal128(DECIMAL_DIGITS, 0))


def fitted(array: pa.Array, probe: ValueType) -> pa.Array:
    """An array of integers or floats, cast to the probe column's type if that changes no value."""
    numbers = array.drop_null().to_numpy(zero_copy_only=False)
    if probe.is_integer and numbers.dtype.kind == "f":
        # Above this number a float equals several integers.
        least_vague = 2.0 ** (np.finfo(numbers.dtype).nmant + 1)
        whole = np.isfinite(numbers) & (numbers == np.trunc(numbers)) & (np.abs(numbers) < least_vague)
        fits = bool(whole.all())
    else:
        fits = True
    if not fits or not _within(numbers, probe):
        return array
    return array.cast(arrow_type(probe)) if probe.name != "decimal" else _integers_as_decimal(array, probe)


def _within(numbers: np.ndarray[Any, Any], probe: ValueType) -> bool:
    low, high = (numbers.min(), numbers.max()) if len(numbers) else (0, 0)
    match probe.name:
        case name if name in INTEGER_BITS:
            half = 1 << (INTEGER_BITS[name] - 1)
            return bool(-half <= int(low) and int(high) < half)
        case "decimal":
            return numbers.dtype.kind in "iu" and max(-int(low), int(high)) < 10 ** (probe.precision - probe.scale)
        case "float" | "double" if numbers.dtype.kind in "iu":
            return max(-int(low), int(high)) <= (_FLOAT_EXACT if probe.name == "float" else _DOUBLE_EXACT)
        case "float":
            with np.errstate(over="ignore"):
                same = numbers.astype(np.float32).astype(np.float64) == numbers
            return bool((same | np.isnan(numbers)).all())
        case name:
            return name == "double"


def _integers_as_decimal(array: pa.Array, probe: ValueType) -> pa.Array:
    # Arrow casts an integer only to a decimal with room for every integer of its width.
    if probe.scale <= DECIMAL_DIGITS - 20:
        return array.cast(pa.decimal128(DECIMAL_DIGITS, probe.scale)).cast(arrow_type(probe))
    return pa.array(array.to_pylist(), arrow_type(probe))


def _floats(values: Sequence[Any], probe: ValueType) -> pa.Array:
    inexact = any(isinstance(each, int | np.integer) and abs(int(each)) > _DOUBLE_EXACT for each in values)
    if inexact and not probe.is_float:
        raise _MixedError
    return fitted(_doubles(values), probe)


def _doubles(values: Sequence[Any]) -> pa.Array:
    """The values as doubles, rounded as Spark rounds a number that is compared with a double."""
    return pa.array([None if value is None else _double(value) for value in values], pa.float64())


def _double(value: Any) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


def _decimals(values: Sequence[Any], probe: ValueType) -> pa.Array:
    if any(isinstance(value, Decimal) and not value.is_finite() for value in values):
        raise _MixedError
    if probe.name == "decimal" and all(value is None or _fits(value, probe) for value in values):
        return pa.array(values, arrow_type(probe))
    shapes = [_digits(value) for value in values if value is not None]
    whole, scale = (max(each[at] for each in shapes) for at in (0, 1))
    if whole + scale <= DECIMAL_DIGITS:
        return pa.array(values, pa.decimal128(max(whole + scale, 1), scale))
    if probe.is_float:
        return _doubles(values)
    # No type holds all values, so only those that the column's type holds stay: others match nothing.
    kept = [value if value is not None and _fits(value, probe) else None for value in values]
    target = arrow_type(probe) if probe.name == "decimal" else pa.decimal128(20, 0)
    return pa.array(kept, target)


def _digits(value: Decimal | int) -> tuple[int, int]:
    """Digits before and after the point, without trailing zeros."""
    _, digits, exponent = Decimal(value).as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    significant = text.rstrip("0")
    point = int(exponent) + len(text) - len(significant)
    return max(len(significant) + point, 0) if significant else 0, max(-point, 0) if significant else 0


def _fits(value: Decimal | int, probe: ValueType) -> bool:
    whole, scale = _digits(value)
    if probe.is_integer:
        half = 1 << (INTEGER_BITS[probe.name] - 1)
        return scale == 0 and -half <= value < half
    return whole <= probe.precision - probe.scale and scale <= probe.scale
