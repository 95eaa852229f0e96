import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * Search of a plan for any file index of Delta, by which Delta's classes can be loaded.
 *
 * It relies on the name of Delta's TahoeLogFileIndex alone, so that it compiles without Delta.
 */
public class DeltaIndexFinder {
    private final LogicalPlan plan;

    public DeltaIndexFinder(LogicalPlan plan) {
        this.plan = plan;
    }

    public Object any() {
        return any(plan);
    }

    private static Object any(LogicalPlan plan) {
        if (plan instanceof LogicalRelation && ((LogicalRelation) plan).relation() instanceof HadoopFsRelation) {
            Object index = ((HadoopFsRelation) ((LogicalRelation) plan).relation()).location();
            return index.getClass().getSimpleName().equals("TahoeLogFileIndex") ? index : null;
        }
        Object found = null;
        scala.collection.Iterator children = plan.children().iterator();
        while (found == null && children.hasNext()) {
            found = any((LogicalPlan) children.next());
        }
        return found;
    }
}
