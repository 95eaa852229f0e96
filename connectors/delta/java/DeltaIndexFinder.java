import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * Search of a plan for a file index of Delta of one kind, by which Delta's classes can be loaded.
 *
 * It relies on the names of Delta's classes alone, so that it compiles without Delta.
 */
public class DeltaIndexFinder {
    private final LogicalPlan plan;
    private final String kind;

    public DeltaIndexFinder(LogicalPlan plan, String kind) {
        this.plan = plan;
        this.kind = kind;
    }

    public Object any() {
        return any(plan);
    }

    private Object any(LogicalPlan plan) {
        if (plan instanceof LogicalRelation && ((LogicalRelation) plan).relation() instanceof HadoopFsRelation) {
            Object index = ((HadoopFsRelation) ((LogicalRelation) plan).relation()).location();
            return index.getClass().getSimpleName().equals(kind) ? index : null;
        }
        Object found = null;
        scala.collection.Iterator children = plan.children().iterator();
        while (found == null && children.hasNext()) {
            found = any((LogicalPlan) children.next());
        }
        return found;
    }
}
