"""`Refusals`: queries of a session that had nothing to prune, so that they are not planned twice."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from connectors.pipeline.pruned_query import PrunedQuery
from pruning.limits import Limits
from pruning.options import PruningOptions

_Key = tuple[int, PruningOptions]


@dataclass(slots=True)
class Refusals:
    """The records of queries without filters, by a hash of the plan and by the options; thread-safe.

    The hash covers tables and their versions, but for names and ids of columns. Two plans of one hash would only leave
    the second unpruned, as long as a refusal is remembered: rates, and files of tables without versions, may change.
    """

    clock: Callable[[], float] = time.monotonic
    _known: OrderedDict[_Key, tuple[float, PrunedQuery]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, plan: int, options: PruningOptions) -> PrunedQuery | None:
        """The record of an equal query that had nothing to prune; None if there was none, or too long ago."""
        with self._lock:
            until, record = self._known.get((plan, options), (0.0, None))
            return record if self.clock() < until else None

    def add(self, plan: int, options: PruningOptions, record: PrunedQuery, limits: Limits) -> None:
        """Remembers a query that has nothing to prune."""
        with self._lock:
            self._known[plan, options] = self.clock() + limits.refused_query_seconds, record
            self._known.move_to_end((plan, options))
            while len(self._known) > limits.refused_queries:
                self._known.popitem(last=False)
