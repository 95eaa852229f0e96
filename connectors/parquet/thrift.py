"""Thrift's compact protocol, as far as Parquet footers use it, read in place without decoding unused values.

Offsets are positions in the encoded bytes, which are untrusted: `IndexError`, `ValueError` or `RecursionError` if they
are no such encoding.
"""

from __future__ import annotations

import struct
from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, _MAP, STRUCT = range(1, 13)
_LONG = 15
# A truth value takes one byte in a list, and none in a struct.
_WIDTHS = {TRUE: 1, FALSE: 1, BYTE: 1, DOUBLE: 8}

Struct = dict[int, Any]


def varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned number, and where it ends."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7


def zigzag(data: bytes, at: int) -> int:
    """A signed number."""
    number, _ = varint(data, at)
    return (number >> 1) ^ -(number & 1)


def next_field(data: bytes, at: int, last: int) -> tuple[int, int, int]:
    """Id, kind and offset of the field after the one of id `last`; kind 0 at the end of the struct."""
    head = data[at]
    at += 1
    if head == 0:
        return 0, 0, at
    if head > _LONG:
        return last + (head >> 4), head & 15, at
    number, at = varint(data, at)
    return (number >> 1) ^ -(number & 1), head & 15, at


def list_header(data: bytes, at: int) -> tuple[int, int, int]:
    """Length of a list, kind of its elements, and where they begin."""
    head = data[at]
    if head >> 4 < _LONG:
        return head >> 4, head & 15, at + 1
    count, at = varint(data, at + 1)
    return count, head & 15, at


def field_offsets(data: bytes, at: int) -> tuple[dict[int, int], int]:
    """The offset of each field of a struct, by its id, and the offset of the struct's end."""
    offsets: dict[int, int] = {}
    last, kind, at = next_field(data, at, 0)
    while kind:
        offsets[last] = at
        at = skip(data, at, kind)
        last, kind, at = next_field(data, at, last)
    return offsets, at


def skip(data: bytes, at: int, kind: int) -> int:
    """The offset of the end of a value of this kind in a struct."""
    match kind:
        case 4 | 5 | 6:
            while data[at] > 0x7F:
                at += 1
            return at + 1
        case 8:
            length, at = varint(data, at)
            return at + length
        case 12:
            return _skip_struct(data, at)
        case 9 | 10:
            count, element, at = list_header(data, at)
            if element in _WIDTHS:
                return at + count * _WIDTHS[element]
            for _ in range(count):
                at = skip(data, at, element)
            return at
        case 1 | 2:
            return at
        case 3:
            return at + 1
        case 7:
            return at + 8
        case other:
            msg = f"unknown type of value {other}"
            raise ValueError(msg)


def _skip_struct(data: bytes, at: int) -> int:
    # Nearly all of a footer is skipped, so the kinds that it is full of are handled here.
    while head := data[at]:
        at += 1
        if head <= _LONG:
            _, at = varint(data, at)
        kind = head & 15
        if I16 <= kind <= I64:
            while data[at] > 0x7F:
                at += 1
            at += 1
        elif kind == BINARY and data[at] < 0x80:
            at += data[at] + 1
        else:
            at = skip(data, at, kind)
    return at + 1


def read_struct(data: bytes, at: int) -> tuple[Struct, int]:
    """A struct as values by field id, and where it ends."""
    found: Struct = {}
    last, kind, at = next_field(data, at, 0)
    while kind:
        found[last], at = read(data, at, kind)
        last, kind, at = next_field(data, at, last)
    return found, at


def read(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    """A value of this kind in a struct, and where it ends."""
    match kind:
        case 1 | 2:
            return kind == TRUE, at
        case 3:
            return data[at], at + 1
        case 4 | 5 | 6:
            return zigzag(data, at), skip(data, at, kind)
        case 7:
            return struct.unpack_from("<d", data, at)[0], at + 8
        case 8:
            length, at = varint(data, at)
            return _sliced(data, at, length), at + length
        case 9 | 10:
            return _read_list(data, at)
        case 12:
            return read_struct(data, at)
        case other:
            msg = f"unknown type of value {other}"
            raise ValueError(msg)


def _read_list(data: bytes, at: int) -> tuple[list[Any], int]:
    count, kind, at = list_header(data, at)
    items = []
    for _ in range(count):
        if kind <= FALSE:
            item, at = data[at] == TRUE, at + 1
        else:
            item, at = read(data, at, kind)
        items.append(item)
    return items, at


def _sliced(data: bytes, at: int, length: int) -> bytes:
    if at + length > len(data):
        msg = f"{length} bytes at {at} reach beyond the end"
        raise IndexError(msg)
    return data[at : at + length]
