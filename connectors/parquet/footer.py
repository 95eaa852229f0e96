"""One Parquet footer: its schema, and the offset of the metadata of each column chunk, found in one pass.

Only fields that pruning needs are read. A footer may be any bytes: inconsistent ones are a `ValueError`.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from connectors.parquet.orders import Order, order_of
from connectors.parquet.schema import LeafType, Schema, read_schema
from connectors.parquet.thrift import (
    LIST,
    Struct,
    field_offsets,
    list_header,
    next_field,
    read,
    read_struct,
    skip,
    zigzag,
)
from connectors.parquet.writers import Writer, writer_of
from connectors.spark.files import TRAILER
from pruning.scan.statistics import UNKNOWN
from pruning.values.byte_strings import IntArray

_TYPE_DEFINED = 1
# Fields of a chunk's metadata, and of an entry of its encoding statistics.
_TYPE, _ENCODINGS, _PATH, _CODEC, _DATA_PAGES, _DICTIONARY, _STATISTICS, _PAGES, _BLOOM = 1, 2, 3, 4, 9, 11, 12, 13, 14
_PAGE_TYPE, _PAGE_ENCODING = 1, 2
# Fields of its statistics; bounds in the order that the specification fixes.
_NULLS, _GREATEST, _LEAST = 3, 5, 6
_DATA_PAGE_TYPES, _PLAIN, _DICTIONARY_ENCODINGS = (0, 3), 0, (2, 8)
# Bytes of a dictionary page for each number in it, by physical type, under codecs that leave numbers about as long.
_DICTIONARY_BYTES = {1: 4.0, 2: 4.9, 3: 8.0, 4: 4.0, 5: 5.0}
# A text has its length before it, a value of fixed length, such as a long decimal, has not. These codecs make a page of
# bytes shorter: texts of TPC-DS by 0.4 to 1.
_LENGTHS = {6: 4, 7: 0}
_BYTES_SHRINK = 0.7
# Bytes of the header of a page.
_PAGE_HEADER = 20
_FAST_CODECS = frozenset({0, 1, 5, 7})
# Errors of parsing malformed bytes.
_MALFORMED = (IndexError, KeyError, ValueError, TypeError, AttributeError, OverflowError, RecursionError, struct.error)
_VERSION_KEY = b"org.apache.spark.version"
_LEGACY_KEY = b"org.apache.spark.legacyDateTime"
_FIRST_GREGORIAN_VERSION = b"3.0.0"


@dataclass(frozen=True, slots=True, eq=False)
class Footer:
    """A footer of `g` row groups and `n` leaf columns.

    - `rows`: rows of each group
    - `sizes`, `values`: compressed bytes and number of values, NULL included, of each chunk, `[g, n]`
    - `chunks`: where the chunk's metadata begins in `data`, -1 where the file keeps it elsewhere, `[g, n]`
    - `has_type_order`: the leaves whose bounds are said to follow the order of their type; None if the footer says
      nothing of orders
    - `writer`: the program that wrote the file
    - `is_gregorian`: dates and timestamps are known to be in the calendar in which Spark reads them
    """

    data: bytes
    schema: Schema
    rows: IntArray
    sizes: IntArray
    values: IntArray
    chunks: IntArray
    has_type_order: npt.NDArray[np.bool_] | None
    is_gregorian: bool
    writer: Writer

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes, without the schema, which files share."""
        arrays = (self.rows, self.sizes, self.values, self.chunks, self.has_type_order)
        return len(self.data) + sum(array.nbytes for array in arrays if array is not None)

    def is_ordered(self, index: int, leaf: LeafType) -> bool:
        """True if the new bounds of the leaf at `index` follow the order that the specification gives its type."""
        if self.has_type_order is not None:
            return bool(self.has_type_order[index])
        # So takes it the reader of parquet-java for all types.
        match order_of(leaf):
            case Order.SIGNED | Order.FLOAT:
                return True
            case Order.BYTES:
                return self.writer.orders_bytes()
            case _:
                return False


