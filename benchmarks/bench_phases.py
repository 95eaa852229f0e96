"""Time of a query until its first task, by phase, stock and pruned alternating in a warm session.

A nested phase stops the clock of the outer phase, so the phases of a query add up to its total. The queries are the 99
of TPC-DS. The last rows are medians over those without a build and those with builds: the milliseconds of each phase,
and the milliseconds and calls over py4j that pruning adds.
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
from pyspark.sql import DataFrame, SparkSession

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
from pruning import prune
from pruning.query.join_graph import JoinGraph
from sample_data.tpcds import generate
from sample_data.tpcds_queries import queries

FULL, QUICK = 1.0, 0.05
_QUICK_QUERIES = ("q34", "q30")
_WARM_UPS, _RUNS = 1, 3
# With the default page size a hash table of a few rows takes 32 MiB, and hash tables of broadcasts stay until a
# garbage collection.
_CONF = {"spark.driver.memory": "4g", "spark.buffer.pageSize": "1m"}

ANALYSE, OPTIMISE, READ, FIND, OPEN, BUILD, DECIDE, REWRITE, AGAIN, PLAN, START = PHASES
RUN = "run"
# Calls within `prune()` and their phases: the module or class that is patched, the attribute, the phase.
_CALLS: Sequence[tuple[Any, str, str]] = (
    (pruned_query, "optimized_query", OPTIMISE),
    (SparkPlan, "of", READ),
    (JoinGraph, "of", FIND),
    (plan_metadata, "plan_facts", FIND),
    (QueryRun, "run", FIND),
    *((PlanMetadata, name, OPEN) for name in ("table", "plan_table", "answer")),
    (QueryBuilds, "run", BUILD),
    (table_scan, "pruned_scan", DECIDE),
    (QueryRun, "rewritten", REWRITE),
    (pruned_query, "frame_of", REWRITE),
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
    """One entry for each query, stock and pruned: milliseconds by phase; then the medians of the queries by builds."""
    texts = {each.name: each.text for each in queries()}
    names = names or ([*texts] if scale > QUICK else _QUICK_QUERIES)
    with delta_session("phases", scale, generate(scale, default_folder()), _CONF) as spark:
        # All before the first is timed: caches of the session have to hold the tables of all queries at once.
        for name in names:
            prune(spark.sql(texts[name])).toArrow()
        # All 99 take 40 minutes, so an interrupted run goes on where it was.
        found = resumed(f"phases-sf{scale:g}", names, lambda name: {"rows": [*_measured(spark, name, texts[name])]})
        entries = [entry for each in found for entry in each["rows"]]
    return [*entries, *_medians(entries)]


def _medians(entries: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The phases of queries without a build and of those with builds, and the time that pruning adds to them."""
    by_way = {way: {each["query"]: each for each in entries if each["way"] == way} for way in ("stock", "pruned")}
    for has_builds, kind in ((False, "without a build"), (True, "with builds")):
        names = [name for name, each in by_way["pruned"].items() if (each.get(BUILD, 0.0) > 0.0) is has_builds]
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
    if way == "stock":
        return {}
    stock, pruned = by_way["stock"], by_way["pruned"]
    more = [pruned[name]["before_first_task"] - stock[name]["before_first_task"] for name in names]
    calls = [pruned[name]["py4j_calls"] for name in names]
    return {"more_than_stock": statistics.median(more), "py4j_calls": statistics.median(calls)}


def _measured(spark: SparkSession, query: str, text: str) -> Iterator[dict[str, Any]]:
    ways: Mapping[str, Callable[[DataFrame], DataFrame]] = {"stock": lambda df: df, "pruned": prune}
    runs: dict[str, list[tuple[dict[str, float], dict[str, int]]]] = {way: [] for way in ways}
    for _ in range(_WARM_UPS + _RUNS):
        for way, made in ways.items():
            java_names(spark).java.lang.System.gc()
            runs[way].append(_phases(spark, text, made))
    for way, found in runs.items():
        seconds, counts = sorted(found[_WARM_UPS:], key=lambda each: _before(each[0]))[_RUNS // 2]
        phases = {phase: 1000 * each for phase, each in seconds.items()}
        total = {"milliseconds": sum(phases.values()), "before_first_task": _before(phases)}
        yield {"query": query, "way": way, **total, **counts, **phases}


def _before(phases: Mapping[str, float]) -> float:
    """The time of all phases before the first task."""
    return sum(each for phase, each in phases.items() if phase != RUN)


def _phases(
    spark: SparkSession, text: str, made: Callable[[DataFrame], DataFrame]
) -> tuple[dict[str, float], dict[str, int]]:
    """The seconds of each phase, and the number of calls over py4j of `prune()`."""
    watch, counts = Stopwatch(), {"py4j_calls": 0}
    with ExitStack() as calls:
        for owner, name, phase in _CALLS:
            timed = watch.timed(getattr(owner, name), phase)
            is_static = isinstance(vars(owner)[name], staticmethod)
            calls.enter_context(patch.object(owner, name, staticmethod(timed) if is_static else timed))
        with watch.phase(ANALYSE):
            df = spark.sql(text)
        calls.enter_context(_counted(spark, counts))
        # The time of `prune()` outside of `_CALLS` is almost entirely the first optimisation of its result.
        with watch.phase(AGAIN):
            df = made(df)
    execution: Any = df._jdf.queryExecution()  # noqa: SLF001 - plans have no public door
    with watch.phase(OPTIMISE):
        execution.optimizedPlan()
    with watch.phase(PLAN):
        execution.executedPlan()
    began = time.time()
    with watch.phase(RUN):
        df.toArrow()
    watch.seconds[START] = min(max(_first_task(spark, began) - began, 0.0), watch.seconds[RUN])
    watch.seconds[RUN] -= watch.seconds[START]
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
    """The launch time of the first task since `began`, in seconds since 1970."""
    context = jvm_context(spark)
    context.listenerBus().waitUntilEmpty()
    store = context.statusStore()
    no_quantiles = getattr(store, "stageList$default$4")()
    stages = store.stageList(None, False, False, no_quantiles, None)  # noqa: FBT003 - Java has no names
    launched = (stages.apply(at).firstTaskLaunchedTime() for at in range(stages.size()))
    times = [each.get().getTime() / 1000 for each in launched if each.isDefined()]
    return min((each for each in times if each >= began - 0.001), default=began)


if __name__ == "__main__":
    for each in run(QUICK):
        print(json.dumps(each))
