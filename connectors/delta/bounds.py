"""Bounds as Delta logs store them, and the values that they prove.

| type | what writers do | so a bound is |
|---|---|---|
| timestamp, timestamp_ntz | cut to milliseconds | high + 999 us |
| timestamps before 1973 | drop the seconds of a zone offset, or round towards 1970 | moved out by a minute |
| string | cut to a prefix, with a last character that may sort too low | high above every extension of the prefix |
| string of bytes that are no UTF-8 | put U+FFFD in their place | cut before it |
| decimal | store it as a double | moved out by the rounding error of a double |
| double that was float | keep the digits of the float | either reading |

Every other bound is exact. NaN bounds prove nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connectors.arrow_values import BoolArray, coded
from pruning.values.byte_strings import ByteStrings, IntArray
from pruning.values.encoding import GREATEST, LEAST, Codes, concat, float_codes, float_values, long_decimal_code
from pruning.values.ranges import RangeSet
from pruning.values.types import ValueType

Words = npt.NDArray[np.uint64]

_TIMESTAMPS = ("timestamp", "timestamp_ntz")
_MILLISECOND = 999
_MINUTE = 60_000_000
# Local times of one moment differ by less, also in historical time zones.
_ZONES_APART = 2 * 24 * 60 * _MINUTE
# No zone has had an offset with seconds since January 1972.
_WHOLE_MINUTE_OFFSETS = 94_694_400_000_000
# Two roundings of a double, on writing and on printing, with a bit to spare.
_DOUBLE_BITS = 51
_DECIMAL_WIDTH = 16
_NOT_ASCII = 0x80
_SIGN = np.uint64(1 << 63)

_REPLACED = r"(?s)\x{FFFD}.*$"
_MAY_BE_CUT = r"\x{FFFD}|[\x7F\x{FFFF}\x{10FFFF}]$"
_LAST_CHARACTERS = r"(?s)(?:\x{FFFD}.*|[\x7F\x{FFFF}\x{10FFFF}]+)$"
# The remainder of a character that was cut in half.
_HALF_CHARACTER = r"\?+$"
# Texts are processed in blocks, since each step copies all of them.
_BLOCK = 1 << 16
_TWO_UNITS = r"[\x{10000}-\x{10FFFF}]"


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Sound bounds of `n` files; an entry counts only where `has_low`, `has_high` are True."""

    lows: Codes
    highs: Codes
    has_low: BoolArray
    has_high: BoolArray


@dataclass(frozen=True, slots=True)
class Flaws:
    """Flaws of the stored bounds of a column, in any file, by which Delta may skip files with matching rows.

    - `replaced`: a bound may hold U+FFFD in place of bytes that are no UTF-8, and U+FFFD sorts differently from these
      bytes among characters that are not ASCII
    - `inverted`: a least value lies above the greatest, or is NaN where the greatest is not, so that no value lies
      between; a file of only NaN has NaN as both
    - `miscounted`: a file with deleted rows has as many NULLs as rows, and one of them may be counted with deleted rows
      and the other without them, so that the file has values which Delta takes for NULL
    """

    replaced: bool
    inverted: bool
    miscounted: bool = False

    @staticmethod
    def of(lows: pa.ChunkedArray, highs: pa.ChunkedArray, type_: ValueType, *, miscounted: bool = False) -> Flaws:
        """The flaws of these bounds as they are stored."""
        replaced = type_.name == "string" and any(_has_replaced(each) for each in (lows, highs))
        # Arrow orders numbers and bytes as Spark does, but for NaN, which Spark takes for the greatest number.
        inverted = bool(pc.any(pc.greater(lows, highs)).as_py())
        inverted |= type_.is_float and bool((coded(lows, type_).nan & ~coded(highs, type_).nan).any())
        return Flaws(replaced, inverted, miscounted)


NO_FLAW = Flaws(replaced=False, inverted=False)
ANY_FLAW = Flaws(replaced=True, inverted=True, miscounted=True)


