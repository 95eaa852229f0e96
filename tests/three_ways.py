"""Queries answered in three ways: by DuckDB, by stock Spark, and by pruned Spark, in a session that prunes, too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import duckdb

from pruning import PruningOptions, prune, report
from sample_data.decided import decided
from sample_data.plain_duckdb import load, plain_duckdb
from sample_data.rows import Rows
from tests.in_session import in_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(slots=True)
class ThreeWays:
    """A Spark session and a DuckDB connection with equal tables of equal names."""

    spark: SparkSession
    duck: duckdb.DuckDBPyConnection
    names: dict[str, None] = field(default_factory=dict)

    def view(self, name: str, df: DataFrame) -> None:
        """Registers a DataFrame as a view of Spark and copies its current rows to a DuckDB table."""
        df.createOrReplaceTempView(name)
        self.names[name] = None
        self.rows(name, df)

    def rows(self, name: str, df: DataFrame) -> None:
        """Copies the current rows of a DataFrame to a DuckDB table."""
        load(self.duck, name, df.toArrow())

    def stored(self, name: str, df: DataFrame, folder: str, format_: str, *partitions: str) -> None:
        """Writes a DataFrame and registers the stored table."""
        df.write.format(format_).partitionBy(*partitions).save(folder)
        self.view(name, self.spark.read.format(format_).load(folder))

    def agreed(
        self, query: str, options: PruningOptions, *, duck: str | None = None, by_duck: bool = True
    ) -> tuple[DataFrame, DataFrame]:
        """The unpruned and the pruned DataFrame of a query, after both and DuckDB returned equal rows.

        `duck` is the query in DuckDB's dialect, if it differs.
        """
        df = self.spark.sql(query)
        result = prune(df, options=options)
        assert df.schema == result.schema
        rows = Rows(df.collect())
        assert rows == Rows(result.collect())
        again, told = in_session(self.spark, options, lambda: Rows(self.spark.sql(query).collect()))
        assert rows == again
        assert decided(report(result)) == decided(told)
        if by_duck:
            assert rows == Rows(self.duck.execute(duck or query.replace("`", '"')).fetchall())
        return df, result


@contextmanager
def three_ways(spark: SparkSession) -> Iterator[ThreeWays]:
    """A Spark session and a DuckDB with the same tables; the views are dropped at the end."""
    with plain_duckdb() as connection:
        ways = ThreeWays(spark, connection)
        try:
            yield ways
        finally:
            for name in ways.names:
                spark.catalog.dropTempView(name)