class Schemas:
    """A cache of the `most` latest schemas, so that files of one table share one object; thread-safe."""

    def __init__(self, most: int = 16) -> None:
        self._most = most
        self._known: list[Schema] = []
        self._lock = threading.Lock()

    def read(self, data: bytes, at: int) -> Schema:
        """The schema at this offset."""
        with self._lock:
            known = tuple(self._known)
        for schema in known:
            # The encoding is self-delimiting, so data that begins with the same bytes has the same schema.
            if data.startswith(schema.encoded, at):
                return schema
        schema = read_schema(data, at)
        with self._lock:
            self._known = [schema, *self._known[: self._most - 1]]
        return schema


@dataclass(slots=True)
class _Parts:
    schema: Schema | None = None
    rows: list[int] = field(default_factory=list)
    chunks: list[list[tuple[int, int, int]]] = field(default_factory=list)
    key_values: list[Struct] = field(default_factory=list)
    orders: list[Struct] | None = None
    created_by: bytes = b""


def parse_footer(footer: bytes, schemas: Schemas) -> Footer:
    """The footer from its bytes with the trailer; `ValueError` if they are no footer."""
    data = footer[:-TRAILER]
    try:
        return _footer(data, _parts(data, schemas))
    except _MALFORMED as error:
        msg = f"its footer is malformed ({error})"
        raise ValueError(msg) from error


def _parts(data: bytes, schemas: Schemas) -> _Parts:
    parts = _Parts()
    id_, kind, at = next_field(data, 0, 0)
    while kind:
        match id_:
            case 2:
                parts.schema = schemas.read(data, at)
                at += len(parts.schema.encoded)
            case 4:
                at = _groups(data, at, parts)
            case 5:
                parts.key_values, at = read(data, at, kind)
            case 6:
                parts.created_by, at = read(data, at, kind)
            case 7:
                parts.orders, at = read(data, at, kind)
            case _:
                at = skip(data, at, kind)
        id_, kind, at = next_field(data, at, id_)
    return parts


def _groups(data: bytes, at: int, parts: _Parts) -> int:
    count, _, at = list_header(data, at)
    for _ in range(count):
        chunks: list[tuple[int, int, int]] = []
        rows = -1
        id_, kind, at = next_field(data, at, 0)
        while kind:
            if id_ == 1:
                length, _, at = list_header(data, at)
                for _ in range(length):
                    chunk, at = _chunk(data, at)
                    chunks.append(chunk)
            else:
                rows = zigzag(data, at) if id_ == 3 else rows
                at = skip(data, at, kind)
            id_, kind, at = next_field(data, at, id_)
        parts.rows.append(rows)
        parts.chunks.append(chunks)
    return at


def _chunk(data: bytes, at: int) -> tuple[tuple[int, int, int], int]:
    """Compressed size, number of values and offset of a chunk's metadata, and where the chunk ends."""
    found = (0, -1, -1)
    is_elsewhere = False
    id_, kind, at = next_field(data, at, 0)
    while kind:
        if id_ == 3:
            begin = at
            offsets, at = field_offsets(data, at)
            found = (zigzag(data, offsets[7]), zigzag(data, offsets[5]), begin)
        else:
            # A chunk in another file, or one whose metadata is encrypted, is not described here.
            is_elsewhere = is_elsewhere or id_ in (1, 8)
            at = skip(data, at, kind)
        id_, kind, at = next_field(data, at, id_)
    return ((found[0], found[1], -1) if is_elsewhere else found), at


def _footer(data: bytes, parts: _Parts) -> Footer:
    if parts.schema is None or min(parts.rows, default=0) < 0:
        msg = "it has no schema, or a row group of unknown length"
        raise ValueError(msg)
    leaves = len(parts.schema)
    if any(len(chunks) != leaves or min(chunks, default=(0,))[0] < 0 for chunks in parts.chunks):
        msg = f"a row group lacks one of the {leaves} columns of the schema, or its size"
        raise ValueError(msg)
    table = np.array(parts.chunks, np.int64).reshape(-1, leaves, 3)
    sizes, values, chunks = (np.ascontiguousarray(table[:, :, index]) for index in range(3))
    ordered = None if parts.orders is None else np.zeros(leaves, bool)
    if ordered is not None and parts.orders is not None and len(parts.orders) == leaves:
        ordered[:] = [_TYPE_DEFINED in order for order in parts.orders]
    pairs = {pair[1]: pair.get(2, b"") for pair in parts.key_values}
    return Footer(
        data,
        parts.schema,
        np.array(parts.rows, np.int64),
        sizes,
        values,
        chunks,
        ordered,
        # Spark, too, compares the versions as text.
        is_gregorian=pairs.get(_VERSION_KEY, b"") >= _FIRST_GREGORIAN_VERSION and _LEGACY_KEY not in pairs,
        writer=writer_of(parts.created_by),
    )


