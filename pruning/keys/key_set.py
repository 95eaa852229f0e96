"""`KeySet`: the distinct rows of some key columns while they are few, else a sketch of them.

`pack()` writes a partial key set to one buffer, to send it between processes: magic, header length (8 bytes,
little-endian), header as UTF-8 JSON, then each array at a multiple of 8 bytes. `unpack()` executes nothing in it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pruning.keys.bloom import BloomFilter
from pruning.keys.sketch import KeySketch, distinct_in_place, folded, roomy_bloom
from pruning.keys.xxhash64 import Hashes, hash_codes
from pruning.limits import LIMITS
from pruning.options import PruningOptions
from pruning.values import encoding as code
from pruning.values.byte_strings import ByteStrings, IntArray, ranks, sorted_distinct
from pruning.values.encoding import Codes
from pruning.values.ranges import BoolArray
from pruning.values.types import ValueType

# The code of NaN in a key set: above those of every other float; `float_values` converts it back to NaN.
NAN_CODE = 0x7FF8000000000000
# Bytes of keys that wait unsorted, or as many as are sorted: each sort takes all of them.
_BUFFER_BYTES = 16 << 20
Columns: TypeAlias = tuple[Codes, ...]


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """Limits of keys and bytes of an exact key set, and of the bloom filter of a larger one.

    `fpp` is the false positive rate of the bloom up to `room` times `keys`.
    """

    keys: int
    nbytes: int
    fpp: float
    room: int = LIMITS.bloom_room

    @staticmethod
    def of(options: PruningOptions) -> KeyLimits:
        """The limits that the options set."""
        limits = options.limits
        return KeyLimits(limits.max_build_keys, options.max_build_bytes, limits.bloom_fpp, limits.bloom_room)

    def shared(self, parts: int) -> KeyLimits:
        """The limits of each of `parts` sets that keep to these limits together."""
        return replace(self, nbytes=max(1, self.nbytes // parts))


class KeySet:
    """Distinct rows of `types`, without NULL, NaN as `NAN_CODE`; not thread-safe.

    A set is exact (`is_exact`) while its rows are within the limits. Beyond them a set of one column has a `span`, and
    a set made with a bloom filter keeps the filter. The order of rows does not change whether they are within the
    limits.
    """

    def __init__(self, types: Sequence[ValueType], limits: KeyLimits, *, with_bloom: bool) -> None:
        self.types, self.limits, self.with_bloom = tuple(types), limits, with_bloom
        self.is_exact = True
        self.span = KeySketch.empty(self.types[0])
        self.bloom: BloomFilter | None = None
        self._rows: Columns = tuple(code.empty(type_) for type_ in self.types)
        self._buffer: list[Columns] = []
        self._buffered = 0

    def add(self, columns: Columns) -> None:
        """Takes rows, one array for each column."""
        self._buffer.append(columns)
        self._buffered += _nbytes(columns)
        if self._buffered > max(_BUFFER_BYTES, _nbytes(self._rows)):
            self.settle()

    def merge(self, other: KeySet) -> None:
        """Takes the rows of a set of the same types and limits."""
        other.settle()
        if other.is_exact:
            # Buffered and sorted together with later rows: each merge would else sort all rows again.
            self.add(other._rows)
            return
        self.settle()
        self._loosen()
        self.span = self.span.merge(other.span)
        if self.bloom is not None and other.bloom is not None:
            self.bloom = self.bloom.merge(other.bloom)

    def settle(self) -> None:
        """Adds the buffered rows, so that every attribute covers all rows."""
        if not self._buffer:
            return
        added = _concat(self.types, [self._rows, *self._buffer])
        # Sorting needs one more array, so the others are freed first.
        self._rows = tuple(code.empty(type_) for type_ in self.types)
        self._buffer, self._buffered = [], 0
        if not self.is_exact:
            self._add_loosely(added)
            return
        self._rows = _distinct_rows(self.types, added)
        if len(self._rows[0]) > self.limits.keys or _nbytes(self._rows) > self.limits.nbytes:
            self._loosen()

    def rows(self) -> Columns:
        """The distinct rows of an exact set in ascending order, the first column first."""
        self.settle()
        if len(self.types) > 1:
            self._rows = _sorted_rows(self._rows)
        elif isinstance(self._rows[0], ByteStrings):
            self._rows = (sorted_distinct(self._rows[0]),)
        return self._rows

    def filter(self) -> BloomFilter | None:
        """The bloom filter at the size that its keys need; None for an exact set and for one made without a filter."""
        self.settle()
        return None if self.bloom is None else folded(self.bloom, self.limits.fpp)

    def _loosen(self) -> None:
        if self.is_exact:
            self.is_exact = False
            if self.with_bloom:
                self.bloom = roomy_bloom(self.limits.room * self.limits.keys, self.limits.fpp, self.limits.nbytes)
            self._add_loosely(self._rows)
            self._rows = tuple(code.empty(type_) for type_ in self.types)

    def _add_loosely(self, rows: Columns) -> None:
        if len(self.types) == 1:
            self.span = self.span.adding(_without_nan(self.types[0], rows[0]))
        if self.bloom is not None:
            self.bloom = self.bloom.adding(row_hashes(self.types, rows))

    def packed(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Header and arrays from which `unpack` makes an equal set."""
        self.settle()
        header: dict[str, Any] = {"exact": self.is_exact, "shift": self.span.shift}
        arrays: dict[str, npt.NDArray[Any]] = {"prefixes": self.span.prefixes}
        named = {"low": self.span.low, "high": self.span.high}
        named |= {f"rows{index}": codes for index, codes in enumerate(self._rows)}
        for name, codes in named.items():
            arrays |= _packed_codes(name, codes)
        if self.bloom is not None:
            header["bloom"] = [self.bloom.hash_count, self.bloom.version, self.bloom.seed]
            arrays["bloom"] = self.bloom.words
        return header, arrays

    def unpack(self, header: Mapping[str, Any], arrays: Arrays) -> None:
        """Fills this empty set with the header and arrays of `packed`."""
        self.is_exact = bool(header["exact"])
        low, high = (_unpacked_codes(self.types[0], name, arrays) for name in ("low", "high"))
        self.span = KeySketch(self.types[0], low, high, int(header["shift"]), arrays["prefixes"])
        self._rows = tuple(_unpacked_codes(type_, f"rows{at}", arrays) for at, type_ in enumerate(self.types))
        if "bloom" in header:
            self.bloom = BloomFilter(arrays["bloom"], *header["bloom"])


