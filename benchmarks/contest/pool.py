"""The engines of a contest, each in a process that is started on first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from benchmarks.contest.place import Table
from benchmarks.contest.worker import Worker

_SPARK = "benchmarks.contest.spark_engine"
# The row-group limit, a computed bound instead of a contender that runs.
LIMIT = "limit"
# The engine of each contender; contenders of one engine share its process.
ENGINES: Mapping[str, str] = MappingProxyType(
    {
        "pruned": _SPARK,
        "stock": _SPARK,
        "duckdb": "benchmarks.contest.duckdb_engine",
        "datafusion": "benchmarks.contest.datafusion_engine",
        LIMIT: _SPARK,
    }
)
STRICT = frozenset({"pruned", "stock"})


@dataclass(slots=True)
class _Running:
    worker: Worker
    layout: str = ""


class Pool:
    """The workers of all engines; a worker that has ended is restarted with the tables of the requested layout."""

    def __init__(
        self, logs: Path, seconds: float, conf: Sequence[str], environment: Mapping[str, str], *, apart: bool
    ) -> None:
        self._logs, self._seconds, self._conf, self._environment = logs, seconds, conf, environment
        self._apart = apart
        self._running: dict[str, _Running] = {}

    def worker(self, contender: str, layout: str, tables: Sequence[Table]) -> Worker:
        """The worker of a contender, with `tables` registered."""
        engine = ENGINES[contender]
        process = contender if self._apart else engine
        found = self._running.get(process)
        if found is not None and not found.worker.is_alive():
            found.worker.end()
            found = None
        if found is None:
            arguments = self._conf if engine == _SPARK else ()
            log = self._logs / f"{process.rpartition('.')[2]}.log"
            found = self._running[process] = _Running(Worker(engine, log, self._seconds, arguments, self._environment))
        if found.layout != layout:
            found.worker.tables(tables)
            found.layout = layout
        return found.worker

    def end(self) -> None:
        """Ends all workers."""
        for each in self._running.values():
            each.worker.end()


@contextmanager
def pool(
    logs: Path,
    seconds: float,
    conf: Sequence[str] = (),
    environment: Mapping[str, str] = MappingProxyType({}),
    *,
    apart: bool = False,
) -> Iterator[Pool]:
    """A pool whose workers end with the block; `seconds` is the time limit of a query.

    - `conf`: Spark's settings, as `name=value`
    - `environment`: environment variables of all workers
    - `apart`: a worker for each contender instead of one for each engine
    """
    found = Pool(logs, seconds, conf, environment, apart=apart)
    try:
        yield found
    finally:
        found.end()
