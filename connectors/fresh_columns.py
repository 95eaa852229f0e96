"""Plans whose pruned scans keep their own column ids, as far up as these go."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from connectors.compiled import instance

# The tag of a projection that gives a scan the ids which the rest of the query knows.
RENAMED = "scanprune.renamed"
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
        return node instanceof Project && ((Project) node).getTagValue(new TreeNodeTag("%s")).isDefined()
            && isOrdered((Project) node);
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

    private static boolean isOrdered(Project project) {
        boolean isOrdered = true;
        scala.collection.Iterator below = project.child().output().iterator();
        scala.collection.Iterator columns = project.projectList().iterator();
        while (isOrdered && columns.hasNext()) {
            Object column = columns.next();
            Object child = column instanceof Alias ? ((Alias) column).child() : null;
            Attribute next = (Attribute) below.next();
            isOrdered = child instanceof Attribute && ((Attribute) child).exprId().equals(next.exprId());
        }
        return isOrdered;
    }

    private static scala.collection.immutable.Seq sequence(java.util.List items) {
        return scala.jdk.javaapi.CollectionConverters.asScala(items).toSeq();
    }
}
""".replace("%s", RENAMED)


def with_own_columns(spark: SparkSession, plan: Any) -> Any:
    """A plan of the JVM without the projections above its pruned scans, under the ids that it had at its top."""
    return instance(spark, _OWN, _OWN_SOURCE, plan).kept()
