"""The expected answers to the queries of a workload, by DuckDB from tables of its own.

Spark's answers are compared by the rules of `sample_data/tpcds_answers.py`. Other engines use other types for averages
and quotients, so their answers are compared by `lenient_rule()`: doubles and decimals of different scales are equal if
they differ by at most the last digit of the coarser decimal, or by a relative error of 1e-9. All other values are
compared by value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import duckdb

from benchmarks.contest.protocol import dumped, loaded, of_json, to_json
from sample_data.cache import Manifest, cache_folder, made_whole
from sample_data.plain_duckdb import load_file, plain_duckdb, table_names
from sample_data.source import SourceFiles
from sample_data.tpcds_answers import Same, answers_difference, difference_beyond_ties, spark_rule
from sample_data.tpcds_queries import Answer, Query, by_duckdb

_DATABASE = "judge.duckdb"
_MEMORY_LIMIT = "2GB"
_REVISION = 1
_LENIENT_ERROR = Decimal("1e-9")
TIES = "ties"


class Judge(Protocol):
    """A judge of answers of a contest."""

    def verdict(self, query: Query, contender: str, answer: Answer, *, strict: bool) -> str:
        """The difference to the right answer: "" if there is none, `TIES` if a LIMIT chose other rows of a tie.

        `strict`: compare by the rule for Spark, else by the lenient rule.
        """


class DuckdbJudge:
    """A judge of answers by DuckDB's, which are computed once for each query and scale."""

    def __init__(self, folder: Path, source: SourceFiles) -> None:
        self._folder, self._source = folder, source
        self._opened = ExitStack()

    def verdict(self, query: Query, contender: str, answer: Answer, *, strict: bool) -> str:
        """The difference to DuckDB's answer."""
        rule = spark_rule(query) if strict else lenient_rule
        differs = answers_difference(contender, answer, "DuckDB", self._right(query), rule)
        if not differs or query.limit is None:
            return differs
        whole = by_duckdb(self._connection, query.in_duckdb.unlimited)
        return difference_beyond_ties(contender, answer, whole, query.limit, rule) or TIES

    def _right(self, query: Query) -> Answer:
        path, text = self._folder / f"{query.name}.json", query.in_duckdb.text
        found = loaded(path.read_text(encoding="utf-8")) if path.exists() else None
        # Answers that were kept before they had a text are those of TPC-DS, whose texts do not change.
        if found is None or found.get("text", text) != text:
            found = loaded(dumped({**to_json(by_duckdb(self._connection, text)), "text": text}))
            with made_whole(path) as unfinished:
                unfinished.write_text(dumped(found), encoding="utf-8")
        return of_json(found)

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        database = plain_duckdb(self._folder / _DATABASE, plans_joins=True, memory_limit=_MEMORY_LIMIT)
        connection = self._opened.enter_context(database)
        known = table_names(connection)
        for table, file in self._source.paths.items():
            if table not in known:
                load_file(connection, table, file)
        return connection

    def close(self) -> None:
        """Closes the DuckDB connection."""
        self._opened.close()


@contextmanager
def judge(folder: Path, source: SourceFiles, queries: Iterable[str]) -> Iterator[Judge]:
    """A judge that keeps its tables and answers in `folder`, which is locked until the block ends.

    `queries` are the names of all queries of the workload.
    """
    made: Manifest = {**source.manifest, "judge": _REVISION}
    with cache_folder(folder, made, (_DATABASE, *(f"{name}.json" for name in queries))):
        found = DuckdbJudge(folder, source)
        try:
            yield found
        finally:
            found.close()


def lenient_rule(first: str, second: str) -> Same | None:
    """The comparison of columns of two numeric types, for engines with other types for averages and quotients."""
    scales = (_scale(first), _scale(second))
    if None in scales or (scales[0] == scales[1] != math.inf):
        return None
    digits = [scale for scale in scales if scale is not None and 0 < scale < math.inf]
    return _within(Decimal(1).scaleb(-int(min(digits))) if digits else Decimal(0))


def _scale(type_: str) -> float | None:
    """Digits after the decimal point: infinitely many for a double, None for a type that is not numeric."""
    name, _, parameters = type_.lower().rstrip(")").partition("(")
    match name:
        case "decimal":
            return int(parameters.rpartition(",")[2])
        case "double" | "float":
            return math.inf
        case "tinyint" | "smallint" | "int" | "integer" | "bigint" | "hugeint":
            return 0
        case _:
            return None


def _within(digit: Decimal) -> Same:
    def same(first: Any, second: Any) -> bool:
        if first is None or second is None:
            return first is second
        one, other = Decimal(first), Decimal(second)
        return abs(one - other) <= max(digit, _LENIENT_ERROR * abs(other))

    return same
