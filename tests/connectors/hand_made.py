"""Edited Parquet footers: forms that current writers no longer write, or should never have written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

# Thrift's compact protocol: a struct is {field id: (type, value)}, a list is (type, values).
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
Struct = dict[int, tuple[int, Any]]


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        result = shift = 0
        while True:
            byte = self.byte()
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result
            shift += 7

    def zigzag(self) -> int:
        number = self.varint()
        return (number >> 1) ^ -(number & 1)

    def value(self, kind: int) -> Any:
        match kind:
            case 1 | 2:
                return kind == TRUE
            case 3:
                return self.byte()
            case 4 | 5 | 6:
                return self.zigzag()
            case 8:
                length = self.varint()
                self.at += length
                return self.data[self.at - length : self.at]
            case 9:
                return self.list()
            case 12:
                return self.struct()
            case other:
                raise NotImplementedError(other)

    def list(self) -> tuple[int, list[Any]]:
        header = self.byte()
        count = self.varint() if header >> 4 == 15 else header >> 4
        kind = header & 15
        return kind, [self.byte() == TRUE if kind in (TRUE, FALSE) else self.value(kind) for _ in range(count)]

    def struct(self) -> Struct:
        fields: Struct = {}
        last = 0
        while header := self.byte():
            last = last + (header >> 4) if header >> 4 else self.zigzag()
            fields[last] = (header & 15, self.value(header & 15))
        return fields


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def encoded(kind: int, value: Any) -> bytes:
    match kind:
        case 1 | 2:
            return b""
        case 3:
            return bytes([value])
        case 4 | 5 | 6:
            return varint((value << 1) ^ (value >> 63))
        case 8:
            return varint(len(value)) + value
        case 9:
            element, items = value
            header = (
                bytes([len(items) << 4 | element]) if len(items) < 15 else bytes([0xF0 | element, *varint(len(items))])
            )
            return header + b"".join(
                bytes([TRUE if i else FALSE]) if element < 3 else encoded(element, i) for i in items
            )
        case 12:
            return encoded_struct(value)
        case other:
            raise NotImplementedError(other)


def encoded_struct(fields: Struct) -> bytes:
    out, last = b"", 0
    for id_ in sorted(fields):
        kind, value = fields[id_]
        kind = (TRUE if value else FALSE) if kind in (TRUE, FALSE) else kind
        step = id_ - last
        head = bytes([step << 4 | kind]) if step <= 15 else bytes([kind]) + encoded(I16, id_)
        out, last = out + head + encoded(kind, value), id_
    return out + b"\0"


def edit_footer(path: Path, edit: Callable[[Struct], None]) -> None:
    """Rewrites the footer of a file after `edit` has changed its `FileMetaData` in place."""
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    metadata = Reader(data[-8 - length : -8]).struct()
    edit(metadata)
    footer = encoded_struct(metadata)
    path.write_bytes(data[: -8 - length] + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def chunk(metadata: Struct, column: int, group: int = 0) -> Struct:
    """The `ColumnMetaData` of one column chunk."""
    groups = metadata[4][1][1]
    columns = groups[group][1][1][1]
    found: Struct = columns[column][3][1]
    return found


def statistics(metadata: Struct, column: int, group: int = 0) -> Struct:
    """The `Statistics` of one column chunk."""
    found: Struct = chunk(metadata, column, group)[12][1]
    return found


def set_bounds(found: Struct, low: bytes | None, high: bytes | None) -> None:
    """Sets `min_value` and `max_value`, and removes the deprecated `min` and `max`."""
    for id_, value in ((5, high), (6, low)):
        found.pop(id_, None)
        if value is not None:
            found[id_] = (BINARY, value)
    for id_ in (1, 2):
        found.pop(id_, None)


def make_deprecated(metadata: Struct) -> None:
    """Converts statistics to the older form without column orders: only `min` and `max`, of unknown order."""
    metadata.pop(7, None)
    for group in range(len(metadata[4][1][1])):
        for column in range(len(metadata[4][1][1][group][1][1][1])):
            found = statistics(metadata, column, group)
            for new, old in ((5, 1), (6, 2)):
                if new in found:
                    found[old] = found.pop(new)
            found.pop(7, None)
            found.pop(8, None)


def set_text(metadata: Struct, id_: int, text: str) -> None:
    """Sets a text field of the `FileMetaData`, such as 6, `created_by`."""
    metadata[id_] = (BINARY, text.encode())


def set_key_values(metadata: Struct, **pairs: str) -> None:
    """Replaces the key-value metadata; `__` in a key stands for a dot."""
    items = [
        {1: (BINARY, key.replace("__", ".").encode()), 2: (BINARY, value.encode())} for key, value in pairs.items()
    ]
    metadata[5] = (LIST, (STRUCT, items))
