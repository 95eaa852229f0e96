"""`SessionHistory`: what became of the latest queries that a session planned."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import islice

from connectors.pipeline.pruned_command import WholeCommand
from connectors.pipeline.pruned_query import PrunedQuery
from pruning.results.prune_report import PruneReport
from pruning.results.query_origin import QueryOrigin
from pruning.results.verdict import NOTHING_TO_PRUNE

QueryRecord = PrunedQuery | WholeCommand
# Marks in the texts of `QueryOrigin.java`.
_BETWEEN_FIELDS, _BETWEEN_VALUES, _BETWEEN_QUERIES = "\0\1\2"
# So many queries keep their plan in the JVM, which holds rows and RDDs: a checkpoint, a list, the batch of a stream.
_WITH_PLANS = 4


@dataclass(frozen=True, slots=True)
class Entry:
    """A query by its origin; `record` is None where it had nothing to prune."""

    origin: QueryOrigin
    record: QueryRecord | None

    def report(self) -> PruneReport:
        """The report of the query."""
        found = PruneReport((), NOTHING_TO_PRUNE) if self.record is None else self.record.report()
        return replace(found, query=self.origin)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The queries that are looked for: those with each of these properties that is not None."""

    table: str | None = None
    tag: str | None = None
    job_group: str | None = None
    execution_id: int | None = None

    def fits(self, query: QueryOrigin) -> bool:
        """True for a query that is looked for."""
        return (
            (self.table is None or query.reads(self.table))
            and (self.tag is None or self.tag in query.tags)
            and (self.job_group is None or self.job_group == query.job_group)
            and (self.execution_id is None or query.is_of(self.execution_id))
        )


EVERY = Wanted()


def origin_of(text: str) -> QueryOrigin:
    """The origin that `QueryOrigin.java` tells."""
    execution, root, group, tags, tables = text.split(_BETWEEN_FIELDS)
    tagged, named = (tuple(each.split(_BETWEEN_VALUES)) if each else () for each in (tags, tables))
    return QueryOrigin(int(execution) if execution else None, int(root) if root else None, group or None, tagged, named)


def origins_of(text: str) -> list[QueryOrigin]:
    """The origins of several queries, each with a mark behind it, the oldest first."""
    return [origin_of(each) for each in text.split(_BETWEEN_QUERIES)[:-1]]


@dataclass(slots=True)
class SessionHistory:
    """The latest queries of a session, newest first and no more than `most`; thread-safe."""

    most: int
    _entries: deque[Entry] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, query: QueryOrigin, record: QueryRecord) -> None:
        """Adds a query that has just been planned."""
        with self._lock:
            self._entries.appendleft(Entry(query, record))
            self._trim()

    def replace(self, execution: int | None, record: QueryRecord) -> None:
        """Puts another record in the place of the latest one of an execution, or of the latest one without any."""
        with self._lock:
            for at, each in enumerate(self._entries):
                if each.origin.execution_id == execution:
                    self._entries[at] = Entry(each.origin, record)
                    return

    def add_plain(self, queries: Iterable[QueryOrigin]) -> None:
        """Adds queries that had nothing to prune, and that came after all others, the oldest first."""
        with self._lock:
            self._entries.extendleft(Entry(each, None) for each in queries)
            self._trim()

    def forget_plans(self) -> None:
        """Drops the plans of all queries, after looking for the reasons against filters."""
        for each in self.latest():
            _forget_plan(each, keeps_reasons=True)

    def latest(self, wanted: Wanted = EVERY) -> list[Entry]:
        """The queries that are looked for, newest first."""
        with self._lock:
            return [each for each in self._entries if wanted.fits(each.origin)]

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
