import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.expressions.BloomFilterMightContain;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Deduplicate;
import org.apache.spark.sql.catalyst.plans.logical.Distinct;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/**
 * The analysed plan of a query, for facts that its optimised plan does not show. OptimizedPlan asks for them, after
 * Precheck has found a candidate and Spark has optimised the query.
 *
 * hasBloom() walks operators and expressions, and is asked only where the optimised plan has a bloom filter.
 * mayUseInputFile() walks operators.
 *
 * It relies on BloomFilterMightContain and HiveTableRelation.
 */
public class AnalyzedPlan {
    private static final int SEVERAL = 2;
    private final LogicalPlan plan;

    AnalyzedPlan(LogicalPlan plan) {
        this.plan = plan;
    }

    /**
     * True if the query itself has a bloom filter, outside of plans inside its expressions.
     */
    boolean hasBloom() {
        return hasBloom(plan);
    }

    /**
     * True if a query above may use input_file_name() and related expressions. Spark allows them above a plan whose
     * rows come from a single source of files, or one for each branch of a union, and refuses them for any other query.
     * Sources behind cached rows count, and plans inside expressions do not. Above an aggregate the expressions give
     * nothing, since no file is open there, and the columns of _metadata do not pass an aggregate.
     */
    boolean mayUseInputFile() {
        return sources(plan) < SEVERAL && isOpenAbove(plan);
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

    private static int sources(LogicalPlan plan) {
        int sum = isSource(plan) ? 1 : 0;
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            int found = sources((LogicalPlan) children.next());
            sum = plan instanceof Union ? Math.max(sum, found) : sum + found;
        }
        return sum;
    }

    private static boolean isOpenAbove(LogicalPlan plan) {
        if (plan instanceof Aggregate || plan instanceof Distinct || plan instanceof Deduplicate) {
            return false;
        }
        boolean isIt = isSource(plan);
        scala.collection.Iterator children = plan.children().iterator();
        while (!isIt && children.hasNext()) {
            isIt = isOpenAbove((LogicalPlan) children.next());
        }
        return isIt;
    }

    private static boolean isSource(LogicalPlan plan) {
        return plan instanceof HiveTableRelation || FileScan.files(plan) != null;
    }
}
