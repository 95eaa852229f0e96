"""Arrow arrays as codes: keys, bounds and partition values enter the pure core through here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pruning.errors import UnsupportedTypeError
from pruning.values.byte_strings import ByteStrings, IntArray
from pruning.values.encoding import Codes, float_codes, float_values
from pruning.values.types import Physical, ValueType

BoolArray = npt.NDArray[np.bool_]
_DECIMAL_WIDTH = 16
_SIGN_BIT = 0x80


@dataclass(frozen=True, slots=True, eq=False)
class CodedArray:
    """`n` values as codes: `codes[i]` counts where `valid[i]`; NaN and NULL are not valid.

    `nan` marks NaN; what is neither valid nor NaN is NULL.
    """

    type: ValueType
    codes: Codes
    valid: BoolArray
    nan: BoolArray

    @property
    def null_count(self) -> int:
        """The number of NULL values."""
        return int(len(self.valid) - np.count_nonzero(self.valid) - np.count_nonzero(self.nan))


def value_type_of(arrow_type: pa.DataType) -> ValueType:
    """The Spark type that holds every value of an Arrow type; `UnsupportedTypeError` where none can."""
    types = pa.types
    match arrow_type:
        case each if types.is_dictionary(each):
            return value_type_of(each.value_type)
        case each if types.is_boolean(each):
            return ValueType("boolean")
        case each if types.is_uint64(each):
            return ValueType("decimal", 20, 0)
        case each if types.is_integer(each):
            bits = each.bit_width * (2 if types.is_unsigned_integer(each) else 1)
            return ValueType({8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}[bits])
        case each if types.is_floating(each):
            return ValueType("double" if types.is_float64(each) else "float")
        case each if types.is_decimal(each) and each.precision <= 38:
            return ValueType("decimal", each.precision, each.scale)
        case each if types.is_date(each):
            return ValueType("date")
        case each if types.is_timestamp(each):
            return ValueType("timestamp" if each.tz else "timestamp_ntz")
        case each if types.is_string(each) or types.is_large_string(each) or types.is_string_view(each):
            return ValueType("string")
        case each if types.is_binary(each) or types.is_large_binary(each) or types.is_fixed_size_binary(each):
            return ValueType("binary")
        case each:
            msg = f"Cannot prune by Arrow type {each}: expected a number, string, binary, boolean, date or timestamp"
            raise UnsupportedTypeError(msg)


def coded(array: pa.Array | pa.ChunkedArray, type_: ValueType) -> CodedArray:
    """Codes of an Arrow array whose values all fit `type_`; `pyarrow.ArrowInvalid` where one does not."""
    flat = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if pa.types.is_dictionary(flat.type):
        flat = flat.dictionary_decode()
    if pa.types.is_timestamp(flat.type):
        flat = _countable(flat)
    valid = np.asarray(flat.is_valid().to_numpy(zero_copy_only=False), bool)
    nan = np.zeros(len(flat), bool)
    if type_.is_float:
        values = flat.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        nan = valid & np.isnan(values)
        return CodedArray(type_, float_codes(np.where(nan, 0.0, values)), valid & ~nan, nan)
    return CodedArray(type_, _codes(flat, type_), valid, nan)


def _countable(array: pa.Array) -> pa.Array:
    """Moments as they are, NULL for those too far away to be counted in microseconds, which no column holds."""
    factor = {"s": 1_000_000, "ms": 1000}.get(array.type.unit)
    if factor is None:
        return array
    numbers, most = array.view(pa.int64()), ((1 << 63) - 1) // factor
    is_near = pc.and_(pc.less_equal(numbers, most), pc.greater_equal(numbers, -most))
    return pc.if_else(is_near, array, pa.scalar(None, array.type))


def _codes(array: pa.Array, type_: ValueType) -> Codes:
    match type_.name:
        case "string" | "binary":
            return _byte_strings(array)
        case "decimal" if type_.physical is Physical.BYTES:
            return ByteStrings.of_fixed_width(_long_decimal_rows(array, type_))
        case "decimal":
            return _decimal_words(array, type_)[:, 0].copy()
        case "date":
            return _int64(array.cast(pa.date32()).view(pa.int32()))
        case "timestamp" | "timestamp_ntz":
            zone = "UTC" if array.type.tz else None
            return _int64(array.cast(pa.timestamp("us", zone), safe=False).view(pa.int64()))
        case _:
            return _int64(array)


def _int64(array: pa.Array) -> IntArray:
    values = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return np.asarray(values, np.int64)


def _byte_strings(array: pa.Array) -> ByteStrings:
    text = array.cast(pa.large_string()) if pa.types.is_string_view(array.type) else array
    # NULL takes no bytes, whatever its slot of the buffer holds.
    flat = pc.fill_null(text.cast(pa.large_binary()), b"")
    _, offsets, data = flat.buffers()
    positions = np.frombuffer(offsets, np.int64)[flat.offset : flat.offset + len(flat) + 1]
    return ByteStrings(np.frombuffer(data or b"", np.uint8), positions).packed()


def _decimal_words(array: pa.Array, type_: ValueType) -> npt.NDArray[np.int64]:
    flat = array.cast(pa.decimal128(type_.precision, type_.scale))
    words = np.frombuffer(flat.buffers()[1] or b"", np.int64).reshape(-1, 2)
    return words[flat.offset : flat.offset + len(flat)]


def _long_decimal_rows(array: pa.Array, type_: ValueType) -> npt.NDArray[np.uint8]:
    little = _decimal_words(array, type_).copy().view(np.uint8).reshape(-1, _DECIMAL_WIDTH)
    big = little[:, ::-1].copy()
    big[:, 0] ^= _SIGN_BIT
    return big


def arrow_of(type_: ValueType, codes: Codes) -> pa.Array:
    """The values behind codes, in the Arrow type that Spark reads as `type_`."""
    match type_.name:
        case "string" | "binary":
            return _arrow_bytes(type_, codes)
        case "decimal":
            return _arrow_decimals(type_, codes)
        case "date":
            return _numbers(codes).cast(pa.int32()).view(pa.date32())
        case "timestamp" | "timestamp_ntz":
            return _numbers(codes).view(pa.timestamp("us", "UTC" if type_.name == "timestamp" else None))
        case "float" | "double":
            return pa.array(float_values(np.asarray(codes))).cast(_ARROW_NUMBERS[type_.name])
        case _:
            return _numbers(codes).cast(_ARROW_NUMBERS[type_.name])


_ARROW_NUMBERS = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
}


def _numbers(codes: Codes) -> pa.Array:
    return pa.array(np.asarray(codes, np.int64))


def _arrow_bytes(type_: ValueType, codes: Codes) -> pa.Array:
    if not isinstance(codes, ByteStrings):
        msg = f"Cannot read codes as {type_}: found numbers, expected byte strings"
        raise TypeError(msg)
    packed = codes.packed()
    kind = pa.StringArray if type_.name == "string" else pa.BinaryArray
    offsets = pa.py_buffer(packed.offsets.astype(np.int32))
    if type_.name == "string":
        return kind.from_buffers(len(packed), offsets, pa.py_buffer(packed.data))
    return kind.from_buffers(pa.binary(), len(packed), [None, offsets, pa.py_buffer(packed.data)])


def _arrow_decimals(type_: ValueType, codes: Codes) -> pa.Array:
    if isinstance(codes, ByteStrings):
        rows = codes.packed().data.reshape(-1, _DECIMAL_WIDTH).copy()
        rows[:, 0] ^= _SIGN_BIT
        words = rows[:, ::-1].copy().view(np.int64)
    else:
        words = np.stack([codes, codes >> 63], axis=1)
    buffer = pa.py_buffer(np.ascontiguousarray(words))
    return pa.Array.from_buffers(pa.decimal128(type_.precision, type_.scale), len(codes), [None, buffer])
