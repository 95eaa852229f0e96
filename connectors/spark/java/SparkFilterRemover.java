import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BloomFilterMightContain;
import org.apache.spark.sql.catalyst.expressions.DynamicPruning;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * Rewrite of an optimised plan before OptimizedPlan reads it: Spark's own runtime filters are removed, which are
 * dynamic partition pruning and bloom filters. Bloom filters stay if the query has some itself.
 *
 * The plan is analysed and optimised again before it runs, and Spark then adds such filters again without removing the
 * old ones. This fails: if a table occurs twice in a plan, one occurrence gets new column ids, but the plans inside
 * partition conditions keep the old ids; and bloom filters merged into one subquery cannot be merged again.
 *
 * columns() has the ids of the columns by which partitions were pruned, separated by spaces.
 *
 * It relies on DynamicPruning, DynamicPruningSubquery and BloomFilterMightContain.
 */
public class SparkFilterRemover extends PlanVisitor {
    private final AnalyzedPlan analyzed;
    private final StringBuilder columns = new StringBuilder();

    SparkFilterRemover(AnalyzedPlan analyzed) {
        this.analyzed = analyzed;
    }

    LogicalPlan visit(int at, LogicalPlan node) {
        if (!(node instanceof Filter)) {
            return node;
        }
        Filter filter = (Filter) node;
        Expression rest = without(filter.condition());
        return rest == null ? filter.child() : rest == filter.condition() ? filter : new Filter(rest, filter.child());
    }

    String columns() {
        return columns.toString();
    }

    boolean isRemoved(Expression condition) {
        if (condition instanceof DynamicPruningSubquery) {
            scala.collection.Iterator names = ((DynamicPruningSubquery) condition).pruningKey().references().iterator();
            while (names.hasNext()) {
                columns.append(((Attribute) names.next()).exprId().id()).append(' ');
            }
        }
        return condition instanceof DynamicPruning || isSparksBloom(condition);
    }

    private Expression without(Expression condition) {
        if (isRemoved(condition)) {
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

    boolean isSparksBloom(Expression condition) {
        return condition instanceof BloomFilterMightContain && SubqueryExpression$.MODULE$.hasSubquery(condition)
            && !analyzed.hasBloom((BloomFilterMightContain) condition);
    }
}
