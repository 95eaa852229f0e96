import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.FileSourceOptions;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.HigherOrderFunction;
import org.apache.spark.sql.catalyst.expressions.MetadataAttribute$;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable;
import org.apache.spark.sql.catalyst.expressions.Unevaluable;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition$;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.LocalTableScanExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.QueryExecution$;
import org.apache.spark.sql.execution.RDDScanExec;
import org.apache.spark.sql.execution.RangeExec;
import org.apache.spark.sql.execution.ScanFileListing;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.aggregate.HashAggregateExec;
import org.apache.spark.sql.execution.aggregate.SortAggregateExec;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/**
 * The rows of projections, filters and aggregates over few small files, rows in memory or a range of numbers, computed
 * by Spark's own physical plan on the driver.
 *
 * The plan is an optimised one, and is planned without adaptive execution and without a second optimisation. Its
 * partitions are computed one after the other in a thread of its own, so that nothing of a task stays in the caller's
 * thread. Aggregates get the rows below them as one partition, so that they need no exchange. Any other plan, more
 * files, bytes or rows, and any error is a refusal, after which a job decides.
 *
 * It relies on QueryExecution.prepareExecutedPlan(), FileSourceScanExec.selectedPartitions() and RDD.iterator().
 */
public class DriverScan extends scala.runtime.AbstractFunction0 implements Runnable {
    private static final String SPARKS = "org.apache.spark.sql.catalyst.expressions.";
    private static final java.util.List IN_MEMORY = java.util.Arrays.asList(new Object[] {
        LocalTableScanExec.class, RangeExec.class});
    private static final java.util.List AGGREGATES = java.util.Arrays.asList(new Object[] {
        RDDScanExec.class, HashAggregateExec.class, SortAggregateExec.class, SortExec.class});
    private static final java.util.List OPERATORS = java.util.Arrays.asList(new Object[] {
        WholeStageCodegenExec.class, InputAdapter.class, ProjectExec.class, FilterExec.class,
        ColumnarToRowExec.class});
    private final SparkSession session;
    private final LogicalPlan plan;
    private final java.util.List formats;
    private final java.util.ArrayList rows = new java.util.ArrayList();
    private AttributeSet stored;
    private LogicalPlan lowestAggregate;
    private int most;
    private int mostFiles;
    private long mostBytes;
    private long mostRows;
    private long rowBytes;
    private RDD partitions;
    private java.util.Properties confs;
    private Throwable failure;
    private volatile String stopped;
    private volatile Thread thread;

    DriverScan(SparkSession session, LogicalPlan plan, String formats) {
        this.session = session;
        this.plan = plan;
        this.formats = java.util.Arrays.asList(formats.split(" "));
    }

    /**
     * The rows, of which there are at least that many if there are so many; null, with the reason in why(), if a job
     * has to compute them.
     */
    java.util.List rows(int most, int mostFiles, long mostBytes, long mostRows, long milliseconds) {
        this.most = most;
        this.mostFiles = mostFiles;
        this.mostBytes = mostBytes;
        this.mostRows = mostRows;
        try {
            long until = System.nanoTime() + milliseconds * 1000000L;
            check(plan);
            session.withActive(this);
            if (stopped == null) {
                thread.start();
                // At least one millisecond, since zero is forever.
                thread.join(Math.max(1L, (until - System.nanoTime()) / 1000000L));
                if (thread.isAlive()) {
                    stop("it took longer than " + milliseconds + " milliseconds");
                    thread.join(milliseconds);
                    // A read from a store that waits too long to ask if it is to end.
                    thread.interrupt();
                }
            }
        } catch (Throwable error) {
            stop(error.toString());
        }
        return stopped == null && failure == null ? rows : null;
    }

    String why() {
        return stopped != null ? stopped : String.valueOf(failure);
    }

    /**
     * Ends the scan before its next row, or the next batch of a file.
     */
    void stop(String why) {
        if (stopped == null) {
            stopped = why;
        }
    }

    void check(long recordsRead) {
        if (recordsRead > mostRows) {
            stop("it reads more than " + mostRows + " rows");
        }
        if (stopped != null) {
            throw new IllegalStateException(stopped);
        }
    }

