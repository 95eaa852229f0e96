import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * Copies of the nodes of a plan.
 *
 * It relies on withNewChildrenInternal() and copyTagsFrom() of plans.
 */
public class PlanCopy {
    private PlanCopy() {}

    /**
     * The node above other children, also where these are equal to its own, as scans with another text are:
     * withNewChildren() would keep its own.
     */
    static LogicalPlan above(LogicalPlan node, java.util.List children) {
        LogicalPlan found = (LogicalPlan) node.withNewChildrenInternal(
            scala.jdk.javaapi.CollectionConverters.asScala(children).toIndexedSeq());
        found.copyTagsFrom(node);
        return found;
    }
}
