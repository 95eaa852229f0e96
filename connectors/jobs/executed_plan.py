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
        execution: Any = query_execution(df)
        optimized = execution.optimizedPlan()
        plans = [optimized, *_items(optimized.subqueriesAll())]
        versions, unpinned = _versions(df.sparkSession, plans)
        reasons = [Reason(ReasonCode.UNPINNED_KEYS, subject, each) for each in unpinned]
        if why := _why_unrepeatable(plans):
            reasons.append(Reason(ReasonCode.UNREPEATABLE_KEYS, subject, why))
        return ExecutedPlan(_tasks(execution.executedPlan()), versions, tuple(reasons))
    except Py4JError:
        return ExecutedPlan()


def _versions(spark: SparkSession, plans: Sequence[Any]) -> tuple[Mapping[str, int], Sequence[str]]:
    """The versions, and a line for each table that was read without naming a version."""
    versions: dict[str, int] = {}
    unpinned: dict[str, int] = {}
    for index in (index for plan in plans for index in _file_indexes(plan)):
        found = scanned_version(spark, index)
        if found is None:
            continue
        versions[found.path] = min(found.version, versions.get(found.path, found.version))
        if not found.is_pinned:
            unpinned[found.path] = found.version
    return versions, [f"read at version {version} of {path}" for path, version in unpinned.items()]


def _file_indexes(plan: Any) -> Iterator[Any]:
    for leaf in _items(plan.collectLeaves()):
        if leaf.getClass().getSimpleName() == "LogicalRelation":
            relation = leaf.relation()
            if relation.getClass().getSimpleName() == "HadoopFsRelation":
                yield relation.location()


def _why_unrepeatable(plans: Sequence[Any]) -> str:
    if not all(plan.deterministic() for plan in plans):
        return "it is not deterministic"
    names = {str(node.nodeName()) for plan in plans for node in _nodes(plan)}
    found = [name for name in _ORDER_MATTERS if name in names]
    return f"it has a {found[0]}" if found else ""


def _nodes(plan: Any) -> Iterator[Any]:
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(_items(node.children()))


def _tasks(plan: Any) -> int | None:
    """The number of tasks on the map side of the topmost exchange, above which each node has one child."""
    while True:
        match str(plan.getClass().getSimpleName()):
            case "AdaptiveSparkPlanExec":
                plan = plan.executedPlan()
            case name if name.endswith("QueryStageExec"):
                plan = plan.plan()
            case "ShuffleExchangeExec":
                return int(plan.numMappers())
            case _ if plan.children().size() == 1:
                plan = plan.children().head()
            case _:
                return None


def _items(sequence: Any) -> Iterator[Any]:
    for at in range(sequence.size()):
        yield sequence.apply(at)


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
            instance(spark, _BROADCASTS, execution.executedPlan()).destroy()
