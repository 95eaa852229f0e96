"""Parts of files that an Arrow scan reads, distributed to tasks by their bytes.

A column is read by pyarrow only if it gives the values that Spark's own reader gives, after a cast that is lossless.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import types as st
from pyspark.sql.types import DataType

from connectors.arrow_scan.files import FilePart
from connectors.arrow_scan.s3 import bucket_of
from connectors.parquet.footer import Footer
from connectors.parquet.row_groups import FileLayout
from connectors.parquet.schema import Annotation, LeafType
from connectors.spark.files import TRAILER, local_path
from pruning.limits import LIMITS, Limits
from pruning.reasons import Reason, ReasonCode
from pruning.scan.statistics import Containers
from pruning.values.byte_strings import IntArray
from pruning.values.ranges import BoolArray

_MAGIC = b"PAR1"
# Codecs that both readers decode alike.
_CODECS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"})


@dataclass(frozen=True, slots=True)
class _Piece:
    """One row group, and the compressed bytes of its columns."""

    part: FilePart
    size: int


def elsewhere(files: Containers, kept: BoolArray) -> Reason | None:
    """The reason not to use pyarrow if a kept file is neither local nor in an S3 store; None if all are."""
    if not files.is_listed:
        return None
    names = (files.names[at] for at in np.flatnonzero(kept).tolist())
    return next((_is_elsewhere(each) for each in names if _path(each) is None), None)


def _path(uri: str) -> str | None:
    """The path or URI of a file for the reader; None if pyarrow cannot read it."""
    path = local_path(uri)
    return str(path) if path is not None else uri if bucket_of(uri) else None


def _is_elsewhere(uri: str) -> Reason:
    return Reason(ReasonCode.NOT_READ_BY_ARROW, uri, "it is neither a local file nor in an S3 store")


def file_part(
    file: FileLayout, groups: Sequence[int], columns: Mapping[str, DataType], *, others_are_gregorian: bool
) -> FilePart | Reason:
    """The row groups of one file; a `Reason` if pyarrow may not read each column as Spark does.

    `others_are_gregorian`: Spark rebases no values in files that name no version of Spark.
    """
    is_gregorian = file.footer.is_gregorian or (others_are_gregorian and not file.footer.names_spark)
    path = _path(file.uri)
    if path is None:
        return _is_elsewhere(file.uri)
    leaves: list[int | None] = []
    for (name, type_), place in zip(columns.items(), file.places, strict=True):
        if place is None or place.is_missing:
            leaves.append(None)
            continue
        if place.leaf is None or place.type is None:
            return Reason(
                ReasonCode.OTHER_VALUES_BY_ARROW,
                name,
                "a file has several columns of that name, or one with nested values",
            )
        if not is_readable(place.type, type_, is_gregorian=is_gregorian):
            return Reason(
                ReasonCode.OTHER_VALUES_BY_ARROW, name, f"{type_.simpleString()} from {_stored_as(place.type)}"
            )
        leaves.append(place.leaf)
    part = FilePart(
        path,
        tuple(groups),
        tuple(leaves),
        file.constants,
        file.size,
        file.modified,
        whole_footer(file.footer.data),
    )
    return _refusal(part, file.footer, columns) or part


def _stored_as(leaf: LeafType) -> str:
    kind = leaf.annotation.kind
    return leaf.physical if kind == "NONE" else f"{leaf.physical} ({kind})"


def _refusal(part: FilePart, footer: Footer, columns: Mapping[str, DataType]) -> Reason | None:
    """The reason why pyarrow cannot read the chunks of a part, or reads types that do not become Spark's."""
    tops = [node.leaf for node in footer.schema.tops]
    groups = list(part.row_groups)
    try:
        with _described(part, footer) as file:
            schema, metadata = file.schema_arrow, file.metadata
            for (name, type_), leaf in zip(columns.items(), part.leaves, strict=True):
                if leaf is None:
                    continue
                found, wanted = schema.field(tops.index(leaf)).type, arrow_type(type_)
                if wanted is None or not becomes(found, wanted):
                    return Reason(ReasonCode.OTHER_VALUES_BY_ARROW, name, f"pyarrow reads it as {found}")
                is_whole = (footer.chunks[groups, leaf] >= 0) & (footer.values[groups, leaf] == footer.rows[groups])
                if not is_whole.all():
                    # Encrypted chunks and chunks in another file have no metadata here.
                    return Reason(ReasonCode.NOT_READ_BY_ARROW, name, "a footer does not describe all of its chunks")
                codecs = {metadata.row_group(each).column(leaf).compression for each in groups} - _CODECS
                if codecs:
                    return Reason(ReasonCode.NOT_READ_BY_ARROW, name, f"compressed by {', '.join(sorted(codecs))}")
    except (pa.ArrowException, OSError, ValueError, IndexError) as error:
        return Reason(ReasonCode.NOT_READ_BY_ARROW, part.path, f"{type(error).__name__} in its footer")
    return None


