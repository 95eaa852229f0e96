"""A contest: contenders answer the same queries over the same files in turns, and their resource use is recorded."""

from __future__ import annotations

import json
import random
import statistics
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from rich.console import Console

from benchmarks.contest.judge import TIES, Judge, judge
from benchmarks.contest.place import Table
from benchmarks.contest.pool import ALWAYS, DOOR, ENGINES, LIMIT, SESSION, SPARK, STRICT, Pool, Sessions, pool
from benchmarks.contest.ratios import with_ratios
from benchmarks.contest.site import LOCAL, Site, site
from benchmarks.contest.tables import tables
from benchmarks.contest.worker import WorkerFailed
from benchmarks.resume import resumed
from connectors.cli.command import default_folder, progress_bar
from pruning.errors import EnvironmentProblem
from sample_data.cache import Progress, quiet
from sample_data.layouts import LAYOUTS
from sample_data.object_store.shape import SHAPED, Shape
from sample_data.object_store.store import Served
from sample_data.process_tree import Usage, is_accounted, reset_peaks, usage
from sample_data.source import SourceFiles
from sample_data.tpcds_queries import Answer, Query
from sample_data.workload import TPCDS, WORKLOADS

CONTENDERS = tuple(ENGINES)
_SEPARATOR = " "
# The seed of the lots by which contenders take turns where each query runs once.
_LOTS = 23


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a contest: each query has a warm-up run and `runs` timed runs of at most `seconds` each.

    - `queries`: names of queries of the workload
    - `conf`: additional entries `name=value` of the session of both Sparks
    - `place`: one of `PLACES`
    - `shape`: latency and bandwidth of the object store
    - `door`: one of `DOORS`, by which pruned Spark prunes
    - `label`: a word in the name of the results, "" for none
    - `apart`: each contender has a process of its own, even those of the same engine, to compare peaks of memory
    - `workload`: one of `WORKLOADS`
    - `once`: instead of `runs`, each query runs once in the session of each contender, as users run queries; each
      contender has a process of its own, and a lot decides their order for each query
    """

    scale: float
    layouts: tuple[str, ...] = tuple(LAYOUTS)
    queries: tuple[str, ...] = TPCDS.selective
    contenders: tuple[str, ...] = tuple(name for name in CONTENDERS if name != ALWAYS)
    runs: int = 3
    seconds: float = 600.0
    conf: tuple[str, ...] = ()
    place: str = LOCAL
    shape: Shape = SHAPED
    label: str = ""
    apart: bool = False
    workload: str = TPCDS.name
    once: bool = False
    door: str = SESSION

    @property
    def results(self) -> str:
        """The name of the file of results."""
        place = "" if self.place == LOCAL else self.place
        workload = WORKLOADS[self.workload].schema.label
        door = "" if self.door == SESSION else self.door
        told = (workload, "once" if self.once else "", door, self.label, place, f"sf{self.scale:g}")
        return "-".join(("contest", *filter(None, told)))

    @property
    def head(self) -> dict[str, Any]:
        """The fields of every row of results, as far as they differ from a contest with default settings."""
        here = self.place == LOCAL
        return {
            **({} if self.workload == TPCDS.name else {"workload": self.workload}),
            "scale": self.scale,
            DOOR: self.door,
            **({} if here else {"place": self.place, **self.shape.to_json()}),
            **({"label": self.label} if self.label else {}),
            **({"apart": True} if self.apart else {}),
            **({"once": True} if self.once else {}),
            **({"conf": ", ".join(self.conf)} if self.conf else {}),
        }

    @property
    def name(self) -> str:
        """The name that contests with equal settings share, so that an interrupted contest can be resumed."""
        runs = 1 if self.once else self.runs
        same = (self.contenders, runs, self.seconds, self.conf, self.shape.to_json(), self.apart, self.queries)
        return f"{self.results}-{zlib.crc32(json.dumps(same).encode()):08x}"


FULL = Settings(1.0)
# At this scale no filter pays, so each sound one is used.
QUICK = Settings(0.05, ("delta", "partitioned"), ("q20", "q21", "q96"), conf=("spark.pruning.always=true",))


@dataclass(frozen=True, slots=True)
class Run:
    """One answer: its time, its use of the machine and the store, and the difference of its rows ("" if none)."""

    seconds: float
    used: Usage
    served: Served | None
    rows: int
    differs: str = ""

    @property
    def bytes_read(self) -> int:
        """Bytes read, as counted by the object store if there is one, else by the operating system."""
        return self.used.bytes_read if self.served is None else self.served.bytes


@dataclass(frozen=True, slots=True)
class Failed:
    """The reason why there is no answer."""

    why: str


@dataclass(frozen=True, slots=True)
class Contest:
    """The engines, the tables by layout, the queries by name, and the judge of the rows."""

    settings: Settings
    pool: Pool
    judge: Judge
    tables: Mapping[str, Sequence[Table]]
    queries: Mapping[str, Query]
    site: Site

    def rows(self, layout: str, query: Query) -> list[dict[str, Any]]:
        """One row for each contender."""
        head = {**self.settings.head, "layout": layout, "query": query.name}
        names = [name for name in self.settings.contenders if name != LIMIT]
        if self.settings.once:
            turns = _lots(names, layout, query)
            # Judged after all turns: the judge may read whole tables, and push files out of the system's cache.
            answers = {name: self._answered(layout, query, name) for name in turns}
            runs = {name: self._judged(query, name, answers[name]) for name in names}
            rows = [{**_summary([runs[name]]), "turn": 1 + turns.index(name)} for name in names]
        else:
            rows = [_summary(each) for each in self._by_turns(layout, query, names)]
        rows = [{**head, "contender": name, **row} for name, row in zip(names, rows, strict=True)]
        if LIMIT in self.settings.contenders:
            rows.append({**head, "contender": LIMIT, **self._limit(layout, query)})
        return rows

    def _by_turns(self, layout: str, query: Query, names: Sequence[str]) -> list[list[Run | Failed]]:
        """The runs of each contender, the first of which warms up; a failure ends them."""
        found: dict[str, list[Run | Failed]] = {name: [] for name in names}
        for _ in range(1 + self.settings.runs):
            for name, runs in found.items():
                # A contender that failed once does not run the query again.
                if not (runs and isinstance(runs[-1], Failed)):
                    runs.append(self._run(layout, query, name))
        return list(found.values())

    def _limit(self, layout: str, query: Query) -> dict[str, Any]:
        """Bytes at the row-group limit, the fewest possible by skipping row groups; computed once, not measured."""
        try:
            worker = self.pool.worker(LIMIT, layout, self.tables[layout])
            worker.answer(LIMIT, query.text)
            ((found,),) = worker.rows().rows
        except WorkerFailed as error:
            return {"failed": str(error)}
        return {"bytes": found}

    def _run(self, layout: str, query: Query, contender: str) -> Run | Failed:
        return self._judged(query, contender, self._answered(layout, query, contender))

    def _judged(self, query: Query, contender: str, answered: tuple[Run, Answer] | Failed) -> Run | Failed:
        if isinstance(answered, Failed):
            return answered
        run, answer = answered
        return replace(run, differs=self.judge.verdict(query, contender, answer, strict=contender in STRICT))

    def _answered(self, layout: str, query: Query, contender: str) -> tuple[Run, Answer] | Failed:
        """A run that is not judged yet, and its answer."""
        try:
            worker = self.pool.worker(contender, layout, self.tables[layout])
            text = query.text if ENGINES[contender] == SPARK else query.in_duckdb.text
            reset_peaks(worker.process)
            before = usage(worker.process)
            self.site.reset()
            seconds = worker.answer(contender, text)
            served = self.site.reset()
            used = usage(worker.process).since(before)
            used = replace(used, bytes_read=used.bytes_read - worker.exchanged())
            answer = worker.rows()
        except WorkerFailed as error:
            return Failed(str(error))
        return Run(seconds, used, served, len(answer.rows)), answer


def run(settings: Settings, folder: Path | None = None) -> list[dict[str, Any]]:
    """One row for each layout, query and contender; resumes an interrupted call with equal settings."""
    if not is_accounted():
        raise EnvironmentProblem("Cannot count what engines read: this needs Linux's /proc/<process>/io")
    pairs = [f"{layout}{_SEPARATOR}{name}" for layout in settings.layouts for name in settings.queries]
    with progress_bar(Console(stderr=True)) as progress, _contest(settings, folder or default_folder(), progress) as it:

        def measure(pair: str) -> dict[str, Any]:
            layout, name = pair.split(_SEPARATOR)
            progress(f"{name}, {layout}", pairs.index(pair) / len(pairs))
            return {"rows": it.rows(layout, it.queries[name])}

        return with_ratios([row for found in resumed(settings.name, pairs, measure) for row in found["rows"]])


@contextmanager
def _contest(settings: Settings, folder: Path, progress: Progress = quiet) -> Iterator[Contest]:
    workload = WORKLOADS[settings.workload]
    known = {each.name: each for each in workload.queries() if each.name in settings.queries}
    named = [table for table in workload.schema.tables if any(each.names(table) for each in known.values())]
    # The site comes first: if it is not available, the tables need not be made.
    with site(settings.place, folder) as found_at, tempfile.TemporaryDirectory() as logs:
        source = workload.generate(settings.scale, folder, named, progress)
        laid_out = {layout: tables(layout, source, folder, found_at) for layout in settings.layouts}
        found_at.reshape(settings.shape)
        confs = (*found_at.conf, *settings.conf, f"{DOOR}={settings.door}")
        sessions = Sessions(confs, found_at.environment, settings.apart or settings.once, _opening(settings, source))
        with (
            judge(folder / workload.schema.folder(settings.scale, "judge"), source, workload.names) as found,
            pool(Path(logs), settings.seconds, sessions) as workers,
        ):
            yield Contest(settings, workers, found, laid_out, known, found_at)


def _opening(settings: Settings, source: SourceFiles) -> str:
    """The query that opens a session where each query runs once, so that the first does not pay for its start.

    It joins the smallest table with itself by its first column.
    """
    if not settings.once:
        return ""
    table, path = min(source.paths.items(), key=lambda each: each[1].stat().st_size)
    key = pq.read_schema(path).names[0]
    return f'SELECT a."{key}", count(*) FROM "{table}" a JOIN "{table}" b ON a."{key}" = b."{key}" GROUP BY a."{key}"'


def _lots(names: Sequence[str], layout: str, query: Query) -> list[str]:
    """The contenders in the order of their turns, which is the same in each contest with these contenders."""
    return random.Random(f"{_LOTS} {layout} {query.name}").sample(names, len(names))


def _summary(runs: Sequence[Run | Failed]) -> dict[str, Any]:
    """Medians of the timed runs, which are all but the first, unless there is only one.

    Bytes are those of the last run, because Java loads classes in earlier ones.
    """
    if isinstance(runs[-1], Failed):
        return {"failed": runs[-1].why}
    counted = [each for each in runs if isinstance(each, Run)]
    timed = counted[1:] or counted
    wrong = next((each.differs for each in counted if each.differs not in {"", TIES}), "")
    return {
        "seconds": statistics.median(each.seconds for each in timed),
        "seconds_least": min(each.seconds for each in timed),
        "seconds_most": max(each.seconds for each in timed),
        "bytes": timed[-1].bytes_read,
        **({"requests": timed[-1].served.requests} if timed[-1].served else {}),
        "cpu_seconds": statistics.median(each.used.cpu_seconds for each in timed),
        "peak_bytes": max(each.used.peak_bytes for each in timed),
        "rows": timed[-1].rows,
        "rows_equal": not wrong,
        "differs": wrong or next((each.differs for each in counted if each.differs), ""),
    }
