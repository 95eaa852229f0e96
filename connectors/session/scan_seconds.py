"""`ScanSeconds`: the seconds that a session's scans took beside those that were planned, to correct its rates.

A listener in Java keeps the seconds of executed scans (`connectors/measure/java/ScanSeconds.java`). When the session
plans its next query they are matched with planned scans by the ids of columns. A build may read a scan before it is
pruned: such a scan is none of the query.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from connectors.cost_rates import observe_scans
from connectors.pipeline.pruned_query import PrunedQuery
from connectors.spark.jvm import JavaFile, instance, jvm_session
from pruning.options import PruningOptions

_LISTENER = JavaFile("connectors.measure", "ScanSeconds")
# Columns of scans whose queries have not ended yet, or never run.
_MOST_COLUMNS = 4096
_MOST_SCANS = 512


@dataclass(frozen=True, slots=True, eq=False)
class PlannedScans:
    """The scans of a planned query.

    - `seconds`: those of tasks that each scan is expected to take, by the ids of its columns
    - `pruned`: the columns of scans with filters
    - `options`: those of the query, with the rates by which it was planned
    """

    seconds: Mapping[frozenset[int], float]
    pruned: frozenset[int]
    options: PruningOptions

    @staticmethod
    def of(record: PrunedQuery) -> PlannedScans:
        """The scans of a query that is about to run."""
        relations = () if record.plan is None else record.plan.graph.relations
        pruned = frozenset(column for each in relations if each.id in record.scans for column in each.output)
        return PlannedScans(record.expected_scans(), pruned, record.options)


@dataclass(slots=True)
class ScanSeconds:
    """The planned scans of one session that have not ended yet; thread-safe."""

    _spark: SparkSession
    _listener: Any
    _waiting: OrderedDict[int, tuple[PlannedScans, frozenset[int]]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @staticmethod
    def started(spark: SparkSession, pruned_indexes: str) -> ScanSeconds:
        """Listens to the queries of a session until `stop()`; names of file indexes have spaces between them."""
        listener = instance(spark, _LISTENER, jvm_session(spark), pruned_indexes, _MOST_SCANS)
        listener.start()
        return ScanSeconds(spark, listener)

    def stop(self) -> None:
        """Listens no more."""
        self._listener.stop()

    def expect(self, planned: PlannedScans) -> None:
        """Waits for the scans of a query that is about to run."""
        with self._lock:
            for columns in planned.seconds:
                for each in columns:
                    self._waiting.pop(each, None)
                    self._waiting[each] = planned, columns
            while len(self._waiting) > _MOST_COLUMNS:
                self._waiting.popitem(last=False)

    def learn(self) -> None:
        """Corrects the rates of the session by the scans that have ended since the last call; one step for a query."""
        for query, (expected, actual) in self._ended(str(self._listener.taken()).splitlines()).items():
            observe_scans(self._spark, query.options, expected, actual)

    def _ended(self, lines: Sequence[str]) -> Mapping[PlannedScans, tuple[float, float]]:
        """The seconds that were expected of the scans of each query, and those that they took."""
        found: dict[PlannedScans, tuple[float, float]] = {}
        done = set[int]()
        with self._lock:
            for line in lines:
                milliseconds, is_pruned, *columns = map(int, line.split())
                waiting = ((each, *self._waiting[each]) for each in columns if each in self._waiting)
                column, query, scan = next(waiting, (None, None, None))
                if query is None or scan is None or (column in query.pruned) != bool(is_pruned):
                    continue
                expected, actual = found.get(query, (0.0, 0.0))
                found[query] = expected + query.seconds[scan], actual + milliseconds / 1000
                done |= scan
            for each in done:
                del self._waiting[each]
        return found
