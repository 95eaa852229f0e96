"""The right answers to the queries of TPC-DS, by DuckDB from tables of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import duckdb

from benchmarks.contest.protocol import dumped, loaded, of_json, to_json
from benchmarks.tpcds_answers import difference, difference_beyond_ties, lenient_rule, spark_rule
from benchmarks.tpcds_workload import OPTIMIZERS, Answer, Query, by_duckdb
from sample_data.cache import Manifest, cache_folder, made_whole
from sample_data.dsdgen import quoted
from sample_data.tpcds import TpcdsFiles

_DATABASE = "judge.duckdb"
_CONFIG = {"threads": 1, "memory_limit": "2GB"}
_REVISION = 1
TIES = "ties"


class Judge:
    """Compares answers with DuckDB's, which it computes once a query and scale."""

    def __init__(self, folder: Path, source: TpcdsFiles) -> None:
        self._folder, self._source = folder, source

    def verdict(self, query: Query, contender: str, answer: Answer, *, strict: bool) -> str:
        """How an answer is wrong: "" if it is right, `TIES` if only in which rows of a tie a LIMIT lets through.

        `strict`: by the rule for Spark, else by the lenient one.
        """
        rule = spark_rule(query) if strict else lenient_rule
        differs = difference(contender, answer, "DuckDB", self._right(query), rule)
        if not differs or query.limit is None:
            return differs
        whole = by_duckdb(self._connection, query.unlimited)
        return difference_beyond_ties(contender, answer, whole, query.limit, rule) or TIES

    def _right(self, query: Query) -> Answer:
        path = self._folder / f"{query.name}.json"
        if not path.exists():
            with made_whole(path) as unfinished:
                unfinished.write_text(dumped(to_json(by_duckdb(self._connection, query.text))), encoding="utf-8")
        return of_json(loaded(path.read_text(encoding="utf-8")))

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect(self._folder / _DATABASE, config=_CONFIG)
        for table, file in self._source.paths.items():
            connection.execute(f"CREATE TABLE IF NOT EXISTS {table} AS FROM {quoted(file)}")
        connection.execute(f"SET disabled_optimizers = '{OPTIMIZERS}'")
        return connection

    def close(self) -> None:
        """Lets go of the tables."""
        if "_connection" in self.__dict__:
            self._connection.close()


@contextmanager
def judge(folder: Path, source: TpcdsFiles) -> Iterator[Judge]:
    """A judge that keeps its tables and answers in `folder`, which is its own meanwhile."""
    made: Manifest = {**source.manifest, "judge": _REVISION}
    with cache_folder(folder, made, (_DATABASE, *(f"q{number}.json" for number in range(1, 100)))):
        found = Judge(folder, source)
        try:
            yield found
        finally:
            found.close()
