import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * A plan in which Spark shows some scans of files with a text. Scans inside of subqueries stay as they are.
 *
 * It relies on LogicalRelation.copy().
 */
public class DescribedLeaves implements java.util.function.Function {
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
        return (LogicalPlan) apply(plan);
    }

    /**
     * A node of the plan with the texts of the scans below it.
     */
    public Object apply(Object node) {
        LogicalPlan found = (LogicalPlan) node;
        if (texts.containsKey(found) && FileScan.files(found) != null) {
            return over((LogicalRelation) found, (String) texts.get(found));
        }
        return PlanCopy.mapped(found, this);
    }

    static LogicalRelation over(LogicalRelation leaf, String text) {
        return leaf.copy(new DescribedRelation((HadoopFsRelation) leaf.relation(), text), leaf.output(),
            leaf.catalogTable(), leaf.isStreaming(), leaf.stream());
    }
}
