import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionSet;
import org.apache.spark.sql.catalyst.expressions.ExpressionSet$;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.stats.DataSize;
import org.apache.spark.sql.delta.stats.DeltaScan;
import scala.Enumeration;
import scala.collection.immutable.Seq;
import scala.collection.immutable.Set$;

/**
 * Scans that Delta has listed, by ScanKey; the least recently used go when they hold too many files.
 *
 * No job runs while it is locked, so that no session waits for the listing of another.
 *
 * It relies on Delta's DeltaScan.
 */
public class KnownScans {
    private final long mostFiles;
    private final java.util.LinkedHashMap scans = new java.util.LinkedHashMap(16, 0.75f, true);
    private long files = 0;

    KnownScans(long mostFiles) {
        this.mostFiles = mostFiles;
    }

    /**
     * The scan of a key for a query, whose columns have ids of their own; null if it is unknown.
     */
    DeltaScan scan(Object key, Snapshot snapshot, Seq conditions) {
        KnownScan found = null;
        synchronized (this) {
            found = (KnownScan) scans.get(key);
        }
        return found == null ? null : found.of(snapshot, conditions);
    }

    /**
     * Keeps a scan that Delta has listed by some conditions, unless it has rewritten one of them.
     */
    void add(Object key, Seq conditions, DeltaScan scan) {
        if (!isKept(scan)) {
            return;
        }
        KnownScan known = new KnownScan(conditions, scan);
        synchronized (this) {
            remove(key);
            if (known.weight <= mostFiles) {
                scans.put(key, known);
                files += known.weight;
            }
            while (files > mostFiles) {
                remove(scans.keySet().iterator().next());
            }
        }
    }

    static boolean isKept(DeltaScan scan) {
        return scan.partitionLikeDataFilters().isEmpty();
    }

    private void remove(Object key) {
        KnownScan gone = (KnownScan) scans.remove(key);
        files -= gone == null ? 0L : gone.weight;
    }

    /**
     * One scan, with the use that Delta has made of each condition.
     */
    public static class KnownScan {
        private static final String PARTITION = "partition";
        private static final String DATA = "data";
        private static final String UNUSED = "unused";
        private final long version;
        private final Seq files;
        private final DataSize total;
        private final DataSize inPartitions;
        private final DataSize scanned;
        private final Enumeration.Value skipping;
        private final java.util.ArrayList uses = new java.util.ArrayList();
        private final long weight;

        KnownScan(Seq conditions, DeltaScan scan) {
            // The scan itself holds the state of a version, which Delta drops after a commit.
            this.version = scan.version();
            this.files = scan.files();
            this.total = scan.total();
            this.inPartitions = scan.partition();
            this.scanned = scan.scanned();
            this.skipping = scan.dataSkippingType();
            this.weight = 1L + scan.files().size() + ScanKey.weight(conditions);
            scala.collection.Iterator each = conditions.iterator();
            while (each.hasNext()) {
                Object condition = each.next();
                uses.add(has(scan.partitionFilters(), condition) ? PARTITION
                    : has(scan.dataFilters(), condition) ? DATA : UNUSED);
            }
        }

        private static boolean has(ExpressionSet conditions, Object condition) {
            return conditions.contains((Expression) condition);
        }

        /**
         * The scan with conditions of another query in place of its own.
         */
        DeltaScan of(Snapshot snapshot, Seq conditions) {
            return new DeltaScan(version, files, total, inPartitions, scanned, snapshot, used(conditions, PARTITION),
                used(conditions, DATA), ExpressionSet$.MODULE$.apply(), Set$.MODULE$.empty(), used(conditions, UNUSED),
                0L, skipping);
        }

        private ExpressionSet used(Seq conditions, String use) {
            java.util.ArrayList found = new java.util.ArrayList();
            for (int at = 0; at < uses.size(); at++) {
                if (uses.get(at).equals(use)) {
                    found.add(conditions.apply(at));
                }
            }
            return ExpressionSet$.MODULE$.apply(PrunedFileIndex.sequence(found));
        }
    }
}
