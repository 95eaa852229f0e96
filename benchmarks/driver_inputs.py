"""Inputs of the driver for one scan, at any size: keys as Arrow arrays, files of a Delta log as Spark lists them.

Values are integers below `SPACE`, converted to the type in an order-preserving way. In the layout `clustered`, each
file covers its own part of the space, and keys lie in a hundredth of the space. In the layout `unclustered`, each file
spans nearly the whole space, and keys lie anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.types import DataType, DecimalType, LongType, StringType

from connectors.delta.bounds import StoredBounds
from connectors.delta.statistics import LogColumn
from pruning.values.byte_strings import IntArray
from pruning.values.types import ValueType

BIGINT, STRING, DECIMAL = "bigint", "string", "decimal(38,0)"
CLUSTERED, UNCLUSTERED = "clustered", "unclustered"
COLUMN = "k"

SPACE = 1 << 32
_BURSTS = 16
_SHARE_OF_KEYS = 100
# Strings have the 32 characters that Delta keeps of a bound, with a common prefix.
_PREFIX = b"https://shop.example/id="
_DIGITS = 8
_DECIMAL_SHIFT = 60
_ROWS, _FILE_BYTES = 100_000, 64 << 20
_SPARK_BATCH = 10_000
_SPARK_TYPES: dict[str, DataType] = {BIGINT: LongType(), STRING: StringType(), DECIMAL: DecimalType(38, 0)}


def key_numbers(layout: str, count: int) -> IntArray:
    """`count` distinct keys, in random order."""
    random = np.random.default_rng(1)
    wanted = count + count // 10 + 10
    if layout == CLUSTERED:
        burst = SPACE // _SHARE_OF_KEYS // _BURSTS
        begins = (np.arange(_BURSTS) * (SPACE // _BURSTS))[random.integers(0, _BURSTS, wanted)]
        found = np.unique(begins + random.integers(0, burst, wanted))
    else:
        found = np.unique(random.integers(0, SPACE, wanted))
    return random.permutation(found)[:count]


def file_bounds(layout: str, count: int) -> tuple[IntArray, IntArray]:
    """The minimum and the maximum of each file, files in random order."""
    random = np.random.default_rng(2)
    if layout == CLUSTERED:
        ends = np.linspace(0, SPACE, count + 1).astype(np.int64)
        order = random.permutation(count)
        return ends[:-1][order], np.maximum(ends[1:] - 1, ends[:-1])[order]
    margin = SPACE // 1000
    return random.integers(0, margin, count), SPACE - 1 - random.integers(0, margin, count)


def arrow_values(type_: str, numbers: IntArray) -> pa.Array:
    """Integers of the space as values of a type."""
    match type_:
        case "bigint":
            return pa.array(numbers)
        case "string":
            return _texts(_PREFIX, numbers)
        case "decimal(38,0)":
            words = np.stack([numbers << _DECIMAL_SHIFT, numbers >> (64 - _DECIMAL_SHIFT)], axis=1)
            buffer = pa.py_buffer(np.ascontiguousarray(words))
            return pa.Array.from_buffers(pa.decimal128(38, 0), len(numbers), [None, buffer])
        case other:
            msg = f"Cannot make values of {other!r}: expected one of {', '.join(_SPARK_TYPES)}"
            raise ValueError(msg)


def log_column(type_: str) -> LogColumn:
    """The key column as described by a Delta log."""
    value_type = ValueType.parse(type_)
    stored = StoredBounds(value_type, 32, False, False)  # noqa: FBT003 - neither widened from float nor a source
    return LogColumn(COLUMN, (COLUMN,), value_type, _SPARK_TYPES[type_], stored, is_partition=False)


def listed_files(type_: str, layout: str, count: int) -> pa.Table:
    """The table of `count` files that a listing of the Delta log returns, in batches of Spark's size."""
    lows, highs = file_bounds(layout, count)
    names = np.random.default_rng(3).permutation(count)
    table = pa.table(
        {
            "path": _texts(b"sold_at=2024-01-01/part-00000-5d0f8a1e-8a0c-4f6e-9d7b-", names),
            "vector": pa.nulls(count, pa.string()),
            "deleted": pa.nulls(count, pa.int64()),
            "size": np.full(count, _FILE_BYTES, np.int64),
            "modified": np.zeros(count, np.int64),
            "rows": np.full(count, _ROWS, np.int64),
            "wide": np.zeros(count, bool),
            "broken": np.zeros(count, bool),
            "l0": arrow_values(type_, lows),
            "h0": arrow_values(type_, highs),
            "n0": np.zeros(count, np.int64),
        }
    )
    return pa.Table.from_batches(table.to_batches(max_chunksize=_SPARK_BATCH), table.schema)


def batches(array: pa.Array) -> Sequence[pa.Array]:
    """The slices of an array in which Spark hands it to Python workers."""
    return [array.slice(begin, _SPARK_BATCH) for begin in range(0, len(array), _SPARK_BATCH)]


def _texts(prefix: bytes, numbers: IntArray) -> pa.Array:
    """Strings of the prefix and the number in hexadecimal digits, which sort like the numbers."""
    shifts = np.arange(_DIGITS - 1, -1, -1, dtype=np.int64) * 4
    digits: npt.NDArray[np.uint8] = np.frombuffer(b"0123456789abcdef", np.uint8)
    rows = np.empty((len(numbers), len(prefix) + _DIGITS), np.uint8)
    rows[:, : len(prefix)] = np.frombuffer(prefix, np.uint8)
    for at, shift in enumerate(shifts.tolist()):
        rows[:, len(prefix) + at] = digits[(numbers >> shift) & 15]
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * rows.shape[1]
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(rows.reshape(-1)))
