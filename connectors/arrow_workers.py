"""Whether Spark's Python workers can run an Arrow scan: a scan that fails while the query runs cannot stand aside."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from connectors.build_errors import one_line
from connectors.session_cache import cache_of
from pruning.reasons import Reason, ReasonCode


def worker_problem(spark: SparkSession) -> Reason | None:
    """Why not: None where workers import this package, and the pyarrow by which the driver judged the files.

    One small job, once in a session.
    """
    cache = cache_of(spark)
    if cache.workers is None:
        cache.workers = _problem(spark)
    return Reason(ReasonCode.NOT_READ_BY_ARROW, "the Python workers", cache.workers) if cache.workers else None


def _problem(spark: SparkSession) -> str:
    count = spark.sparkContext.defaultParallelism
    try:
        found = spark.range(0, count, 1, count).mapInArrow(versions, "version string").collect()
    except Exception as error:  # noqa: BLE001 - whatever it is, Spark's own reader does without workers
        return one_line(error)
    others = sorted({row.version for row in found} - {pa.__version__})
    return f"they have pyarrow {', '.join(others)}, and the driver {pa.__version__}" if others else ""


def versions(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker: the version of pyarrow."""
    import connectors.arrow_reader  # noqa: PLC0415, F401 - what a scan imports there

    for batch in batches:
        yield pa.record_batch([pa.array([pa.__version__] * len(batch))], ["version"])
