import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * Copies of the nodes of a plan.
 *
 * It relies on withNewChildrenInternal() and copyTagsFrom() of plans.
 */
public class PlanCopy {
    private PlanCopy() {}

    /**
     * The node above what a function makes of each child; the node itself if they all stay.
     */
    static LogicalPlan mapped(LogicalPlan node, java.util.function.Function map) {
        java.util.ArrayList children = new java.util.ArrayList();
        boolean isNew = false;
        scala.collection.Iterator each = node.children().iterator();
        while (each.hasNext()) {
            Object child = each.next();
            Object found = map.apply(child);
            isNew = isNew || found != child;
            children.add(found);
        }
        return isNew ? above(node, children) : node;
    }

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
