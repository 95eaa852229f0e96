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


def arrow_type(type_: st.DataType) -> pa.DataType | None:
    """What Spark takes for `type_` when it comes from a Python worker; None for types that are not read here."""
    match type_:
        case st.DecimalType():
            return pa.decimal128(type_.precision, type_.scale)
        case st.StringType():
            # A collation says how values compare, not what they are.
            return pa.string()
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
