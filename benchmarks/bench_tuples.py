"""Bytes read by a scan with and without ranges of two columns (`limits.tuple_ranges`), by layout and keys.

Keys are pairs of a shop and an order. Bytes are Spark's own counter of one action, which does not depend on the load
of the machine.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from connectors.spark.session import COUNTABLE, spark_session
from pruning import PruningOptions, pruned_read, report
from sample_data.rows import Rows

FULL, QUICK = 4_000_000, 400_000
_FILES, _ROW_GROUP_BYTES = 8, 1 << 20
# (shops, pairs of keys): few large shops, then many small shops.
_CASES = ((5, 8), (100, 30))
_WITH = PruningOptions()
_WAYS = {"with": _WITH, "without": replace(_WITH, limits=_WITH.limits.without("tuple_ranges"))}


def run(rows: int) -> list[dict[str, Any]]:
    """One entry for each format, layout and set of keys."""
    spark = spark_session("scanprune benchmark: tuples", conf=COUNTABLE)
    entries = []
    try:
        for shops, pairs in _CASES:
            for layout, df in _layouts(spark, rows, shops):
                for format_ in ("parquet", "delta"):
                    measured = _measured(spark, df, format_, _keys(rows, shops, pairs))
                    entries.append({"format": format_, "layout": layout, "shops": shops, "pairs": pairs, **measured})
    finally:
        spark.stop()
    return entries


def _layouts(spark: SparkSession, rows: int, shops: int) -> Iterator[tuple[str, DataFrame]]:
    orders = rows // shops
    df = spark.range(rows).selectExpr(
        f"id div {orders} AS shop",
        f"id % {orders} AS order_no",
        "concat(id, ' is a note') AS note",
        "id * 1.5 AS price",
    )
    yield "shop, order", df.repartitionByRange(_FILES, "shop", "order_no").sortWithinPartitions("shop", "order_no")
    yield "files by order", df.repartitionByRange(_FILES, "order_no").sortWithinPartitions("shop", "order_no")
    yield "order", df.repartition(_FILES).sortWithinPartitions("order_no", "shop")


def _keys(rows: int, shops: int, pairs: int) -> list[tuple[int, int]]:
    draw = random.Random(4)
    return [(draw.randrange(shops), draw.randrange(rows // shops)) for _ in range(pairs)]


def _measured(spark: SparkSession, df: DataFrame, format_: str, keys: list[tuple[int, int]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    answers: list[Rows] = []
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "orders"))
        df.write.option("parquet.block.size", _ROW_GROUP_BYTES).format(format_).save(path)
        wanted = spark.createDataFrame(keys, "shop long, order_no long")
        for name, options in _WAYS.items():
            read = pruned_read(spark, path, keys={("shop", "order_no"): wanted}, options=options)
            joined = read.join(wanted, ["shop", "order_no"]).agg({"price": "sum", "note": "max"})
            answers.append(Rows(joined.collect()))
            scan = report(read).measured
            found[f"bytes_{name}"] = None if scan is None else scan.bytes_scanned
    if any(each != answers[0] for each in answers):
        raise ValueError(f"Cannot compare bytes: found other rows with ranges of two columns than without: {answers}")
    is_known = bool(found["bytes_without"]) and found["bytes_with"] is not None
    return {**found, "with_to_without": found["bytes_with"] / found["bytes_without"] if is_known else None}


if __name__ == "__main__":
    for entry in run(FULL):
        print(json.dumps(entry))
