import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * Search for an object of Delta, by which Delta's classes can be loaded.
 *
 * It relies on the names of Delta's classes alone, so that it compiles without Delta.
 */
public class DeltaFinder {
    public DeltaFinder() {}

    /**
     * A file index of a kind in a plan; null if there is none.
     */
    public Object index(LogicalPlan plan, String kind) {
        if (plan instanceof LogicalRelation && ((LogicalRelation) plan).relation() instanceof HadoopFsRelation) {
            Object index = ((HadoopFsRelation) ((LogicalRelation) plan).relation()).location();
            return index.getClass().getSimpleName().equals(kind) ? index : null;
        }
        Object found = null;
        scala.collection.Iterator children = plan.children().iterator();
        while (found == null && children.hasNext()) {
            found = index((LogicalPlan) children.next(), kind);
        }
        return found;
    }

    /**
     * The rule of a name that the extensions of a session add before plans are estimated; null if they do not.
     */
    public Object rule(SparkSession session, String name) {
        scala.collection.Iterator rules = session.extensions().buildPreCBORules(session).iterator();
        while (rules.hasNext()) {
            Object rule = rules.next();
            if (rule.getClass().getName().equals(name)) {
                return rule;
            }
        }
        return null;
    }
}
