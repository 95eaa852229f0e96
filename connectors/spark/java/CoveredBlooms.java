import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * Rewrite of a pruned plan that Spark has optimised: a runtime bloom filter goes if the rows of its scan are tested by
 * the keys of each join that could filter these columns. It would drop no more rows, and its side would be read again.
 */
public class CoveredBlooms extends SparkFilterRemover {
    private final java.util.HashSet tested = new java.util.HashSet();

    /**
     * The ids of the tested columns with spaces between them.
     */
    public CoveredBlooms(String tested) {
        super(new AnalyzedPlan(null));
        java.util.StringTokenizer each = new java.util.StringTokenizer(tested);
        while (each.hasMoreTokens()) {
            this.tested.add(Long.valueOf(each.nextToken()));
        }
    }

    public LogicalPlan without(LogicalPlan plan) {
        return visitAll(plan);
    }

    boolean isRemoved(Expression condition) {
        if (!isSparksBloom(condition)) {
            return false;
        }
        scala.collection.Iterator columns = condition.references().iterator();
        while (columns.hasNext()) {
            if (!tested.contains(Long.valueOf(((Attribute) columns.next()).exprId().id()))) {
                return false;
            }
        }
        return true;
    }
}
