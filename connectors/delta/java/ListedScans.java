import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.OptimisticTransaction$;
import org.apache.spark.sql.delta.files.TahoeLogFileIndex;
import org.apache.spark.sql.delta.stats.DeltaScanGenerator;
import org.apache.spark.sql.delta.stats.PrepareDeltaScan;
import org.slf4j.LoggerFactory;

/**
 * Delta's own rule that gives each scan its files, with lists from memory, and what is unknown listed for all scans of
 * a plan at once.
 *
 * Which conditions belong to a scan, which version it reads, and what becomes of limits, counts and generated columns
 * is left to Delta, and so are the indexes in the plan. A first pass over the plan finds the scans whose lists are
 * unknown, a second one takes these lists. Spark makes a rule for each plan that it optimises.
 *
 * It extends PrepareDeltaScan, and relies on getDeltaScanGenerator(), prepareDeltaScan() and withStatusCode().
 */
public class ListedScans extends PrepareDeltaScan {
    private static final String DELTAS_RULE = PrepareDeltaScan.class.getName();
    private static final String CANCELLED = "[SPARK_JOB_CANCELLED]";
    private final EarlyLists lists;
    private final SparkSession session;
    private ListingPass pass = null;

    ListedScans(EarlyLists lists, SparkSession session) {
        super(session);
        this.lists = lists;
        this.session = session;
    }

    public LogicalPlan apply(LogicalPlan plan) {
        try {
            // A transaction notes what is read, to find conflicts.
            boolean isLeft = OptimisticTransaction$.MODULE$.getActive().isDefined() || !isListed(plan) || isExcluded();
            return isLeft ? plan : super.apply(plan);
        } catch (Throwable failed) {
            // An error of Delta's listing is one of the query, which need not be listed a second time.
            if (isEnd(failed) || pass != null && pass.hasFailed()) {
                new scala.util.Failure(failed).get();
            }
            // Delta's own rule is next.
            LoggerFactory.getLogger("scanprune").debug("Giving Delta's scans their files failed", failed);
            return plan;
        }
    }

    boolean isListed(LogicalPlan plan) {
        return lists.areFor(plan, session);
    }

    /**
     * True where somebody has ended the query, which then must not list its files again.
     */
    private static boolean isEnd(Throwable failed) {
        return Thread.currentThread().isInterrupted() || failed instanceof InterruptedException
            || String.valueOf(failed.getMessage()).startsWith(CANCELLED);
    }

    /**
     * True if the user has switched Delta's rule off.
     */
    private boolean isExcluded() {
        scala.Option names = session.sessionState().conf().optimizerExcludedRules();
        return names.isDefined()
            && java.util.Arrays.asList(((String) names.get()).trim().split("\\s*,\\s*")).contains(DELTAS_RULE);
    }

    public LogicalPlan prepareDeltaScan(LogicalPlan plan) {
        pass = new ListingPass(lists.scans(), session);
        LogicalPlan prepared = super.prepareDeltaScan(plan);
        if (pass.isComplete()) {
            return prepared;
        }
        withStatusCode("DELTA", "Filtering files for query", withStatusCode$default$3(), pass);
        return super.prepareDeltaScan(plan);
    }

    public DeltaScanGenerator getDeltaScanGenerator(TahoeLogFileIndex index) {
        DeltaScanGenerator deltas = super.getDeltaScanGenerator(index);
        // Without a pass Delta counts rows by metadata.
        return pass == null ? deltas : new KnownScanGenerator(deltas, pass);
    }
}