@dataclass(frozen=True, slots=True)
class StoredBounds:
    """The form in which a log stores the bounds of one column.

    - `prefix`: the least number of UTF-16 units that strings may have been cut to
    - `was_float`: files from before the column became double have the digits of a float
    - `is_source`: partition values are computed from the column, and Delta derives from a predicate on it one on the
      partition values, in the zone of the reader for timestamps, and by the order of the text for strings
    """

    type: ValueType
    prefix: int = 32
    was_float: bool = False
    is_source: bool = False

    def sound(self, lows: pa.Array, highs: pa.Array) -> Bounds:
        """The closed range of values that stored bounds allow."""
        if self.type.name == "string":
            blocks = range(0, len(lows), _BLOCK) or [0]
            return _joined(
                _string_bounds(lows[at : at + _BLOCK], highs[at : at + _BLOCK], self.prefix) for at in blocks
            )
        low, high = coded(lows, self.type), coded(highs, self.type)
        top = self._moved_out(high.codes, up=True)
        if self.type.name in _TIMESTAMPS and isinstance(top, np.ndarray):
            top = _plus(top, _MILLISECOND)
        return Bounds(self._moved_out(low.codes, up=False), top, low.valid, high.valid)

    def comparable(self, ranges: RangeSet, flaws: Flaws) -> RangeSet:
        """A superset of `ranges` with which Delta keeps every file with a value of `ranges`; `ranges` if that suffices.

        Delta compares a predicate with bounds as they are stored, so a stored bound that is too narrow would skip a
        file with a matching row.
        """
        lows: Codes
        is_string = self.type.name == "string"
        is_senseless = (
            flaws.inverted
            or flaws.miscounted
            or (is_string and (self.is_source or (flaws.replaced and not _is_ascii(ranges))))
        )
        if is_senseless and not ranges.is_none:
            return RangeSet.all(ranges.type)
        if isinstance(ranges.lows, ByteStrings) and is_string:
            lows, highs = _prefixes(ranges.lows, self.prefix - 1), ranges.highs
        else:
            lows, highs = self._moved_out(ranges.lows, up=False), self._moved_out(ranges.highs, up=True)
        if self.is_source and isinstance(lows, np.ndarray) and isinstance(highs, np.ndarray):
            lows, highs = _minus(lows, _ZONES_APART), _plus(highs, _ZONES_APART)
        if _same(lows, ranges.lows) and _same(highs, ranges.highs):
            return ranges
        wider = RangeSet.of_ranges(ranges.type, lows, highs)
        if not ranges.unbounded:
            return wider
        last = lows.take(np.array([len(ranges) - 1]))
        return wider.union(RangeSet(ranges.type, last, last, unbounded=True))

    def _moved_out(self, codes: Codes, *, up: bool) -> Codes:
        """Each code moved outward by the greatest possible distance between a value and its stored bound."""
        match self.type.name, codes:
            case (name, np.ndarray()) if name in _TIMESTAMPS:
                moved = _plus(codes, _MINUTE) if up else _minus(codes, _MINUTE)
                return np.where(codes < _WHOLE_MINUTE_OFFSETS, moved, codes)
            case ("decimal", np.ndarray()):
                return _decimals_moved(codes, 10**self.type.precision - 1, up=up)
            case ("decimal", ByteStrings()):
                return _long_decimals_moved(codes, 10**self.type.precision - 1, up=up)
            case ("double", np.ndarray()) if self.was_float:
                return _floats_moved(codes, up=up)
            case _:
                return codes


def _plus(codes: IntArray, distance: int) -> IntArray:
    return np.where(codes > GREATEST - distance, GREATEST, codes + np.int64(distance))


def _minus(codes: IntArray, distance: int) -> IntArray:
    return np.where(codes < LEAST + distance, LEAST, codes - np.int64(distance))


def _same(first: Codes, second: Codes) -> bool:
    if isinstance(first, ByteStrings) or isinstance(second, ByteStrings):
        return first is second
    return bool(np.array_equal(first, second))


def _floats_moved(codes: IntArray, *, up: bool) -> IntArray:
    """The next float outside of each double, which covers the digits of a float read as a double."""
    with np.errstate(over="ignore"):
        single = float_values(codes).astype(np.float32)
        outward = np.nextafter(single, np.float32(np.inf if up else -np.inf))
    moved = float_codes(outward)
    return np.maximum(codes, moved) if up else np.minimum(codes, moved)


def _decimals_moved(codes: IntArray, most: int, *, up: bool) -> IntArray:
    """Decimals moved outward by the rounding error of a double, within the type; open ends stay open."""
    is_number = (codes >= -most) & (codes <= most)
    slack = np.abs(np.where(is_number, codes, 0)) >> _DOUBLE_BITS
    moved = np.minimum(codes + slack, most) if up else np.maximum(codes - slack, -most)
    return np.where(is_number, moved, codes)


def _long_decimals_moved(codes: ByteStrings, most: int, *, up: bool) -> ByteStrings:
    """Decimals of two 64-bit words, moved outward like short ones; see `pruning.values.encoding` for the sign bit."""
    is_number = codes.lengths() == _DECIMAL_WIDTH
    numbers = codes if is_number.all() else codes.take(np.flatnonzero(is_number))
    words = numbers.packed().data.reshape(-1, _DECIMAL_WIDTH).view(">u8").astype(np.uint64)
    high, low = words[:, 0], words[:, 1]
    # The complement of a negative number is its magnitude minus one, which is precise enough.
    turned = np.where(high < _SIGN, np.uint64(GREATEST * 2 + 1), np.uint64(0))
    top, rest = (high ^ turned) ^ _SIGN, low ^ turned
    shift = np.uint64(_DOUBLE_BITS)
    slack_high, slack_low = top >> shift, (top << np.uint64(64 - _DOUBLE_BITS)) | (rest >> shift)
    if not (slack_high.any() or slack_low.any()):
        return codes
    new_low = low + slack_low if up else low - slack_low
    new_high = high + slack_high + (new_low < low) if up else high - slack_high - (low < slack_low)
    moved = _within(new_high, new_low, most if up else -most, up=up)
    either = ByteStrings.concat([codes, moved])
    places = np.where(is_number, len(codes) + np.cumsum(is_number) - 1, np.arange(len(codes)))
    return either.take(places)


