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
        return plan == null ? !has(BloomFilterAggregate.class, found, true)
            : has(BloomFilterMightContain.class, plan, false);
    }

    /**
     * True if a plan or an expression has an expression of this kind, which may lie inside of subqueries only where
     * these are entered.
     */
    private static boolean has(Class kind, TreeNode node, boolean entersSubqueries) {
        return kind.isInstance(node) || anyHas(kind, node.children(), entersSubqueries)
            || entersSubqueries && node instanceof PlanExpression
                && has(kind, (TreeNode) ((PlanExpression) node).plan(), true)
            || node instanceof LogicalPlan && anyHas(kind, ((LogicalPlan) node).expressions(), entersSubqueries);
    }

    private static boolean anyHas(Class kind, scala.collection.Seq nodes, boolean entersSubqueries) {
        scala.collection.Iterator rest = nodes.iterator();
        while (rest.hasNext()) {
            if (has(kind, (TreeNode) rest.next(), entersSubqueries)) {
                return true;
            }
        }
        return false;
    }
}
