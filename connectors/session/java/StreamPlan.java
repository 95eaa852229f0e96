import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * Facts about the optimised plan of a micro-batch: the operator for which it is left alone, and its streaming leaves.
 *
 * Each micro-batch of a plan without state depends on its own rows and the static tables alone. Operators are known by
 * name, so that one that a later version adds counts as one that keeps state.
 *
 * It relies on the names of Spark's logical operators.
 */
public class StreamPlan {
    private static final java.util.List STATELESS = java.util.Arrays.asList(new Object[] {
        "ArrowEvalPython", "BatchEvalPython", "CollectMetrics", "DeserializeToObject", "Filter", "Generate",
        "MapElements", "MapInArrow", "MapInPandas", "MapPartitions", "Project", "RebalancePartitions", "Repartition",
        "RepartitionByExpression", "SerializeFromObject", "SubqueryAlias", "TypedFilter", "Union"});
    private final LogicalPlan plan;

    StreamPlan(LogicalPlan plan) {
        this.plan = plan;
    }

    /**
     * The name of an operator over rows of a stream that keeps state, or may; empty if there is none.
     */
    String state() {
        return state(plan);
    }

    private static String state(LogicalPlan node) {
        if (!node.isStreaming() || node.children().isEmpty()) {
            return "";
        }
        int streams = 0;
        scala.collection.Iterator children = node.children().iterator();
        while (children.hasNext()) {
            LogicalPlan child = (LogicalPlan) children.next();
            String below = state(child);
            if (!below.isEmpty()) {
                return below;
            }
            streams += child.isStreaming() ? 1 : 0;
        }
        String name = node.nodeName();
        boolean isJoin = node instanceof org.apache.spark.sql.catalyst.plans.logical.Join;
        return isJoin ? streams > 1 ? "Join of two streams" : "" : STATELESS.contains(name) ? "" : name;
    }

    /**
     * The streaming leaves, in their order. The rows that a micro-batch has read are counted at them.
     */
    java.util.List leaves() {
        java.util.ArrayList found = new java.util.ArrayList();
        scala.collection.Iterator leaves = plan.collectLeaves().iterator();
        while (leaves.hasNext()) {
            LogicalPlan leaf = (LogicalPlan) leaves.next();
            if (leaf.isStreaming()) {
                found.add(leaf);
            }
        }
        return found;
    }
}
