import org.apache.spark.sql.catalyst.optimizer.ReplaceCTERefWithRepartition$;
import org.apache.spark.sql.catalyst.plans.ExistenceJoin;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.classic.SparkSession;

/**
 * A query that SessionRule hands to Python: its optimised plan, the session that plans it, and its purpose.
 *
 * Common table expressions that Spark did not inline are written into the plan, as Spark's next and last rule does.
 *
 * It relies on ReplaceCTERefWithRepartition and on canonicalized plans.
 */
public class PlannedQuery {
    private final LogicalPlan plan;
    private final SparkSession session;
    private final boolean isOwn;
    private final long execution;
    private final boolean isOfCommand;
    private final boolean isWritten;
    private volatile String cancelled;

    PlannedQuery(LogicalPlan plan, SparkSession session, boolean isOwn, long execution, boolean isOfCommand,
        boolean isWritten) {
        this.plan = plan.containsPattern(TreePattern.CTE()) ? ReplaceCTERefWithRepartition$.MODULE$.apply(plan) : plan;
        this.session = session;
        this.isOwn = isOwn;
        this.execution = execution;
        this.isOfCommand = isOfCommand;
        this.isWritten = isWritten;
    }

    public LogicalPlan plan() {
        return plan;
    }

    public SparkSession session() {
        return session;
    }

    /**
     * A hash of the plan without the names and ids of its columns, alike for equal queries.
     *
     * Canonicalized, an existence join still has the id of its column of matches, so it is hashed as a semijoin; and a
     * recursion has a number and the ids of its columns, so it is hashed as a union over a row.
     */
    public int digest() {
        return new WithoutIds().apply(plan.canonicalized()).hashCode();
    }

    /**
     * Makes semijoins of the existence joins of a plan, and unions of its recursions, which Spark has from 4.1 on.
     */
    public static class WithoutIds implements java.util.function.Function {
        public Object apply(Object plan) {
            LogicalPlan found = PlanCopy.mapped((LogicalPlan) plan, this);
            if (found instanceof Join && ((Join) found).joinType() instanceof ExistenceJoin) {
                Join join = (Join) found;
                return new Join(join.left(), join.right(), LeftSemi$.MODULE$, join.condition(), join.hint());
            }
            return found.nodeName().equals("UnionLoop") ? new Union(found.children(), false, false)
                : found.nodeName().equals("UnionLoopRef") ? new OneRowRelation() : found;
        }
    }

    /**
     * Ends the query with the error of a job of a build, which somebody has cancelled.
     */
    public void cancel(String error) {
        cancelled = error;
    }

    String cancelled() {
        return cancelled;
    }

    /**
     * True if a command of a table format reads files of its own choice.
     */
    public boolean isOfCommand() {
        return isOfCommand;
    }

    /**
     * True for the query of a write by the second interface of sources, in which scans may not be prepared.
     */
    public boolean isWritten() {
        return isWritten;
    }

    /**
     * True for the micro-batch of a stream.
     */
    public boolean isStream() {
        return plan.isStreaming();
    }

    /**
     * The operator by which a stream keeps state between micro-batches, or may; empty if there is none.
     */
    public String state() {
        return new StreamPlan(plan).state();
    }

    /**
     * True for the session that was enabled, false for one that was cloned from it.
     */
    public boolean isOwn() {
        return isOwn;
    }

    /**
     * True for a plan that is asked for as a text.
     */
    public boolean isShown() {
        return execution == PlanPurpose.SHOWN;
    }

    /**
     * The execution, job group, tags and tables of the query, for its history.
     */
    public String origin() {
        return QueryOrigin.text(plan, session, execution);
    }

    /**
     * The id of the execution for which the plan was made, or the number of another purpose.
     */
    public long execution() {
        return execution;
    }
}
