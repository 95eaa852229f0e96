"""Planned and actual seconds of one query in one session: stock and pruned, in an order drawn by lot.

Planned seconds are those of the run whose actual ones stand beside them, since a session corrects its rates.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from benchmarks.contest.spark_engine import SparkEngine
from benchmarks.fit_rates import features
from benchmarks.workload_runs import PRUNED, STOCK, WAYS
from connectors.pipeline.pruned_query import PrunedQuery, UntouchedQuery
from connectors.pipeline.records import record_of
from pruning.cost.estimate import ZERO, Estimate
from pruning.query.benefit import Benefit
from pruning.results.prune_report import PruneReport
from sample_data.tpcds_answers import pruned_difference
from sample_data.tpcds_queries import Answer, Query, by_spark

DRIVER, JOB = "driver", "job"
# The seed of the lots.
_LOTS = 23


@dataclass(frozen=True, slots=True)
class _Timed:
    """One answer, its seconds from the text to the last row, and for a pruned one the record and report of its plan."""

    seconds: float
    answer: Answer
    record: PrunedQuery | UntouchedQuery | None = None
    report: PruneReport | None = None


@dataclass(frozen=True, slots=True)
class Measurer:
    """The engine with its tables; each query runs `runs` times each way, after a warm-up if these are several.

    `head` are the fields of every row.
    """

    engine: SparkEngine
    runs: int
    head: Mapping[str, Any] = field(default_factory=dict)

    def open(self, query: Query) -> None:
        """Runs a query untimed each way, so that the first one measured does not pay for the start of a session."""
        for way in WAYS:
            self._answered(way, query.text)

    def row(self, query: Query) -> dict[str, Any]:
        """The row of one query; `failed` says why there is no other field."""
        head = {**self.head, "query": query.name}
        try:
            return {**head, **self._measured(query)}
        except (PySparkException, Py4JJavaError) as error:
            return {**head, "failed": f"{type(error).__name__}: {str(error).splitlines()[0]}"}

    def _measured(self, query: Query) -> dict[str, Any]:
        if self.runs > 1:
            self.open(query)
        runs: dict[str, list[_Timed]] = {way: [] for way in WAYS}
        turns = [lots(query, at) for at in range(self.runs)]
        for way in (way for turn in turns for way in turn):
            runs[way].append(self._answered(way, query.text))
        stock, pruned = (statistics.median(each.seconds for each in runs[way]) for way in WAYS)
        last = runs[PRUNED][-1]
        # Only now, since it reads metadata that the runs may not need.
        record = last.record.examined() if isinstance(last.record, UntouchedQuery) else last.record
        differs = next(filter(None, (self._differs(query, runs[STOCK][0], each) for each in runs[PRUNED])), "")
        return {
            "runs": self.runs,
            "first": [turn[0] for turn in turns],
            "seconds_stock": stock,
            "seconds_pruned": pruned,
            "saving": stock - pruned,
            **planned_row(record, last.report),
            "rows": len(runs[STOCK][0].answer.rows),
            "rows_equal": not differs,
            "differs": differs,
        }

    def _answered(self, way: str, text: str) -> _Timed:
        began = time.perf_counter()
        df = self.engine.frame(way, text)
        answer = by_spark(df)
        seconds = time.perf_counter() - began
        if way == STOCK:
            return _Timed(seconds, answer)
        record = record_of(df)
        if isinstance(record, PrunedQuery):
            return _Timed(seconds, answer, record, record.report())
        return _Timed(seconds, answer, record if isinstance(record, UntouchedQuery) else None)

    def _differs(self, query: Query, stock: _Timed, pruned: _Timed) -> str:
        """The difference of two answers beyond the choice of rows among ties at a LIMIT; empty if there is none."""
        return pruned_difference(
            query, pruned.answer, stock.answer, lambda: self._answered(STOCK, query.unlimited).answer
        )


def lots(query: Query, run: int) -> list[str]:
    """The two ways in the order of their turns, which is the same whenever the query is measured."""
    return random.Random(f"{_LOTS} {query.name} {run}").sample(WAYS, len(WAYS))


def planned_row(record: PrunedQuery | None, report: PruneReport | None) -> dict[str, Any]:
    """The fields of a row that the plan of its pruned run tells; savings are None where nothing was weighed."""
    known = {} if record is None else features(record.expected_seconds)
    found = [] if record is None else list(_builds(record))
    weighed = [each.benefit for each in found if each.benefit is not None]
    saving = sum(((each.saved - each.paid) for each in weighed), ZERO) if len(weighed) == len(found) else None
    return {
        "planned_stock": None if record is None else record.expected_seconds(),
        **_bounds(saving),
        "builds": [each.row for each in found],
        "scans": [] if report is None else list(_scans(report)),
        "features": {name: float(f"{each:.6g}") for name, each in known.items()},
        "rates": "" if record is None else str(record.options.limits.costs),
    }


def _bounds(saving: Estimate | None) -> dict[str, float | None]:
    low, expected, high = (None,) * 3 if saving is None else (saving.low, saving.expected, saving.high)
    return {"planned_saving": expected, "planned_saving_low": low, "planned_saving_high": high}


@dataclass(frozen=True, slots=True)
class _Build:
    """One run of a plan, whose rows may give several keys; `seconds` are those of all of them."""

    keys: str
    benefit: Benefit | None
    seconds: float
    where: str

    @property
    def row(self) -> dict[str, Any]:
        planned = None if self.benefit is None else float(f"{self.benefit.run:.4g}")
        return {"keys": self.keys, "planned": planned, "seconds": float(f"{self.seconds:.4g}"), "where": self.where}


def _builds(record: PrunedQuery) -> Iterator[_Build]:
    """The builds that ran: filters of one level and node share one run and one benefit."""
    levels = () if record.plan is None else record.plan.levels
    for level in levels:
        nodes: dict[int, list[Any]] = {}
        for each in level:
            if not each.from_metadata:
                nodes.setdefault(each.build_side.node.id, []).append(each)
        for filters in nodes.values():
            ids = dict.fromkeys(each.build_side.id for each in filters)
            yield _Build(
                ", ".join(dict.fromkeys(str(each.build_side.key) for each in filters)),
                filters[0].benefit,
                sum(record.seconds.get(each, 0.0) for each in ids),
                DRIVER if record.on_driver.issuperset(ids) else JOB,
            )


def _scans(report: PruneReport) -> Iterator[dict[str, Any]]:
    """Planned and measured bytes and files of the pruned scans; None where the engine does not count all."""
    for each in report.tables:
        planned, measured = each.planned, each.measured
        yield {
            "scan": planned.table,
            "planned_files": planned.files_kept,
            "files": None if measured is None else measured.files_read,
            "planned_bytes": planned.bytes_kept,
            "bytes": None if measured is None else measured.bytes_scanned,
        }


def measured_rows(
    measurer: Measurer, known: Mapping[str, Query], resume: Callable[[Callable[[str], dict[str, Any]]], Sequence[Any]]
) -> list[dict[str, Any]]:
    """The rows of queries; `resume` calls a function for each name that is not measured yet."""
    opened = False

    def measure(name: str) -> dict[str, Any]:
        nonlocal opened
        if not opened:
            measurer.open(known[name])
            opened = True
        return measurer.row(known[name])

    return list(resume(measure))
