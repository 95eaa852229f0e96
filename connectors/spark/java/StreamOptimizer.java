import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;

/**
 * Optimisation of a plan of a micro-batch by the optimiser of its session, without a DataFrame, which Spark makes of no
 * such plan; and without the rule that copies the conditions of one side of a join to the other. A condition on a
 * static scan would be copied to the stream, and rows of the micro-batch that its scan leaves out would not be counted.
 *
 * It relies on SQLConf.withExistingConf() and on the name of the rule.
 */
public class StreamOptimizer extends scala.runtime.AbstractFunction0 {
    private static final String EXCLUDED = "spark.sql.optimizer.excludedRules";
    private static final String COPIES = "org.apache.spark.sql.catalyst.optimizer.InferFiltersFromConstraints";
    private final SparkSession session;
    private final LogicalPlan plan;

    public StreamOptimizer(SparkSession session, LogicalPlan plan) {
        this.session = session;
        this.plan = plan;
    }

    public LogicalPlan optimized() {
        SQLConf conf = session.sessionState().conf().clone();
        String excluded = conf.getConfString(EXCLUDED, "");
        conf.setConfString(EXCLUDED, excluded.isEmpty() ? COPIES : excluded + "," + COPIES);
        return (LogicalPlan) SQLConf$.MODULE$.withExistingConf(conf, this);
    }

    public Object apply() {
        return session.sessionState().optimizer().execute(plan);
    }
}