    private void check(LogicalPlan node) {
        boolean isOfFiles = node instanceof LogicalRelation
            && ((LogicalRelation) node).relation() instanceof HadoopFsRelation;
        boolean isScan = !node.isStreaming() && (isOfFiles || node instanceof LocalRelation || node instanceof Range);
        if (node instanceof Aggregate) {
            lowestAggregate = node;
        } else if (!isScan && !(node instanceof Project) && !(node instanceof Filter)) {
            throw new UnsupportedOperationException("it has a " + node.nodeName());
        }
        scala.collection.Iterator expressions = node.expressions().iterator();
        while (expressions.hasNext()) {
            check((Expression) expressions.next());
        }
        if (isScan) {
            // Rows of a range are not counted where each goes to another operator by itself.
            if (lowestAggregate != null && node instanceof Range
                && ((Range) node).numElements().$greater(scala.math.BigInt.apply(mostRows))) {
                stop("it reads more than " + mostRows + " rows");
                throw new IllegalStateException(stopped);
            }
            stored = node.outputSet();
        } else {
            check((LogicalPlan) node.children().head());
        }
    }

    private static void check(Expression expression) {
        scala.collection.Iterator children = expression.children().iterator();
        while (children.hasNext()) {
            check((Expression) children.next());
        }
        String name = expression.getClass().getName();
        boolean isColumn = expression.getClass() == AttributeReference.class
            && !MetadataAttribute$.MODULE$.isValid(((AttributeReference) expression).metadata());
        String ownName = name.substring(name.startsWith(SPARKS) ? SPARKS.length() : 0);
        boolean isAggregate = ownName.startsWith("aggregate.");
        boolean isPlain = name.startsWith(SPARKS) && ownName.lastIndexOf('.') == (isAggregate ? 9 : -1)
            && expression.getClass().getClassLoader() == Expression.class.getClassLoader()
            && expression.deterministic() && !expression.stateful()
            && (expression.getClass() == AggregateExpression.class || !(expression instanceof Unevaluable))
            && !(expression instanceof RuntimeReplaceable) && !(expression instanceof UserDefinedExpression)
            && !(expression instanceof PlanExpression) && !(expression instanceof HigherOrderFunction);
        if (!isColumn && !isPlain) {
            throw new UnsupportedOperationException("it has a " + expression.getClass().getSimpleName());
        }
    }

    /**
     * Plans the rows while the session is the active one, which the physical plan holds.
     */
    public Object apply() {
        LogicalPlan below = lowestAggregate == null ? plan : (LogicalPlan) lowestAggregate.children().head();
        SparkPlan physical = QueryExecution$.MODULE$.prepareExecutedPlan(session, below);
        check(physical);
        confs = (java.util.Properties) session.sparkContext().getLocalProperties().clone();
        scala.collection.Iterator all = session.sessionState().conf().getAllConfs().iterator();
        while (all.hasNext()) {
            scala.Tuple2 conf = (scala.Tuple2) all.next();
            // Code of a task reads the confs of the session from its local properties.
            if (((String) conf._1()).startsWith("spark")) {
                confs.setProperty((String) conf._1(), (String) conf._2());
            }
        }
        partitions = physical.execute();
        if (lowestAggregate != null) {
            partitions = aggregated(below);
        }
        partitions.partitions();
        thread = new Thread(this, "scanprune rows of a build");
        thread.setDaemon(true);
        return null;
    }

    /**
     * The rows of the aggregates over those of the partitions. Without a partition they would not give their one row.
     */
    private RDD aggregated(LogicalPlan below) {
        RDD all = partitions.getNumPartitions() > 0
            ? partitions.coalesce(1, false, scala.Option.empty(), null)
            : session.sparkContext().parallelize(
                scala.collection.immutable.Nil$.MODULE$, 1, partitions.elementClassTag());
        LogicalPlan rows = RddRelation.of(session, below, all, SinglePartition$.MODULE$, scala.math.BigInt.apply(1),
            scala.Option.empty());
        SparkPlan physical = QueryExecution$.MODULE$.prepareExecutedPlan(session, over(rows, plan));
        checkAggregates(physical);
        return physical.execute();
    }

