"""The engines of a contest, each in a process that is started on first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from benchmarks.contest.place import Table
from benchmarks.contest.worker import Worker

SPARK = "benchmarks.contest.spark_engine"
# The row-group limit, a computed bound instead of a contender that runs.
LIMIT = "limit"
# Pruned Spark with the option `always`, by the door of a session.
ALWAYS = "always"
# The engine of each contender; contenders of one engine share its process.
ENGINES: Mapping[str, str] = MappingProxyType(
    {
        "pruned": SPARK,
        "stock": SPARK,
        ALWAYS: SPARK,
        "duckdb": "benchmarks.contest.duckdb_engine",
        "datafusion": "benchmarks.contest.datafusion_engine",
        LIMIT: SPARK,
    }
)
STRICT = frozenset({"pruned", "stock", ALWAYS})
# Doors of pruned Spark: a session in which pruning is enabled, or `prune()` for each query.
SESSION, PRUNE = "session", "prune"
DOORS = (SESSION, PRUNE)
DOOR = "door"


@dataclass(frozen=True, slots=True)
class Sessions:
    """The sessions of engines.

    - `conf`: Spark's settings, as `name=value`
    - `environment`: environment variables of all workers
    - `apart`: a worker for each contender instead of one for each engine
    - `opening`: a query that runs first in each session, "" for none; with it, each layout has a session of its own
    """

    conf: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    apart: bool = False
    opening: str = ""


_USUAL = Sessions()


@dataclass(slots=True)
class _Running:
    worker: Worker
    layout: str = ""


class Pool:
    """The workers of all engines; a worker that has ended is restarted with the tables of the requested layout."""

    def __init__(self, logs: Path, seconds: float, sessions: Sessions) -> None:
        self._logs, self._seconds, self._sessions = logs, seconds, sessions
        self._running: dict[str, _Running] = {}

    def worker(self, contender: str, layout: str, tables: Sequence[Table]) -> Worker:
        """The worker of a contender, with `tables` registered. Raises `WorkerFailed` if there is none."""
        engine = ENGINES[contender]
        process = contender if self._sessions.apart else engine
        found = self._running.get(process)
        if found is not None and not (found.worker.is_alive() and self._continues(found, layout)):
            found.worker.end()
            found = None
        if found is None:
            arguments = self._sessions.conf if engine == SPARK else ()
            log = self._logs / f"{process.rpartition('.')[2]}.log"
            worker = Worker(engine, log, self._seconds, arguments, self._sessions.environment)
            found = self._running[process] = _Running(worker)
        if found.layout != layout:
            found.worker.tables(tables)
            if self._sessions.opening and contender != LIMIT:
                found.worker.answer(contender, self._sessions.opening)
            found.layout = layout
        return found.worker

    def _continues(self, running: _Running, layout: str) -> bool:
        """True if the session of a worker may go on with the tables of a layout."""
        return not self._sessions.opening or running.layout in {"", layout}

    def end(self) -> None:
        """Ends all workers."""
        for each in self._running.values():
            each.worker.end()


@contextmanager
def pool(logs: Path, seconds: float, sessions: Sessions = _USUAL) -> Iterator[Pool]:
    """A pool whose workers end with the block; `seconds` is the time limit of a query."""
    found = Pool(logs, seconds, sessions)
    try:
        yield found
    finally:
        found.end()
