"""The tables and queries of TPC-DS on the store: rows in three ways, and the scans that `tests/oracle` expects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import duckdb
from pyspark.sql import DataFrame, SparkSession

from pruning import explain, prune, report
from sample_data.layout import FACTS, write_clustered
from sample_data.object_store.store import ObjectStore
from sample_data.tpcds import TpcdsFiles, generate
from sample_data.tpcds_answers import disagreement, disorder
from sample_data.tpcds_queries import QUOTED, SELECTIVE, Query, by_spark, queries
from tests.cluster.outcomes import Found, Skipped
from tests.oracle.test_tpcds import FIXED_COSTS, OPTIONS, SCALE, TROUBLE, expected_scans, scan_line, with_days_of_sales

# Selective queries, and queries with other plans: returns with sales, tables that occur twice.
NUMBERS = (*SELECTIVE, 1, 5, 7, 25)
# Bytes of the store at the rates of a disk, so that the same filters pay.
OF_ANY_STORE = OPTIONS.with_limits(costs=replace(FIXED_COSTS, remote_byte=FIXED_COSTS.byte, remote_request=0.0))
_FOLDER = "tpcds"


@dataclass(frozen=True, slots=True)
class Tpcds:
    """Spark and DuckDB with views of the tables, and the queries by number."""

    spark: SparkSession
    duck: duckdb.DuckDBPyConnection
    queries: Mapping[int, Query] = field(default_factory=lambda: {each.number: each for each in queries()})

    def check(self, number: int) -> Found:
        """Checks one query."""
        query = self.queries[number]
        df = self.spark.sql(query.text)
        stock = by_spark(df)
        result = prune(df, options=OF_ANY_STORE)
        pruned = by_spark(result)
        assert df.schema == result.schema
        assert "" == disagreement(query, self.duck, stock, pruned)
        assert "" == disorder(query, df.columns, stock, pruned)
        reasons = explain(result).reasons
        assert set() == TROUBLE & {each.code for each in reasons}, [str(each) for each in reasons]
        return Found(len(pruned.rows), _skipped(number, result))


def _skipped(number: int, result: DataFrame) -> Skipped:
    """Checks that scans read the planned files, and skip as in one process."""
    tables = report(result).tables
    for each in tables:
        planned, measured = each.planned, each.measured
        assert measured is None or planned.files_kept == measured.files_read, (planned.table, planned, measured)
    if "nothing" not in "".join(expected_scans()[number]):
        assert expected_scans()[number] == sorted(map(scan_line, tables))
    return sum((_of(each.planned) for each in tables), Skipped())


def _of(planned) -> Skipped:
    groups = planned.row_groups_total
    return Skipped(
        1, (planned.files_kept, planned.files_total), (0, 0) if groups is None else (planned.row_groups_kept, groups)
    )


def sources_of(folder: Path, cache: Path) -> TpcdsFiles:
    """Generated files, kept in `cache`, with a `date_dim` of a few years in `folder`."""
    return with_days_of_sales(generate(SCALE, cache), folder / "date_dim.parquet")


def views(spark: SparkSession, place: str, tables: Iterable[str]) -> None:
    """Makes views of the written tables; double quotes delimit identifiers in the session, as the queries require."""
    for table in tables:
        spark.read.format("delta").load(f"{place}/{table}").createOrReplaceTempView(table)
    spark.conf.set(QUOTED, "true")


def write(spark: SparkSession, store: ObjectStore, sources: TpcdsFiles, folder: Path) -> str:
    """Uploads the source files, writes Delta tables from them by executors through S3A; returns the tables' folder."""
    arriving = folder / "arriving"
    arriving.mkdir()
    for table, path in sources.paths.items():
        (arriving / f"{table}.parquet").symlink_to(path)
    store.upload(arriving, f"{_FOLDER}/sources")
    place = f"s3a://{store.bucket}/{_FOLDER}"
    for table in sources.paths:
        rows = spark.read.parquet(f"{place}/sources/{table}.parquet")
        if table in FACTS:
            write_clustered(rows, FACTS[table], "delta", f"{place}/{table}")
        else:
            rows.coalesce(1).write.format("delta").save(f"{place}/{table}")
    return place
