"""Whether Spark's Python workers can run an Arrow scan: a scan that fails while the query runs cannot stand aside."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from connectors import builds
from connectors.session_cache import cache_of
from pruning.reasons import Reason, ReasonCode

_SUBJECT = "the Python workers"


def worker_problem(spark: SparkSession, timeout: float) -> Reason | None:
    """Why not: None where workers import this package, and the pyarrow by which the driver judged the files.

    One small job of at most `timeout` seconds; once in a session, unless it comes to no end.
    """
    cache = cache_of(spark)
    if cache.workers is None:
        found = builds.run(spark, lambda: _other_versions(spark), timeout=timeout, description=_SUBJECT)
        if isinstance(found, Reason):
            # The next time it may go better.
            is_late = found.code is ReasonCode.BUILD_TIMED_OUT
            return _refusal(f"no answer in {timeout:g} seconds" if is_late else found.detail)
        cache.workers = found
    return _refusal(cache.workers) if cache.workers else None


def _refusal(detail: str) -> Reason:
    return Reason(ReasonCode.NOT_READ_BY_ARROW, _SUBJECT, detail)


def _other_versions(spark: SparkSession) -> str:
    count = spark.sparkContext.defaultParallelism
    found, own = spark.range(0, count, 1, count).mapInArrow(versions, "version string").collect(), _version()
    others = sorted({row.version for row in found} - {own})
    return f"they have pyarrow {', '.join(others)}, and the driver {own}" if others else ""


def versions(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker: the version of pyarrow."""
    import connectors.arrow_reader  # noqa: PLC0415, F401 - what a scan imports there

    for batch in batches:
        yield pa.record_batch([pa.array([_version()] * len(batch))], ["version"])


def _version() -> str:
    """That of pyarrow, and whether it was built without S3."""
    has_s3 = importlib.util.find_spec("pyarrow._s3fs") is not None
    return str(pa.__version__) if has_s3 else f"{pa.__version__} without S3"