def _within(high: Words, low: Words, limit: int, *, up: bool) -> ByteStrings:
    """The codes of numbers in two words, cut to `limit`."""
    last = np.frombuffer(long_decimal_code(limit), ">u8").astype(np.uint64)
    is_beyond = (high > last[0]) if up else (high < last[0])
    is_beyond |= (high == last[0]) & ((low > last[1]) if up else (low < last[1]))
    words = np.where(is_beyond[:, None], last, np.stack([high, low], axis=1)).astype(">u8")
    return ByteStrings.of_fixed_width(words.view(np.uint8).reshape(-1, _DECIMAL_WIDTH))


def _string_bounds(lows: pa.Array, highs: pa.Array, prefix: int) -> Bounds:
    string = ValueType("string")
    low = coded(pc.replace_substring_regex(lows, _REPLACED, ""), string)
    high = coded(highs, string)
    cut = _may_be_cut(highs, prefix) & high.valid
    stems = coded(_shared_stem(highs, prefix), string).codes
    if not cut.any() or not (isinstance(stems, ByteStrings) and isinstance(high.codes, ByteStrings)):
        return Bounds(low.codes, high.codes, low.valid, high.valid)
    either = ByteStrings.concat([high.codes, _after_all_extensions(stems)])
    rows = np.arange(len(cut))
    codes = either.take(np.where(cut, rows + len(cut), rows))
    return Bounds(low.codes, codes, low.valid, high.valid & ~(cut & (stems.lengths() == 0)))


def _joined(parts: Iterable[Bounds]) -> Bounds:
    lows, highs, has_low, has_high = zip(*((it.lows, it.highs, it.has_low, it.has_high) for it in parts), strict=True)
    string = ValueType("string")
    return Bounds(concat(string, lows), concat(string, highs), np.concatenate(has_low), np.concatenate(has_high))


def _may_be_cut(highs: pa.Array, prefix: int) -> BoolArray:
    units = pc.add(pc.utf8_length(highs), pc.count_substring_regex(highs, _TWO_UNITS))
    doubtful = pc.or_(pc.greater_equal(units, prefix), pc.match_substring_regex(highs, _MAY_BE_CUT))
    return np.asarray(pc.fill_null(doubtful, fill_value=False).to_numpy(zero_copy_only=False), bool)


def _shared_stem(highs: pa.Array, prefix: int) -> pa.Array:
    """The prefix that each stored high certainly shares with the greatest value, if it was cut."""
    stems = pc.utf8_slice_codeunits(pc.replace_substring_regex(highs, _LAST_CHARACTERS, ""), 0, prefix - 1)
    # A prefix is counted in UTF-16 units, of which some characters take two.
    halves = pc.utf8_slice_codeunits(stems, 0, (prefix - 1) // 2)
    stems = pc.if_else(pc.match_substring_regex(stems, _TWO_UNITS), halves, stems)
    return pc.replace_substring_regex(stems, _HALF_CHARACTER, "")


def _after_all_extensions(stems: ByteStrings) -> ByteStrings:
    """The least bytes of the length of each stem above all texts that begin with it; no byte of UTF-8 is 0xFF."""
    packed = stems.packed()
    data = packed.data.copy()
    data[packed.offsets[1:][packed.lengths() > 0] - 1] += 1
    return ByteStrings(data, packed.offsets)


def _is_ascii(ranges: RangeSet) -> bool:
    """True if no end of a range has a byte that only other characters begin with."""
    ends = (each for each in (ranges.lows, ranges.highs) if isinstance(each, ByteStrings))
    return all(int(each.packed().data.max(initial=0)) < _NOT_ASCII for each in ends)


def _has_replaced(bounds: pa.ChunkedArray) -> bool:
    """True if a stored bound of strings holds U+FFFD."""
    return bool(pc.any(pc.match_substring(bounds, "\ufffd")).as_py())


def _prefixes(texts: ByteStrings, width: int) -> ByteStrings:
    """Each text cut to `width` bytes: a stored bound shares at least as many units, each of one byte or more."""
    return texts if int(texts.lengths().max(initial=0)) <= width else texts.truncated(width)
