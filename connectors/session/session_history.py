"""`SessionHistory`: what became of the latest queries that a session planned."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from itertools import islice

from connectors.pipeline.pruned_command import WholeCommand
from connectors.pipeline.pruned_query import PrunedQuery
from pruning.results.prune_report import PruneReport
from pruning.results.verdict import NOTHING_TO_PRUNE

QueryRecord = PrunedQuery | WholeCommand
# The execution of a query that was planned before its execution began.
NO_EXECUTION = -1
# So many queries keep their plan in the JVM, which holds rows and RDDs: a checkpoint, a list, the batch of a stream.
_WITH_PLANS = 4


@dataclass(frozen=True, slots=True)
class Entry:
    """A query by its execution; `record` is None where it had nothing to prune."""

    execution: int
    record: QueryRecord | None

    def report(self) -> PruneReport:
        """The report of the query."""
        return PruneReport((), NOTHING_TO_PRUNE) if self.record is None else self.record.report()


@dataclass(slots=True)
class SessionHistory:
    """The latest queries of a session, newest first and no more than `most`; thread-safe."""

    most: int
    _entries: deque[Entry] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, execution: int, record: QueryRecord) -> None:
        """Adds a query that has just been planned."""
        with self._lock:
            self._entries.appendleft(Entry(execution, record))
            self._trim()

    def replace(self, execution: int, record: QueryRecord) -> None:
        """Puts another record in the place of the latest one of an execution."""
        with self._lock:
            for at, each in enumerate(self._entries):
                if each.execution == execution:
                    self._entries[at] = Entry(execution, record)
                    return

    def add_plain(self, count: int) -> None:
        """Adds so many queries that had nothing to prune, and that came after all others."""
        with self._lock:
            self._entries.extendleft([Entry(NO_EXECUTION, None)] * count)
            self._trim()

    def forget_plans(self) -> None:
        """Drops the plans of all queries, after looking for the reasons against filters."""
        for each in self.latest():
            _forget_plan(each, keeps_reasons=True)

    def latest(self) -> list[Entry]:
        """The queries, newest first."""
        with self._lock:
            return [*self._entries]

    def records(self) -> list[QueryRecord]:
        """The records of those that were handed over."""
        return [each.record for each in self.latest() if each.record is not None]

    def resized(self, most: int) -> SessionHistory:
        """A history that begins with these queries."""
        return SessionHistory(most, deque(islice(self.latest(), most)))

    def _trim(self) -> None:
        while len(self._entries) > self.most:
            _forget_plan(self._entries.pop())
        for each in islice(self._entries, _WITH_PLANS, None):
            _forget_plan(each)


def _forget_plan(entry: Entry, *, keeps_reasons: bool = False) -> None:
    if isinstance(entry.record, PrunedQuery):
        entry.record.forget_plan(keeps_reasons=keeps_reasons)
