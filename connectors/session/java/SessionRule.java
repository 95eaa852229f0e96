import org.apache.spark.SparkContext;
import org.apache.spark.SparkException;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.write.V1Write;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.WriteFiles;
import org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2;
import org.slf4j.LoggerFactory;

/**
 * A rule near the end of a session's optimiser: it hands each plan that is about to run to Python, which prunes it, and
 * takes the pruned plan back; one that is only shown gets texts alone. Whatever goes wrong, the plan stays as it was.
 *
 * Not handed over are plans for nobody knows what, plans without a join or a sorted limit over files, plans that are
 * pruned already, plans inside expressions, which are parts of a plan that is handed over, and whatever is planned
 * while another plan is pruned: the builds, and the queries by which a table format reads its own log. A property of
 * the thread tells of them, which threads that are started meanwhile inherit.
 *
 * Spark runs the rule again on the plan that it returned, which carries a tag for that.
 *
 * It relies on Rule, and on the property of a thread that plans a micro-batch.
 */
public class SessionRule extends Rule implements java.util.function.BooleanSupplier {
    static final String INSIDE = "scanprune.inside";
    private static final String SWITCH = "spark.pruning.auto";
    private static final String BATCH = "streaming.sql.batchId";
    private static final String CANCELLED = "[SPARK_JOB_CANCELLED]";
    // The kinds of calls to Python.
    private static final String QUERY = "query";
    private static final String SHOWN = "shown";
    private static final String PLAIN = "plain";
    private static final String REJECTED = "rejected";
    private static final TreeNodeTag DONE = new TreeNodeTag("scanprune.session");
    private final java.util.function.BiFunction planner;
    private final SparkSession own;
    private final java.util.List settledIndexes;
    private final java.util.List commandIndexes;
    private final java.util.List logIndexes;
    private final java.util.List counters;
    private final PlainQueries plain;
    private volatile boolean isOn = true;
    private volatile boolean tellsAll = false;
    private volatile boolean hasWarned = false;

    /**
     * The names of file indexes and of expressions have spaces between them; of queries that have nothing to prune this
     * number is kept.
     */
    public SessionRule(SparkSession own, java.util.function.BiFunction planner, String settledIndexes,
        String commandIndexes, String logIndexes, String counters, Number most) {
        this.own = own;
        this.planner = planner;
        this.settledIndexes = java.util.Arrays.asList(settledIndexes.split(" "));
        this.commandIndexes = java.util.Arrays.asList(commandIndexes.split(" "));
        this.logIndexes = java.util.Arrays.asList(logIndexes.split(" "));
        this.counters = java.util.Arrays.asList(counters.split(" "));
        this.plain = new PlainQueries(most.intValue());
    }

    /**
     * Ends pruning in all sessions that have the rule, also in those that were cloned from its own.
     */
    public void switchOff() {
        isOn = false;
    }

    /**
     * Tells Python of each query that has nothing to prune, for a log, or of none.
     */
    public void tellAll(boolean tellsAll) {
        this.tellsAll = tellsAll;
    }

    /**
     * The origins of the queries with nothing to prune since the last call, each with a mark behind it.
     */
    public String plainQueries() {
        return plain.taken();
    }

    boolean isOn() {
        return isOn;
    }

    /**
     * True while queries of the active session are pruned; asked by formats, whose rules of their own then act.
     */
    public boolean getAsBoolean() {
        return isOn && isSwitchedOn((SparkSession) SparkSession.active());
    }

    /**
     * Adds the rule to the sessions that start from now on beside its own one, until it is switched off.
     */
    public void addToNewSessions() {
        own.extensions().injectOptimizerRule(new NewSessions(this));
    }

    public TreeNode apply(TreeNode plan) {
        if (!isOn) {
            return plan;
        }
        boolean wasInterrupted = Thread.currentThread().isInterrupted();
        try {
            return visited((LogicalPlan) plan, false);
        } catch (Throwable failed) {
            if ((failed instanceof SparkException || failed instanceof InterruptedException)
                && String.valueOf(failed.getMessage()).startsWith(CANCELLED)) {
                new scala.util.Failure(failed).get();
            }
            if (wasInterrupted || failed instanceof InterruptedException) {
                Thread.currentThread().interrupt();
            } else if (!hasWarned && !Thread.currentThread().isInterrupted()) {
                hasWarned = true;
                LoggerFactory.getLogger("scanprune").warn("A query ran without pruning; no more warnings follow; "
                    + "try: enable(spark) again", failed);
            }
            return plan;
        }
    }

    private LogicalPlan visited(LogicalPlan plan, boolean isWritten) throws Exception {
        if (plan instanceof Subquery || plan instanceof V2WriteCommand && !runsItsQuery(plan)
            || plan.getTagValue(DONE).isDefined()) {
            return plan;
        }
        if (plan instanceof Command || plan instanceof WriteFiles
            || plan instanceof WriteToDataSourceV2 && plan.isStreaming()) {
            return above(plan, isWritten || plan instanceof V2WriteCommand);
        }
        SparkSession session = (SparkSession) SparkSession.active();
        SparkContext context = session.sparkContext();
        if (context.getLocalProperty(INSIDE) != null || !isSwitchedOn(session) || reads(plan, settledIndexes)) {
            return plan;
        }
        if (!new Precheck(plan, Long.valueOf(0L), true, "").isCandidate()) {
            note(plan, context);
            return plan;
        }
        if (plan.isStreaming()) {
            // A micro-batch is planned before its execution begins.
            return context.getLocalProperty(BATCH) == null ? plan
                : pruned(plan, new PlannedQuery(plan, session, false, PlanPurpose.NO_EXECUTION, false, false));
        }
        boolean isOfCommand = reads(plan, commandIndexes);
        if (!isOfCommand && counts(plan)) {
            return plan;
        }
        long execution = PlanPurpose.of(context);
        return execution == PlanPurpose.UNKNOWN || execution == PlanPurpose.SHOWN && isOfCommand ? plan
            : pruned(plan, new PlannedQuery(plan, session, session == own, execution, isOfCommand, isWritten));
    }

