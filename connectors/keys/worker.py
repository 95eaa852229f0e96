"""Tasks of Spark's Python workers that collect keys: the module imports nothing but the core and Arrow."""

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

# A message is cut into pieces that fit in a row of a shuffle and in a message of Spark Connect.
PIECES_DDL = "number int, piece int, pieces int, data binary"
_SCHEMA = pa.schema([("number", pa.int32()), ("piece", pa.int32()), ("pieces", pa.int32()), ("data", pa.binary())])


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """The columns of a job's rows that are keys together, by their places, and their types; `name` says what of."""

    name: str
    places: tuple[int, ...]
    types: tuple[ValueType, ...]

    def add_to(self, builder: KeyBuilder, batch: pa.RecordBatch) -> None:
        """Adds the keys of a batch."""
        builder.add([coded(batch.column(at), type_) for at, type_ in zip(self.places, self.types, strict=True)])


def partial_task(wanted: Sequence[KeyColumns], limits: KeyLimits, piece_bytes: int) -> Task:
    """Gives each of the wanted keys of one partition, also where it has no rows: a message for each.

    Messages are numbered through the partitions. All keys together are held within the limits; a piece of a message
    has `piece_bytes` at most.
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
            yield from pieces(partition * len(builders) + at, builder.to_bytes(), piece_bytes)

    return run


def merge_task(wanted: Sequence[KeyColumns], limits: KeyLimits, piece_bytes: int) -> Task:
    """Gives each of the wanted keys of all partitions; there is one such task, which runs even if it gets nothing."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        builders = _builders(wanted, limits)
        for number, message in messages(batches):
            builders[number % len(builders)].merge(KeyBuilder.from_bytes(message))
        for at, builder in enumerate(builders):
            yield from pieces(at, builder.to_bytes(), piece_bytes)

    return run


def _builders(wanted: Sequence[KeyColumns], limits: KeyLimits) -> list[KeyBuilder]:
    return [KeyBuilder(each.types, limits.shared(len(wanted))) for each in wanted]


def pieces(number: int, message: bytes, size: int) -> Iterator[pa.RecordBatch]:
    """A message as rows of `PIECES_DDL`, a batch for each of `size` bytes; no other message of a job has its number."""
    count = max(1, -(-len(message) // size))
    for piece in range(count):
        data = message[piece * size : (piece + 1) * size]
        columns = [[number], [piece], [count], [data]]
        yield pa.RecordBatch.from_arrays(
            [pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA
        )


def messages(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
    """The numbers and messages whose pieces come in any order.

    `IncompleteBuildError` where a piece is missing or comes twice.
    """
    waiting: dict[int, dict[int, pa.Buffer]] = {}
    for batch in batches:
        numbers = (batch.column(name).to_pylist() for name in ("number", "piece", "pieces"))
        # As they lie in the batch: a message may be as large as all keys that are allowed.
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
