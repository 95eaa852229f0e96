"""Random tables on the store and random queries over them: rows in three ways, and the number of filters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from sample_data.confs import conf
from sample_data.object_store.store import ObjectStore
from sample_data.plain_duckdb import plain_duckdb
from tests.cluster.outcomes import Found, Skipped
from tests.oracle.draws import Draws
from tests.oracle.random_lakes import Table, opened, put, random_lake
from tests.oracle.random_queries import random_query
from tests.oracle.test_random_queries import Engines, check, engines


@contextmanager
def random_engines(spark: SparkSession, store: ObjectStore, folder: Path, seed: int) -> Iterator[Engines]:
    """Both engines with the tables of a seed, which are written to a folder and uploaded to the store."""
    lake, key = random_lake(seed), f"random-{seed}"
    (folder / key).mkdir()
    for table in lake.tables:
        put(spark, folder / key, table)
    store.upload(folder / key, key)

    def read(table: Table) -> DataFrame:
        return opened(spark, f"s3a://{store.bucket}/{key}/{table.name}", table)

    with plain_duckdb() as duck, engines(spark, duck, lake, read) as both:
        yield both


def check_random(both: Engines, seed: int, number: int) -> Found:
    """Checks one query; `tests/oracle/test_random_queries.py` runs the query in one process."""
    query = random_query(both.lake, Draws(f"query {seed} {number}"))
    before = len(both.filtered)
    with conf(both.spark, query.confs):
        check(both, query)
    return Found(skipped=Skipped(len(both.filtered) - before))