@dataclass(frozen=True, slots=True)
class ChunkMetadata:
    """The `Statistics` of a chunk by field id, None if it has none, and the number of different values.

    `distinct` is estimated by the size of a dictionary that encodes all values. Where a writer has left the dictionary,
    or made none, nearly every value may be another: then it is the number of values.
    `has_bloom_filter` is True also where that is not known.
    """

    statistics: Struct | None = None
    distinct: int = UNKNOWN
    has_bloom_filter: bool = True


def chunk_metadata(footer: Footer, group: int, leaf: int) -> ChunkMetadata:
    """The metadata of one chunk; empty if there is none, or it may be another column's."""
    begin = int(footer.chunks[group, leaf])
    if begin < 0 or footer.values[group, leaf] != footer.rows[group]:
        return ChunkMetadata()
    try:
        data = footer.data
        offsets, _ = field_offsets(data, begin)
        path, _ = read(data, offsets[_PATH], LIST)
        if tuple(part.decode("utf-8") for part in path) != footer.schema.paths[leaf]:
            return ChunkMetadata()
        statistics = read_struct(data, offsets[_STATISTICS])[0] if _STATISTICS in offsets else None
        distinct = _distinct(data, offsets, statistics or {}, int(footer.rows[group]))
        return ChunkMetadata(statistics, distinct, _BLOOM in offsets)
    except _MALFORMED:
        return ChunkMetadata()


def _distinct(data: bytes, offsets: Mapping[int, int], statistics: Struct, rows: int) -> int:
    """The different values of a chunk of so many rows; `UNKNOWN` where nothing tells, or what tells is malformed."""
    try:
        nulls = statistics.get(_NULLS, 0)
        return _told_by_dictionary(data, offsets, statistics, max(1, rows - nulls))
    except _MALFORMED:
        return UNKNOWN


def _told_by_dictionary(data: bytes, offsets: Mapping[int, int], statistics: Struct, values: int) -> int:
    """The different values by the size of the dictionary page; all `values` where they do not fit into one.

    Surrogate keys take 4.0 bytes for an INT32 and 4.9 for an INT64 under Snappy.
    """
    width = _dictionary_width(zigzag(data, offsets[_TYPE]), statistics)
    if width is None or zigzag(data, offsets[_CODEC]) not in _FAST_CODECS:
        return UNKNOWN
    if _DICTIONARY not in offsets:
        return values if _PLAIN in read(data, offsets[_ENCODINGS], LIST)[0] else UNKNOWN
    if not _uses_only_dictionary(data, offsets):
        return values
    size = zigzag(data, offsets[_DATA_PAGES]) - zigzag(data, offsets[_DICTIONARY])
    return min(values, max(1, round((size - _PAGE_HEADER) / width))) if size > 0 else UNKNOWN


def _dictionary_width(physical: int, statistics: Struct) -> float | None:
    """Bytes of a value in a dictionary page; None where a writer makes none, or the length of texts is not known."""
    if physical not in _LENGTHS:
        return _DICTIONARY_BYTES.get(physical)
    bounds = [each for each in (statistics.get(_LEAST), statistics.get(_GREATEST)) if isinstance(each, bytes)]
    length = sum(map(len, bounds)) / len(bounds) if bounds else None
    return None if length is None else (_LENGTHS[physical] + length) * _BYTES_SHRINK


def _uses_only_dictionary(data: bytes, offsets: Mapping[int, int]) -> bool:
    """True unless a writer may have left the dictionary when it had become too large."""
    if _PAGES in offsets:
        pages, _ = read(data, offsets[_PAGES], LIST)
        encodings = [each[_PAGE_ENCODING] for each in pages if each[_PAGE_TYPE] in _DATA_PAGE_TYPES]
        return bool(encodings) and all(each in _DICTIONARY_ENCODINGS for each in encodings)
    return _PLAIN not in read(data, offsets[_ENCODINGS], LIST)[0]
