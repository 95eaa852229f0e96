import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.optimizer.EliminateLimits$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Offset;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.DataTypes;

/**
 * An optimiser rule that skips the first row of each scan of a table, and a builder of it for the extensions of a
 * session, which gives one of Spark's own rules once it is switched off.
 *
 * Each time that it meets a plan it skips one more, or, if it sees that it was there, only one.
 */
public class RowSkippingRule extends Rule {
    private final String table;
    private final boolean looks;
    private volatile boolean isOn = true;

    public RowSkippingRule(String table, boolean looks) {
        this.table = table;
        this.looks = looks;
    }

    public TreeNode apply(TreeNode plan) {
        return skipped((LogicalPlan) plan);
    }

    private LogicalPlan skipped(LogicalPlan plan) {
        if (looks && plan instanceof Offset) {
            return plan;
        }
        if (isTable(plan)) {
            return new Offset(new Literal(Integer.valueOf(1), DataTypes.IntegerType), plan);
        }
        java.util.ArrayList children = new java.util.ArrayList();
        scala.collection.Iterator each = plan.children().iterator();
        while (each.hasNext()) {
            children.add(skipped((LogicalPlan) each.next()));
        }
        return (LogicalPlan) plan.withNewChildren(
            scala.jdk.javaapi.CollectionConverters.asScala(children).toIndexedSeq());
    }

    private boolean isTable(LogicalPlan leaf) {
        if (!(leaf instanceof LogicalRelation) || !(((LogicalRelation) leaf).relation() instanceof HadoopFsRelation)) {
            return false;
        }
        scala.collection.Seq roots = ((HadoopFsRelation) ((LogicalRelation) leaf).relation()).location().rootPaths();
        return ((org.apache.hadoop.fs.Path) roots.head()).getName().equals(table);
    }

    public Builder builder() {
        return new Builder(this);
    }

    public void switchOff() {
        isOn = false;
    }

    public static class Builder extends scala.runtime.AbstractFunction1 {
        private final RowSkippingRule rule;

        Builder(RowSkippingRule rule) {
            this.rule = rule;
        }

        public Object apply(Object session) {
            return rule.isOn ? (Rule) rule : EliminateLimits$.MODULE$;
        }
    }
}
