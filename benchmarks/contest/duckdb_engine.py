"""DuckDB as a contender: views over the Parquet files."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import duckdb

from benchmarks.contest.place import Table
from benchmarks.contest.protocol import serve
from benchmarks.tpcds_workload import Answer, by_duckdb

# As many threads as Spark has, as much memory, and no bytes of files kept between runs.
_CONFIG = {"threads": 2, "memory_limit": "4GB", "enable_external_file_cache": False, "enable_object_cache": False}


class DuckdbEngine:
    """Reads exactly the files of each table."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(config=_CONFIG)
        self._names: list[str] = []

    def tables(self, tables: Sequence[Table]) -> None:
        """Views over lists of files; partition columns are read from the names of folders."""
        for name in self._names:
            self._connection.execute(f'DROP VIEW "{name}"')
        for each in tables:
            self._connection.execute(f'CREATE VIEW "{each.name}" AS FROM read_parquet({_arguments(each)})')
        self._names = [each.name for each in tables]

    def answer(self, contender: str, query: str) -> Answer:  # noqa: ARG002 - it is one contender
        """All rows."""
        return by_duckdb(self._connection, query)

    def exchanged(self) -> int:
        """It is one process."""
        return 0


def _arguments(table: Table) -> str:
    files = ", ".join("'" + each.replace("'", "''") + "'" for each in table.files)
    if not table.partition:
        return f"[{files}], hive_partitioning = false"
    return f"[{files}], hive_partitioning = true, hive_types = {{'{table.partition}': INTEGER}}"


if __name__ == "__main__":
    sys.exit(serve(DuckdbEngine))
