import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.delta.OptimisticTransaction$;
import org.apache.spark.sql.execution.QueryExecution;

/**
 * Execution of a query as it is, except that its optimised plan was made when prune() read it.
 *
 * The plan is used if Spark would make the same one when the query first runs. After a commit to a table of the query,
 * a change of a conf, with rows that were cached meanwhile, or in a transaction, Spark optimises the query as always.
 *
 * It extends QueryExecution, and relies on optimizedPlan() being the only way to the optimised plan.
 */
public class ListedExecution extends QueryExecution {
    private final ListedQuery listed;
    private final LogicalPlan withoutFilters;
    private LogicalPlan chosen = null;

    ListedExecution(ListedQuery listed, QueryExecution query, LogicalPlan withoutFilters) {
        super(query.sparkSession(), query.commandExecuted(), query.tracker(), query.mode(),
            query.shuffleCleanupModeOpt(), query.refreshPhaseEnabled(), QueryExecution.$lessinit$greater$default$7(),
            query.analyzerOpt());
        this.listed = listed;
        this.withoutFilters = withoutFilters;
    }

    public synchronized LogicalPlan optimizedPlan() {
        if (chosen == null) {
            chosen = known();
        }
        if (chosen == null) {
            chosen = super.optimizedPlan();
        }
        return chosen;
    }

    private LogicalPlan known() {
        try {
            if (OptimisticTransaction$.MODULE$.getActive().isDefined() || !listed.isCurrent(withCachedData())) {
                return null;
            }
            LogicalPlan plan = withoutFilters == null ? listed.plan()
                : new OwnQueries(sparkSession()).optimized(withoutFilters, true).queryExecution().optimizedPlan();
            return columns(plan).equals(columns(analyzed())) ? plan : null;
        } catch (Exception unknown) {
            // Spark raises an error of the query itself again.
            return null;
        }
    }

    private static java.util.List columns(LogicalPlan plan) {
        java.util.ArrayList ids = new java.util.ArrayList();
        scala.collection.Iterator output = plan.output().iterator();
        while (output.hasNext()) {
            ids.add(((Attribute) output.next()).exprId());
        }
        return ids;
    }
}
