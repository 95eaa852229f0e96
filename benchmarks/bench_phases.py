"""Time of a query until its first task, by phase: stock, by `prune()`, and in an enabled session, by turns, warm.

A nested phase stops the clock of the outer phase, so the phases of a query add up to its total. The queries are the 99
of TPC-DS. The last rows are medians over those without a build and those with builds: the milliseconds of each phase,
and the milliseconds and calls over py4j that pruning adds. Tasks that list files or run builds come before the first
task of a query; they are part of its optimisation.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from py4j.protocol import MEMORY_COMMAND_NAME
from pyspark.sql import SparkSession

from benchmarks.delta_session import delta_session
from benchmarks.phases_chart import MEDIAN, PHASES
from benchmarks.resume import resumed
from connectors.builds.query_builds import QueryBuilds
from connectors.cli.command import default_folder
from connectors.pipeline import plan_metadata, pruned_query, table_scan
from connectors.pipeline.plan_metadata import PlanMetadata
from connectors.pipeline.query_run import QueryRun
from connectors.spark.jvm import java_names, jvm_context
from connectors.spark.plan_reader import SparkPlan
from pruning import enable, prune
from pruning.query.join_graph import JoinGraph
from sample_data.layout import write_delta
from sample_data.tpcds import generate
from sample_data.tpcds_queries import queries, spark_tables

FULL, QUICK = 1.0, 0.05
_QUICK_QUERIES = ("q34", "q30")
_WARM_UPS, _RUNS = 1, 3
# Spark's clock has milliseconds.
_CLOCK = 0.001
# With the default page size a hash table of a few rows takes 32 MiB, and hash tables of broadcasts stay until a
# garbage collection.
_CONF = {"spark.driver.memory": "4g", "spark.buffer.pageSize": "1m"}

ANALYSE, OPTIMISE, READ, FIND, OPEN, BUILD, DECIDE, REWRITE, AGAIN, PLAN, START = PHASES
RUN = "run"
STOCK, PRUNE, SESSION = "stock", "prune()", "session"
WAYS = (STOCK, PRUNE, SESSION)
# Calls within pruning and their phases: the module or class that is patched, the attribute, the phase.
_CALLS: Sequence[tuple[Any, str, str]] = (
    (pruned_query, "early_query", OPTIMISE),
    (SparkPlan, "read", READ),
    (JoinGraph, "of", FIND),
    (plan_metadata, "plan_facts", FIND),
    (QueryRun, "run", FIND),
    *((PlanMetadata, name, OPEN) for name in ("table", "plan_table", "answer")),
    (QueryBuilds, "run", BUILD),
    (table_scan, "pruned_scan", DECIDE),
    (QueryRun, "rewritten", REWRITE),
    (pruned_query, "optimized_once", AGAIN),
)


@dataclass(slots=True)
class Stopwatch:
    """A clock for nested phases; `seconds` has the time of each phase."""

    seconds: dict[str, float] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)
    _since: float = 0.0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Counts the time of the block for the phase `name`, except the time of nested phases."""
        self._stop()
        self._open.append(name)
        try:
            yield
        finally:
            self._stop()
            self._open.pop()

    def timed(self, call: Callable[..., Any], name: str) -> Callable[..., Any]:
        """Returns a function that calls `call` within the phase `name`."""

        def within(*arguments: Any, **named: Any) -> Any:
            with self.phase(name):
                return call(*arguments, **named)

        return within

    def _stop(self) -> None:
        at = time.perf_counter()
        if self._open:
            self.seconds[self._open[-1]] = self.seconds.get(self._open[-1], 0.0) + at - self._since
        self._since = at


