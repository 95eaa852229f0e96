"""Builds whose rows stay in the storage of the executors, so that a plan that may give other rows runs once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark.sql import SparkSession

from connectors.builds.materialized import MaterializedBuild, local_rows
from connectors.jobs.executed_plan import execution_released
from connectors.registry import before_execution
from connectors.spark.jvm import JavaFile, instance, jvm_session
from connectors.spark.own_queries import own_session
from pruning.limits import LIMITS, Limits

_ROWS = JavaFile("connectors.builds", "StoredRows", others=("RddRelation",))


@dataclass(frozen=True, slots=True, eq=False)
class StoredBuild:
    """All rows of a plan in the storage of the executors; they are at least `count`.

    `nbytes` is Spark's estimate for the plan.
    """

    count: int
    nbytes: int
    _rows: Any
    is_local: bool = False

    def as_relation(self, plan: Any, *, keeps_scan: bool = False) -> Any:  # noqa: ARG002 - it is a scan anyway
        """A relation of the rows with the column ids of `plan`."""
        return self._rows.asRelation(plan)


# The rows of a build that a query may join instead of running it again.
GivenRows: TypeAlias = MaterializedBuild | StoredBuild


def stored_rows(spark: SparkSession, plan: Any, name: str, limits: Limits = LIMITS) -> GivenRows:
    """The rows of one run of a plan: on the driver if they are few enough, else in the storage of the executors."""
    rows = instance(spark, _ROWS, jvm_session(spark), own_session(spark), plan)
    before_execution(spark, rows.execution().optimizedPlan())
    is_kept = False
    try:
        with execution_released(spark, rows.execution()):
            rows.store(f"rows of {name}")
            # The first job over the stored rows computes all of them, however few it takes.
            found = local_rows(spark, rows.asRelation(plan), name, limits)
        is_kept = not isinstance(found, MaterializedBuild)
    finally:
        if not is_kept:
            rows.release()
    return found if isinstance(found, MaterializedBuild) else StoredBuild(found.count, int(rows.bytes()), rows)
