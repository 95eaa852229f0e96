"""The bytes that scans of one execution read, where they are told apart from those of others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from connectors.status_store import jvm_context, stage_input, stages_of

_VECTORED_CONF = "parquet.hadoop.vectored.io.enabled"
_VECTORED_NOTE = (
    "Spark's counter misses vectored reads: set spark.hadoop.parquet.hadoop.vectored.io.enabled=false to count bytes"
)
_SHARED_NOTE = "the scan shares its tasks with others, whose bytes are not told apart"


@dataclass(frozen=True, slots=True)
class FileScan:
    """One file scan of an execution; of no files where its tasks never ran."""

    files: int
    rows: int
    vectorised: bool
    is_own: bool


def counts_bytes(spark: SparkSession) -> bool:
    """True where Spark's counter of input bytes misses none."""
    return bool(jvm_context(spark).hadoopConfiguration().get(_VECTORED_CONF, "true") == "false")


def bytes_scanned(spark: SparkSession, execution: Any, scans: Sequence[FileScan]) -> tuple[int | None, str]:
    """Input bytes of the stages that took in just the own scans' rows; a stage of several scans takes in more."""
    if not counts_bytes(spark):
        return None, _VECTORED_NOTE
    inputs = [stage_input(spark, stage) for stage in stages_of([execution])]
    read = [each for each in inputs if each is not None and each[0] > 0]
    size = _own_bytes(read, [scan for scan in scans if scan.files], is_whole=None not in inputs)
    return size, "" if size is not None else _SHARED_NOTE


def _own_bytes(read: Sequence[tuple[int, int]], scans: Sequence[FileScan], *, is_whole: bool) -> int | None:
    """The bytes of the own scans among stages of so many bytes and records; None where they are not told apart.

    A scan that found no row still read footers, so rows alone do not tell that a stage is of one scan: where there
    are others, each scan must have a stage of its own rows.

    >>> own, other = FileScan(1, 10, vectorised=True, is_own=True), FileScan(1, 0, vectorised=True, is_own=False)
    >>> _own_bytes([(70, 4), (30, 6)], [own], is_whole=True)
    100
    >>> _own_bytes([(70, 10), (9, 0)], [own, other], is_whole=True)
    70
    >>> print(_own_bytes([(79, 10)], [own, other], is_whole=True))
    None
    """
    own = Counter(scan.rows for scan in scans if scan.is_own)
    # Of a stage that is not known, it is certain only by the rows that it was none of the scan's.
    if not is_whole and 0 in own:
        return None
    records = Counter(count for _, count in read)
    if all(scan.is_own for scan in scans) and sum(count for _, count in read) == sum(own.elements()):
        return sum(size for size, _ in read)
    every = Counter(scan.rows for scan in scans)
    if not every <= records or any(records[rows] != count for rows, count in own.items()):
        return None
    return sum(size for size, rows in read if rows in own)
