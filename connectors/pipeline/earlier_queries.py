"""`EarlierQueries`: what earlier queries have left for one that is planned: results of builds, and lessons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectors.measure.status_store import execution_seconds
from pruning.options import GIVEN, PruningOptions
from pruning.query.filter_outcome import outcome_of
from pruning.query.lessons import NO_LESSON, Lesson, Lessons, Shape, shape_of
from pruning.reasons import ReasonCode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pruning.keys.cache import PruningCache
    from pruning.query.plan import Node
    from pruning.query.planner import QueryPlanner


@dataclass(slots=True)
class QueryLessons:
    """The lessons for a query that Spark runs as `execution`; None where it has no id."""

    spark: SparkSession
    lessons: Lessons
    execution: int | None
    _shape: Shape | None = None
    _before: Lesson = NO_LESSON

    def before(self, root: Node, options: PruningOptions) -> Lesson | None:
        """The lesson of queries of the shape; None where given rates, or all sound filters, are asked for."""
        if options.always or options.cost_rates == GIVEN:
            return None
        # With other options other filters are idle.
        self._shape = hash((shape_of(root), options))
        self._before = self.lessons.before(self._shape, self._seconds_of)
        return self._before

    def after(self, planner: QueryPlanner) -> None:
        """Remembers which filters were idle, and the execution where a filter was too risky."""
        if self._shape is None or any(each.code is ReasonCode.BUILD_CANCELLED for each in planner.reasons):
            return
        outcome = outcome_of(planner.tried.values(), planner.scans, planner.materialized)
        self.lessons.after(self._shape, outcome, self.execution if planner.found_risky else None)

    def may_change(self, planner: QueryPlanner) -> bool:
        """True where an equal query may get a filter that was idle before, or too risky for this one."""
        is_asked = self._shape is not None and self.execution is not None
        return bool(self._before.idle) or (is_asked and planner.found_risky and not self._before.seconds)

    def _seconds_of(self, execution: int) -> float | None:
        return execution_seconds(self.spark, execution)


@dataclass(frozen=True, slots=True)
class EarlierQueries:
    """The results of builds that a cache holds, and the lessons of a session; None where there is no such object."""

    cache: PruningCache | None = None
    lessons: QueryLessons | None = None

    def lesson(self, root: Node, options: PruningOptions) -> Lesson | None:
        """The lesson for a query; None where nobody learns of it."""
        return None if self.lessons is None else self.lessons.before(root, options)

    def planned(self, planner: QueryPlanner) -> None:
        """Remembers a query that has been planned."""
        if self.lessons is not None:
            self.lessons.after(planner)

    def may_change(self, planner: QueryPlanner) -> bool:
        """True where the seconds of a planned query may change the choice for an equal one."""
        return self.lessons is not None and self.lessons.may_change(planner)


NO_QUERIES = EarlierQueries()
