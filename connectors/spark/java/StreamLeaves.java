import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * Rewrite of a part of a stream's plan that is to run as a query by itself: the files of the micro-batch are read as
 * any other files. Spark refuses to run a plan with a stream outside of the stream, and it counts the rows of a
 * micro-batch at the leaves of the stream's own plan, which stay.
 *
 * It relies on the copy methods of LogicalRelation and LocalRelation.
 */
public class StreamLeaves extends PlanVisitor {
    private final LogicalPlan plan;

    public StreamLeaves(LogicalPlan plan) {
        this.plan = plan;
    }

    public LogicalPlan asBatch() {
        LogicalPlan found = visitAll(plan);
        found.setAnalyzed();
        return found;
    }

    LogicalPlan visit(int at, LogicalPlan node) {
        if (node instanceof LogicalRelation && node.isStreaming()) {
            LogicalRelation leaf = (LogicalRelation) node;
            return leaf.copy(leaf.relation(), leaf.output(), leaf.catalogTable(), false, scala.Option.empty());
        }
        if (node instanceof LocalRelation && node.isStreaming()) {
            LocalRelation leaf = (LocalRelation) node;
            return leaf.copy(leaf.output(), leaf.data(), false, scala.Option.empty());
        }
        return node;
    }
}
