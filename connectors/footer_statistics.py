"""Min and max of a Parquet column chunk as codes of Spark's column type, or nothing where they prove nothing.

Which types are trusted says `connectors.footer_values`; bounds in an order that is not the type's own prove nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from connectors.footer_schema import LeafType
from connectors.footer_values import BYTE_ARRAYS, DAY_MICROS, Code, ToCode, to_code
from connectors.thrift import Struct
from pruning.statistics import UNKNOWN
from pruning.value_type import ValueType

_FIXED = {"INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d", "BOOLEAN": "<?"}
# Where the Julian calendar, in which old Spark wrote, and the proleptic Gregorian one agree in every time zone.
_FIRST_GREGORIAN_DAY = -141_427
_FIRST_STANDARD_TIME = -2_208_988_800_000_000

# Fields of a chunk's `Statistics`.
_OLD_MAX, _OLD_MIN, _NULL_COUNT, _MAX, _MIN = 1, 2, 3, 5, 6


@dataclass(frozen=True, slots=True)
class ChunkBounds:
    """What one column chunk is known to hold; a code counts where it is not None.

    `is_inverted`: its bounds are in the wrong order, so that a reader which believes them skips it whatever it holds.
    """

    low: Code | None = None
    high: Code | None = None
    nulls: int = UNKNOWN
    is_inverted: bool = False


@dataclass(frozen=True, slots=True)
class Decoder:
    """Brings a chunk's statistics to codes.

    `unpack` reads a bound's bytes, None where they are no value; `to_code` gives its code, None where it proves
    nothing. A low below `least_trusted`, or an unknown one, makes both ends unknown.
    """

    unpack: Callable[[bytes], Any]
    to_code: ToCode
    is_ordered: bool
    takes_old: bool
    least_trusted: int | None = None

    def bounds(self, statistics: Struct) -> ChunkBounds:
        """Low and high, None where they prove nothing."""
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
        """The code of one end; None without one, `_WRONG` for one that makes the other end doubtful, too."""
        if bound is None:
            return None
        value = self.unpack(bound) if isinstance(bound, bytes) else None
        found = None if value is None else self.to_code(value)
        return _WRONG if found is None else found


_WRONG = object()


def chunk_bounds(statistics: Struct, rows: int, decoder_: Decoder | None, *, has_null_parents: bool) -> ChunkBounds:
    """What the statistics of a chunk of `rows` rows prove."""
    has_bounds = not statistics.keys().isdisjoint((_OLD_MAX, _OLD_MIN, _MAX, _MIN))
    nulls = null_count(statistics.get(_NULL_COUNT), rows, has_bounds=has_bounds, has_null_parents=has_null_parents)
    bounds = decoder_.bounds(statistics) if decoder_ else ChunkBounds()
    return ChunkBounds(bounds.low, bounds.high, nulls, bounds.is_inverted)


@lru_cache(maxsize=4096)
def decoder(leaf: LeafType, type_: ValueType, *, is_ordered: bool, is_gregorian: bool) -> Decoder | None:
    """What decodes the bounds of `leaf` under a column of `type_`; None where they can prove nothing.

    `is_ordered` says that new bounds follow the order that the format's specification gives the type. Old bounds
    are in the signed order of the physical type, which is right for numbers and wrong for byte arrays.
    """
    codes = to_code(leaf, type_)
    if codes is None:
        return None
    # Values before the switch move when Spark rebases them, values after it stay, so one early bound taints both.
    is_rebased = type_.name in ("date", "timestamp") or leaf.annotation.kind == "DATE"
    trusted = _least_trusted(type_) if is_rebased and not is_gregorian else None
    return Decoder(
        _unpacker(leaf), codes, is_ordered, takes_old=leaf.physical not in BYTE_ARRAYS, least_trusted=trusted
    )


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

    Writers have left out the NULLs that a NULL parent makes, so below one no column is known to have none.
    """
    if not isinstance(found, int) or not 0 <= found <= values or (has_bounds and found == values):
        return UNKNOWN
    return UNKNOWN if has_null_parents and found == 0 else found
