import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.QueryExecution;

/**
 * The rows of one run of a plan in the storage of the executors, as a local checkpoint: each is computed once, however
 * often it is read. Spark removes them when no plan reads them any more.
 *
 * It relies on Dataset.localCheckpoint, whose plan is a LogicalRDD.
 */
public class StoredRows {
    private final SparkSession session;
    private final Dataset rows;
    private LogicalRDD leaf;

    /**
     * The session of the query, and the one that runs the plan.
     */
    public StoredRows(SparkSession session, SparkSession runs, LogicalPlan plan) {
        this.session = session;
        this.rows = Dataset.ofRows(runs, plan);
    }

    public QueryExecution execution() {
        return rows.queryExecution();
    }

    /**
     * Runs the exchanges of the plan; the first job over the relation runs the rest of it, and stores all rows.
     */
    public void store(String name) {
        leaf = (LogicalRDD) rows.localCheckpoint(false).queryExecution().analyzed();
        leaf.rdd().setName(name);
    }

    /**
     * A relation of the rows with the columns of a plan. Spark expects as many bytes as of the plan itself.
     */
    public LogicalPlan asRelation(LogicalPlan plan) {
        return RddRelation.of(session, plan, leaf.rdd(), leaf.stats().sizeInBytes(), leaf.stats().rowCount());
    }

    public Number bytes() {
        return (Number) leaf.stats().sizeInBytes();
    }

    public void release() {
        if (leaf != null) {
            leaf.rdd().unpersist(false);
        }
    }
}
