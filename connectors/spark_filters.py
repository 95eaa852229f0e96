"""Spark's own filters by the other side of a join, which an optimised plan already holds."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from connectors.compiled import instance

_REMOVER = "SparkFilterRemover"
_REMOVER_SOURCE = """
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.BloomFilterMightContain;
import org.apache.spark.sql.catalyst.expressions.DynamicPruning;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;

public class SparkFilterRemover extends scala.runtime.AbstractPartialFunction {
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
        boolean isBloom = condition instanceof BloomFilterMightContain;
        if (condition instanceof DynamicPruning || isBloom && SubqueryExpression$.MODULE$.hasSubquery(condition)) {
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


def without_spark_filters(spark: SparkSession, plan: Any) -> Any:
    """The plan in the JVM before Spark pruned partitions and put bloom filters on scans: no row differs.

    A plan is analysed and optimised again before it runs, and Spark adds such filters anew. It does not see that there
    are old ones: of a table that stands in a plan twice one side gets new column ids, which the plans inside the
    conditions for partitions keep, and bloom filters that were merged into one subquery cannot be merged again.
    """
    return plan.transformUpWithSubqueries(instance(spark, _REMOVER, _REMOVER_SOURCE))
