import org.apache.spark.SparkContext;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.command.ExplainCommand;
import org.apache.spark.sql.execution.streaming.runtime.IncrementalExecution;

/**
 * What becomes of a plan that this thread optimises: the id of the execution for which it is made, or a negative
 * number.
 *
 * Inside of an execution Spark plans each step of a recursive query, over the rows of the step before: it is no query
 * of its own, and is looked at alone, as the pruned plan of the whole query has it.
 *
 * It relies on SQLExecution and IncrementalExecution, and on the names of UnionLoopExec, of CacheManager, of the
 * methods of QueryExecution that make an RDD or a text, and of the classes by which servers run statements.
 */
public class PlanPurpose {
    /**
     * It runs outside of an execution: rows to be cached, an RDD, or a statement of a server's client, which the
     * servers plan before its execution begins.
     */
    static final long NO_EXECUTION = -1L;
    /**
     * It is only shown, as by explain().
     */
    static final long SHOWN = -2L;
    /**
     * Whoever asked for it looks at the plan alone, as inputFiles() does.
     */
    static final long UNKNOWN = -3L;

    private PlanPurpose() {}

    static long of(SparkContext context) {
        String id = context.getLocalProperty(SQLExecution.EXECUTION_ID_KEY());
        QueryExecution query = id == null ? null : SQLExecution.getQueryExecution(Long.parseLong(id));
        // Inside of foreachBatch the thread carries the execution of the stream, which is not that of its queries; and
        // a thread that was started inside of an execution carries that one also when it has ended.
        if (query == null || query instanceof IncrementalExecution) {
            return outside();
        }
        if (isStep()) {
            return UNKNOWN;
        }
        return query.logical() instanceof ExplainCommand ? SHOWN : Long.parseLong(id);
    }

    private static boolean isStep() {
        StackTraceElement[] frames = Thread.currentThread().getStackTrace();
        for (int at = 0; at < frames.length; at++) {
            if (frames[at].getClassName().startsWith("org.apache.spark.sql.execution.UnionLoopExec")) {
                return true;
            }
        }
        return false;
    }

    /**
     * The purpose by the stack: a plan that runs is shown on the way, too.
     */
    private static long outside() {
        long found = UNKNOWN;
        StackTraceElement[] frames = Thread.currentThread().getStackTrace();
        for (int at = 0; at < frames.length; at++) {
            String name = frames[at].getClassName();
            boolean isQuery = name.startsWith("org.apache.spark.sql.execution.QueryExecution");
            String method = isQuery ? frames[at].getMethodName().toLowerCase() : "";
            if (method.contains("tordd")
                || name.startsWith("org.apache.spark.sql.execution.CacheManager")
                || name.startsWith("org.apache.spark.sql.connect.execution.SparkConnectPlanExecution")
                || name.startsWith("org.apache.spark.sql.hive.thriftserver.SparkExecuteStatementOperation")) {
                return NO_EXECUTION;
            }
            if (method.contains("explainstring")) {
                found = SHOWN;
            }
        }
        return found;
    }
}
