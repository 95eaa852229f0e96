"""Spark as a contender, pruned and stock: one session for both, with the same settings."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from urllib.parse import unquote, urlsplit

from benchmarks.contest.place import Table
from benchmarks.contest.protocol import serve
from benchmarks.tpcds_bytes import RIVAL
from benchmarks.tpcds_workload import QUOTED, Answer, by_spark
from connectors.session import spark_session
from pruning import prune

# Vectored reads and buffers are Spark's own, since the system counts what they read.
CONF: Mapping[str, str] = MappingProxyType(
    {
        **RIVAL,
        "spark.sql.optimizer.dynamicPartitionPruning.enabled": "true",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "4g",
        QUOTED: "true",
    }
)


class SparkEngine:
    """Answers each query from a DataFrame of its own, so planning counts for both."""

    def __init__(self, conf: Mapping[str, str]) -> None:
        warehouse = Path(tempfile.gettempdir(), "scanprune-contest-warehouse").as_uri()
        self._spark = spark_session("scanprune contest", conf={**CONF, "spark.sql.warehouse.dir": warehouse, **conf})
        self._names: list[str] = []

    def tables(self, tables: Sequence[Table]) -> None:
        """Views; `ValueError` if Spark would read other files than the others do."""
        for name in self._names:
            self._spark.catalog.dropTempView(name)
        for each in tables:
            df = self._spark.read.format(each.format).load(each.folder)
            if {_path(file) for file in df.inputFiles()} != {_path(file) for file in each.files}:
                raise ValueError(f"Cannot compare reads of {each.name!r}: its version has other files than its folder")
            df.createOrReplaceTempView(each.name)
        self._names = [each.name for each in tables]

    def answer(self, contender: str, query: str) -> Answer:
        """All rows, by `prune()` or without it."""
        df = self._spark.sql(query)
        return by_spark(prune(df) if contender == "pruned" else df)


def _path(file: str) -> str:
    """A file's path as the file system has it, of a URI or of a path."""
    return unquote(urlsplit(file).path) if file.startswith("file:") else file


if __name__ == "__main__":
    # Confs as `name=value`.
    sys.exit(serve(partial(SparkEngine, dict(each.split("=", 1) for each in sys.argv[1:]))))