    /**
     * The operators from a node down to the lowest aggregate, over these rows.
     */
    private LogicalPlan over(LogicalPlan rows, LogicalPlan node) {
        LogicalPlan child = node == lowestAggregate ? rows : over(rows, (LogicalPlan) node.children().head());
        java.util.List children = java.util.Collections.singletonList(child);
        return (LogicalPlan) node.withNewChildren(
            scala.jdk.javaapi.CollectionConverters.asScala(children).toIndexedSeq());
    }

    private void checkAggregates(SparkPlan node) {
        if (!OPERATORS.contains(node.getClass()) && !AGGREGATES.contains(node.getClass())) {
            throw new UnsupportedOperationException("it is planned with a " + node.getClass().getSimpleName());
        }
        if (node.getClass() != RDDScanExec.class) {
            checkAggregates((SparkPlan) node.children().head());
        }
    }

    private void check(SparkPlan node) {
        if (node.getClass() == FileSourceScanExec.class) {
            check((FileSourceScanExec) node);
        } else if (IN_MEMORY.contains(node.getClass())) {
            return;
        } else if (OPERATORS.contains(node.getClass())) {
            check((SparkPlan) node.children().head());
        } else {
            throw new UnsupportedOperationException("it is planned with a " + node.getClass().getSimpleName());
        }
    }

    private void check(FileSourceScanExec scan) {
        HadoopFsRelation relation = scan.relation();
        String format = relation.fileFormat().getClass().getSimpleName();
        if (!formats.contains(format)) {
            throw new UnsupportedOperationException("it reads files by " + format);
        }
        FileSourceOptions options = new FileSourceOptions(CaseInsensitiveMap$.MODULE$.apply(relation.options()));
        if (options.ignoreMissingFiles() || options.ignoreCorruptFiles()) {
            // Files that executors can read may be missing for the driver.
            throw new UnsupportedOperationException("it ignores files that cannot be read");
        }
        if (relation.bucketSpec().isDefined() || scan.stream().isDefined()) {
            throw new UnsupportedOperationException("it reads buckets or a stream");
        }
        // A column by which rows that were deleted are left out, or one that is in no file.
        if (!scan.outputSet().subsetOf(stored)) {
            throw new UnsupportedOperationException("it reads columns that are not in its table");
        }
        ScanFileListing listing = scan.selectedPartitions();
        if (listing.totalNumberOfFiles() > mostFiles || listing.totalFileSize() > mostBytes) {
            throw new UnsupportedOperationException("it reads " + listing.totalNumberOfFiles() + " files with "
                + listing.totalFileSize() + " bytes");
        }
        PartitionedFile[] files = listing.toPartitionArray();
        for (int at = 0; at < files.length; at++) {
            if (!files[at].otherConstantMetadataColumnValues().isEmpty()) {
                throw new UnsupportedOperationException("a file of it has deleted rows, or other additions");
            }
        }
    }

    public void run() {
        org.apache.spark.Partition[] all = partitions.partitions();
        try {
            for (int at = 0; at < all.length && rows.size() < most; at++) {
                compute(all[at], DriverTask.of(at, all.length, confs, this));
            }
        } catch (Throwable error) {
            failure = error;
        }
    }

    private void compute(org.apache.spark.Partition partition, DriverTask task) {
        Throwable error = null;
        task.begin();
        try {
            scala.collection.Iterator found = partitions.iterator(partition, task);
            while (rows.size() < most && found.hasNext()) {
                UnsafeRow row = ((UnsafeRow) found.next()).copy();
                rowBytes += row.getSizeInBytes();
                if (rowBytes > mostBytes) {
                    stop("its rows have more than " + mostBytes + " bytes");
                }
                check(0L);
                rows.add(row);
            }
        } catch (Throwable thrown) {
            error = thrown;
        }
        task.end(error);
        if (error != null) {
            failure = error;
            stop(error.toString());
        }
    }
}
