"""Rows of Arrow arrays tested by keys: numbers as they lie in memory, other values by Arrow's own hash tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.arrow_values import arrow_of, as_stored, coded
from pruning.keys.membership import MembershipTest
from pruning.limits import LIMITS, Limits
from pruning.values.byte_strings import ByteStrings
from pruning.values.ranges import BoolArray, RangeSet
from pruning.values.types import ValueType

# Offsets of Arrow's texts have 32 bits, with a sign.
_TEXT_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, eq=False)
class ArrowRowFilter:
    """A test of rows by the values of a `MembershipTest`; made once, for all rows of a reader.

    `keys` are the values, as bytes or numbers that Arrow compares, if Arrow looks them up in a hash table.
    """

    type: ValueType
    rows: MembershipTest
    keys: pa.Array | None
    compared_ranges: int

    @staticmethod
    def of(type_: ValueType, rows: MembershipTest, limits: Limits = LIMITS) -> ArrowRowFilter:
        """A test by values of `type_`."""
        return ArrowRowFilter(type_, rows, _listed(type_, rows), limits.compared_text_ranges)

    def matching(self, array: pa.Array) -> BoolArray:
        """An array: True for each value, in Spark's own Arrow type, that is in the set."""
        plain = _plain(array)
        if self.keys is not None and plain.type == self.keys.type:
            return self._with_nulls(_bools(pc.is_in(plain, self.keys)), array)
        if (numbers := as_stored(array, self.type)) is not None:
            found = self.rows.contains(numbers)
            if array.null_count:
                found &= _valid(array)
            return self._with_nulls(found, array)
        ranges = self.rows.values
        if isinstance(ranges, RangeSet) and len(ranges) <= self.compared_ranges and pa.types.is_binary(plain.type):
            return self._with_nulls(_between(plain, ranges), array)
        return self._coded(array)

    def _with_nulls(self, found: BoolArray, array: pa.Array) -> BoolArray:
        if self.rows.null and array.null_count:
            found |= ~_valid(array)
        return found

    def _coded(self, array: pa.Array) -> BoolArray:
        values = coded(array, self.type)
        found: BoolArray = self.rows.contains(values.codes) & values.valid
        if self.rows.nan:
            found |= values.nan
        if self.rows.null:
            found |= ~values.valid & ~values.nan
        return found


def _listed(type_: ValueType, rows: MembershipTest) -> pa.Array | None:
    """The values for Arrow's hash table; None if codes are tested as fast, or a code has two values, as zero does."""
    codes = None if type_.is_float or type_.name == "boolean" else rows.listed()
    if codes is None or codes.nbytes > _TEXT_BYTES:
        return None
    return _plain(arrow_of(type_, codes))


def _plain(array: pa.Array) -> pa.Array:
    """The array as plain bytes or numbers, since texts need not be valid UTF-8 to be compared."""
    match array.type:
        case each if pa.types.is_string(each):
            return array.view(pa.binary())
        case each if pa.types.is_date32(each):
            return array.view(pa.int32())
        case each if pa.types.is_timestamp(each) and each.unit == "us":
            return array.view(pa.int64())
        case _:
            return array


def _between(array: pa.Array, ranges: RangeSet) -> BoolArray:
    found = np.zeros(len(array), bool)
    lows, highs = ranges.lows, ranges.highs
    assert isinstance(lows, ByteStrings) and isinstance(highs, ByteStrings)  # noqa: S101, PT018
    for at in range(len(ranges)):
        inside = pc.greater_equal(array, pa.scalar(lows[at], pa.binary()))
        if not (ranges.unbounded and at == len(ranges) - 1):
            inside = pc.and_(inside, pc.less_equal(array, pa.scalar(highs[at], pa.binary())))
        found |= _bools(inside)
    return found


def _bools(array: pa.Array) -> BoolArray:
    """A writable copy of the array as booleans, with False for NULL."""
    known = array.fill_null(False) if array.null_count else array  # noqa: FBT003 - a value, not a switch
    return np.array(known.to_numpy(zero_copy_only=False), bool)


def _valid(array: pa.Array) -> BoolArray:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), bool)
