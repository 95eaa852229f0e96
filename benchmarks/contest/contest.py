"""A contest: contenders answer the same queries over the same files in turns, and their resource use is recorded."""

from __future__ import annotations

import json
import statistics
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.contest.judge import TIES, Judge, judge
from benchmarks.contest.place import Table
from benchmarks.contest.pool import ENGINES, LIMIT, STRICT, Pool, pool
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
from sample_data.tpcds import TABLES, generate
from sample_data.tpcds_queries import SELECTIVE, Query, queries

CONTENDERS = tuple(ENGINES)
_SEPARATOR = " "


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a contest: each query has a warm-up run and `runs` timed runs of at most `seconds` each.

    - `conf`: additional entries `name=value` of the session of both Sparks
    - `place`: one of `PLACES`
    - `shape`: latency and bandwidth of the object store
    - `label`: a word in the name of the results, "" for none
    - `apart`: each contender has a process of its own, even those of the same engine, to compare peaks of memory
    """

    scale: float
    layouts: tuple[str, ...] = tuple(LAYOUTS)
    numbers: tuple[int, ...] = SELECTIVE
    contenders: tuple[str, ...] = CONTENDERS
    runs: int = 3
    seconds: float = 600.0
    conf: tuple[str, ...] = ()
    place: str = LOCAL
    shape: Shape = SHAPED
    label: str = ""
    apart: bool = False

    @property
    def results(self) -> str:
        """The name of the file of results."""
        told = (self.label, "" if self.place == LOCAL else self.place, f"sf{self.scale:g}")
        return "-".join(("contest", *filter(None, told)))

    @property
    def name(self) -> str:
        """The name that contests with equal settings share, so that an interrupted contest can be resumed."""
        same = (self.contenders, self.runs, self.seconds, self.conf, self.shape.to_json(), self.apart)
        return f"{self.results}-{zlib.crc32(json.dumps(same).encode()):08x}"


FULL = Settings(1.0)
# A lower `min_probe_bytes`, because at this scale every scan is below the default.
QUICK = Settings(0.05, ("delta", "partitioned"), (20, 21, 96), conf=("spark.pruning.min_probe_bytes=100000",))


@dataclass(frozen=True, slots=True)
class Run:
    """One answer: its time, its use of the machine and the store, and the difference of its rows ("" if none)."""

    seconds: float
    used: Usage
    served: Served | None
    rows: int
    differs: str

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
        found: dict[str, list[Run | Failed]] = {name: [] for name in self.settings.contenders if name != LIMIT}
        for _ in range(1 + self.settings.runs):
            for name, runs in found.items():
                # A contender that failed once does not run the query again.
                if not (runs and isinstance(runs[-1], Failed)):
                    runs.append(self._run(layout, query, name))
        head = {"scale": self.settings.scale, "layout": layout, "query": query.name}
        if self.settings.place != LOCAL:
            head |= {"place": self.settings.place, **self.settings.shape.to_json()}
        if self.settings.label:
            head["label"] = self.settings.label
        if self.settings.apart:
            head["apart"] = True
        if self.settings.conf:
            head["conf"] = ", ".join(self.settings.conf)
        rows = [{**head, "contender": name, **_summary(runs)} for name, runs in found.items()]
        if LIMIT in self.settings.contenders:
            rows.append({**head, "contender": LIMIT, **self._limit(layout, query)})
        return rows

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
        try:
            worker = self.pool.worker(contender, layout, self.tables[layout])
            reset_peaks(worker.process)
            before = usage(worker.process)
            self.site.reset()
            seconds = worker.answer(contender, query.text)
            served = self.site.reset()
            used = usage(worker.process).since(before)
            used = replace(used, bytes_read=used.bytes_read - worker.exchanged())
            answer = worker.rows()
        except WorkerFailed as error:
            return Failed(str(error))
        differs = self.judge.verdict(query, contender, answer, strict=contender in STRICT)
        return Run(seconds, used, served, len(answer.rows), differs)


def run(settings: Settings, folder: Path | None = None) -> list[dict[str, Any]]:
    """One row for each layout, query and contender; resumes an interrupted call with equal settings."""
    if not is_accounted():
        raise EnvironmentProblem("Cannot count what engines read: this needs Linux's /proc/<process>/io")
    pairs = [f"{layout}{_SEPARATOR}q{number}" for layout in settings.layouts for number in settings.numbers]
    with progress_bar(Console(stderr=True)) as progress, _contest(settings, folder or default_folder(), progress) as it:

        def measure(pair: str) -> dict[str, Any]:
            layout, name = pair.split(_SEPARATOR)
            progress(f"{name}, {layout}", pairs.index(pair) / len(pairs))
            return {"rows": it.rows(layout, it.queries[name])}

        return with_ratios([row for found in resumed(settings.name, pairs, measure) for row in found["rows"]])


@contextmanager
def _contest(settings: Settings, folder: Path, progress: Progress = quiet) -> Iterator[Contest]:
    known = {each.name: each for each in queries() if each.number in settings.numbers}
    named = [table for table in TABLES if any(each.names(table) for each in known.values())]
    # The site comes first: if it is not available, the tables need not be made.
    with site(settings.place, folder) as found_at, tempfile.TemporaryDirectory() as logs:
        source = generate(settings.scale, folder, named, progress)
        laid_out = {layout: tables(layout, source, folder, found_at) for layout in settings.layouts}
        found_at.reshape(settings.shape)
        confs = (*found_at.conf, *settings.conf)
        with (
            judge(folder / f"judge-sf{settings.scale:g}", source) as found,
            pool(Path(logs), settings.seconds, confs, found_at.environment, apart=settings.apart) as workers,
        ):
            yield Contest(settings, workers, found, laid_out, known, found_at)


def _summary(runs: Sequence[Run | Failed]) -> dict[str, Any]:
    """Medians of the timed runs; bytes are of the last run, in which Java does not load classes any more."""
    if isinstance(runs[-1], Failed):
        return {"failed": runs[-1].why}
    counted = [each for each in runs if isinstance(each, Run)]
    timed = counted[1:]
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
