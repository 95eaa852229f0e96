import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LocalLimitExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.arrow.ArrowBatchStreamWriter;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.VariantType;

/**
 * The rows of a plan on the driver, as UnsafeRow from the scan to the join: no value is converted. They come from a
 * DriverScan, or else from a job.
 *
 * It relies on SQLExecution.withNewExecutionId, WholeStageCodegenExec, ArrowConverters and UnsafeRow.
 */
public class MaterializedRows extends scala.runtime.AbstractFunction0 {
    private final int most;
    private SparkSession session;
    private LogicalPlan plan;
    private QueryExecution execution;
    private volatile DriverScan scan;
    private java.util.List rows;

    public MaterializedRows(SparkSession session, LogicalPlan plan, int most, int mostLong) {
        this.session = session;
        this.plan = plan;
        this.most = isLong(plan.output().iterator()) ? mostLong : most;
    }

    private static boolean isLong(scala.collection.Iterator columns) {
        boolean found = false;
        while (!found && columns.hasNext()) {
            DataType type = ((Attribute) columns.next()).dataType();
            found = type instanceof StringType || type instanceof BinaryType || type instanceof ArrayType
                || type instanceof MapType || type instanceof StructType || type instanceof VariantType;
        }
        return found;
    }

    public int most() {
        return most;
    }

    /**
     * The numbers of rows and of their bytes, computed without a job; after an exclamation mark, why a job has to. The
     * formats are those whose files are read here.
     */
    public String collectHere(
        String formats, int mostFiles, Number mostBytes, Number mostRows, int milliseconds
    ) {
        scan = new DriverScan(session, plan, formats);
        java.util.List found = scan.rows(most, mostFiles, mostBytes.longValue(), mostRows.longValue(), milliseconds);
        if (found == null) {
            return "!" + scan.why();
        }
        hold(found);
        return rows.size() + " " + bytes();
    }

    /**
     * Ends collectHere(), which another thread has called.
     */
    public void cancel() {
        DriverScan running = scan;
        if (running != null) {
            running.stop("it was cancelled");
        }
    }

    /**
     * The execution of a job for the rows; each partition gives as many as count as too many.
     */
    public QueryExecution execution(int partitions) {
        Literal limit = new Literal(Integer.valueOf(most), DataTypes.IntegerType);
        execution = Dataset.ofRows(session, new LocalLimit(limit, new Repartition(partitions, false, plan)))
            .queryExecution();
        return execution;
    }

    public Object apply() {
        SparkPlan plan = execution.executedPlan();
        // Spark numbers limits in generated code, so that each limit would be compiled again.
        if (plan instanceof WholeStageCodegenExec && ((WholeStageCodegenExec) plan).child() instanceof LocalLimitExec) {
            return ((WholeStageCodegenExec) plan).child().executeCollect();
        }
        return plan.executeCollect();
    }

    /**
     * Runs the job as an execution without a name, of which listeners of the user's queries are not told.
     */
    public int collect() {
        Object found = SQLExecution.withNewExecutionId(execution, scala.Option.empty(), this);
        hold(java.util.Arrays.asList((Object[]) found));
        return rows.size();
    }

    private void hold(java.util.List found) {
        rows = found;
        // A cache of the rows must not keep their plan alive.
        session = null;
        plan = null;
        execution = null;
        scan = null;
    }

    public long bytes() {
        long sum = 0;
        for (int at = 0; at < rows.size(); at++) {
            sum += ((UnsafeRow) rows.get(at)).getSizeInBytes();
        }
        return sum;
    }

    public String type(Attribute key) {
        return schema(key).json();
    }

    public java.io.ByteArrayOutputStream values(int at, Attribute key) {
        java.util.ArrayList values = new java.util.ArrayList(rows.size());
        for (int row = 0; row < rows.size(); row++) {
            Object value = ((UnsafeRow) rows.get(row)).get(at, key.dataType());
            values.add(new GenericInternalRow(new Object[] {value}));
        }
        java.io.ByteArrayOutputStream stream = new java.io.ByteArrayOutputStream();
        ArrowBatchStreamWriter writer = new ArrowBatchStreamWriter(schema(key), stream, "UTC", true, false);
        scala.collection.Iterator all = scala.jdk.javaapi.CollectionConverters.asScala(values.iterator());
        writer.writeBatches(
            ArrowConverters$.MODULE$.toBatchIterator(all, schema(key), -1L, "UTC", true, false, null));
        writer.end();
        return stream;
    }

    private static StructType schema(Attribute key) {
        return new StructType(new StructField[] {new StructField("key", key.dataType(), true, key.metadata())});
    }

    /**
     * A relation of the rows with the columns of a plan; with keepsScan one that Spark does not take for a constant.
     */
    public LogicalPlan asRelation(SparkSession session, LogicalPlan plan, boolean keepsScan) {
        if (keepsScan && rows.isEmpty()) {
            scala.reflect.ClassTag type = scala.reflect.ClassTag$.MODULE$.apply(InternalRow.class);
            return RddRelation.of(session, plan, session.sparkContext().emptyRDD(type), scala.math.BigInt.apply(1),
                scala.Option.empty());
        }
        return new LocalRelation(plan.output(), scala.jdk.javaapi.CollectionConverters.asScala(rows).toSeq(), false,
            scala.Option.empty());
    }
}
