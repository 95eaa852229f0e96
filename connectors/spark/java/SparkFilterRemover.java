import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BloomFilterMightContain;
import org.apache.spark.sql.catalyst.expressions.DynamicPruning;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/**
 * Removal of Spark's own runtime filters from an optimised plan, and the ids of the columns that they prune by.
 *
 * Bloom filters stay where the analysed query has some itself.
 *
 * It relies on DynamicPruning, DynamicPruningSubquery and BloomFilterMightContain.
 */
public class SparkFilterRemover extends scala.runtime.AbstractPartialFunction {
    private final boolean hasOwnBlooms;
    private final StringBuilder columns = new StringBuilder();

    public SparkFilterRemover(LogicalPlan analyzed) {
        hasOwnBlooms = hasBloom(analyzed);
    }

    public boolean isDefinedAt(Object node) {
        return true;
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
        if (!(node instanceof Filter)) {
            return node;
        }
        Filter filter = (Filter) node;
        Expression rest = without(filter.condition());
        return rest == null ? filter.child() : rest == filter.condition() ? filter : new Filter(rest, filter.child());
    }

    public String columns() {
        return columns.toString();
    }

    private Expression without(Expression condition) {
        if (condition instanceof DynamicPruningSubquery) {
            scala.collection.Iterator names = ((DynamicPruningSubquery) condition).pruningKey().references().iterator();
            while (names.hasNext()) {
                columns.append(((Attribute) names.next()).exprId().id()).append(' ');
            }
        }
        if (condition instanceof DynamicPruning || !hasOwnBlooms && isBloom(condition)) {
            return null;
        }
        if (!(condition instanceof And)) {
            return condition;
        }
        And both = (And) condition;
        Expression left = without(both.left());
        Expression right = without(both.right());
        if (left == both.left() && right == both.right()) {
            return both;
        }
        return left == null ? right : right == null ? left : new And(left, right);
    }

    private static boolean isBloom(Expression condition) {
        boolean isBloom = condition instanceof BloomFilterMightContain;
        return isBloom && SubqueryExpression$.MODULE$.hasSubquery(condition);
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
