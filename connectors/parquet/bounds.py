"""Min and max of a Parquet column chunk as codes of Spark's column type, or nothing where they prove nothing.

Bounds count where the specification fixes their order (`orders.py`), or where Spark believes them, too, for a literal
(`pushdown.py`). Values of these types are trusted:

| Spark type | trusted in the file |
|---|---|
| integers | INT32, INT64, signed or not, whose bounds fit the column's type; INT64 only under bigint |
| decimal | INT32, INT64, and byte arrays in the spec's order, of no greater scale; plain integers; UINT_64 |
| float, double | FLOAT, DOUBLE, INT32 under double; a NaN bound proves nothing, and NaN is never known to be absent |
| date | DATE |
| timestamp, timestamp_ntz | TIMESTAMP in milliseconds or microseconds; DATE under timestamp_ntz |
| string | BYTE_ARRAY in the spec's order, annotated as text |
| binary | BYTE_ARRAY in the spec's order, annotated as text or not at all; FIXED_LEN_BYTE_ARRAY without annotation |
| boolean | BOOLEAN |

Everything else (INT96, UUID, FLOAT16, intervals, time, byte arrays in the deprecated signed order) is unknown.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from connectors.parquet.orders import order_of
from connectors.parquet.pushdown import takes_predicate
from connectors.parquet.schema import Annotation, LeafType
from connectors.parquet.thrift import Struct
from pruning.scan.statistics import UNKNOWN
from pruning.values import encoding as code
from pruning.values.coercion import DAY_MICROS
from pruning.values.encoding import GREATEST, LEAST
from pruning.values.types import INTEGER_BITS, Physical, ValueType

_FIXED = {"INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d", "BOOLEAN": "<?"}
# From here on the Julian calendar of old Spark and the proleptic Gregorian one agree in every time zone.
_FIRST_GREGORIAN_DAY = -141_427
_FIRST_STANDARD_TIME = -2_208_988_800_000_000

# Fields of a chunk's `Statistics`.
_OLD_MAX, _OLD_MIN, _NULL_COUNT, _MAX, _MIN, _IS_MAX_EXACT, _IS_MIN_EXACT = 1, 2, 3, 5, 6, 7, 8


@dataclass(frozen=True, slots=True)
class ChunkBounds:
    """The bounds of one column chunk; a code counts where it is not None.

    `is_inverted`: the bounds are in the wrong order, so that a reader which trusts them skips the chunk in any case.
    """

    low: Code | None = None
    high: Code | None = None
    nulls: int = UNKNOWN
    is_inverted: bool = False


@dataclass(frozen=True, slots=True)
class Decoder:
    """A decoder of a chunk's statistics to codes.

    `unpack` reads a bound's bytes, None if they are no value; `to_code` gives its code, None if it proves nothing. A
    low that is unknown or below `least_trusted` makes both ends unknown. A cut bound is another value if
    `must_be_whole`.
    """

    unpack: Callable[[bytes], Any]
    to_code: ToCode
    is_ordered: bool
    takes_old: bool
    least_trusted: int | None = None
    must_be_whole: bool = False

    def bounds(self, statistics: Struct) -> ChunkBounds:
        """Low and high, None where they prove nothing."""
        if self.must_be_whole and False in (statistics.get(_IS_MAX_EXACT), statistics.get(_IS_MIN_EXACT)):
            return ChunkBounds()
        if self.is_ordered and (_MIN in statistics or _MAX in statistics):
            low, high = self._code(statistics.get(_MIN)), self._code(statistics.get(_MAX))
        elif self.takes_old:
            low, high = self._code(statistics.get(_OLD_MIN)), self._code(statistics.get(_OLD_MAX))
        else:
            return ChunkBounds()
        if low is _WRONG or high is _WRONG:
            return ChunkBounds()
        if low is not None and high is not None and low > high:
            return ChunkBounds(is_inverted=True)
        if self.least_trusted is not None and (low is None or low < self.least_trusted):
            return ChunkBounds()
        return ChunkBounds(low, high)

    def _code(self, bound: object) -> Any:
        """The code of one end; None if there is none, `_WRONG` if it makes the other end untrusted, too."""
        if bound is None:
            return None
        value = self.unpack(bound) if isinstance(bound, bytes) else None
        found = None if value is None else self.to_code(value)
        return _WRONG if found is None else found


_WRONG = object()


def chunk_bounds(statistics: Struct, rows: int, decoder_: Decoder | None, *, has_null_parents: bool) -> ChunkBounds:
    """The bounds that the statistics of a chunk of `rows` rows prove."""
    has_bounds = not statistics.keys().isdisjoint((_OLD_MAX, _OLD_MIN, _MAX, _MIN))
    nulls = null_count(statistics.get(_NULL_COUNT), rows, has_bounds=has_bounds, has_null_parents=has_null_parents)
    bounds = decoder_.bounds(statistics) if decoder_ else ChunkBounds()
    return ChunkBounds(bounds.low, bounds.high, nulls, bounds.is_inverted)


@lru_cache(maxsize=4096)
def decoder(leaf: LeafType, type_: ValueType, *, is_ordered: bool, is_gregorian: bool) -> Decoder | None:
    """The decoder for the bounds of `leaf` under a column of `type_`; None where they can prove nothing.

    `is_ordered` says that new bounds follow the order that the format's specification gives the type. Old bounds
    are in the signed order of the physical type, which is right for numbers and wrong for byte arrays.
    """
    codes = to_code(leaf, type_)
    if codes is None or not is_believed(leaf, type_):
        return None
    # Spark's rebasing moves only values before the calendar switch, so one bound before it makes both untrusted.
    is_rebased = type_.name in ("date", "timestamp") or leaf.annotation.kind == "DATE"
    trusted = _least_trusted(type_) if is_rebased and not is_gregorian else None
    return Decoder(
        _unpacker(leaf),
        codes,
        is_ordered,
        takes_old=leaf.physical not in BYTE_ARRAYS,
        least_trusted=trusted,
        must_be_whole=leaf.annotation.kind == "DECIMAL",
    )


def is_believed(leaf: LeafType, type_: ValueType) -> bool:
    """True if the specification fixes the order of the bounds, or Spark believes them for a literal of `type_`."""
    return order_of(leaf) is not None or takes_predicate(leaf, type_)


def _unpacker(leaf: LeafType) -> Callable[[bytes], Any]:
    if leaf.physical in BYTE_ARRAYS:
        return bytes
    layout = struct.Struct(_FIXED[leaf.physical])
    return lambda bound: layout.unpack(bound)[0] if len(bound) == layout.size else None


def _least_trusted(type_: ValueType) -> int:
    match type_.name:
        case "date":
            return _FIRST_GREGORIAN_DAY
        case "timestamp":
            return _FIRST_STANDARD_TIME
        case _:
            return _FIRST_GREGORIAN_DAY * DAY_MICROS


def null_count(found: object, values: int, *, has_bounds: bool, has_null_parents: bool) -> int:
    """The NULLs among `values` values, `UNKNOWN` where the count cannot be trusted.

    Some writers do not count NULLs under a NULL parent, so a count of 0 below an optional parent is not trusted.
    """
    if not isinstance(found, int) or not 0 <= found <= values or (has_bounds and found == values):
        return UNKNOWN
    return UNKNOWN if has_null_parents and found == 0 else found


Code: TypeAlias = int | bytes
ToCode: TypeAlias = Callable[[Any], Code | None]

BYTE_ARRAYS = ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_TEXTS = ("STRING", "TEXT", "NONE")
_MICROSECONDS = {"milliseconds": 1000, "microseconds": 1}
_INTEGER_DIGITS = {"INT32": 10, "INT64": 20}


def to_code(leaf: LeafType, type_: ValueType) -> ToCode | None:
    """The function from a leaf's values to codes, None for a value that proves nothing; None where no value does."""
    match type_.name:
        case name if name in INTEGER_BITS:
            return _integer(leaf, INTEGER_BITS[name])
        case "decimal":
            return _decimal(leaf, type_)
        case "float" | "double":
            return _float(leaf, type_)
        case "date":
            return _plain if (leaf.physical, leaf.annotation.kind) == ("INT32", "DATE") else None
        case "timestamp" | "timestamp_ntz":
            return _timestamp(leaf, type_)
        case "string":
            return bytes if leaf.physical == "BYTE_ARRAY" and leaf.annotation.kind in _TEXTS else None
        case "binary":
            return bytes if leaf.physical in BYTE_ARRAYS and leaf.annotation.kind in _TEXTS else None
        case "boolean":
            return int if leaf.physical == "BOOLEAN" else None
        case _:
            return None


