"""Spark as contenders with the same settings: pruned, stock, and pruned by every sound filter.

Pruned Spark is a second session in which pruning is enabled, or `prune()` in the first one; with the option `always` it
is a third session.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession

from benchmarks.contest.limit import limit_bytes
from benchmarks.contest.place import Table
from benchmarks.contest.pool import ALWAYS, DOOR, LIMIT, PRUNE, SESSION
from benchmarks.contest.protocol import serve
from benchmarks.exchange_rows import Exchange, exchanges_of
from benchmarks.tpcds_bytes import RIVAL
from connectors.measure.status_store import finished_executions, last_execution, sql_store, stage_attempt, stages_of
from connectors.spark.session import spark_session
from pruning import PruneReport, enable, history, prune
from pruning.options import CONF_PREFIX
from pruning.options import SESSION as RATES_OF_SESSION
from sample_data.tpcds_queries import QUOTED, Answer, by_spark

# Vectored reads and buffers keep Spark's defaults, because the operating system counts their reads correctly.
CONF: Mapping[str, str] = MappingProxyType(
    {
        **RIVAL,
        "spark.sql.optimizer.dynamicPartitionPruning.enabled": "true",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "4g",
        QUOTED: "true",
    }
)

_RETURNED = "data returned from Python workers"
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_SIZE = re.compile(rf"([\d.,]+) ({'|'.join(_UNITS)})\b")


class SparkEngine:
    """An engine that makes a new DataFrame for each query, so that planning counts for both contenders.

    `spark` is the session of stock Spark, `enabled` the one that prunes each query; None by another door.
    """

    def __init__(self, conf: Mapping[str, str], spark: SparkSession | None = None, door: str = PRUNE) -> None:
        warehouse = Path(tempfile.gettempdir(), "scanprune-contest-warehouse").as_uri()
        confs = {**CONF, "spark.sql.warehouse.dir": warehouse, **conf}
        self.spark = spark or spark_session("scanprune contest", conf=confs)
        self.enabled = self._new_session() if door == SESSION else None
        self._always = self._new_session(always="true") if door == SESSION else None
        self._names: list[str] = []
        self._before = -1

    def _new_session(self, **options: str) -> SparkSession:
        """A new enabled session with options as confs, and rates as users have them, whatever benchmarks are given."""
        session = self.spark.newSession()
        for name, value in {"cost_rates": RATES_OF_SESSION, **options}.items():
            session.conf.set(f"{CONF_PREFIX}{name}", value)
        enable(session)
        return session

    def tables(self, tables: Sequence[Table]) -> None:
        """Makes views; raises `ValueError` if Spark would read other files than the other engines."""
        for spark in filter(None, (self.spark, self.enabled, self._always)):
            for name in self._names:
                spark.catalog.dropTempView(name)
            for each in tables:
                df = spark.read.format(each.format).load(each.folder)
                # The other session would list the files for both.
                if spark is self.spark and {*map(_path, df.inputFiles())} != {*map(_path, each.files)}:
                    msg = f"Cannot compare reads of {each.name!r}: its version has other files than its folder"
                    raise ValueError(msg)
                df.createOrReplaceTempView(each.name)
        self._names = [each.name for each in tables]

    def answer(self, contender: str, query: str) -> Answer:
        """All rows, with or without `prune()`; for the contender `LIMIT` one row, the bytes at the row-group limit."""
        self._before = last_execution(self.spark)
        if contender == LIMIT:
            return Answer(("bigint",), ((limit_bytes(self.frame(contender, query)),),))
        return by_spark(self.frame(contender, query))

    def frame(self, contender: str, query: str) -> DataFrame:
        """A new DataFrame of a query, for the contender "pruned" by the door of the engine."""
        if contender == ALWAYS:
            return self._session(contender).sql(query)
        if contender != "pruned":
            return self.spark.sql(query)
        return prune(self.spark.sql(query)) if self.enabled is None else self.enabled.sql(query)

    def report(self, contender: str = "pruned") -> PruneReport:
        """The report of the latest query of an enabled session."""
        return history(self._session(contender))[0]

    def _session(self, contender: str) -> SparkSession:
        found = self._always if contender == ALWAYS else self.enabled
        if found is None:
            raise ValueError(f"Cannot run a query for {contender!r}: no session of this engine is enabled")
        return found

    def exchanges(self, contender: str, query: str) -> list[Exchange]:
        """The exchanges of a query that ran to its end, with those of its builds."""
        self.answer(contender, query)
        return list(exchanges_of(sql_store(self.spark), finished_executions(self.spark, self._before)))

    def exchanged(self) -> int:
        """Bytes of shuffle reads, and bytes returned from Python workers, which Spark rounds to three digits or so."""
        store, executions = sql_store(self.spark), finished_executions(self.spark, self._before)
        returned = [_returned(store, int(each.executionId())) for each in executions]
        return _shuffled(self.spark, executions) + sum(returned)


def _shuffled(spark: SparkSession, executions: Sequence[Any]) -> int:
    attempts = [stage_attempt(spark, each) for each in stages_of(executions)]
    return sum(int(each.shuffleReadBytes()) for each in attempts if each is not None)


def _returned(store: Any, execution: int) -> int:
    nodes = store.planGraph(execution).allNodes()
    metrics = [node.metrics() for node in (nodes.apply(at) for at in range(nodes.size()))]
    every = [each.apply(at) for each in metrics for at in range(each.size())]
    values = store.executionMetrics(execution)
    # A reused subplan appears twice, with the same accumulators.
    counters = {int(each.accumulatorId()) for each in every if str(each.name()) == _RETURNED}
    return sum(size_of(str(values.apply(each))) for each in counters if values.contains(each))


def size_of(told: str) -> int:
    r"""Bytes of a size in Spark's format, the first size if there are several.

    >>> size_of("total (min, med, max (stageId: taskId))\n7.6 MiB (3.8 MiB, 3.8 MiB, 3.8 MiB (stage 0.0: task 0))")
    7969177
    >>> size_of("0.0 B")
    0
    """
    found = _SIZE.search(told)
    if found is None:
        raise ValueError(f"Cannot read {told!r}: expected a size such as '7.6 MiB'")
    return int(float(found[1].replace(",", "")) * 1024 ** _UNITS.index(found[2]))


def _path(file: str) -> str:
    """The path of a file from a `file:` URI or a path."""
    return unquote(urlsplit(file).path) if file.startswith("file:") else file


if __name__ == "__main__":
    # The arguments are settings as `name=value`.
    given = dict(each.split("=", 1) for each in sys.argv[1:])
    serve(partial(SparkEngine, given, door=given.pop(DOOR, PRUNE)))
