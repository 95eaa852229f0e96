"""The column ids of pruned scans: the plan's own above each scan, or the scan's all the way up."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from connectors.spark.jvm import instance

# The tag of a projection that changes nothing but ids: the columns below it, all of them, in their order.
_RENAMED = "scanprune.renamed"
# The pruned scan has column ids of its own, by which the report tells it from the scan of the query as it was; above
# it they have the ids that the rest of the query knows.
_FRESH = "FreshColumns"
_FRESH_SOURCE = """
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;

public class FreshColumns {
    private final org.apache.spark.sql.execution.datasources.LogicalRelation known;
    private final LogicalPlan fresh;

    public FreshColumns(org.apache.spark.sql.execution.datasources.LogicalRelation leaf) {
        known = leaf;
        fresh = (LogicalPlan) leaf.newInstance();
    }

    public LogicalPlan leaf() {
        return fresh;
    }

    public LogicalPlan renamed(LogicalPlan plan) {
        java.util.ArrayList nothing = new java.util.ArrayList();
        java.util.ArrayList columns = new java.util.ArrayList();
        scala.collection.Iterator from = fresh.output().iterator();
        scala.collection.Iterator to = known.output().iterator();
        scala.collection.Iterator below = plan.output().iterator();
        boolean isOrdered = known.output().size() == plan.output().size();
        while (to.hasNext()) {
            Attribute column = (Attribute) to.next();
            Expression value = value((Attribute) from.next(), plan);
            isOrdered = isOrdered && value instanceof Attribute
                && ((Attribute) value).exprId().equals(((Attribute) below.next()).exprId());
            columns.add(new Alias(value, column.name(), column.exprId(), column.qualifier(), scala.Option.empty(),
                sequence(nothing)));
        }
        Project renamed = new Project(sequence(columns), plan);
        if (isOrdered) {
            renamed.setTagValue(new TreeNodeTag("%s"), Boolean.TRUE);
        }
        return renamed;
    }

    private static Expression value(Attribute wanted, LogicalPlan plan) {
        if (plan.outputSet().contains(wanted)) {
            return wanted;
        }
        scala.collection.Iterator found = plan.output().iterator();
        while (found.hasNext()) {
            Attribute column = (Attribute) found.next();
            if (column.name().equals(wanted.name())) {
                return column;
            }
        }
        return new Literal(null, wanted.dataType());
    }

    private static scala.collection.immutable.Seq sequence(java.util.List items) {
        return scala.jdk.javaapi.CollectionConverters.asScala(items).toSeq();
    }
}
""".replace("%s", _RENAMED)
# Spark's optimiser takes such projections away itself, but not below the first child of a union, whose ids are those of
# the union: there a subtree would be another one than its equals below the other children, and run once more.
_OWN = "OwnColumns"
_OWN_SOURCE = """
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;

public class OwnColumns extends scala.runtime.AbstractPartialFunction {
    private final LogicalPlan plan;

    public OwnColumns(LogicalPlan plan) {
        this.plan = plan;
    }

    public LogicalPlan kept() {
        LogicalPlan kept = (LogicalPlan) plan.transformUpWithNewOutput(this,
            plan.transformUpWithNewOutput$default$2(), plan.transformUpWithNewOutput$default$3());
        java.util.ArrayList columns = new java.util.ArrayList();
        boolean isRenamed = false;
        scala.collection.Iterator known = plan.output().iterator();
        scala.collection.Iterator own = kept.output().iterator();
        while (known.hasNext()) {
            Attribute before = (Attribute) known.next();
            Attribute after = (Attribute) own.next();
            boolean isSame = before.exprId().equals(after.exprId());
            isRenamed = isRenamed || !isSame;
            columns.add(isSame ? after : new Alias(after, before.name(), before.exprId(), before.qualifier(),
                scala.Option.apply(before.metadata()), sequence(new java.util.ArrayList())));
        }
        return isRenamed ? new Project(sequence(columns), kept) : kept;
    }

    public boolean isDefinedAt(Object node) {
        return node instanceof Project && ((Project) node).getTagValue(new TreeNodeTag("%s")).isDefined();
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
        if (!isDefinedAt(node)) {
            return otherwise.apply(node);
        }
        java.util.ArrayList pairs = new java.util.ArrayList();
        scala.collection.Iterator columns = ((Project) node).projectList().iterator();
        while (columns.hasNext()) {
            Alias column = (Alias) columns.next();
            pairs.add(new scala.Tuple2(column.toAttribute(), column.child()));
        }
        return new scala.Tuple2(((Project) node).child(), sequence(pairs));
    }

    private static scala.collection.immutable.Seq sequence(java.util.List items) {
        return scala.jdk.javaapi.CollectionConverters.asScala(items).toSeq();
    }
}
""".replace("%s", _RENAMED)


def fresh_columns(spark: SparkSession, leaf: Any) -> Any:
    """`leaf()`: one of the JVM with column ids of its own; `renamed()`: a plan over it, under the ids of the old."""
    return instance(spark, _FRESH, _FRESH_SOURCE, leaf)


def with_own_columns(spark: SparkSession, plan: Any) -> Any:
    """A plan of the JVM without the projections above its pruned scans, under the ids that it had at its top."""
    return instance(spark, _OWN, _OWN_SOURCE, plan).kept()
