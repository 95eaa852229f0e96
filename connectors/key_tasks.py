"""What Spark's Python workers run to collect keys: imports nothing but the core and Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa

from connectors.arrow_values import coded
from pruning.key_builder import IncompleteBuildError, KeyBuilder
from pruning.key_sets import KeyLimits
from pruning.value_type import ValueType

Task: TypeAlias = "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]"

# A message is cut into pieces that fit in a row of a shuffle and in a message of Spark Connect.
PIECES_DDL = "partition int, piece int, pieces int, data binary"
_PIECE_BYTES = 2 << 20
_SCHEMA = pa.schema([("partition", pa.int32()), ("piece", pa.int32()), ("pieces", pa.int32()), ("data", pa.binary())])


def partial_task(types: Sequence[ValueType], limits: KeyLimits) -> Task:
    """Gives the keys of one partition, also where it has no rows."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415 - there is one only in a worker

        context = TaskContext.get()
        assert context is not None  # noqa: S101
        builder = KeyBuilder(types, limits)
        for batch in batches:
            builder.add([coded(column, type_) for column, type_ in zip(batch.columns, types, strict=True)])
        builder.close(context.partitionId())
        yield from pieces(context.partitionId(), builder.to_bytes())

    return run


def merge_task(types: Sequence[ValueType], limits: KeyLimits) -> Task:
    """Gives the keys of all partitions; there is one such task, which runs even if it gets nothing."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        merged = KeyBuilder(types, limits)
        for message in messages(batches):
            merged.merge(KeyBuilder.from_bytes(message))
        yield from pieces(0, merged.to_bytes())

    return run


def pieces(partition: int, message: bytes) -> Iterator[pa.RecordBatch]:
    """A message as rows of `PIECES_DDL`, a batch for each."""
    count = max(1, -(-len(message) // _PIECE_BYTES))
    for piece in range(count):
        data = message[piece * _PIECE_BYTES : (piece + 1) * _PIECE_BYTES]
        columns = [[partition], [piece], [count], [data]]
        yield pa.RecordBatch.from_arrays(
            [pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA
        )


def messages(batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    """The messages whose pieces come in any order; `IncompleteBuildError` where a piece is missing or comes twice."""
    waiting: dict[int, dict[int, pa.Buffer]] = {}
    for batch in batches:
        numbers = (batch.column(name).to_pylist() for name in ("partition", "piece", "pieces"))
        # As they lie in the batch: a message may be as large as all keys that are allowed.
        for partition, piece, count, data in zip(*numbers, batch.column("data"), strict=True):
            found = waiting.setdefault(partition, {})
            if piece in found:
                msg = f"Cannot put keys together: piece {piece} of partition {partition} came twice"
                raise IncompleteBuildError(msg)
            found[piece] = data.as_buffer()
            if len(found) == count:
                del waiting[partition]
                yield b"".join(found[each] for each in range(count))
    if waiting:
        msg = f"Cannot put keys together: pieces of {len(waiting)} partitions are missing"
        raise IncompleteBuildError(msg)
