"""Lets contenders answer the same queries over the same files by turns, and writes down what each one used."""

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
    """What is compared: each query runs `runs` times, and once before that, in at most `seconds`.

    `conf`: entries `name=value` of both Sparks' session beside those that it has. `place`: one of `PLACES`; `shape`:
    how far away an object store seems. `label`: a word in the name of the results, "" for none. `apart`: each contender
    has a process of its own, those of one engine too, so that peaks of memory are its own.
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
        """The name of the file of what is measured."""
        told = (self.label, "" if self.place == LOCAL else self.place, f"sf{self.scale:g}")
        return "-".join(("contest", *filter(None, told)))

    @property
    def name(self) -> str:
        """Of what measures the same, so that it may go on after an interruption."""
        same = (self.contenders, self.runs, self.seconds, self.conf, self.shape.to_json(), self.apart)
        return f"{self.results}-{zlib.crc32(json.dumps(same).encode()):08x}"


FULL = Settings(1.0)
# At this scale the default gates leave all scans alone, as they should.
QUICK = Settings(0.05, ("delta", "partitioned"), (20, 21, 96), conf=("spark.pruning.min_probe_bytes=100000",))


@dataclass(frozen=True, slots=True)
class Run:
    """One answer: its time, what it took of the machine and of a store, how its rows are wrong ("" if they are not)."""

    seconds: float
    used: Usage
    served: Served | None
    rows: int
    differs: str

    @property
    def bytes_read(self) -> int:
        """As the store counted them, else as the system did."""
        return self.used.bytes_read if self.served is None else self.served.bytes


@dataclass(frozen=True, slots=True)
class Failed:
    """No answer, and why."""

    why: str


@dataclass(frozen=True, slots=True)
class Contest:
    """Engines, tables by layout, queries by name, and who says what is right."""

    settings: Settings
    pool: Pool
    judge: Judge
    tables: Mapping[str, Sequence[Table]]
    queries: Mapping[str, Query]
    site: Site

    def rows(self, layout: str, query: Query) -> list[dict[str, Any]]:
        """A row for each contender."""
        found: dict[str, list[Run | Failed]] = {name: [] for name in self.settings.contenders if name != LIMIT}
        for _ in range(1 + self.settings.runs):
            for name, runs in found.items():
                # Who failed once has failed.
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
        """What nobody reads less than who skips whole row groups alone; computed once, and not measured."""
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
    """A row for each layout, query and contender; goes on where an interrupted call with these settings was."""
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
    # First of all, since tables are made in vain where there is no such place.
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
    """Medians of the timed runs; bytes of the last one, which reads no class of Java's for the first time."""
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
