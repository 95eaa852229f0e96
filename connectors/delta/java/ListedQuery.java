import org.apache.spark.sql.catalyst.optimizer.SpecialDatetimeValues$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.OptimisticTransaction$;
import org.apache.spark.sql.execution.QueryExecution;

/**
 * A query that is optimised with the lists of files that a session has read, and its DataFrame if nothing is pruned.
 *
 * Spark optimises a query when it first runs, and Delta then lists the files of each scan by a job of its own. The plan
 * made here lists from memory, and unchanged() gives a DataFrame that runs this plan, so that a query which is left as
 * it was is neither listed nor optimised a second time.
 *
 * It relies on QueryPlanningTracker.phases(), LogicalPlan.setAnalyzed() and SpecialDatetimeValues.
 */
public class ListedQuery {
    // A commit of the session sets this conf, which no plan depends on.
    private static final String LAST_COMMIT = "spark.databricks.delta.lastCommitVersionInSession";
    private final DeltaFileLists lists;
    private final Dataset frame;
    private final QueryExecution query;
    private VersionPinning pins = null;
    private ListedScans scans = null;
    private LogicalPlan optimized = null;
    private Object confs = null;

    ListedQuery(DeltaFileLists lists, Dataset frame) {
        this.lists = lists;
        this.frame = frame;
        this.query = frame.queryExecution();
    }

    /**
     * The optimised plan; null if Spark has made it already, or has to make it.
     */
    public LogicalPlan optimized(String skippingConf) {
        SparkSession session = query.sparkSession();
        if (query.tracker().phases().contains("optimization") || OptimisticTransaction$.MODULE$.getActive().isDefined()
            || session.sessionState().conf().getConfString(skippingConf, "true").equalsIgnoreCase("false")) {
            return null;
        }
        confs = confs();
        LogicalPlan plan = query.withCachedData();
        pins = new VersionPinning(lists);
        pins.survey(plan, false);
        if (pins.isEmpty()) {
            return null;
        }
        LogicalPlan pinned = (LogicalPlan) plan.transformUpWithSubqueries(pins);
        // Spark has analysed the plan, and an index over the same table changes nothing in it.
        pinned.setAnalyzed();
        optimized = Dataset.ofRows(session, pinned).queryExecution().optimizedPlan();
        scans = new ListedScans(lists);
        scans.survey(optimized, new java.util.ArrayList());
        if (!scans.isEmpty()) {
            optimized = (LogicalPlan) optimized.transformUpWithSubqueries(scans);
        }
        return optimized;
    }

    /**
     * The DataFrame of the query itself that runs the plan; null if its plan may depend on when it is made, by files of
     * other tables or the current time.
     *
     * The plan without filters is the same one without Spark's own runtime filters. It is optimised again where Delta
     * excluded files, since Spark chose such filters by the size of the whole table.
     */
    public Dataset unchanged(LogicalPlan withoutFilters) {
        if (!pins.areAll() || dependsOnTime(query.analyzed())) {
            return null;
        }
        return new Dataset(new ListedExecution(this, query, scans.areWhole() ? null : withoutFilters), frame.encoder());
    }

    /**
     * True for a plan with the current time, or with a text such as 'now' or 'today' that Spark casts to one.
     */
    private static boolean dependsOnTime(LogicalPlan plan) {
        boolean depends = plan.containsPattern(TreePattern.CURRENT_LIKE()) || hasSpecialTexts(plan);
        scala.collection.Iterator inner = plan.subqueriesAll().iterator();
        while (!depends && inner.hasNext()) {
            depends = hasSpecialTexts((LogicalPlan) inner.next());
        }
        return depends;
    }

    private static boolean hasSpecialTexts(LogicalPlan plan) {
        return SpecialDatetimeValues$.MODULE$.apply(plan) != plan;
    }

    LogicalPlan plan() {
        return optimized;
    }

    /**
     * True if the query would be planned in the same way at this moment: by the same confs, cached rows and versions.
     */
    boolean isCurrent(LogicalPlan withCachedData) {
        return confs.equals(confs()) && query.withCachedData().fastEquals(withCachedData) && pins.areNewest();
    }

    private Object confs() {
        return query.sparkSession().sessionState().conf().getAllConfs().removed(LAST_COMMIT);
    }
}
