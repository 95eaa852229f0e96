"""Time of a query until its first task, by phase, stock and pruned alternating in a warm session.

A nested phase stops the clock of the outer phase, so the phases of a query add up to its total.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from pyspark.sql import DataFrame, SparkSession

from benchmarks.delta_session import delta_session
from benchmarks.phases_chart import PHASES
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
# Selective queries, which consist mostly of fixed costs once pruned; then a large and a small query without pruning.
_QUERIES = ("q34", "q69", "q96", "q98", "q28", "q30")
_QUICK_QUERIES = ("q34", "q30")
_WARM_UPS, _RUNS = 3, 5
# With the default page size a hash table of a few rows takes 32 MiB, and hash tables of broadcasts stay until a
# garbage collection.
_CONF = {"spark.driver.memory": "4g", "spark.buffer.pageSize": "1m"}

ANALYSE, OPTIMISE, READ, FIND, OPEN, BUILD, DECIDE, REWRITE, AGAIN, PLAN, START = PHASES
RUN = "run"
# Calls within `prune()` and their phases: the module or class that is patched, the attribute, the phase.
_CALLS: Sequence[tuple[Any, str, str]] = (
    (pruned_query, "optimized", OPTIMISE),
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
    """One entry for each query, stock and pruned: milliseconds by phase."""
    names = names or (_QUERIES if scale > QUICK else _QUICK_QUERIES)
    with delta_session("phases", scale, generate(scale, default_folder()), _CONF) as spark:
        texts = {each.name: each.text for each in queries()}
        return [entry for name in names for entry in _measured(spark, name, texts[name])]


def _measured(spark: SparkSession, query: str, text: str) -> Iterator[dict[str, Any]]:
    ways: Mapping[str, Callable[[DataFrame], DataFrame]] = {"stock": lambda df: df, "pruned": prune}
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for _ in range(_WARM_UPS + _RUNS):
        for way, made in ways.items():
            java_names(spark).java.lang.System.gc()
            runs[way].append(_phases(spark, text, made))
    for way, found in runs.items():
        ordered = sorted(found[_WARM_UPS:], key=lambda each: sum(each.values()))
        middle = ordered[_RUNS // 2]
        phases = {phase: 1000 * seconds for phase, seconds in middle.items()}
        before = sum(each for phase, each in phases.items() if phase != RUN)
        yield {"query": query, "way": way, "milliseconds": sum(phases.values()), "before_first_task": before, **phases}


def _phases(spark: SparkSession, text: str, made: Callable[[DataFrame], DataFrame]) -> dict[str, float]:
    watch = Stopwatch()
    with ExitStack() as calls:
        for owner, name, phase in _CALLS:
            timed = watch.timed(getattr(owner, name), phase)
            is_static = isinstance(vars(owner)[name], staticmethod)
            calls.enter_context(patch.object(owner, name, staticmethod(timed) if is_static else timed))
        with watch.phase(ANALYSE):
            df = spark.sql(text)
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
    return watch.seconds


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
