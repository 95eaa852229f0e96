import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * Visit of each node of a plan after its children and the plans of its subqueries, with the place of each node.
 *
 * All visits of one plan give its nodes the same places, since Spark's transformUpWithSubqueries() takes a visitor and
 * visits in one order. OptimizedPlan is the visitor that reads; SparkFilterRemover and NodeReplacer are visitors that
 * rewrite, for which Spark makes copies of the nodes above those that were replaced.
 *
 * It relies on the order in which transformUpWithSubqueries() visits.
 */
public class PlanVisitor extends scala.runtime.AbstractPartialFunction {
    private int visited = 0;

    public boolean isDefinedAt(Object node) {
        return true;
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
        return visit(visited++, (LogicalPlan) node);
    }

    /**
     * The node that takes the place of this one: the node itself unless a subclass replaces it.
     */
    LogicalPlan visit(int at, LogicalPlan node) {
        return node;
    }

    LogicalPlan visitAll(LogicalPlan plan) {
        return (LogicalPlan) plan.transformUpWithSubqueries(this);
    }
}
