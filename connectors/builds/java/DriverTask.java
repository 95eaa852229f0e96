import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.memory.MemoryMode;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.storage.BlockManager;

/**
 * Task context of one partition that is computed on the driver without a job, in a thread that has no other.
 *
 * Its id is that of no task of an executor, with which it may share the memory manager. Readers of Spark ask before
 * each batch if the task is to end.
 *
 * It extends TaskContextImpl, and relies on TaskContext.setTaskContext().
 */
public class DriverTask extends TaskContextImpl {
    private static final java.util.concurrent.atomic.AtomicLong IDS =
        new java.util.concurrent.atomic.AtomicLong(Long.MIN_VALUE);
    private final TaskMemoryManager memory;
    private final DriverScan scan;

    static DriverTask of(int partition, int partitions, java.util.Properties confs, DriverScan scan) {
        long id = IDS.incrementAndGet();
        return new DriverTask(partition, partitions, id, new TaskMemoryManager(SparkEnv.get().memoryManager(), id),
            confs, scan);
    }

    DriverTask(int partition, int partitions, long id, TaskMemoryManager memory, java.util.Properties confs,
        DriverScan scan) {
        super(0, 0, partition, id, 0, partitions, memory, confs, SparkEnv.get().metricsSystem(), TaskMetrics.empty(),
            1, scala.collection.immutable.Map$.MODULE$.empty());
        this.memory = memory;
        this.scan = scan;
    }

    void begin() {
        SparkEnv.get().blockManager().registerTask(taskAttemptId());
        org.apache.spark.rdd.InputFileBlockHolder.initialize();
        org.apache.spark.TaskContext$.MODULE$.setTaskContext(this);
    }

    /**
     * Closes the files, and gives back all memory and locks, whatever happened.
     */
    void end(Throwable failure) {
        try {
            if (failure != null) {
                markTaskFailed(failure);
            }
        } finally {
            try {
                markTaskCompleted(scala.Option.apply(failure));
            } finally {
                release();
            }
        }
    }

    private void release() {
        BlockManager blocks = SparkEnv.get().blockManager();
        try {
            blocks.memoryStore().releaseUnrollMemoryForThisTask(MemoryMode.ON_HEAP, Long.MAX_VALUE);
            blocks.memoryStore().releaseUnrollMemoryForThisTask(MemoryMode.OFF_HEAP, Long.MAX_VALUE);
            blocks.releaseAllLocksForTask(taskAttemptId());
            memory.cleanUpAllAllocatedMemory();
        } finally {
            org.apache.spark.rdd.InputFileBlockHolder.unset();
            org.apache.spark.TaskContext$.MODULE$.unset();
        }
    }

    public void killTaskIfInterrupted() {
        scan.check(taskMetrics().inputMetrics().recordsRead());
        super.killTaskIfInterrupted();
    }
}
