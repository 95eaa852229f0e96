"""Tasks of Spark's Python workers that collect keys; the module imports only the core and Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from connectors.arrow_values import coded
from pruning.keys.builder import IncompleteBuildError, KeyBuilder
from pruning.keys.key_set import KeyLimits
from pruning.values.types import ValueType

Task: TypeAlias = "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]"

PIECES_DDL = "number int, piece int, pieces int, data binary"
_SCHEMA = pa.schema([("number", pa.int32()), ("piece", pa.int32()), ("pieces", pa.int32()), ("data", pa.binary())])
# Bytes of a piece of a message, which has to fit into a row of a shuffle and a message of Spark Connect.
_PIECE_BYTES = 2 << 20


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """The places and types of the columns of a job's rows that form one key; `name` describes the probe columns."""

    name: str
    places: tuple[int, ...]
    types: tuple[ValueType, ...]

    def add_to(self, builder: KeyBuilder, batch: pa.RecordBatch) -> None:
        """Adds the keys of a batch."""
        builder.add([coded(batch.column(at), type_) for at, type_ in zip(self.places, self.types, strict=True)])


def partial_task(wanted: Sequence[KeyColumns], limits: KeyLimits) -> Task:
    """The task that collects the wanted keys of one partition, even an empty one, and gives a message for each.

    Messages are numbered across partitions. The limits apply to all keys together.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415 - there is one only in a worker

        context = TaskContext.get()
        assert context is not None  # noqa: S101
        builders = _builders(wanted, limits)
        for batch in batches:
            for each, builder in zip(wanted, builders, strict=True):
                each.add_to(builder, batch)
        partition = context.partitionId()
        for at, builder in enumerate(builders):
            builder.close(partition)
            yield from pieces(partition * len(builders) + at, builder.to_bytes())

    return run


def merge_task(wanted: Sequence[KeyColumns], limits: KeyLimits) -> Task:
    """The single task that merges the wanted keys of all partitions; it runs even without input."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        builders = _builders(wanted, limits)
        for number, message in messages(batches):
            builders[number % len(builders)].merge(KeyBuilder.from_bytes(message))
        for at, builder in enumerate(builders):
            yield from pieces(at, builder.to_bytes())

    return run


def _builders(wanted: Sequence[KeyColumns], limits: KeyLimits) -> list[KeyBuilder]:
    return [KeyBuilder(each.types, limits.shared(len(wanted))) for each in wanted]


def pieces(number: int, message: bytes, size: int = _PIECE_BYTES) -> Iterator[pa.RecordBatch]:
    """A message as rows of `PIECES_DDL`, one batch for each `size` bytes; `number` is unique within a job."""
    count = max(1, -(-len(message) // size))
    for piece in range(count):
        data = message[piece * size : (piece + 1) * size]
        columns = [[number], [piece], [count], [data]]
        yield pa.RecordBatch.from_arrays(
            [pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA
        )


def messages(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
    """The numbers and messages of pieces in any order; `IncompleteBuildError` if a piece is missing or comes twice."""
    waiting: dict[int, dict[int, pa.Buffer]] = {}
    for batch in batches:
        numbers = (batch.column(name).to_pylist() for name in ("number", "piece", "pieces"))
        # Without a copy: a message may be as large as the limit of all keys.
        for number, piece, count, data in zip(*numbers, batch.column("data"), strict=True):
            found = waiting.setdefault(number, {})
            if piece in found:
                msg = f"Cannot put keys together: piece {piece} of message {number} came twice"
                raise IncompleteBuildError(msg)
            found[piece] = data.as_buffer()
            if len(found) == count:
                del waiting[number]
                yield number, b"".join(found[each] for each in range(count))
    if waiting:
        msg = f"Cannot put keys together: pieces of {len(waiting)} messages are missing"
        raise IncompleteBuildError(msg)
