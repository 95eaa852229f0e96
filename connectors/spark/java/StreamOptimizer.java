import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.classic.SparkSession;

/**
 * Optimisation of a plan of a micro-batch by the optimiser of its session, without a DataFrame, which Spark makes of no
 * such plan; and without rules that take the filter of a pruned scan for a condition of the query. Some copy and move
 * conditions by joins. One prunes partitions of the stream by a side that has conditions, and stays where Spark has
 * used it before. Rows of the micro-batch that its scan leaves out would not be counted.
 *
 * It relies on the names of the rules.
 */
public class StreamOptimizer extends scala.runtime.AbstractFunction0 {
    private static final String PARTITIONS = "org.apache.spark.sql.execution.dynamicpruning.PartitionPruning";
    private final SparkSession session;
    private final LogicalPlan plan;
    private final boolean prunesPartitions;

    /**
     * The plan to optimise, and the one that Spark has made of the query without pruning.
     */
    public StreamOptimizer(SparkSession session, LogicalPlan plan, LogicalPlan stock) {
        this.session = session;
        this.plan = plan;
        this.prunesPartitions = stock.containsPattern(TreePattern.DYNAMIC_PRUNING_SUBQUERY());
    }

    public LogicalPlan optimized() {
        String rules = prunesPartitions ? OwnQueries.MOVES : OwnQueries.MOVES + "," + PARTITIONS;
        return (LogicalPlan) OwnQueries.withoutRules(session, rules, this);
    }

    public Object apply() {
        return session.sessionState().optimizer().execute(plan);
    }
}
