import org.apache.spark.rdd.ParallelCollectionPartition;
import org.apache.spark.rdd.ParallelCollectionRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.Partition;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FileScanRDD;
import org.apache.spark.status.api.v1.RDDStorageInfo;

/**
 * Facts about a leaf of a plan that is an RDD: rows from Python, a checkpoint, the micro-batch of a stream.
 *
 * It relies on ParallelCollectionRDD and FileScanRDD, on LogicalRDD.rdd() and on AppStatusStore.rdd().
 */
public class RddRows {
    private static final int MOST_RDDS = 1000;
    private static final int MOST_ROWS = 1000000;
    private final LogicalRDD leaf;

    RddRows(LogicalRDD leaf) {
        this.leaf = leaf;
    }

    /**
     * True if each run gives the same rows: those of a checkpoint. Any other RDD may run functions of Python or Scala,
     * and one that is stored when it first runs computes a lost block again.
     */
    boolean repeat() {
        return leaf.rdd().isCheckpointed();
    }

    /**
     * Spark's estimate, which for an RDD of a user is the largest number, or the bytes of the lists, files and stored
     * rows that the RDD is made from, if these are known and fewer. Functions may make more rows of them.
     */
    Number bytes() {
        Number estimate = (Number) leaf.stats().sizeInBytes();
        long found = 0;
        try {
            found = stored(leaf.rdd());
            found = found > 0 ? found : ofSources();
        } catch (Exception unknown) {
            found = 0;
        }
        return found > 0 && found < estimate.doubleValue() ? Long.valueOf(found) : estimate;
    }

    private static long stored(RDD rdd) {
        if (!rdd.getStorageLevel().isValid()) {
            return 0;
        }
        // It throws for an RDD of which nothing is stored.
        RDDStorageInfo found = rdd.sparkContext().statusStore().rdd(rdd.id());
        boolean isWhole = found.numCachedPartitions() == found.numPartitions();
        return isWhole ? found.memoryUsed() + found.diskUsed() : 0;
    }

    private long ofSources() {
        java.util.HashSet seen = new java.util.HashSet();
        java.util.ArrayDeque waiting = new java.util.ArrayDeque();
        waiting.add(leaf.rdd());
        long sum = 0;
        while (!waiting.isEmpty()) {
            RDD rdd = (RDD) waiting.remove();
            scala.collection.Iterator sources = rdd.dependencies().iterator();
            if (seen.size() > MOST_RDDS) {
                return 0;
            }
            if (!seen.add(Integer.valueOf(rdd.id()))) {
                continue;
            }
            long own = sources.hasNext() ? 0 : bytes(rdd);
            if (own < 0) {
                return 0;
            }
            sum += own;
            while (sources.hasNext()) {
                waiting.add(((org.apache.spark.Dependency) sources.next()).rdd());
            }
        }
        return sum;
    }

    /**
     * The bytes of an RDD without sources; negative if they are not known.
     */
    private long bytes(RDD rdd) {
        long sum = 0;
        if (rdd instanceof ParallelCollectionRDD) {
            Partition[] slices = rdd.partitions();
            for (int at = 0; at < slices.length; at++) {
                sum += bytes(((ParallelCollectionPartition) slices[at]).values().iterator());
            }
        } else if (rdd instanceof FileScanRDD) {
            scala.collection.Iterator parts = ((FileScanRDD) rdd).filePartitions().iterator();
            while (parts.hasNext()) {
                org.apache.spark.sql.execution.datasources.PartitionedFile[] files =
                    ((FilePartition) parts.next()).files();
                for (int at = 0; at < files.length; at++) {
                    sum += files[at].length();
                }
            }
        } else {
            return -1;
        }
        // Python makes a range in its workers, of a list without elements.
        return sum > 0 ? sum : -1;
    }

    /**
     * Python hands over batches of rows as bytes; other objects count as rows of the leaf, as far as they are few.
     */
    private long bytes(scala.collection.Iterator values) {
        long sum = 0;
        for (int count = 0; values.hasNext(); count++) {
            if (count > MOST_ROWS) {
                return Long.MAX_VALUE / 2;
            }
            Object value = values.next();
            sum += value instanceof byte[] ? ((byte[]) value).length : leaf.schema().defaultSize();
        }
        return sum;
    }
}