    /**
     * Remembers a query that has nothing to prune, if it will run and reads files other than those of a log.
     */
    private void note(LogicalPlan plan, SparkContext context) {
        if (!plan.isStreaming() && reads(plan, null) && !reads(plan, logIndexes)) {
            long execution = PlanPurpose.of(context);
            if (execution >= PlanPurpose.NO_EXECUTION && plain.isNew(execution)) {
                plain.add(QueryOrigin.text(plan, (SparkSession) SparkSession.active(), execution));
                if (tellsAll) {
                    planner.apply(PLAIN, null);
                }
            }
        }
    }

    /**
     * True for a plan that reads files by an index of one of these kinds, null for any: the settled ones are those of
     * what prune() or pruned_read() returned.
     */
    private static boolean reads(LogicalPlan plan, java.util.List indexes) {
        scala.collection.Iterator leaves = plan.collectLeaves().iterator();
        while (leaves.hasNext()) {
            HadoopFsRelation files = FileScan.files((LogicalPlan) leaves.next());
            if (files != null && (indexes == null || names(indexes, files.location()))) {
                return true;
            }
        }
        return false;
    }

    /**
     * True where an expression counts rows for the history of a command: evaluated once more by an optimiser, it would
     * count them twice.
     */
    private boolean counts(TreeNode node) {
        boolean isPlan = node instanceof LogicalPlan;
        return names(counters, node) || anyCounts(node.children())
            || isPlan && anyCounts(((LogicalPlan) node).expressions());
    }

    private boolean anyCounts(scala.collection.Seq nodes) {
        scala.collection.Iterator each = nodes.iterator();
        while (each.hasNext()) {
            if (counts((TreeNode) each.next())) {
                return true;
            }
        }
        return false;
    }

    /**
     * False for a write by the first interface of sources, which plans its query anew as it was analysed, and for the
     * rewriting of rows, which needs all of them.
     */
    private static boolean runsItsQuery(LogicalPlan plan) {
        scala.Option write = plan instanceof AppendData ? ((AppendData) plan).write()
            : plan instanceof OverwriteByExpression ? ((OverwriteByExpression) plan).write()
            : plan instanceof OverwritePartitionsDynamic ? ((OverwritePartitionsDynamic) plan).write()
            : scala.Option.empty();
        return write.isDefined() && !(write.get() instanceof V1Write);
    }

    /**
     * A command that writes the rows of its only child: the plan below it is pruned.
     */
    private LogicalPlan above(LogicalPlan plan, boolean isWritten) throws Exception {
        if (plan.children().size() != 1) {
            return plan;
        }
        LogicalPlan below = (LogicalPlan) plan.children().head();
        LogicalPlan pruned = visited(below, isWritten);
        return pruned == below ? plan : PlanCopy.above(plan, java.util.Collections.singletonList(pruned));
    }

    private static boolean names(java.util.List known, Object found) {
        return known.contains(found.getClass().getSimpleName());
    }

    private static boolean isSwitchedOn(SparkSession session) {
        // Python tells of a text that is neither true nor false.
        return !session.sessionState().conf().getConfString(SWITCH, "true").trim().equalsIgnoreCase("false");
    }

    private LogicalPlan pruned(LogicalPlan plan, PlannedQuery query) {
        SparkContext context = query.session().sparkContext();
        context.setLocalProperty(INSIDE, "true");
        Object answer;
        try {
            answer = planner.apply(query.isShown() ? SHOWN : QUERY, query);
        } finally {
            context.setLocalProperty(INSIDE, null);
        }
        if (query.cancelled() != null) {
            // An interrupted thread ends as in the wait for a job: a stream that is stopped takes that for no error.
            Exception ended = Thread.interrupted() ? (Exception) new InterruptedException(query.cancelled())
                : new SparkException(query.cancelled(), null);
            new scala.util.Failure(ended).get();
        }
        LogicalPlan found = answer instanceof LogicalPlan ? (LogicalPlan) answer : null;
        if (found == null || !columns(found).equals(columns(plan))
            || !new StreamPlan(found).leaves().equals(new StreamPlan(plan).leaves())) {
            if (answer != null && !query.isShown()) {
                planner.apply(REJECTED, query);
            }
            return plan;
        }
        found.setTagValue(DONE, Boolean.TRUE);
        return found;
    }

    private static java.util.List columns(LogicalPlan plan) {
        java.util.ArrayList found = new java.util.ArrayList();
        scala.collection.Iterator output = plan.output().iterator();
        while (output.hasNext()) {
            Attribute column = (Attribute) output.next();
            found.add(java.util.Arrays.asList(new Object[] {column.exprId(), column.dataType()}));
        }
        return found;
    }
}
