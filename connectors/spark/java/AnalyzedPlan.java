import org.apache.spark.sql.catalyst.expressions.BloomFilterMightContain;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/**
 * The analysed plan of a query, for facts that its optimised plan does not show. OptimizedPlan asks for them, after
 * Precheck has found a candidate and Spark has optimised the query.
 *
 * hasBloom() walks operators and expressions, and is asked only where the optimised plan has a bloom filter. Of a query
 * whose analysed plan is not at hand, null, none counts as its own, since SQL has no name for such a condition.
 *
 * It relies on BloomFilterMightContain.
 */
public class AnalyzedPlan {
    private final LogicalPlan plan;

    AnalyzedPlan(LogicalPlan plan) {
        this.plan = plan;
    }

    /**
     * True if the query itself has a bloom filter, outside of plans inside its expressions.
     */
    boolean hasBloom() {
        return plan != null && hasBloom(plan);
    }

    private static boolean hasBloom(TreeNode node) {
        boolean isPlan = node instanceof LogicalPlan;
        return node instanceof BloomFilterMightContain || anyHasBloom(node.children())
            || isPlan && anyHasBloom(((LogicalPlan) node).expressions());
    }

    private static boolean anyHasBloom(scala.collection.Seq nodes) {
        scala.collection.Iterator rest = nodes.iterator();
        while (rest.hasNext()) {
            if (hasBloom((TreeNode) rest.next())) {
                return true;
            }
        }
        return false;
    }
}
