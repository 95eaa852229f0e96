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


def stays_in_place(plan: SparkPlan, join: Join, side: Node) -> bool:
    """Whether Spark takes the other side of a join to be the one to broadcast, before anything of it has run.

    Of two that are small enough that is the smaller one.
    """
    other = join.right if side is join.left else join.left
    if not may_be_broadcast(join, other):
        return False
    size, own = (int(str(plan.node(each).stats().sizeInBytes())) for each in (other, side))
    return size <= broadcast_limit(plan.spark) and (size <= own or not may_be_broadcast(join, side))
