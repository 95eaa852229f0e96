"""Delta tables as other writers were seen to make them: metadata that is left over, and counts of another meaning."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PHYSICAL_NAME, FIELD_ID = "delta.columnMapping.physicalName", "delta.columnMapping.id"
# The column `id` has the name of another column, and its ids are in another order.
STALE: Mapping[str, Mapping[str, Any]] = {
    "id": {PHYSICAL_NAME: "price", FIELD_ID: 2},
    "price": {PHYSICAL_NAME: "col-5d1f", FIELD_ID: 1},
}
# A table whose columns were mapped to their own names.
SAME_NAMES: Mapping[str, Mapping[str, Any]] = {"id": {PHYSICAL_NAME: "id"}, "price": {PHYSICAL_NAME: "price"}}
ROWS, FILES, PRICE = 50, 2, 1000


def mapped_before(
    folder: Path,
    mode: str | None,
    notes: Mapping[str, Mapping[str, Any]] = STALE,
    protocol: tuple[int, int] = (1, 2),
    partition: str = "",
) -> str:
    """Two files of ids from 0 and of prices from 1000, with statistics by the names of the columns.

    With `partition`, the log has the number of each file as the value of a column `part` under this name.
    """
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    adds = []
    for number in range(FILES):
        ids = list(range(number * ROWS, (number + 1) * ROWS))
        prices = [PRICE + each for each in ids]
        path = folder / f"part-{number}.parquet"
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64()), "price": pa.array(prices, pa.int64())}), path)
        stats = {
            "numRecords": ROWS,
            "minValues": {"id": ids[0], "price": prices[0]},
            "maxValues": {"id": ids[-1], "price": prices[-1]},
            "nullCount": {"id": 0, "price": 0},
        }
        values = {partition: str(number)} if partition else {}
        add = {"path": path.name, "size": path.stat().st_size, "stats": json.dumps(stats), "partitionValues": values}
        adds.append(add)
    fields = [
        {"name": name, "type": "long", "nullable": True, "metadata": dict(notes.get(name, {}))}
        for name in ("id", "price", *(["part"] if partition else []))
    ]
    metadata = {
        "id": "5f0c2a6e-1111-4222-8333-944455566677",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": ["part"] if partition else [],
        "configuration": {} if mode is None else {"delta.columnMapping.mode": mode},
    }
    versions = {"minReaderVersion": protocol[0], "minWriterVersion": protocol[1]}
    given = {"modificationTime": 0, "dataChange": True}
    actions = [{"protocol": versions}, {"metaData": metadata}, *({"add": {**each, **given}} for each in adds)]
    (log / f"{0:020}.json").write_text("".join(json.dumps(each) + "\n" for each in actions))
    return str(folder)


# The first three rows have NULL; of the rows that are deleted, one has NULL, and two have a value.
THINNED = "(NULL, 1), (NULL, 2), (NULL, 3), ('u1', 4), ('u2', 5), ('u3', 6)"
DELETED = (1, 5, 6)


def thinned(spark: SparkSession, folder: Path) -> str:
    """A file of `THINNED` rows with a deletion vector, and a file of the key "zz"."""
    for rows in (THINNED, "('zz', 9)"):
        frame = spark.sql(f"SELECT CAST(k AS STRING) AS k, CAST(v AS INT) AS v FROM VALUES {rows} t(k, v)").coalesce(1)
        frame.write.format("delta").option("delta.enableDeletionVectors", "true").mode("append").save(str(folder))
    spark.sql(f"DELETE FROM delta.`{folder}` WHERE v IN {DELETED}")
    return str(folder)


def recounted(source: str, folder: Path, change: Callable[[dict[str, Any]], None]) -> str:
    """A copy of a table, with other statistics of its only file with a deletion vector."""
    log = Path(copy(source, folder)) / "_delta_log"
    changed = 0
    for path in log.glob("*.json"):
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for add in [each["add"] for each in actions if each.get("add", {}).get("deletionVector")]:
            stats = json.loads(add["stats"])
            change(stats)
            add["stats"] = json.dumps(stats)
            changed += 1
        path.write_text("".join(json.dumps(each) + "\n" for each in actions))
    for checksum in [*log.glob("*.crc"), *log.glob(".*.crc")]:
        checksum.unlink(missing_ok=True)
    assert changed == 1
    return str(folder)


def counts(rows: int, nulls: int, *, wide: bool = False, bounds: bool = False) -> Callable[[dict[str, Any]], None]:
    """A change to these counts of rows and of NULL in `k`, without its bounds or with them."""

    def change(stats: dict[str, Any]) -> None:
        stats["numRecords"], stats["nullCount"]["k"] = rows, nulls
        if not bounds:
            stats["minValues"].pop("k", None)
            stats["maxValues"].pop("k", None)
        if wide:
            stats["tightBounds"] = False
        else:
            stats.pop("tightBounds", None)

    return change


def copy(source: str, folder: Path) -> str:
    """A copy of a table."""
    shutil.copytree(source, folder)
    return str(folder)
