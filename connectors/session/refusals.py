"""Queries of a session that had nothing to prune: `Refusals` plans none twice, `StreamRefusals` records none twice."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from connectors.pipeline.pruned_query import PrunedQuery
from pruning.limits import Limits
from pruning.options import PruningOptions
from pruning.reasons import ReasonCode

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


@dataclass(slots=True)
class StreamRefusals:
    """Why the latest micro-batch of each stream was left as it was, so that not every one of them has a record.

    Each start of a stream has a session of its own, by whose id it is known. Thread-safe.
    """

    _known: OrderedDict[str, frozenset[ReasonCode]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def is_new(self, session: str, record: PrunedQuery, limits: Limits) -> bool:
        """True if a micro-batch was pruned, or if it was left as it was for other reasons than the one before it."""
        with self._lock:
            known = self._known.pop(session, None)
            if record.scans:
                return True
            codes = frozenset(each.code for each in record.reasons)
            self._known[session] = codes
            while len(self._known) > limits.other_sessions:
                self._known.popitem(last=False)
            return known != codes
