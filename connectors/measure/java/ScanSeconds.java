import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.util.QueryExecutionListener;
import org.apache.spark.util.AccumulatorV2;

/**
 * Listener that keeps the seconds of the scans of a session's latest queries, until somebody takes them.
 *
 * Spark measures the time of a scan in its tasks where it reads columns, not rows. A scan that a query reuses, and one
 * below cached rows, is not counted again.
 *
 * It relies on the metric scanTime of FileSourceScanExec.
 */
public class ScanSeconds implements QueryExecutionListener {
    private static final String TIME = "scanTime";
    private final SparkSession session;
    private final java.util.List prunedIndexes;
    private final int most;
    private final java.util.ArrayDeque lines = new java.util.ArrayDeque();

    /**
     * The names of the file indexes of pruned scans have spaces between them; so many scans wait at most.
     */
    public ScanSeconds(SparkSession session, String prunedIndexes, Number most) {
        this.session = session;
        this.prunedIndexes = java.util.Arrays.asList(prunedIndexes.split(" "));
        this.most = most.intValue();
    }

    public void start() {
        session.listenerManager().register(this);
    }

    public void stop() {
        session.listenerManager().unregister(this);
    }

    /**
     * A line for each scan that has ended since the last call: its milliseconds, 1 if it was pruned and else 0, and the
     * ids of its columns.
     */
    public synchronized String taken() {
        StringBuilder text = new StringBuilder();
        while (!lines.isEmpty()) {
            text.append((String) lines.removeFirst()).append('\n');
        }
        return text.toString();
    }

    public void onSuccess(String action, QueryExecution execution, long nanoseconds) {
        look(execution.executedPlan());
    }

    public void onFailure(String action, QueryExecution execution, Exception error) {
    }

    private void look(SparkPlan plan) {
        if (plan instanceof FileSourceScanExec) {
            add((FileSourceScanExec) plan);
        } else if (plan instanceof AdaptiveSparkPlanExec) {
            look(((AdaptiveSparkPlanExec) plan).executedPlan());
        } else if (plan instanceof QueryStageExec) {
            look(((QueryStageExec) plan).plan());
        }
        scala.collection.Iterator below = plan.children().iterator();
        while (below.hasNext()) {
            look((SparkPlan) below.next());
        }
        scala.collection.Iterator beside = plan.subqueries().iterator();
        while (beside.hasNext()) {
            look((SparkPlan) beside.next());
        }
    }

    private void add(FileSourceScanExec scan) {
        scala.Option metric = scan.metrics().get(TIME);
        if (metric.isEmpty()) {
            return;
        }
        // The metric itself has two methods of this name, between which Janino cannot choose.
        Object spent = ((AccumulatorV2) metric.get()).value();
        String index = scan.relation().location().getClass().getSimpleName();
        StringBuilder line = new StringBuilder(String.valueOf(spent));
        line.append(prunedIndexes.contains(index) ? " 1" : " 0");
        scala.collection.Iterator columns = scan.output().iterator();
        while (columns.hasNext()) {
            line.append(' ').append(((Attribute) columns.next()).exprId().id());
        }
        synchronized (this) {
            lines.addLast(line.toString());
            if (lines.size() > most) {
                lines.removeFirst();
            }
        }
    }
}
