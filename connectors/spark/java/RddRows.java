import org.apache.spark.rdd.ParallelCollectionPartition;
import org.apache.spark.rdd.ParallelCollectionRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.Partition;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FileScanRDD;
import org.apache.spark.storage.RDDInfo;

/**
 * Facts about a leaf of a plan that is an RDD: rows from Python, a checkpoint, the micro-batch of a stream.
 *
 * It relies on ParallelCollectionRDD and FileScanRDD, and on LogicalRDD.rdd().
 */
public class RddRows {
    private static final int MOST_RDDS = 1000;
    private final LogicalRDD leaf;

    RddRows(LogicalRDD leaf) {
        this.leaf = leaf;
    }

    /**
     * True if each run gives the same rows: those of a checkpoint. A local one stores each partition when it is first
     * computed, on disk where memory is short. Any other RDD may run functions of Python or Scala.
     */
    boolean repeat() {
        return leaf.rdd().isCheckpointed() || leaf.rdd().isLocallyCheckpointed();
    }

    /**
     * Spark's estimate, which for an RDD of a user is the largest number, or the bytes of the lists, files and stored
     * rows that the RDD is made from, if these are known and fewer.
     */
    Number bytes() {
        Number estimate = (Number) leaf.stats().sizeInBytes();
        long found = stored(leaf.rdd());
        found = found > 0 ? found : ofSources();
        return found > 0 && found < estimate.doubleValue() ? Long.valueOf(found) : estimate;
    }

    private static long stored(RDD rdd) {
        if (!rdd.isCheckpointed() && !rdd.getStorageLevel().isValid()) {
            return 0;
        }
        RDDInfo[] all = rdd.sparkContext().getRDDStorageInfo();
        for (int at = 0; at < all.length; at++) {
            boolean isWhole = all[at].id() == rdd.id() && all[at].numCachedPartitions() == all[at].numPartitions();
            if (isWhole) {
                return all[at].memSize() + all[at].diskSize();
            }
        }
        return 0;
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
        return sum;
    }

    /**
     * Python hands over batches of rows as bytes; other objects count as rows of the leaf.
     */
    private long bytes(scala.collection.Iterator values) {
        long sum = 0;
        while (values.hasNext()) {
            Object value = values.next();
            sum += value instanceof byte[] ? ((byte[]) value).length : leaf.schema().defaultSize();
        }
        return sum;
    }
}
