import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * A plan in which Spark shows some scans of files with a text. Scans inside of subqueries stay as they are.
 *
 * It relies on LogicalRelation.copy().
 */
public class DescribedLeaves {
    private final LogicalPlan plan;
    private final java.util.Map texts = new java.util.IdentityHashMap();

    public DescribedLeaves(LogicalPlan plan) {
        this.plan = plan;
    }

    /**
     * Gives a scan of the plan a text.
     */
    public void describe(LogicalPlan leaf, String text) {
        texts.put(leaf, text);
    }

    public LogicalPlan described() {
        return described(plan);
    }

    private LogicalPlan described(LogicalPlan node) {
        if (texts.containsKey(node) && FileScan.files(node) != null) {
            return over((LogicalRelation) node, (String) texts.get(node));
        }
        java.util.ArrayList children = new java.util.ArrayList();
        boolean isNew = false;
        scala.collection.Iterator each = node.children().iterator();
        while (each.hasNext()) {
            LogicalPlan child = (LogicalPlan) each.next();
            LogicalPlan found = described(child);
            isNew = isNew || found != child;
            children.add(found);
        }
        return isNew ? PlanCopy.above(node, children) : node;
    }

    static LogicalRelation over(LogicalRelation leaf, String text) {
        return leaf.copy(new DescribedRelation((HadoopFsRelation) leaf.relation(), text), leaf.output(),
            leaf.catalogTable(), leaf.isStreaming(), leaf.stream());
    }
}
