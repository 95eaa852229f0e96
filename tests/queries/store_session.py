"""Queries over an object store, run in a process of its own, whose session has packages that the shared session lacks.

Standard input gives the access to the store, and the answers to requests for its byte counts. The result is one line
that begins with `answer`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from connectors.spark.session import spark_session
from pruning import explain, prune, pruned_read, report
from sample_data.object_store.s3a import s3a_conf
from sample_data.object_store.store import Access
from tests.queries.star import OPTIONS

KEYS = {"k": [5, 6, 54, 61], "m": [35, 7]}
# A second bucket, with a setting of its own.
OTHER = "scanprune-other"


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
    """The rows of a DataFrame with the keys, the counts of its scan, and the bytes that were served."""
    selected = df.where(" AND ".join(f"{name} IN ({', '.join(map(str, keys))})" for name, keys in KEYS.items()))
    found, served = collected(selected)
    (table,) = report(df).tables
    planned = table.planned
    return {
        "rows": found,
        "files": [planned.files_kept, planned.files_total, table.measured.files_read],
        "row groups": [planned.row_groups_kept, planned.row_groups_total],
        "bytes": served,
        "texts": texts(df),
    }


def collected(df: DataFrame) -> tuple[list[Any], int]:
    """The sorted rows of a DataFrame, and the bytes that the store served for them."""
    ask_parent("reset")
    found = sorted(map(list, df.select("k", "m", "text").collect()))
    return found, ask_parent("counts")


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


def put(access: Access, path: str, table: pa.Table) -> None:
    pq.write_table(table, path, filesystem=access.filesystem(), row_group_size=10)


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
        whole = spark.read.format(format_).load(source)
        found[f"{format_} read"] = observed(pruned_read(spark, source, keys=KEYS, options=OPTIONS))
        found[f"{format_} query"] = observed(prune(joins(whole), options=OPTIONS))
        own = spark.read.format(format_).option("fs.s3a.connection.maximum", "7").load(source)
        found[f"{format_} option"] = observed(prune(joins(own), options=OPTIONS))
        _, found[f"{format_} whole"] = collected(whole)
    found["s3"] = observed(pruned_read(spark, f"s3://{place}/parquet", keys=KEYS, options=OPTIONS))
    access.filesystem().create_dir(OTHER)
    put(access, f"{OTHER}/t/0.parquet", rows())
    found["setting"] = observed(pruned_read(spark, f"s3a://{OTHER}/t", keys=KEYS, options=OPTIONS))
    return found


if __name__ == "__main__":
    access = Access(**json.loads(sys.stdin.readline()))
    confs = {
        **s3a_conf(access),
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        f"spark.hadoop.fs.s3a.bucket.{OTHER}.requester.pays.enabled": "true",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    }
    session = spark_session("scanprune store", conf=confs)
    sys.stdout.write(f"answer {json.dumps(main(session, access))}\n")
    session.stop()
