"""Facts about a plan that ran: table versions, tasks, and reasons why another run may give other rows.

`broadcasts_released()` releases the broadcasts of a plan's joins with its action, before garbage collection does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from connectors.registry import scanned_version
from connectors.spark.jvm import JavaFile, has_jvm, instance, query_execution
from pruning.reasons import Reason, ReasonCode

_RAN = JavaFile("connectors.jobs", "RanPlan")
# Operators that pass rows by their order. A local limit without a global one is only planned where it cuts nothing.
_ORDER_MATTERS = ("GlobalLimit", "Offset", "Tail", "Sample")


@dataclass(frozen=True, slots=True)
class ExecutedPlan:
    """Facts about one execution.

    - `tasks`: the number of tasks of the stage below the topmost exchange, None if unknown
    - `versions`: the version of each versioned table read, by path; the older one of a table read at two versions.
      Tables that the optimiser answered from metadata, or found cached, are missing
    - `reasons`: why another run might see other rows
    """

    tasks: int | None = None
    versions: Mapping[str, int] = field(default_factory=dict)
    reasons: Sequence[Reason] = ()


def executed_plan(df: DataFrame, subject: str) -> ExecutedPlan:
    """The facts about a DataFrame that ran; empty if the session has no JVM or its plan cannot be read."""
    if not has_jvm(df.sparkSession):
        return ExecutedPlan()
    try:
        ran = instance(df.sparkSession, _RAN, query_execution(df), " ".join(_ORDER_MATTERS))
        deterministic, tasks, indexes, *operators = str(ran.text()).split()
        versions, unpinned = _versions(df.sparkSession, [ran.index(at) for at in range(int(indexes))])
        reasons = [Reason(ReasonCode.UNPINNED_KEYS, subject, each) for each in unpinned]
        if deterministic != "true":
            reasons.append(Reason(ReasonCode.UNREPEATABLE_KEYS, subject, "it is not deterministic"))
        elif operators:
            reasons.append(Reason(ReasonCode.UNREPEATABLE_KEYS, subject, f"it has a {operators[0]}"))
        return ExecutedPlan(int(tasks) if tasks.isdecimal() else None, versions, tuple(reasons))
    except Py4JError:
        return ExecutedPlan()


def _versions(spark: SparkSession, indexes: Sequence[Any]) -> tuple[Mapping[str, int], Sequence[str]]:
    """The versions, and a line for each table that was read without naming a version."""
    versions: dict[str, int] = {}
    unpinned: dict[str, int] = {}
    for index in indexes:
        found = scanned_version(spark, index)
        if found is None:
            continue
        versions[found.path] = min(found.version, versions.get(found.path, found.version))
        if not found.is_pinned:
            unpinned[found.path] = found.version
    return versions, [f"read at version {version} of {path}" for path, version in unpinned.items()]


_BROADCASTS = JavaFile("connectors.jobs", "PlanBroadcasts")


@contextmanager
def broadcasts_released(df: DataFrame) -> Iterator[None]:
    """A context in which `df` runs its only action; at its end, its broadcasts are released, even after an error.

    This is safe because no plan reuses an exchange of another plan.
    """
    if not has_jvm(df.sparkSession):
        yield
        return
    with execution_released(df.sparkSession, query_execution(df)):
        yield


@contextmanager
def execution_released(spark: SparkSession, execution: Any) -> Iterator[None]:
    """A context that releases the broadcasts of a JVM `QueryExecution` at its end."""
    try:
        yield
    finally:
        # Broadcasts that cannot be released are left to garbage collection.
        with suppress(Py4JError):
            instance(spark, _BROADCASTS, execution).destroy()