def row_hashes(types: Sequence[ValueType], rows: Columns) -> Hashes:
    """Spark's `xxhash64` of each row."""
    hashes = hash_codes(types[0], rows[0])
    for type_, codes in zip(types[1:], rows[1:], strict=True):
        hashes = hash_codes(type_, codes, hashes)
    return hashes


def _without_nan(type_: ValueType, codes: Codes) -> Codes:
    return codes[codes != NAN_CODE] if type_.is_float and isinstance(codes, np.ndarray) else codes


def _nbytes(columns: Columns) -> int:
    return sum(int(codes.nbytes) for codes in columns)


def _concat(types: Sequence[ValueType], parts: Sequence[Columns]) -> Columns:
    columns = zip(*parts, strict=True)
    return tuple(code.concat(type_, codes) for type_, codes in zip(types, columns, strict=True))


def _distinct_rows(types: Sequence[ValueType], rows: Columns) -> Columns:
    """The distinct rows, ascending if they are one column of int64 codes; the arrays of `rows` may be overwritten."""
    if len(rows) == 1 and isinstance(rows[0], np.ndarray):
        return (distinct_in_place(rows[0]),)
    hashes = row_hashes(types, rows)
    order = np.argsort(hashes)
    hashes = hashes[order]
    same = np.flatnonzero(hashes[1:] == hashes[:-1])
    # Rows with equal hashes are compared. A duplicate that stays, between other rows of its hash, does no harm.
    repeated = same[_equal_rows(rows, order[same], order[same + 1])] + 1
    kept = np.ones(len(order), bool)
    kept[repeated] = False
    return tuple(codes.take(np.sort(order[kept])) for codes in rows)


def _equal_rows(rows: Columns, first: IntArray, second: IntArray) -> BoolArray:
    equal = np.ones(len(first), bool)
    for codes in rows:
        if isinstance(codes, ByteStrings):
            equal &= _equal_strings(codes, first, second)
        else:
            equal &= codes[first] == codes[second]
    return equal


