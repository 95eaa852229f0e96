"""How long the decision for a Delta table takes: logs of three sizes, written by hand, without data files.

Cold: Delta has never seen the table. Warm: the session has decided for the same version before. Both open the
table, read the statistics of two columns, and prune by keys that hit one file in a hundred.
"""

from __future__ import annotations

import json
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
from connectors.delta import open_delta
from connectors.session import spark_session
from connectors.session_cache import SessionCache
from pruning.domain import Domain
from pruning.skipping import prune
from pruning.value_type import ValueType

SIZES = (10_000, 30_000, 100_000)
_ROWS = 10_000
_CHECKPOINT = 10
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
    """A checkpoint with nearly all files, as large tables have, and one commit after it."""
    log = path / "_delta_log"
    log.mkdir(parents=True)
    adds = [_add(index) for index in range(files)]
    checkpointed, committed = adds[:-_FILES_PER_COMMIT], adds[-_FILES_PER_COMMIT:]
    rows: dict[str, list[Any]] = {
        "add": [None, None, *({**each, "partitionValues": []} for each in checkpointed)],
        "protocol": [_PROTOCOL, *[None] * (len(checkpointed) + 1)],
        "metaData": [None, _metadata_row(), *[None] * len(checkpointed)],
    }
    schema = pa.schema({"add": _ADD, "protocol": _protocol_type(), "metaData": _metadata_type()}.items())
    pq.write_table(pa.table(rows, schema=schema), log / f"{_CHECKPOINT:020}.checkpoint.parquet")
    actions = [{"commitInfo": {"timestamp": 0, "operation": "WRITE"}}, *({"add": each} for each in committed)]
    (log / f"{_CHECKPOINT:020}.json").write_text(json.dumps(actions[0]) + "\n")
    (log / f"{_CHECKPOINT + 1:020}.json").write_text("".join(json.dumps(each) + "\n" for each in actions))
    (log / "_last_checkpoint").write_text(json.dumps({"version": _CHECKPOINT, "size": len(checkpointed) + 2}))


def measure(spark: SparkSession, path: Path, files: int) -> dict[str, Any]:
    """Seconds of the decision for one table, cold and warm (median), and what it decided."""
    write_log(path, files)
    cache = SessionCache()
    cold, kept = _timed_decision(spark, path, cache)
    warm = [_timed_decision(spark, path, cache)[0] for _ in range(_WARM_RUNS)]
    return {"files": files, "files_kept": kept, "cold_seconds": cold, "warm_seconds": statistics.median(warm)}


def run(spark: SparkSession, sizes: Sequence[int] = SIZES) -> list[dict[str, Any]]:
    """One entry for each size, after a small table that pays for Spark's own start."""
    with tempfile.TemporaryDirectory() as directory:
        measure(spark, Path(directory, "first"), 100)
        return [measure(spark, Path(directory, str(size)), size) for size in sizes]


def _timed_decision(spark: SparkSession, path: Path, cache: SessionCache) -> tuple[float, int]:
    began = time.perf_counter()
    table = open_delta(spark, str(path), cache=cache)
    columns = [resolve(table.schema, name, table=table.name, case_sensitive=False) for name in ("id", "customer")]
    found = table.files(columns)
    keys = Domain.of_codes(ValueType("bigint"), np.arange(0, len(found), 100, dtype=np.int64) * _ROWS)
    kept = prune(found, {"id": keys}).kept_count
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
