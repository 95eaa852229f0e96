import org.apache.spark.sql.catalyst.expressions.ExpressionSet;
import org.apache.spark.sql.catalyst.expressions.ExpressionSet$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.stats.DataSize;
import org.apache.spark.sql.delta.stats.DeltaDataSkippingType$;
import org.apache.spark.sql.delta.stats.DeltaScan;
import org.apache.spark.sql.execution.SQLExecution;
import scala.collection.immutable.Seq;
import scala.collection.immutable.Set$;

/**
 * The listing of the scans of one plan: those that KnownScans has, and the others, which Delta lists at once.
 *
 * Asked for an unknown scan, it first answers with one without files, and the plan is to be prepared once more. Called
 * as a function it lists all that was asked for. From then on null stands for a scan that Delta has to list.
 *
 * It relies on Delta's DeltaScan, on SQLExecution.withThreadLocalCaptured(), and on the job tags of SparkContext.
 */
public class ListingPass extends scala.runtime.AbstractFunction0 {
    private static final int MOST_THREADS = 16;
    private static final long MOST_SECONDS = 5L;
    private final KnownScans known;
    private final SparkSession session;
    private final String confs;
    private final java.util.LinkedHashMap unknown = new java.util.LinkedHashMap();
    private final java.util.HashMap listed = new java.util.HashMap();
    private boolean isComplete = true;
    private boolean isFirst = true;

    ListingPass(KnownScans known, SparkSession session) {
        this.known = known;
        this.session = session;
        this.confs = ListingConfs.digest(session);
    }

    /**
     * True if all scans of the plan were known.
     */
    boolean isComplete() {
        return isComplete;
    }

    /**
     * True if Delta has failed to list a scan.
     */
    boolean hasFailed() {
        java.util.Iterator each = unknown.values().iterator();
        while (each.hasNext()) {
            if (((Listing) each.next()).hasFailed) {
                return true;
            }
        }
        return false;
    }

    DeltaScan scan(Snapshot snapshot, Seq conditions) {
        Object key = ScanKey.of(snapshot, conditions, confs);
        DeltaScan found = key == null ? null : listedNow(key, snapshot, conditions);
        if (found == null && key != null) {
            found = known.scan(key, snapshot, conditions);
        }
        if (found == null && isFirst && key != null) {
            unknown.put(key, new Listing(snapshot, conditions));
        }
        return found == null ? unlisted(snapshot) : found;
    }

    private DeltaScan listedNow(Object key, Snapshot snapshot, Seq conditions) {
        DeltaScan scan = (DeltaScan) listed.get(key);
        Seq before = scan == null ? null : ((Listing) unknown.get(key)).conditions;
        // Two scans of a plan may have equal conditions on columns of other ids.
        return scan == null || conditions.equals(before) ? scan
            : KnownScans.isKept(scan) ? new KnownScans.KnownScan(before, scan).of(snapshot, conditions) : null;
    }

    /**
     * A scan without files, in place of one that the second pass gives; null in that pass.
     */
    DeltaScan unlisted(Snapshot snapshot) {
        if (!isFirst) {
            return null;
        }
        isComplete = false;
        DataSize size = new DataSize(scala.Option.empty(), scala.Option.empty(), scala.Option.empty(),
            scala.Option.empty());
        ExpressionSet none = ExpressionSet$.MODULE$.apply();
        return new DeltaScan(snapshot.version(), PrunedFileIndex.sequence(new java.util.ArrayList()), size, size, size,
            snapshot, none, none, none, Set$.MODULE$.empty(), none, 0L,
            DeltaDataSkippingType$.MODULE$.noSkippingV1());
    }

    public Object apply() {
        isFirst = false;
        try {
            list();
        } catch (Exception failed) {
            Throwable cause = failed instanceof java.util.concurrent.ExecutionException ? failed.getCause() : failed;
            new scala.util.Failure(cause).get();
        }
        return null;
    }

    private void list() throws Exception {
        java.util.ArrayList keys = new java.util.ArrayList(unknown.keySet());
        if (keys.size() == 1) {
            add(keys.get(0), ((Listing) unknown.get(keys.get(0))).apply());
            return;
        }
        java.util.concurrent.ExecutorService threads =
            java.util.concurrent.Executors.newFixedThreadPool(Math.max(1, Math.min(keys.size(), MOST_THREADS)));
        String tag = "scanprune-" + java.util.UUID.randomUUID();
        boolean isDone = false;
        session.sparkContext().addJobTag(tag);
        try {
            java.util.ArrayList scans = new java.util.ArrayList();
            for (int at = 0; at < keys.size(); at++) {
                scans.add(SQLExecution.withThreadLocalCaptured(session, threads, (Listing) unknown.get(keys.get(at))));
            }
            for (int at = 0; at < keys.size(); at++) {
                add(keys.get(at), ((java.util.concurrent.Future) scans.get(at)).get());
            }
            isDone = true;
        } finally {
            session.sparkContext().removeJobTag(tag);
            if (!isDone) {
                // After a failure no other listing begins, and none goes on.
                ((java.util.concurrent.ThreadPoolExecutor) threads).getQueue().clear();
                session.sparkContext().cancelJobsWithTag(tag);
                threads.shutdown();
                threads.awaitTermination(MOST_SECONDS, java.util.concurrent.TimeUnit.SECONDS);
                // One that was between two jobs has begun another.
                session.sparkContext().cancelJobsWithTag(tag);
            }
            threads.shutdownNow();
        }
    }

    private void add(Object key, Object scan) {
        listed.put(key, scan);
        // A conf that another thread sets meanwhile counts for some lists and not for others.
        if (confs.equals(ListingConfs.digest(session))) {
            known.add(key, ((Listing) unknown.get(key)).conditions, (DeltaScan) scan);
        }
    }

    /**
     * One scan that Delta lists.
     */
    public static class Listing extends scala.runtime.AbstractFunction0 {
        private final Snapshot snapshot;
        private final Seq conditions;
        private volatile boolean hasFailed = false;

        Listing(Snapshot snapshot, Seq conditions) {
            this.snapshot = snapshot;
            this.conditions = conditions;
        }

        public Object apply() {
            try {
                return snapshot.filesForScan(conditions, false);
            } catch (Throwable failed) {
                hasFailed = true;
                return new scala.util.Failure(failed).get();
            }
        }
    }
}
