"""DuckDB as the judge of answers: plain tables, no optimiser, one thread, nothing shared with what it checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from benchmarks.demo.star_join import Dimension, Row, StarJoin, in_order
from pruning.errors import EnvironmentProblem

if TYPE_CHECKING:
    import duckdb


class Oracle:
    """The right answer of star joins over tables that were read whole, without any filter."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def rows(self, join: StarJoin) -> tuple[Row, ...]:
        """The rows of the query, in the same order as those of its runs in Spark."""
        return in_order(self._connection.execute(_unbraced(join.sql)).fetchall())

    def keys(self, dimension: Dimension) -> list[tuple[int, ...]]:
        """The keys of one dimension, without those that are NULL in part: no `=` matches them."""
        rows = self._connection.execute(_unbraced(dimension.keys_sql)).fetchall()
        return [row for row in rows if None not in row]


@contextmanager
def oracle(sources: Mapping[str, Path], joins: Sequence[StarJoin]) -> Iterator[Oracle]:
    """An oracle over the Parquet files of `sources`, with the columns that the joins name."""
    try:
        import duckdb  # noqa: PLC0415 - an extra
    except ImportError as error:
        msg = "Checking answers needs the package 'duckdb': run `pip install 'scanprune[demo]'`"
        raise EnvironmentProblem(msg) from error
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("PRAGMA disable_optimizer")
        for table, path in sources.items():
            columns = [name for name in pq.read_schema(path).names if any(join.mentions(name) for join in joins)]
            if not columns:
                # No query asks for anything of this table.
                continue
            connection.register("rows", pq.read_table(path, columns=columns))
            connection.execute(f'CREATE TABLE "{table}" AS SELECT * FROM rows')
            connection.unregister("rows")
        yield Oracle(connection)


def _unbraced(sql: str) -> str:
    return sql.replace("{", "").replace("}", "")
