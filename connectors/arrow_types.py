"""Which columns of which files pyarrow reads as Spark's own reader does, and as what."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as st

from connectors.footer_schema import Annotation, LeafType

_NUMBERS: dict[type[st.DataType], pa.DataType] = {
    st.BooleanType: pa.bool_(),
    st.ByteType: pa.int8(),
    st.ShortType: pa.int16(),
    st.IntegerType: pa.int32(),
    st.LongType: pa.int64(),
    st.FloatType: pa.float32(),
    st.DoubleType: pa.float64(),
    st.DateType: pa.date32(),
    st.TimestampType: pa.timestamp("us", "UTC"),
    st.TimestampNTZType: pa.timestamp("us"),
    st.BinaryType: pa.binary(),
}
_BITS = {st.ByteType: 8, st.ShortType: 16, st.IntegerType: 32, st.LongType: 64}
_FLOATS = {st.FloatType: "FLOAT", st.DoubleType: "DOUBLE"}
_BINARY_COLLATION = "UTF8_BINARY"


def arrow_type(type_: st.DataType) -> pa.DataType | None:
    """What Spark takes for `type_` when it comes from a Python worker; None for types that are not read here."""
    match type_:
        case st.DecimalType():
            return pa.decimal128(type_.precision, type_.scale)
        case st.StringType():
            # Arrow names no collation, so Spark would take the column for another type than the query's.
            return pa.string() if type_.collation == _BINARY_COLLATION else None
        case _:
            return _NUMBERS.get(type(type_))


def is_readable(leaf: LeafType, type_: st.DataType, *, is_gregorian: bool) -> bool:
    """True where both readers take the same values from a leaf; `is_gregorian`: it surely counts days as Spark does."""
    kind, physical = leaf.annotation.kind, leaf.physical
    match type_:
        case st.ByteType() | st.ShortType() | st.IntegerType() | st.LongType():
            return _is_integer(leaf, _BITS[type(type_)])
        case st.FloatType() | st.DoubleType():
            return (physical, kind) == (_FLOATS[type(type_)], "NONE")
        case st.BooleanType():
            return (physical, kind) == ("BOOLEAN", "NONE")
        case st.StringType():
            return (physical, kind) in {("BYTE_ARRAY", "STRING"), ("BYTE_ARRAY", "NONE")}
        case st.BinaryType():
            return (physical, kind) == ("BYTE_ARRAY", "NONE")
        case st.DecimalType():
            same_scale = kind == "DECIMAL" and leaf.annotation.scale == type_.scale
            return same_scale and leaf.annotation.precision <= type_.precision
        case st.DateType():
            return is_gregorian and (physical, kind) == ("INT32", "DATE")
        case st.TimestampType() | st.TimestampNTZType():
            is_utc = isinstance(type_, st.TimestampType)
            return is_gregorian and physical == "INT64" and _is_moment(leaf.annotation, is_utc=is_utc)
        case _:
            return False


def becomes(found: pa.DataType, wanted: pa.DataType) -> bool:
    """True where `as_type` makes every value of what pyarrow reads into the same value of the type wanted.

    What a file stores does not say what pyarrow reads: a writer may have left its own types in the footer.
    """
    types = pa.types
    if found == wanted:
        return True
    if types.is_dictionary(found):
        return bool(found.value_type == wanted)
    if types.is_signed_integer(found) and types.is_signed_integer(wanted):
        return bool(found.bit_width <= wanted.bit_width)
    if types.is_decimal128(found) and types.is_decimal128(wanted):
        return bool(found.scale == wanted.scale and found.precision <= wanted.precision)
    if types.is_timestamp(found) and types.is_timestamp(wanted):
        return found.unit == wanted.unit and (found.tz is None) == (wanted.tz is None)
    return (found, wanted) in {
        (pa.binary(), pa.string()),
        (pa.large_string(), pa.string()),
        (pa.large_binary(), pa.binary()),
    }


def _is_integer(leaf: LeafType, bits: int) -> bool:
    annotation = leaf.annotation
    match leaf.physical, annotation.kind:
        case ("INT32", "NONE"):
            # Without a width its numbers may need all 32 bits.
            return bits >= 32
        case ("INT64", "NONE"):
            return bits == 64
        case ("INT32" | "INT64", "INT"):
            return annotation.is_signed and annotation.bits <= bits
        case _:
            return False


def _is_moment(annotation: Annotation, *, is_utc: bool) -> bool:
    # Nanoseconds are cut by one reader, and refused by the other.
    unit = annotation.unit == "microseconds"
    return annotation.kind == "TIMESTAMP" and unit and annotation.is_utc == is_utc