def _plain(value: int) -> int:
    return value


def _integer(leaf: LeafType, bits: int) -> ToCode | None:
    numbers = _numbers(leaf, wide_enough=bits == INTEGER_BITS["bigint"])
    if numbers is None:
        return None
    limit = 1 << (bits - 1)

    def within(value: int) -> int | None:
        number = numbers(value)
        return number if -limit <= number < limit else None

    return within


def _numbers(leaf: LeafType, *, wide_enough: bool) -> Callable[[int], int] | None:
    """The function from the integers of a leaf to the numbers they represent; None if it holds something else.

    Bounds of unsigned integers that were compared as signed ones are either in the wrong order or correct.
    """
    if leaf.physical not in ("INT32", "INT64") or (leaf.physical == "INT64" and not wide_enough):
        return None
    match leaf.annotation:
        case Annotation(kind="NONE") | Annotation(kind="INT", is_signed=True):
            return _plain
        case Annotation(kind="INT", bits=bits) if bits in (32, 64):
            return lambda value: value % (1 << bits)
        case Annotation(kind="INT"):
            return lambda value: value if value >= 0 else GREATEST + 1
        case Annotation(kind="TIMESTAMP", unit="nanoseconds"):
            return _plain
        case _:
            return None


def _float(leaf: LeafType, type_: ValueType) -> ToCode | None:
    match leaf.physical, type_.name:
        case ("FLOAT", _) | ("DOUBLE", "double"):
            return _float_code if leaf.annotation.kind == "NONE" else None
        case ("INT32", "double") if leaf.annotation.kind == "NONE" or leaf.annotation == Annotation("INT", 32):
            return _float_code
        case _:
            return None


