import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;

/**
 * Rewrite of the pruned plan after all nodes were replaced: projections that FreshColumns tagged are removed, and the
 * ids below them are written through to the top, where the plan has the ids that it had.
 *
 * Spark's optimiser removes such projections itself, but not below the first child of a union, whose ids are those of
 * the union: a subtree there would differ from its equals below the other children, and be run once more.
 *
 * It relies on transformUpWithNewOutput, of which two parameters have Scala's defaults, and on setAnalyzed().
 */
public class OwnColumns extends scala.runtime.AbstractPartialFunction {
    private static final TreeNodeTag RENAMED = new TreeNodeTag("scanprune.renamed");
    private final LogicalPlan plan;

    public OwnColumns(LogicalPlan plan) {
        this.plan = plan;
    }

    static void tag(Project renaming) {
        renaming.setTagValue(RENAMED, Boolean.TRUE);
    }

    public LogicalPlan rewritten() {
        LogicalPlan plain = (LogicalPlan) plan.transformUpWithNewOutput(this,
            plan.transformUpWithNewOutput$default$2(), plan.transformUpWithNewOutput$default$3());
        LogicalPlan found = new SameColumns(plain, plan).plan();
        found.setAnalyzed();
        return found;
    }

    public boolean isDefinedAt(Object node) {
        return node instanceof Project && ((Project) node).getTagValue(RENAMED).isDefined();
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
        return new scala.Tuple2(((Project) node).child(), SameColumns.sequence(pairs));
    }
}
