"""DuckDB as an oracle: plain tables, one thread, and no optimisation like those of the code under test.

Rows arrive as Arrow data and are copied into tables, so that no predicate reaches a file or Arrow data. DuckDB
evaluates a query as written. Queries that list their tables with commas are the exception, because without an optimizer
they are cross products. For such queries `plans_joins` leaves the optimizer on, without the rules that derive filters
from minima and maxima or from the keys of a join.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

_FILTERS_OF_JOINS = "join_filter_pushdown,statistics_propagation,late_materialization"
_ARRIVING = "arriving"


@contextmanager
def plain_duckdb(
    database: Path | str = ":memory:", *, plans_joins: bool = False, memory_limit: str = ""
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to `database`, by default an in-memory database."""
    config: dict[str, str | bool | int | float | list[str]] = {"threads": 1}
    if memory_limit:
        config["memory_limit"] = memory_limit
    with duckdb.connect(database, config=config) as connection:
        connection.execute(
            f"SET disabled_optimizers = '{_FILTERS_OF_JOINS}'" if plans_joins else "PRAGMA disable_optimizer"
        )
        yield connection


def load(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table | pa.RecordBatchReader) -> None:
    """Copies rows into the table `name`, which is replaced if it exists."""
    connection.register(_ARRIVING, rows)
    try:
        connection.execute(f'CREATE OR REPLACE TABLE "{name}" AS FROM {_ARRIVING}')
    finally:
        connection.unregister(_ARRIVING)


def load_file(
    connection: duckdb.DuckDBPyConnection, name: str, path: Path, columns: Collection[str] | None = None
) -> None:
    """Copies a Parquet file into the table `name`, batch by batch; all columns unless `columns` are given."""
    with pq.ParquetFile(path) as file:
        wanted = [each for each in file.schema_arrow.names if columns is None or each in columns]
        schema = pa.schema([file.schema_arrow.field(each) for each in wanted])
        load(connection, name, pa.RecordBatchReader.from_batches(schema, file.iter_batches(columns=wanted)))


def table_names(connection: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """The names of all tables."""
    return frozenset(name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall())