def _float_code(value: float) -> int | None:
    return None if math.isnan(value) else int(code.float_codes(np.array([value], np.float64))[0])


def _timestamp(leaf: LeafType, type_: ValueType) -> ToCode | None:
    match leaf.physical, leaf.annotation:
        case "INT64", Annotation(kind="TIMESTAMP", unit=unit) if unit in _MICROSECONDS:
            factor = _MICROSECONDS[unit]
        case "INT32", Annotation(kind="DATE") if type_.name == "timestamp_ntz":
            factor = DAY_MICROS
        case _:
            return None
    return lambda value: value * factor if LEAST <= value * factor <= GREATEST else None


def _decimal(leaf: LeafType, type_: ValueType) -> ToCode | None:
    match leaf.annotation:
        case Annotation(kind="DECIMAL") as stored:
            fits = type_.precision - type_.scale >= stored.precision - stored.scale and type_.scale >= stored.scale
            return _unscaled(leaf, type_, stored.scale) if fits else None
        case Annotation(kind="INT", bits=64, is_signed=False):
            exact = leaf.physical == "INT64" and (type_.precision, type_.scale) == (20, 0)
            return (lambda value: _decimal_code(type_, value % (1 << 64))) if exact else None
        case Annotation(kind="NONE") | Annotation(kind="INT", is_signed=True):
            digits = _INTEGER_DIGITS.get(leaf.physical)
            fits = digits is not None and type_.precision - type_.scale >= digits
            return _unscaled(leaf, type_, 0) if fits else None
        case _:
            return None


def _unscaled(leaf: LeafType, type_: ValueType, scale: int) -> ToCode | None:
    factor = 10 ** (type_.scale - scale)
    if leaf.physical == "BYTE_ARRAY":
        return lambda value: _decimal_code(type_, _big_endian(value) * factor) if value else None
    if leaf.physical == "FIXED_LEN_BYTE_ARRAY":
        # A bound of another width was truncated, which makes it another number.
        return lambda value: _decimal_code(type_, _big_endian(value) * factor) if len(value) == leaf.length else None
    if leaf.physical in _INTEGER_DIGITS:
        return lambda value: _decimal_code(type_, value * factor)
    return None


def _big_endian(value: bytes) -> int:
    return int.from_bytes(value, "big", signed=True)


def _decimal_code(type_: ValueType, unscaled: int) -> Code | None:
    if abs(unscaled) >= 10**type_.precision:
        return None
    return unscaled if type_.physical is Physical.INT64 else code.long_decimal_code(unscaled)
