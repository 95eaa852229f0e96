"""Broadcasts that a plan made for its own joins: they end with its action, not when garbage is collected."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from connectors.compiled import instance
from connectors.storage import has_jvm

# What a cached table ran is no part of the plan that reads it, so its broadcasts stay. One that nobody asked for has no
# value, and asking for it would make it.
_BROADCASTS = "PlanBroadcasts"
_BROADCASTS_SOURCE = """
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.execution.ExplainUtils;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.BroadcastExchangeExec;

public class PlanBroadcasts extends scala.runtime.AbstractFunction1 {
    private final SparkPlan plan;

    public PlanBroadcasts(SparkPlan plan) {
        this.plan = plan;
    }

    public Object apply(Object node) {
        if (node instanceof BroadcastExchangeExec) {
            scala.Option made = ((BroadcastExchangeExec) node).completionFuture().value();
            if (made.isDefined() && ((scala.util.Try) made.get()).isSuccess()) {
                ((Broadcast) ((scala.util.Try) made.get()).get()).destroy();
            }
        }
        return scala.runtime.BoxedUnit.UNIT;
    }

    public void destroy() {
        ExplainUtils.foreach(plan, this);
    }
}
"""


@contextmanager
def broadcasts_released(df: DataFrame) -> Iterator[None]:
    """Within it `df` has its only action, however that ends: no plan reuses an exchange of another one."""
    if not has_jvm(df.sparkSession):
        yield
        return
    with execution_released(df.sparkSession, df._jdf.queryExecution()):  # noqa: SLF001 - plans have no public door
        yield


@contextmanager
def execution_released(spark: SparkSession, execution: Any) -> Iterator[None]:
    """The same for the JVM's own object of a query."""
    try:
        yield
    finally:
        # What cannot be released is left to the collection of garbage.
        with suppress(Py4JError):
            instance(spark, _BROADCASTS, _BROADCASTS_SOURCE, execution.executedPlan()).destroy()
