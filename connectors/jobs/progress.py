"""Progress of builds that take a while: a bar on a terminal, else lines in the log."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from connectors.spark.jvm import has_jvm, jvm_context

logger = logging.getLogger("scanprune")

# Seconds below which builds show no progress.
_SLOW_SECONDS = 2.0
# Seconds between lines of progress in a log.
_LINE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a build: tasks `done` of the `total` known so far; `total` is None if tasks are not counted."""

    subject: str
    seconds: float
    done: int
    total: int | None


def tasks_of(spark: SparkSession, tag: str, seconds: float) -> tuple[int, int | None]:
    """The finished and the known tasks of the jobs with a tag; the JVM is not called before a build is slow."""
    if seconds < _SLOW_SECONDS or not has_jvm(spark):
        return 0, None
    try:
        tracker: Any = jvm_context(spark).statusTracker()
        jobs = [job.get() for job in map(tracker.getJobInfo, tracker.getJobIdsForTag(tag)) if job.isDefined()]
        stages = [tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds()]
    except Py4JError:
        return 0, None
    known = [stage.get() for stage in stages if stage.isDefined()]
    # A skipped stage, whose output exists already, is listed but never begins.
    begun = [stage for stage in known if stage.numCompletedTasks() + stage.numActiveTasks() > 0]
    return sum(stage.numCompletedTasks() for stage in begun), sum(stage.numTasks() for stage in begun) or None


class Display:
    """Shows progress of builds that are slow, until it is closed."""

    def __init__(self) -> None:
        self._bars: Bars | None = None
        self._tasks: dict[str, TaskID] = {}
        self._next_line = _SLOW_SECONDS

    def close(self) -> None:
        """Removes the bars from the terminal."""
        if self._bars is not None:
            self._bars.stop()

    def show(self, builds: Sequence[Progress]) -> None:
        """Shows the progress of running builds."""
        slow = [each for each in builds if each.seconds >= _SLOW_SECONDS]
        if not slow:
            return
        if sys.stderr.isatty():
            self._draw(slow)
        elif max(each.seconds for each in slow) >= self._next_line:
            self._next_line += _LINE_SECONDS
            for each in slow:
                logger.info("Collecting the keys of %s: %s after %.0f s", each.subject, _tasks(each), each.seconds)

    def _draw(self, builds: Sequence[Progress]) -> None:
        if self._bars is None:
            # Column names may look like markup.
            name, tasks = (
                TextColumn(text, markup=False) for text in ("keys of {task.description}", "{task.fields[tasks]}")
            )
            columns = (name, BarColumn(), tasks)
            self._bars = Bars(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
            self._bars.start()
        for gone in set(self._tasks) - {each.subject for each in builds}:
            self._bars.remove_task(self._tasks.pop(gone))
        for each in builds:
            if each.subject not in self._tasks:
                self._tasks[each.subject] = self._bars.add_task(each.subject, tasks="")
            self._bars.update(self._tasks[each.subject], completed=each.done, total=each.total, tasks=_tasks(each))


def _tasks(build: Progress) -> str:
    return "running" if build.total is None else f"{build.done} of {build.total} tasks"