def _equal_strings(strings: ByteStrings, first: IntArray, second: IntArray) -> BoolArray:
    lengths = strings.lengths()
    equal: BoolArray = lengths[first] == lengths[second]
    candidates = np.flatnonzero(equal)
    left, right = strings.take(first[candidates]), strings.take(second[candidates])
    differing = np.flatnonzero(left.data != right.data)
    equal[candidates[np.searchsorted(left.offsets, differing, "right") - 1]] = False
    return equal


def _sorted_rows(rows: Columns) -> Columns:
    lines = [ranks(codes) if isinstance(codes, ByteStrings) else codes for codes in rows]
    order = np.lexsort(lines[::-1])
    changed = np.ones(len(order), bool)
    changed[1:] = np.logical_or.reduce([line[order][1:] != line[order][:-1] for line in lines])
    return tuple(codes.take(order[changed]) for codes in rows)


def _packed_codes(name: str, codes: Codes) -> dict[str, npt.NDArray[Any]]:
    if isinstance(codes, ByteStrings):
        flat = codes.packed()
        return {f"{name}.data": flat.data, f"{name}.offsets": flat.offsets}
    return {name: codes}


def _unpacked_codes(type_: ValueType, name: str, arrays: Arrays) -> Codes:
    if isinstance(code.empty(type_), ByteStrings):
        return ByteStrings(arrays[f"{name}.data"], arrays[f"{name}.offsets"])
    return arrays[name]


Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]

_MAGIC = b"SPKEYS01"
_LENGTH = struct.Struct("<q")
_DTYPES = ("<i8", "<u8", "|u1")
_ALIGNMENT = 8


def pack(header: Mapping[str, Any], arrays: Arrays) -> bytes:
    """One buffer that `unpack` takes apart; arrays are one-dimensional int64, uint64 or uint8."""
    described = [[name, array.dtype.str, len(array)] for name, array in arrays.items()]
    if odd := sorted({array.dtype.str for array in arrays.values()} - set(_DTYPES)):
        msg = f"Cannot pack arrays of {', '.join(odd)}: expected one of {', '.join(_DTYPES)}"
        raise ValueError(msg)
    text = json.dumps({**header, "arrays": described}).encode()
    parts = [_MAGIC, _LENGTH.pack(len(text)), text]
    position = sum(map(len, parts))
    for array in arrays.values():
        content = np.ascontiguousarray(array).tobytes()
        parts += [b"\0" * (-position % _ALIGNMENT), content]
        position += -position % _ALIGNMENT + len(content)
    return b"".join(parts)


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Header and arrays, which are read-only views of `data`; `ValueError` where it is cut off or of another format."""
    header, position = _header(data)
    arrays = {}
    for name, dtype, count in header.pop("arrays"):
        position += -position % _ALIGNMENT
        if dtype not in _DTYPES:
            msg = f"Cannot read packed array {name!r} of {dtype!r}: expected one of {', '.join(_DTYPES)}"
            raise ValueError(msg)
        size = count * np.dtype(dtype).itemsize
        if count < 0 or position + size > len(data):
            msg = f"Cannot read packed array {name!r}: expected {size} bytes, found {len(data) - position}"
            raise ValueError(msg)
        arrays[name] = np.frombuffer(data, dtype, count, position)
        position += size
    if position != len(data):
        msg = f"Cannot read packed arrays: {len(data) - position} bytes follow the last one"
        raise ValueError(msg)
    return header, arrays


def _header(data: bytes) -> tuple[dict[str, Any], int]:
    begin = len(_MAGIC) + _LENGTH.size
    if len(data) < begin or data[: len(_MAGIC)] != _MAGIC:
        msg = f"Cannot read packed arrays: expected {_MAGIC!r} first, found {data[: len(_MAGIC)]!r}"
        raise ValueError(msg)
    (length,) = _LENGTH.unpack_from(data, len(_MAGIC))
    if not 0 <= length <= len(data) - begin:
        msg = f"Cannot read packed arrays: expected a header of {length} bytes, found {len(data) - begin}"
        raise ValueError(msg)
    header = json.loads(data[begin : begin + length])
    return header, begin + length
