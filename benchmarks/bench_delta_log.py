"""Seconds of the skipping decision for a Delta table, for logs of three sizes, written by hand, without data files.

Cold: Delta has not loaded the table before. Warm: the session has already decided for this version. A cold and a warm
decision both open the table, read the statistics of two columns, and prune by keys that hit one file in a hundred.
"""

from __future__ import annotations

import ctypes
import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from connectors.columns import resolve
from connectors.delta.table import open_delta
from connectors.spark.session import spark_session
from connectors.spark.session_state import SessionState
from pruning.scan.skipping import prune_containers
from pruning.values.domain import Domain
from pruning.values.types import ValueType
from sample_data.process_tree import cpu_seconds, peak_bytes, reset_peaks, resident_bytes

SIZES = (10_000, 100_000, 1_000_000)
_ROWS = 10_000
_CHECKPOINT = 10
_WRITTEN = 50_000
_FILES_PER_COMMIT = 10
_WARM_RUNS = 5
_DAY = 86_400_000
_COLUMNS = {
    "id": "long",
    "sold_at": "timestamp",
    "customer": "string",
    "price": "decimal(12,2)",
    **{f"measure_{index}": "double" for index in range(8)},
}
_MAP = pa.map_(pa.string(), pa.string())
_ADD = pa.struct(
    {
        "path": pa.string(),
        "partitionValues": _MAP,
        "size": pa.int64(),
        "modificationTime": pa.int64(),
        "dataChange": pa.bool_(),
        "stats": pa.string(),
    }.items()
)
_PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}


def write_log(path: Path, files: int) -> None:
    """Writes a checkpoint with nearly all files, as in large tables, and one commit after it."""
    log = path / "_delta_log"
    log.mkdir(parents=True)
    checkpointed = files - _FILES_PER_COMMIT
    schema = pa.schema({"add": _ADD, "protocol": _protocol_type(), "metaData": _metadata_type()}.items())
    with pq.ParquetWriter(log / f"{_CHECKPOINT:020}.checkpoint.parquet", schema) as checkpoint:
        head = {"add": [None, None], "protocol": [_PROTOCOL, None], "metaData": [None, _metadata_row()]}
        checkpoint.write_table(pa.table(head, schema=schema))
        # In batches: a million actions as Python objects would take gigabytes.
        for begin in range(0, checkpointed, _WRITTEN):
            adds = [{**_add(at), "partitionValues": []} for at in range(begin, min(begin + _WRITTEN, checkpointed))]
            none = [None] * len(adds)
            checkpoint.write_table(pa.table({"add": adds, "protocol": none, "metaData": none}, schema=schema))
    committed = ({"add": _add(index)} for index in range(checkpointed, files))
    actions = [{"commitInfo": {"timestamp": 0, "operation": "WRITE"}}, *committed]
    (log / f"{_CHECKPOINT:020}.json").write_text(json.dumps(actions[0]) + "\n")
    (log / f"{_CHECKPOINT + 1:020}.json").write_text("".join(json.dumps(each) + "\n" for each in actions))
    (log / "_last_checkpoint").write_text(json.dumps({"version": _CHECKPOINT, "size": checkpointed + 2}))


def measure(spark: SparkSession, path: Path, files: int) -> dict[str, Any]:
    """Seconds of the decision for one table, cold and warm (median), and the number of files that it keeps.

    `python_peak_bytes` and `python_bytes` are the memory that the decision adds to this process, at its peak and
    afterwards; `heap_bytes` is what it adds to Java's heap. `stock_seconds` is the time that Delta takes to list the
    files for a predicate once it has loaded the log.
    """
    write_log(path, files)
    cache, process = SessionState(), os.getpid()
    # Memory that was used to write the log is not part of the decision.
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)
    heap, memory = heap_bytes(spark), resident_bytes(process)
    reset_peaks(process)
    began = cpu_seconds(process)
    cold, kept = _timed_decision(spark, path, cache)
    spent = cpu_seconds(process) - began
    found = {"files": files, "files_kept": kept, "cold_seconds": cold, "cold_cpu_seconds": spent}
    found |= {"python_peak_bytes": peak_bytes(process) - memory, "python_bytes": resident_bytes(process) - memory}
    found["heap_bytes"] = heap_bytes(spark) - heap
    warm = [_timed_decision(spark, path, cache)[0] for _ in range(_WARM_RUNS)]
    began = time.perf_counter()
    listed = len(spark.read.format("delta").load(str(path)).where(f"id < {_ROWS}").inputFiles())
    stock = time.perf_counter() - began
    return {**found, "warm_seconds": statistics.median(warm), "stock_seconds": stock, "files_stock": listed}


def run(spark: SparkSession, sizes: Sequence[int] = SIZES) -> list[dict[str, Any]]:
    """One entry for each size, after a small table that warms up Spark."""
    with tempfile.TemporaryDirectory() as directory:
        measure(spark, Path(directory, "first"), 100)
        return [measure(spark, Path(directory, str(size)), size) for size in sizes]


def heap_bytes(spark: SparkSession) -> int:
    """Bytes of Java's heap in use after a garbage collection."""
    jvm: Any = spark._jvm  # noqa: SLF001 - Java's counters have no other door
    for _ in range(2):
        jvm.java.lang.System.gc()
    return int(jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed())


def _timed_decision(spark: SparkSession, path: Path, cache: SessionState) -> tuple[float, int]:
    began = time.perf_counter()
    table = open_delta(spark, str(path), cache=cache)
    columns = [resolve(table.schema, name, table=table.name, case_sensitive=False) for name in ("id", "customer")]
    found = table.files(columns)
    keys = Domain.of_codes(ValueType("bigint"), np.arange(0, len(found), 100, dtype=np.int64) * _ROWS)
    kept = prune_containers(found, {"id": keys}).kept_count
    return time.perf_counter() - began, kept


def _add(index: int) -> dict[str, Any]:
    low = index * _ROWS
    high = low + _ROWS - 1
    day = np.datetime_as_string(np.datetime64(index * _DAY // 100, "ms")) + "Z"
    bounds = [
        {"id": number, "sold_at": day, "customer": f"customer_{number:012}", "price": number / 100}
        | {f"measure_{each}": number * (each + 0.5) for each in range(8)}
        for number in (low, high)
    ]
    stats = {
        "numRecords": _ROWS,
        "minValues": bounds[0],
        "maxValues": bounds[1],
        "nullCount": dict.fromkeys(_COLUMNS, 0),
    }
    return {
        "path": f"part-{index:08}.snappy.parquet",
        "partitionValues": {},
        "size": 1 << 20,
        "modificationTime": 0,
        "dataChange": True,
        "stats": json.dumps(stats),
    }


def _metadata_row() -> dict[str, Any]:
    fields = [{"name": name, "type": type_, "nullable": True, "metadata": {}} for name, type_ in _COLUMNS.items()]
    return {
        "id": "00000000-0000-0000-0000-000000000000",
        "format": {"provider": "parquet", "options": []},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": [],
    }


def _protocol_type() -> pa.DataType:
    return pa.struct([(name, pa.int32()) for name in _PROTOCOL])


def _metadata_type() -> pa.DataType:
    return pa.struct(
        [
            ("id", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", _MAP)])),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", _MAP),
        ]
    )


if __name__ == "__main__":
    for each in run(spark_session("scanprune benchmark: Delta log")):
        print(json.dumps(each))
