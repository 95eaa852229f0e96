"""Queries over an object store, run in a process of its own, whose session has packages that the shared session lacks.

Standard input gives the access to the store, and the answers to requests for its byte counts. The result is one line
that begins with `answer`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from connectors.arrow_scan import preflight
from connectors.arrow_scan.s3 import S3Access, s3_buckets
from connectors.spark.session import spark_session
from pruning import explain, prune, pruned_read, report
from sample_data.object_store.s3a import s3a_conf
from sample_data.object_store.store import Access
from tests.queries.arrow import ARROW, IN_THE_SCAN, refusals

KEYS = {"k": [5, 6, 54, 61], "m": [35, 7]}
# Settings of S3A: `SETTING` is one that pyarrow does not support and that reading the second bucket does not need.
OTHER, SETTING = "scanprune-other", "requester.pays.enabled"
SCANS = {name: replace(ARROW, scan=name) for name in ("ARROW", "PREDICATE")}


def rows() -> pa.Table:
    """200 rows: `k` ascends through files of 50 with row groups of 10, `m` is spread over all of them."""
    return pa.table(
        {
            "k": pa.array(range(200), pa.int32()),
            "m": pa.array([None if at % 7 == 0 else at * 37 % 50 for at in range(200)], pa.int64()),
            "text": pa.array(["é" * (at % 5) for at in range(200)]),
        }
    )


def ask_parent(question: str) -> Any:
    sys.stdout.write(f"{question}\n")
    sys.stdout.flush()
    return json.loads(sys.stdin.readline())


def observed(df: DataFrame) -> dict[str, Any]:
    """The reader of a DataFrame, its rows with the keys, the counts of its scan, and the bytes that were served."""
    selected = df.where(" AND ".join(f"{name} IN ({', '.join(map(str, keys))})" for name, keys in KEYS.items()))
    ask_parent("reset")
    found: dict[str, Any] = {"rows": sorted(map(list, selected.select("k", "m", "text").collect()))}
    served = ask_parent("counts")
    (table,) = report(df).tables
    measured = table.measured
    return {
        **found,
        "by arrow": {each.row_test == IN_THE_SCAN for each in table.planned.filters} == {True},
        "why": refusals(df),
        "files": [table.planned.files_kept, table.planned.files_total, measured.files_read],
        "row groups": [table.planned.row_groups_kept, table.planned.row_groups_total, measured.row_groups_read],
        "bytes": [measured.bytes_scanned, served],
        "texts": texts(df),
    }


def joins(df: DataFrame) -> DataFrame:
    """A query that joins the table with a few of its keys."""
    df.createOrReplaceTempView("facts")
    return df.sparkSession.sql("SELECT facts.* FROM facts JOIN VALUES (5), (61) AS d(day) ON k = day")


def texts(df: DataFrame) -> str:
    """All text that a user can see of a DataFrame."""
    plans = df._jdf.queryExecution()
    found = (
        explain(df),
        explain(df).to_dict(),
        report(df),
        report(df).to_dict(),
        plans.toString(),
        df._jdf.logicalPlan(),
    )
    return "\n".join(map(str, found))


def error_of(run: Callable[[], Any]) -> str:
    try:
        run()
    except Exception as error:  # noqa: BLE001 - any error
        return str(error)
    return ""


def put(access: Access, path: str, table: pa.Table, group: int = 10) -> None:
    pq.write_table(table, path, filesystem=access.filesystem(), row_group_size=group)


def with_another_key(*given: Any) -> dict[str, S3Access]:
    return {name: replace(each, secret_key="0" * 20) for name, each in s3_buckets(*given).items()}


def main(spark: SparkSession, access: Access) -> dict[str, Any]:
    found: dict[str, Any] = {}
    place = f"{access.bucket}/queries/a b %"
    for at in range(4):
        put(access, f"{place}/parquet/{at}.parquet", rows().slice(50 * at, 50))
    spark.conf.set("parquet.block.row.count.limit", "10")
    columns = (
        "CAST(id AS INT) AS k",
        "IF(id % 7 = 0, NULL, id * 37 % 50) AS m",
        "repeat('é', CAST(id % 5 AS INT)) AS text",
    )
    spark.range(0, 200, 1, 4).selectExpr(*columns).write.format("delta").save(f"s3a://{place}/delta")
    for format_ in ("parquet", "delta"):
        source = f"s3a://{place}/{format_}"
        for scan, options in SCANS.items():
            found[f"{format_} {scan}"] = observed(pruned_read(spark, source, keys=KEYS, options=options))
        joined = joins(spark.read.format(format_).load(source))
        for scan, options in SCANS.items():
            found[f"{format_} {scan} query"] = observed(prune(joined, options=options))
        own = spark.read.format(format_).option("fs.s3a.connection.maximum", "7").load(source)
        found[f"option {format_}"] = observed(prune(joins(own), options=ARROW))
    found["s3"] = observed(pruned_read(spark, f"s3://{place}/parquet", keys=KEYS, options=ARROW))
    access.filesystem().create_dir(OTHER)
    put(access, f"{OTHER}/t/0.parquet", rows())
    found["setting"] = observed(pruned_read(spark, f"s3a://{OTHER}/t", keys=KEYS, options=ARROW))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preflight, "s3_buckets", with_another_key)
        found["not reached"] = observed(pruned_read(spark, f"s3a://{place}/parquet", keys=KEYS, options=ARROW))
    replaced = pruned_read(spark, f"s3a://{place}/parquet", keys=KEYS, options=ARROW)
    put(access, f"{place}/parquet/0.parquet", rows().slice(0, 50), group=25)
    found["replaced"] = error_of(replaced.collect)
    return found


if __name__ == "__main__":
    access = Access(**json.loads(sys.stdin.readline()))
    confs = {
        **s3a_conf(access),
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        f"spark.hadoop.fs.s3a.bucket.{OTHER}.{SETTING}": "true",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    }
    session = spark_session("scanprune store", conf=confs)
    sys.stdout.write(f"answer {json.dumps(main(session, access))}\n")
    session.stop()
