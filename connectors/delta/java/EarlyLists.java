import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.stats.PrepareDeltaScan;
import scala.collection.mutable.Buffer;

/**
 * Maker of the rule that gives Delta's scans their files from memory, for all sessions with the same extensions.
 *
 * While a plan is optimised, a rule of Delta lists the files of each scan by a job, one after the other.
 * ListedScans stands before that rule, where filters and limits are final and nothing has estimated sizes, and
 * leaves nothing to list. It acts where a session is enabled, and on queries that early() has marked.
 *
 * Spark asks the extensions of a session for rules whenever it optimises a plan, so that a running session gets the
 * rule, too. They have no public way to add a rule before that of Delta, so the list is replaced. Rules of users that
 * stand before Delta's stay before it.
 *
 * It relies on the field preCBORules of SparkSessionExtensions.
 */
public class EarlyLists extends scala.runtime.AbstractFunction1 {
    private static final String RULES = "preCBORules";
    private static final String SESSION_RULE = "SessionRule";
    private static final TreeNodeTag EARLY = new TreeNodeTag("scanprune.early");
    private final KnownScans scans;

    private EarlyLists(KnownScans scans) {
        this.scans = scans;
    }

    /**
     * The lists of all sessions that share the extensions of a session; the first call sets their size.
     */
    static EarlyLists of(SparkSession session, long mostFiles) throws Exception {
        java.lang.reflect.Field field = SparkSessionExtensions.class.getDeclaredField(RULES);
        field.setAccessible(true);
        SparkSessionExtensions extensions = session.extensions();
        synchronized (extensions) {
            // Another thread may read the old list at this moment.
            Buffer makers = (Buffer) ((Buffer) field.get(extensions)).clone();
            int place = makers.size();
            for (int at = makers.size() - 1; at >= 0; at--) {
                Object maker = makers.apply(at);
                if (maker instanceof EarlyLists) {
                    return (EarlyLists) maker;
                }
                if (maker.getClass().getSimpleName().equals(EarlyLists.class.getSimpleName())) {
                    // Another process of Python has compiled it.
                    makers.remove(at);
                    place--;
                } else if (((scala.Function1) maker).apply(session) instanceof PrepareDeltaScan) {
                    place = at;
                }
            }
            EarlyLists made = new EarlyLists(new KnownScans(mostFiles));
            makers.insert(place, made);
            field.set(extensions, makers);
            return made;
        }
    }

    public Object apply(Object session) {
        return new ListedScans(this, (SparkSession) session);
    }

    KnownScans scans() {
        return scans;
    }

    /**
     * True for a plan that gets its files from memory: one of an enabled session, or of a marked query.
     */
    boolean areFor(LogicalPlan plan, SparkSession session) {
        scala.collection.Iterator leaves = plan.collectLeaves().iterator();
        while (leaves.hasNext()) {
            if (((LogicalPlan) leaves.next()).getTagValue(EARLY).isDefined()) {
                return true;
            }
        }
        scala.collection.Iterator rules = session.experimental().extraOptimizations().iterator();
        while (rules.hasNext()) {
            Object rule = rules.next();
            if (rule.getClass().getName().equals(SESSION_RULE) && rule instanceof java.util.function.BooleanSupplier
                && ((java.util.function.BooleanSupplier) rule).getAsBoolean()) {
                return true;
            }
        }
        return false;
    }

    /**
     * The same query with a mark, which queries that are built on it have, too.
     */
    Dataset early(Dataset frame) {
        // Views share the nodes of their plans with other queries.
        LogicalPlan plan = (LogicalPlan) frame.queryExecution().commandExecuted().clone();
        scala.collection.Iterator leaves = plan.collectLeaves().iterator();
        while (leaves.hasNext()) {
            ((LogicalPlan) leaves.next()).setTagValue(EARLY, Boolean.TRUE);
        }
        return Dataset.ofRows(frame.sparkSession(), plan);
    }

    /**
     * An optimised plan with those scans pinned that Delta has left alone, as in a write by the second interface of
     * sources.
     */
    LogicalPlan pinned(SparkSession session, LogicalPlan plan) {
        return new PinnedScans(this, session).apply(plan);
    }
}
