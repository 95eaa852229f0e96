"""DuckDB as a contender, with views over the Parquet files."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from benchmarks.contest.place import Table
from benchmarks.contest.protocol import serve
from benchmarks.contest.site import S3A
from sample_data.dsdgen import extension_file, quoted
from sample_data.object_store.store import Access
from sample_data.tpcds_queries import Answer, by_duckdb

# Threads and memory are equal to those of Spark; file contents are not cached between runs.
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "threads": 2,
    "memory_limit": "4GB",
    "enable_external_file_cache": False,
    "enable_object_cache": False,
}


class DuckdbEngine:
    """An engine that reads exactly the files of each table."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(config=_CONFIG)
        self._names: list[str] = []

    def tables(self, tables: Sequence[Table]) -> None:
        """Makes views over lists of files; values of partition columns come from the names of folders."""
        for name in self._names:
            self._connection.execute(f'DROP VIEW "{name}"')
        if any(each.folder.startswith(S3A) for each in tables):
            self._reach_store()
        for each in tables:
            self._connection.execute(f'CREATE VIEW "{each.name}" AS FROM read_parquet({_arguments(each)})')
        self._names = [each.name for each in tables]

    def _reach_store(self) -> None:
        """Gives DuckDB access to the object store of the environment variables."""
        access = Access.of_environment()
        self._connection.execute(f"LOAD {quoted(extension_file('httpfs'))}")
        self._connection.execute(
            "CREATE OR REPLACE SECRET store (TYPE s3, KEY_ID $key, SECRET $secret, REGION $region, ENDPOINT $host,"
            " URL_STYLE 'path', USE_SSL false)",
            {"key": access.access_key, "secret": access.secret_key, "region": access.region, "host": access.host},
        )

    def answer(self, contender: str, query: str) -> Answer:  # noqa: ARG002 - the engine has one contender
        """All rows of a query."""
        return by_duckdb(self._connection, query)

    def exchanged(self) -> int:
        """Zero, because the engine is one process."""
        return 0


def _arguments(table: Table) -> str:
    files = ", ".join("'" + each.replace("'", "''") + "'" for each in table.files)
    if not table.partition:
        return f"[{files}], hive_partitioning = false"
    return f"[{files}], hive_partitioning = true, hive_types = {{'{table.partition}': {table.partition_type}}}"


if __name__ == "__main__":
    serve(DuckdbEngine)
