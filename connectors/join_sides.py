"""What Spark itself would broadcast."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from connectors.plan_reader import SparkPlan
from pruning.broadcast import may_be_broadcast
from pruning.query_plan import Join, Node


def broadcast_limit(spark: SparkSession) -> int:
    """Bytes; negative where the session broadcasts nothing of itself."""
    state: Any = spark._jsparkSession.sessionState()  # noqa: SLF001 - the conf's text may have any unit
    return int(state.conf().autoBroadcastJoinThreshold())


def has_small_side(plan: SparkPlan, join: Join) -> bool:
    """Whether Spark takes a side of a join that it may broadcast to be small enough, before anything of it has run."""
    limit = broadcast_limit(plan.spark)
    sides = (side for side in join.children if may_be_broadcast(join, side))
    return any(0 <= _size(plan, side) <= limit for side in sides)


def is_broadcast_side(plan: SparkPlan, join: Join, side: Node) -> bool:
    """Whether Spark takes a side of a join to be the one to broadcast: of two that it may, the smaller one."""
    other = join.right if side is join.left else join.left
    size, others = _size(plan, side), _size(plan, other)
    is_few = may_be_broadcast(join, side) and size <= broadcast_limit(plan.spark)
    return is_few and (size < others or not may_be_broadcast(join, other))


def _size(plan: SparkPlan, node: Node) -> int:
    """Bytes by Spark's own estimate."""
    return int(str(plan.node(node).stats().sizeInBytes()))
