"""What memory a scan by pyarrow takes in a Python worker, and what a limit on workers leaves for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from connectors.arrow_parts import whole_footer
from connectors.s3_access import bucket_of
from connectors.stored_files import StoredFile
from pruning.blocks import size
from pruning.reasons import Reason, ReasonCode
from pruning.row_set import RowSet

WORKERS = "the Python workers"
# Decoded keys that are kept, batches, and codes of one: see `arrow_reader.py`.
_ANY_ROW_GROUP = 256 << 20
# The limit is one on addresses, of which Arrow's allocator reserves so many at a time.
_RESERVED = 1 << 30
# Stacks of the threads that ask a store.
_THREADS = 512 << 20
# Whether a row passes, for each test and all together, and its place among those that do.
_PER_ROW = 16
# As they are sent, as they are held, and as the table of one test.
_COPIES_OF_KEYS = 3


@dataclass(frozen=True, slots=True)
class Workers:
    """What Python workers say of themselves: why they cannot scan, in no words where they can.

    `room` are the bytes that each may still take, None without a limit.
    """

    problem: str = ""
    room: int | None = None


def most_bytes(files: Sequence[tuple[StoredFile, Sequence[int]]], tests: Iterable[RowSet]) -> int:
    """What a task takes at most: of each file these row groups are read, with the columns that it has a place for.

    The chunks of the largest row group are counted as they are stored and as they become: both are held for a while.
    """
    largest = max((_group_bytes(file, groups) for file, groups in files), default=0)
    threads = _THREADS if any(bucket_of(file.uri) for file, _ in files) else 0
    keys = _COPIES_OF_KEYS * sum(each.nbytes for each in tests)
    return _RESERVED + _ANY_ROW_GROUP + largest + keys + threads


def _group_bytes(file: StoredFile, groups: Sequence[int]) -> int:
    metadata = pq.read_metadata(pa.BufferReader(whole_footer(file.footer.data)))
    leaves = [each.leaf for each in file.places if each is not None and each.leaf is not None]
    found = 0
    for at in groups:
        group = metadata.row_group(at)
        chunks = [group.column(leaf) for leaf in leaves]
        stored = sum(int(each.total_compressed_size) + int(each.total_uncompressed_size) for each in chunks)
        found = max(found, stored + _PER_ROW * int(group.num_rows))
    return found


def too_large(needed: int, workers: Workers) -> Reason | None:
    """Why a scan is Spark's that may take so many bytes of a worker; None where they are there."""
    if workers.room is None or needed <= workers.room:
        return None
    detail = f"a task may take {size(needed)}, and spark.executor.pyspark.memory leaves {size(workers.room)}"
    return Reason(ReasonCode.NOT_READ_BY_ARROW, WORKERS, detail)
