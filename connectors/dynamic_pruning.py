"""Spark's own dynamic pruning of partitions, which an optimised plan already holds."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from connectors.compiled import instance

_REMOVER = "DynamicPruningRemover"
_REMOVER_SOURCE = """
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.DynamicPruning;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;

public class DynamicPruningRemover extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object node) {
        return node instanceof Filter;
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
        if (!(node instanceof Filter)) {
            return otherwise.apply(node);
        }
        Filter filter = (Filter) node;
        Expression rest = without(filter.condition());
        return rest == null ? filter.child() : rest == filter.condition() ? filter : new Filter(rest, filter.child());
    }

    private static Expression without(Expression condition) {
        if (condition instanceof DynamicPruning) {
            return null;
        }
        if (!(condition instanceof And)) {
            return condition;
        }
        And both = (And) condition;
        Expression left = without(both.left());
        Expression right = without(both.right());
        if (left == both.left() && right == both.right()) {
            return both;
        }
        return left == null ? right : right == null ? left : new And(left, right);
    }
}
"""


def without_dynamic_pruning(spark: SparkSession, plan: Any) -> Any:
    """The plan in the JVM before Spark pruned partitions: no row differs, and Spark does it anew when the plan runs.

    A plan is analysed again before that, which the conditions of this kind do not bear where a table stands in it
    twice: one side gets new column ids, and the plans inside these conditions keep the old ones.
    """
    return plan.transformUpWithSubqueries(instance(spark, _REMOVER, _REMOVER_SOURCE))
