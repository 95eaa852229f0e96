"""Whether Spark's Python workers can run an Arrow scan: a scan that fails while the query runs cannot stand aside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from pyspark.sql import SparkSession

from connectors import builds
from connectors.arrow_room import WORKERS, Workers
from connectors.session_cache import cache_of
from pruning.reasons import Reason, ReasonCode

# A function of batches, as Spark maps them.
Probe: TypeAlias = "Callable[[Iterator[Any]], Iterator[Any]]"

_SCHEMA = "version string, room bigint"


def workers_of(spark: SparkSession, timeout: float) -> Workers | Reason:
    """What workers say; a `Reason` where they lack this package, or the pyarrow by which the driver judged the files.

    One small job of at most `timeout` seconds; once in a session, or in ten minutes while none comes to a good end.
    """
    cache = cache_of(spark)
    if cache.workers is None:
        if (refusal := cache.refusals.of(WORKERS)) is not None:
            return refusal
        found = builds.run(spark, lambda: _asked(spark), timeout=timeout, description=WORKERS)
        if isinstance(found, Reason):
            is_late = found.code is ReasonCode.BUILD_TIMED_OUT
            detail = f"no answer in {timeout:g} seconds" if is_late else found.detail
            return cache.refusals.add(WORKERS, _refusal(detail))
        cache.workers = found
    return _refusal(cache.workers.problem) if cache.workers.problem else cache.workers


def refused_before(spark: SparkSession) -> Reason | None:
    """Why workers cannot scan, where that is known already."""
    cache = cache_of(spark)
    if cache.workers is None:
        return cache.refusals.of(WORKERS)
    return _refusal(cache.workers.problem) if cache.workers.problem else None


def _refusal(detail: str) -> Reason:
    return Reason(ReasonCode.NOT_READ_BY_ARROW, WORKERS, detail)


def _asked(spark: SparkSession) -> Workers:
    count = spark.sparkContext.defaultParallelism
    return summed_up([tuple(row) for row in spark.range(0, count, 1, count).mapInArrow(probe(), _SCHEMA).collect()])


def summed_up(answers: list[tuple[str, int | None]]) -> Workers:
    """All workers by what each of them says: the version of its pyarrow, or its trouble, and its room."""
    own = version()
    others = sorted({answer for answer, _ in answers} - {own})
    problem = f"they have {'; '.join(others)}, and the driver has {own}" if others else ""
    return Workers(problem, min((room for _, room in answers if room is not None), default=None))


def version() -> str:
    """That of pyarrow, and whether it was built without S3; a worker says the same of itself."""
    return str(next(probe()(iter([None]))).column(0)[0])


def probe() -> Probe:
    """What each worker runs: a function inside of one goes to workers as it is, not by a name that they may lack."""

    def answers(batches: Iterator[Any]) -> Iterator[Any]:
        import importlib.util  # noqa: PLC0415 - nothing of this module is there
        from pathlib import Path  # noqa: PLC0415

        import pyarrow as pa  # noqa: PLC0415

        try:
            import connectors.arrow_reader  # noqa: PLC0415, F401 - what a scan imports there

            has_s3 = importlib.util.find_spec("pyarrow._s3fs") is not None
            answer = f"pyarrow {pa.__version__}" + ("" if has_s3 else " without S3")
        except Exception as error:  # noqa: BLE001 - whatever they have in its place
            answer = f"no scanprune ({error})"
        # Arrow reserves what it takes for a start.
        answers = pa.array([answer])
        room = None
        try:
            import resource  # noqa: PLC0415 - not everywhere

            limit = resource.getrlimit(resource.RLIMIT_AS)[0]
            if limit != resource.RLIM_INFINITY:
                used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
                room = max(0, limit - used)
        except (ImportError, OSError):
            # Where addresses are not counted they are not limited either.
            pass
        for _ in batches:
            yield pa.record_batch([answers, pa.array([room], pa.int64())], ["version", "room"])

    return answers
