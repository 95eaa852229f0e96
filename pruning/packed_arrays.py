"""Named arrays beside a JSON header in one buffer: how partial key sets travel between processes.

magic, header length (8 bytes, little-endian), header as UTF-8 JSON, then each array from a multiple of 8 bytes on.
Nothing in it is executed on reading.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

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
