import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Deduplicate;
import org.apache.spark.sql.catalyst.plans.logical.Distinct;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * Test of an analysed plan for expressions above it that ask for the file of a row, such as input_file_name().
 *
 * Spark allows them where rows come from one source of files alone, of which the branches of a union may each have one,
 * and refuses them for any other query. Sources behind cached rows count, and plans inside expressions do not. The
 * answer is empty above an aggregate: no file is open where groups are made. The same goes for the columns of
 * _metadata, which no aggregate hands on.
 *
 * It relies on the rule of Spark's analyser for input_file_name(), and on HiveTableRelation and HadoopFsRelation.
 */
public class FileSources {
    private static final int SEVERAL = 2;
    private final LogicalPlan plan;

    public FileSources(LogicalPlan plan) {
        this.plan = plan;
    }

    public boolean mayBeAskedFor() {
        return count(plan) < SEVERAL && isOpenAbove(plan);
    }

    private static boolean isSource(LogicalPlan plan) {
        return plan instanceof HiveTableRelation
            || plan instanceof LogicalRelation && ((LogicalRelation) plan).relation() instanceof HadoopFsRelation;
    }

    private static int count(LogicalPlan plan) {
        int sum = isSource(plan) ? 1 : 0;
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            int found = count((LogicalPlan) children.next());
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
}
