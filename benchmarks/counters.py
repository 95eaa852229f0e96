"""Bytes read, as counted by Spark and by the operating system."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark import SparkContext
from pyspark.sql import SparkSession

from connectors.measure import status_store
from sample_data.process_tree import below, bytes_read, is_accounted


@dataclass(frozen=True, slots=True)
class Bytes:
    """Bytes read by all tasks of a stretch of work: `counted` by Spark, `seen` by the operating system.

    `seen` is None on systems without `/proc/<process>/io`.
    """

    counted: int
    seen: int | None


class Stretch:
    """A stretch of work; it counts bytes from its construction to each call of `bytes()`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._after = status_store.last_execution(spark)
        self._before = _bytes_read()

    def bytes(self) -> Bytes:
        """Bytes read so far, by all executions and all their tasks."""
        seen = _bytes_read()
        executions = status_store.finished_executions(self._spark, self._after)
        inputs = [status_store.stage_input(self._spark, stage) for stage in status_store.stages_of(executions)]
        # A stage that never ran has no input metrics.
        counted = sum(each[0] for each in inputs if each is not None)
        if seen is None or self._before is None:
            return Bytes(counted, None)
        return Bytes(counted, sum(size - self._before.get(process, 0) for process, size in seen.items()))


def _bytes_read() -> dict[int, int] | None:
    """Bytes read by process: Spark's Java process and the Python workers below it."""
    java = SparkContext._gateway.proc.pid  # type: ignore[union-attr]  # noqa: SLF001
    if not is_accounted():
        return None
    return {process: size for process in below(java) if (size := bytes_read(process))}
