import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.execution.ExplainUtils;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.BroadcastExchangeExec;

/**
 * Walk over a physical plan after its only action: release of the broadcasts that the plan made for its joins.
 *
 * A cached table ran outside of the plan that reads it, so its broadcasts stay. A broadcast that was never used is
 * skipped, since reading its value would create it.
 *
 * It relies on ExplainUtils.foreach and BroadcastExchangeExec.completionFuture().
 */
public class PlanBroadcasts extends scala.runtime.AbstractFunction1 {
    private final SparkPlan plan;

    public PlanBroadcasts(QueryExecution execution) {
        this.plan = execution.executedPlan();
    }

    public Object apply(Object node) {
        if (node instanceof BroadcastExchangeExec) {
            scala.Option made = ((BroadcastExchangeExec) node).completionFuture().value();
            if (made.isDefined() && ((scala.util.Try) made.get()).isSuccess()) {
                ((Broadcast) ((scala.util.Try) made.get()).get()).destroy();
            }
        }
        return scala.runtime.BoxedUnit.UNIT;
    }

    public void destroy() {
        ExplainUtils.foreach(plan, this);
    }
}
