import org.apache.spark.sql.catalyst.expressions.BloomFilterMightContain;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.BloomFilterAggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/**
 * The analysed plan of a query, for facts that its optimised plan does not show. OptimizedPlan asks for them, after
 * Precheck has found a candidate and Spark has optimised the query.
 *
 * hasBloom() walks operators and expressions, and is asked only where the optimised plan has a bloom filter. Of a query
 * whose analysed plan is not at hand, null, those that a subquery aggregates count as Spark's, and others as its own.
 *
 * It relies on BloomFilterMightContain, and on Spark's InjectRuntimeFilter making its filters by BloomFilterAggregate.
 */
public class AnalyzedPlan {
    private final LogicalPlan plan;

    AnalyzedPlan(LogicalPlan plan) {
        this.plan = plan;
    }

    /**
     * True if a bloom filter of the optimised plan may be one of the query itself: if the analysed plan has some,
     * outside of plans inside its expressions.
     */
    boolean hasBloom(BloomFilterMightContain found) {
        return plan == null ? !isAggregated(found) : hasBloom(plan);
    }

    private static boolean isAggregated(TreeNode node) {
        return node instanceof BloomFilterAggregate || anyIsAggregated(node.children())
            || node instanceof PlanExpression && isAggregated((TreeNode) ((PlanExpression) node).plan())
            || node instanceof LogicalPlan && anyIsAggregated(((LogicalPlan) node).expressions());
    }

    private static boolean anyIsAggregated(scala.collection.Seq nodes) {
        scala.collection.Iterator rest = nodes.iterator();
        while (rest.hasNext()) {
            if (isAggregated((TreeNode) rest.next())) {
                return true;
            }
        }
        return false;
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
