import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.util.QueryExecutionListener;

/**
 * What a listener of queries is told: in each line the action, whether it ended well, and the leaves of the analysed
 * and of the optimised plan, as an audit walks them; those of files by the last part of their path.
 */
public class HeardQueries implements QueryExecutionListener {
    private final java.util.List lines = java.util.Collections.synchronizedList(new java.util.ArrayList());

    public HeardQueries() {}

    public void onSuccess(String action, QueryExecution execution, long nanoseconds) {
        add(action, "ok", execution);
    }

    public void onFailure(String action, QueryExecution execution, Exception error) {
        add(action, "failed", execution);
    }

    private void add(String action, String end, QueryExecution execution) {
        lines.add(action + "\t" + end + "\t" + leaves(execution.analyzed()) + "\t" + leaves(execution.optimizedPlan()));
    }

    public String text() {
        return String.join("\n", lines);
    }

    public void clear() {
        lines.clear();
    }

    private static String leaves(LogicalPlan plan) {
        StringBuilder words = new StringBuilder();
        scala.collection.Iterator found = plan.collectLeaves().iterator();
        while (found.hasNext()) {
            words.append(name((LogicalPlan) found.next())).append(' ');
        }
        return words.toString().trim();
    }

    private static String name(LogicalPlan leaf) {
        if (leaf instanceof LogicalRelation && ((LogicalRelation) leaf).relation() instanceof HadoopFsRelation) {
            HadoopFsRelation files = (HadoopFsRelation) ((LogicalRelation) leaf).relation();
            scala.collection.Seq roots = files.location().rootPaths();
            return ((org.apache.hadoop.fs.Path) roots.head()).getName();
        }
        return leaf.nodeName();
    }
}
