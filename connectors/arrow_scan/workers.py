"""Python workers of a session: a check that they can run an Arrow scan, and the memory that it takes there.

A scan that fails while the query runs cannot fall back to Spark's reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from connectors.arrow_scan.partition import whole_footer
from connectors.arrow_scan.s3 import bucket_of
from connectors.jobs import runner as builds
from connectors.parquet.row_groups import FileLayout
from connectors.spark.session_state import state_of
from pruning.keys.membership import MembershipTest
from pruning.limits import LIMITS, Limits
from pruning.reasons import Reason, ReasonCode, size

# A function of batches, as Spark maps them.
Probe: TypeAlias = "Callable[[Iterator[Any]], Iterator[Any]]"

_SCHEMA = "version string, room bigint"


@dataclass(frozen=True, slots=True)
class Workers:
    """The answer of Python workers: the problem that prevents a scan, empty if there is none.

    `room` are the bytes that each worker may still allocate, None without a limit.
    """

    problem: str = ""
    room: int | None = None


class KnownWorkers:
    """The answer of a session's workers; None until one has arrived."""

    answer: Workers | None = None


def workers_of(spark: SparkSession, timeout: float, limits: Limits = LIMITS) -> Workers | Reason:
    """The answer of the workers; a `Reason` if they lack this package, or have another pyarrow than the driver.

    It takes one small job of at most `timeout` seconds, once in a session, or every ten minutes while it fails.
    """
    state = state_of(spark)
    known = state.slot(KnownWorkers)
    if known.answer is None:
        if (refusal := state.refusals.of(WORKERS)) is not None:
            return refusal
        found = builds.run(spark, lambda: _asked(spark), timeout=timeout, description=WORKERS, limits=limits)
        if isinstance(found, Reason):
            is_late = found.code is ReasonCode.BUILD_TIMED_OUT
            detail = f"no answer in {timeout:g} seconds" if is_late else found.detail
            return state.refusals.add(WORKERS, _refusal(detail))
        known.answer = found
    return _refusal(known.answer.problem) if known.answer.problem else known.answer


def refused_before(spark: SparkSession) -> Reason | None:
    """The reason why workers cannot scan, if it is already known."""
    state = state_of(spark)
    answer = state.slot(KnownWorkers).answer
    if answer is None:
        return state.refusals.of(WORKERS)
    return _refusal(answer.problem) if answer.problem else None


def _refusal(detail: str) -> Reason:
    return Reason(ReasonCode.NOT_READ_BY_ARROW, WORKERS, detail)


def _asked(spark: SparkSession) -> Workers:
    count = spark.sparkContext.defaultParallelism
    return summed_up([tuple(row) for row in spark.range(0, count, 1, count).mapInArrow(probe(), _SCHEMA).collect()])


def summed_up(answers: list[tuple[str, int | None]]) -> Workers:
    """The summary of all workers from the answer of each: the version of its pyarrow, or its problem, and its room."""
    own = version()
    others = sorted({answer for answer, _ in answers} - {own})
    problem = f"they have {'; '.join(others)}, and the driver has {own}" if others else ""
    return Workers(problem, min((room for _, room in answers if room is not None), default=None))


def version() -> str:
    """The version of pyarrow on the driver, marked if it was built without S3, in the form of a worker's answer."""
    return str(next(probe()(iter([None]))).column(0)[0])


def probe() -> Probe:
    """The function for each worker: nested, so that it is pickled by value and not by a name that they may lack."""

    def answers(batches: Iterator[Any]) -> Iterator[Any]:
        import importlib.util  # noqa: PLC0415 - nothing of this module is there
        from pathlib import Path  # noqa: PLC0415

        import pyarrow as pa  # noqa: PLC0415

        try:
            import connectors.arrow_scan.reader  # noqa: PLC0415, F401 - what a scan imports there

            has_s3 = importlib.util.find_spec("pyarrow._s3fs") is not None
            answer = f"pyarrow {pa.__version__}" + ("" if has_s3 else " without S3")
        except Exception as error:  # noqa: BLE001 - whatever they have in its place
            answer = f"no scanprune ({error})"
        # Allocated first, so that Arrow's initial reservation is included in the memory used.
        answers = pa.array([answer])
        room = None
        try:
            import resource  # noqa: PLC0415 - not everywhere

            limit = resource.getrlimit(resource.RLIMIT_AS)[0]
            if limit != resource.RLIM_INFINITY:
                used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
                room = max(0, limit - used)
        except (ImportError, OSError):
            # A system that does not count addresses does not limit them either.
            pass
        for _ in batches:
            yield pa.record_batch([answers, pa.array([room], pa.int64())], ["version", "room"])

    return answers


WORKERS = "the Python workers"
# Batches on their way, the values tested at once, and codes of them: see `reader.py`.
_BATCHES = 12
# The limit counts addresses, and Arrow's allocator reserves so many at a time.
_RESERVED = 1 << 30
# Addresses of a thread that sends requests to a store.
_STACK = 32 << 20
# Bytes of a row: its outcome for each test and all together, and its place among those that pass.
_PER_ROW = 16
# Copies of keys: as sent, as stored in the worker, and as the hash table of one test.
_COPIES_OF_KEYS = 3


def most_bytes(
    files: Sequence[tuple[FileLayout, Sequence[int]]], tests: Iterable[MembershipTest], limits: Limits = LIMITS
) -> int:
    """The most bytes of memory that a task needs to read these row groups of each file.

    The chunks of the largest row group count both compressed and decoded, since both are in memory for a while.
    """
    largest = max((_group_bytes(file, groups) for file, groups in files), default=0)
    any_row_group = limits.kept_key_bytes + _BATCHES * limits.batch_bytes
    threads = 2 * limits.store_requests * _STACK if any(bucket_of(file.uri) for file, _ in files) else 0
    keys = _COPIES_OF_KEYS * sum(each.nbytes for each in tests)
    return _RESERVED + any_row_group + largest + keys + threads


def _group_bytes(file: FileLayout, groups: Sequence[int]) -> int:
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
    """The reason not to use pyarrow for a scan that may need `needed` bytes of a worker; None if they are available."""
    if workers.room is None or needed <= workers.room:
        return None
    detail = f"a task may take {size(needed)}, and spark.executor.pyspark.memory leaves {size(workers.room)}"
    return Reason(ReasonCode.NOT_READ_BY_ARROW, WORKERS, detail)