def _described(part: FilePart, footer: Footer) -> pq.ParquetFile:
    """The Parquet metadata of a file; for a file in a store, from the footer alone."""
    data = pa.BufferReader(whole_footer(footer.data))
    return pq.ParquetFile(data) if bucket_of(part.path) else pq.ParquetFile(part.path, metadata=pq.read_metadata(data))


def whole_footer(data: bytes) -> bytes:
    """The bytes of a file with only a footer, from which Arrow reads the metadata."""
    footer = data + len(data).to_bytes(TRAILER - len(_MAGIC), "little") + _MAGIC
    # A file without rows still begins with the magic bytes.
    return _MAGIC + footer


def task_count(row_groups: int, size: int, cores: int, task_bytes: int = LIMITS.arrow_task_bytes) -> int:
    """The number of tasks for `row_groups` row groups of `size` bytes together.

    >>> task_count(3, 11 << 20, 2), task_count(1, 11 << 20, 2), task_count(9, 33 << 20, 2)
    (2, 1, 5)
    """
    return max(1, min(row_groups, max(cores, -(-size // task_bytes))))


def dealt(
    parts: Sequence[FilePart], sizes: Sequence[IntArray], cores: int, limits: Limits = LIMITS
) -> list[list[FilePart]]:
    """The parts, distributed to tasks with about equal bytes; `sizes` are bytes by part and row group.

    >>> part = FilePart("a", (0, 1, 2), (), ())
    >>> [[each.row_groups for each in task] for task in dealt([part], [np.array([6 << 20, 1, 5 << 20])], 2)]
    [[(0,)], [(1, 2)]]
    """
    if sum(len(each.footer or b"") for each in parts) > limits.arrow_footers_bytes:
        parts = [replace(each, footer=None) for each in parts]
    pieces = [
        _Piece(replace(part, row_groups=(group,)), int(size))
        for part, of_groups in zip(parts, sizes, strict=True)
        for group, size in zip(part.row_groups, of_groups, strict=True)
    ]
    total = sum(each.size for each in pieces)
    count = task_count(len(pieces), total, cores, limits.arrow_task_bytes)
    tasks: list[tuple[int, int, list[int]]] = [(0, at, []) for at in range(count)]
    for at in sorted(range(len(pieces)), key=lambda at: -pieces[at].size):
        size, number, chosen = heapq.heappop(tasks)
        chosen.append(at)
        heapq.heappush(tasks, (size + pieces[at].size, number, chosen))
    ordered = sorted(tasks, key=lambda each: each[1])
    return [_joined([pieces[at].part for at in sorted(chosen)]) for _, _, chosen in ordered if chosen]


def _joined(parts: Sequence[FilePart]) -> list[FilePart]:
    """The parts with consecutive ones of the same file joined, so that the file is opened once."""
    found: list[FilePart] = []
    for each in parts:
        if found and found[-1].path == each.path:
            found[-1] = replace(found[-1], row_groups=(*found[-1].row_groups, *each.row_groups))
        else:
            found.append(each)
    return found


def chunk_bytes(file: FileLayout, groups: Sequence[int]) -> IntArray:
    """The compressed bytes of the requested columns in each of these row groups."""
    leaves = [place.leaf for place in file.places if place is not None and place.leaf is not None]
    found: IntArray = file.footer.sizes[np.asarray(groups, np.int64)][:, leaves].sum(axis=1)
    return found


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
    """The Arrow type that Spark expects for `type_` from a Python worker; None for types that pyarrow may not read."""
    match type_:
        case st.DecimalType():
            return pa.decimal128(type_.precision, type_.scale)
        case st.StringType():
            # Arrow names no collation, so Spark would take the column for another type than the query's.
            return pa.string() if type_.collation == _BINARY_COLLATION else None
        case _:
            return _NUMBERS.get(type(type_))


def is_readable(leaf: LeafType, type_: st.DataType, *, is_gregorian: bool) -> bool:
    """True if both readers give the same values of a leaf; `is_gregorian`: the file uses Spark's calendar for sure."""
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
    """True if `as_type` converts every value of the type that pyarrow reads to the same value of the wanted type.

    The stored type does not determine the type that pyarrow reads: the footer may hold the writer's Arrow schema.
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
    # One reader truncates nanoseconds, the other refuses them.
    unit = annotation.unit == "microseconds"
    return annotation.kind == "TIMESTAMP" and unit and annotation.is_utc == is_utc