def run(scale: float, names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """One entry for each query and way: milliseconds by phase; then the medians of the queries by builds."""
    texts = {each.name: each.text for each in queries()}
    names = names or ([*texts] if scale > QUICK else _QUICK_QUERIES)
    sources = generate(scale, default_folder())
    with delta_session("phases", scale, sources, _CONF) as stock:
        enabled = stock.newSession()
        with spark_tables(enabled, write_delta(enabled, sources, default_folder() / f"delta-sf{scale:g}")):
            enable(enabled)
            # All before the first is timed: caches of a session have to hold the tables of all queries at once.
            for name in names:
                prune(stock.sql(texts[name])).toArrow()
                enabled.sql(texts[name]).toArrow()
            # All 99 take an hour, so an interrupted run goes on where it was.
            found = resumed(
                f"phases-sf{scale:g}", names, lambda name: {"rows": [*_measured(stock, enabled, name, texts[name])]}
            )
            entries = [entry for each in found for entry in each["rows"]]
    return [*entries, *_medians(entries)]


def _medians(entries: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The phases of all queries, of those without a build and of those with builds, and the time that pruning adds."""
    by_way = {way: {each["query"]: each for each in entries if each["way"] == way} for way in WAYS}
    for kinds, kind in (((False, True), "of all"), ((False,), "without a build"), ((True,), "with builds")):
        names = [name for name, each in by_way[PRUNE].items() if (each.get(BUILD, 0.0) > 0.0) in kinds]
        if not names:
            continue
        for way, found in by_way.items():
            rows = [found[name] for name in names]
            phases = {phase: statistics.median(each.get(phase, 0.0) for each in rows) for phase in PHASES}
            yield {"query": f"{MEDIAN} {kind}", "way": way, "queries": len(names), **phases} | _added(
                names, by_way, way
            )


def _added(names: Sequence[str], by_way: Mapping[str, Mapping[str, Mapping[str, Any]]], way: str) -> dict[str, float]:
    """Medians of the milliseconds before the first task, and of the calls over py4j, beyond those of stock Spark."""
    if way == STOCK:
        return {}
    stock, pruned = by_way[STOCK], by_way[way]
    more = [pruned[name]["before_first_task"] - stock[name]["before_first_task"] for name in names]
    calls = [pruned[name]["py4j_calls"] - stock[name]["py4j_calls"] for name in names]
    return {"more_than_stock": statistics.median(more), "py4j_calls": statistics.median(calls)}


def _measured(stock: SparkSession, enabled: SparkSession, query: str, text: str) -> Iterator[dict[str, Any]]:
    runs: dict[str, list[tuple[dict[str, float], dict[str, int]]]] = {way: [] for way in WAYS}
    for _ in range(_WARM_UPS + _RUNS):
        for way in WAYS:
            java_names(stock).java.lang.System.gc()
            runs[way].append(_phases(enabled if way == SESSION else stock, text, is_pruned=way == PRUNE))
    for way, found in runs.items():
        seconds, counts = sorted(found[_WARM_UPS:], key=lambda each: _before(each[0]))[_RUNS // 2]
        phases = {phase: 1000 * each for phase, each in seconds.items()}
        total = {"milliseconds": sum(phases.values()), "before_first_task": _before(phases)}
        yield {"query": query, "way": way, **total, **counts, **phases}


def _before(phases: Mapping[str, float]) -> float:
    """The time of all phases before the first task."""
    return sum(each for phase, each in phases.items() if phase != RUN)


def _phases(spark: SparkSession, text: str, *, is_pruned: bool) -> tuple[dict[str, float], dict[str, int]]:
    """The seconds of each phase, and the number of calls over py4j after the analysis."""
    watch, counts = Stopwatch(), {"py4j_calls": 0}
    with ExitStack() as calls:
        for owner, name, phase in _CALLS:
            timed = watch.timed(getattr(owner, name), phase)
            is_static = isinstance(vars(owner)[name], staticmethod)
            calls.enter_context(patch.object(owner, name, staticmethod(timed) if is_static else timed))
        with watch.phase(ANALYSE):
            df = spark.sql(text)
        calls.enter_context(_counted(spark, counts))
        if is_pruned:
            # The time of `prune()` outside of `_CALLS` is part of reading the plan.
            with watch.phase(READ):
                df = prune(df)
        began, before = time.time(), sum(watch.seconds.values())
        # A session prunes in this call, while Spark optimises the plan.
        with watch.phase(RUN):
            df.toArrow()
    pruning = sum(watch.seconds.values()) - before - watch.seconds[RUN]
    phases: Any = df._jdf.queryExecution().tracker().phases()  # noqa: SLF001 - plans have no public door
    optimised, planned = (phases.get(each).get() for each in ("optimization", "planning"))
    # A query that prune() returns was optimised when it was made.
    is_in = optimised.startTimeMs() / 1000 >= began - _CLOCK
    ready = planned.endTimeMs() / 1000
    parts = {
        OPTIMISE: max(optimised.durationMs() / 1000 - pruning, 0.0) if is_in else 0.0,
        PLAN: planned.durationMs() / 1000,
        START: max(_first_task(spark, ready) - ready, 0.0),
    }
    for phase, seconds in parts.items():
        part = min(seconds, watch.seconds[RUN])
        watch.seconds[phase] = watch.seconds.get(phase, 0.0) + part
        watch.seconds[RUN] -= part
    return watch.seconds, counts


@contextmanager
def _counted(spark: SparkSession, counts: dict[str, int]) -> Iterator[None]:
    """Counts calls over py4j but for those that release objects of Java, in a thread of their own."""
    client: Any = spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr] # noqa: SLF001 - no public door
    send = client.send_command

    def sent(command: str, *arguments: Any, **named: Any) -> Any:
        counts["py4j_calls"] += not command.startswith(MEMORY_COMMAND_NAME)
        return send(command, *arguments, **named)

    with patch.object(client, "send_command", sent):
        yield


def _first_task(spark: SparkSession, began: float) -> float:
    """The launch time of the first task since `began`; both in seconds since 1970."""
    context = jvm_context(spark)
    context.listenerBus().waitUntilEmpty()
    store = context.statusStore()
    no_quantiles = getattr(store, "stageList$default$4")()
    stages = store.stageList(None, False, False, no_quantiles, None)  # noqa: FBT003 - Java has no names
    launched = (stages.apply(at).firstTaskLaunchedTime() for at in range(stages.size()))
    times = [each.get().getTime() / 1000 for each in launched if each.isDefined()]
    return min((each for each in times if each >= began - _CLOCK), default=began)


if __name__ == "__main__":
    for each in run(QUICK):
        print(json.dumps(each))
