"""The 99 queries of TPC-DS, and queries of any workload: tables in Spark and in DuckDB, and answers of both engines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from sample_data.confs import conf
from sample_data.dsdgen import load_tpcds
from sample_data.plain_duckdb import load_file, plain_duckdb

if TYPE_CHECKING:
    # Processes of other engines import this module without loading Spark.
    from pyspark.sql import DataFrame, SparkSession

# Queries whose joins prune scans well: the queries of Presto's published numbers for dynamic filtering.
SELECTIVE = (10, 20, 31, 32, 34, 69, 71, 77, 96, 98)

_LIMIT = re.compile(r"\bLIMIT\s+(\d+)\s*;?\s*$", re.IGNORECASE)
# The setting for the queries' column names in double quotes.
QUOTED = "spark.sql.ansi.doubleQuotedIdentifiers"


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a workload: its place in it from 1 on, and its text, which for TPC-DS is that of DuckDB's extension.

    - `label`: the name, if it is not "q" and the number; no other workload has a query of this name
    - `duckdb`: the text in DuckDB's dialect, if it differs
    """

    number: int
    text: str
    label: str = ""
    duckdb: str = ""

    @property
    def name(self) -> str:
        """The usual short name, such as "q3"."""
        return self.label or f"q{self.number}"

    @property
    def in_duckdb(self) -> Query:
        """The query with DuckDB's text."""
        return replace(self, text=self.duckdb or self.text, duckdb="")

    def names(self, table: str) -> bool:
        """True if the query may read this table."""
        return re.search(rf"\b{table}\b", self.text, re.IGNORECASE) is not None

    @property
    def unlimited(self) -> str:
        """The text of the query without its final LIMIT."""
        return _LIMIT.sub("", self.text)

    @property
    def limit(self) -> int | None:
        """The number of rows of the final LIMIT; None if there is none."""
        found = _LIMIT.search(self.text)
        return int(found[1]) if found else None


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows in their original order, and the types of the columns as named by the engine."""

    types: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def queries() -> tuple[Query, ...]:
    """All queries, by number."""
    with duckdb.connect() as connection:
        load_tpcds(connection)
        found = connection.execute("SELECT query_nr, query FROM tpcds_queries() ORDER BY query_nr").fetchall()
    return tuple(Query(number, text) for number, text in found)


@contextmanager
def duckdb_tables(sources: Mapping[str, Path]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB connection with the rows of Parquet files copied into tables, so that no filter reaches a file."""
    with plain_duckdb(plans_joins=True) as connection:
        for table, path in sources.items():
            load_file(connection, table, path)
        yield connection


@contextmanager
def spark_tables(spark: SparkSession, folders: Mapping[str, Path], table_format: str = "delta") -> Iterator[None]:
    """Views with the names of the tables, in a session that parses double quotes as the queries require."""
    for table, folder in folders.items():
        spark.read.format(table_format).load(str(folder)).createOrReplaceTempView(table)
    try:
        with conf(spark, {QUOTED: "true"}):
            yield
    finally:
        for table in folders:
            spark.catalog.dropTempView(table)


def by_spark(df: DataFrame) -> Answer:
    """The answer of a DataFrame, by `collect()`."""
    return Answer(tuple(each.dataType.simpleString() for each in df.schema), tuple(map(tuple, df.collect())))


def by_duckdb(connection: duckdb.DuckDBPyConnection, query: str) -> Answer:
    """The answer of DuckDB to a query."""
    found = connection.execute(query)
    types = tuple(str(each[1]) for each in found.description)
    return Answer(types, tuple(found.fetchall()))
