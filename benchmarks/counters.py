"""Bytes read as Spark counts them, and as the operating system does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from connectors import status_store


@dataclass(frozen=True, slots=True)
class Bytes:
    """What every task of a stretch of work read: `counted` by Spark, `seen` by the operating system.

    `seen` is None where the system keeps no such account.
    """

    counted: int
    seen: int | None


class Stretch:
    """Counts from its construction to each call of `bytes()`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._after = status_store.last_execution(spark)
        self._before = _bytes_read()

    def bytes(self) -> Bytes:
        """What was read so far, by all executions and all their tasks."""
        seen = _bytes_read()
        executions = status_store.finished_executions(self._spark, self._after)
        # A stage is listed under an execution and under the one that this is a part of.
        stages = {int(stage) for each in executions for stage in _ids(each.stages())}
        inputs = [status_store.stage_input(self._spark, stage) for stage in stages]
        # What never ran read nothing.
        counted = sum(each[0] for each in inputs if each is not None)
        if seen is None or self._before is None:
            return Bytes(counted, None)
        return Bytes(counted, sum(size - self._before.get(process, 0) for process, size in seen.items()))


def _ids(scala_set: object) -> Iterator[int]:
    iterator = scala_set.iterator()  # type: ignore[attr-defined]
    while iterator.hasNext():
        yield iterator.next()


def _bytes_read() -> dict[int, int] | None:
    """Bytes by process: Spark's Java and the Python workers below it."""
    java = SparkContext._gateway.proc.pid  # type: ignore[union-attr]  # noqa: SLF001
    if not Path("/proc/self/io").exists():
        return None
    parents = dict(_parents())
    return {process: size for process in parents if _is_below(process, java, parents) and (size := _rchar(process))}


def _parents() -> Iterator[tuple[int, int]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                # The program's name, in parentheses, may hold anything.
                fields = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            except OSError:
                continue
            yield int(folder.name), int(fields[1])


def _is_below(process: int, ancestor: int, parents: dict[int, int]) -> bool:
    while process in parents and process != ancestor:
        process = parents[process]
    return process == ancestor


def _rchar(process: int) -> int:
    try:
        first = Path("/proc", str(process), "io").read_text(encoding="utf-8").splitlines()[0]
    except OSError:
        return 0
    return int(first.partition(":")[2])
