import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.types.StructType;

/**
 * Relation of files with a text beside its format, which Spark shows in the name of a scan: in explain(), and in the
 * SQL tab of its UI.
 *
 * The text takes no part in equality and hash, so equal scans stay equal, plain or described. Copies, which Spark and
 * table formats make with another index or format, keep the text.
 *
 * It relies on DataSourceScanExec.nodeName, which begins with the text of the relation. Spark also takes that text for
 * the name of the format: where it decides if predicates on nested fields, and on names with dots, may be pushed.
 */
public class DescribedRelation extends HadoopFsRelation {
    private static final String SCAN = "org.apache.spark.sql.execution.DataSourceScanExec";
    private final String format;
    private final String text;

    DescribedRelation(HadoopFsRelation of, String text) {
        this(of.location(), of.partitionSchema(), of.dataSchema(), of.bucketSpec(), of.fileFormat(), of.options(),
            of.sparkSession(), of instanceof DescribedRelation ? ((DescribedRelation) of).format : of.toString(), text);
    }

    private DescribedRelation(FileIndex location, StructType partitionSchema, StructType dataSchema,
        scala.Option bucketSpec, FileFormat fileFormat, scala.collection.immutable.Map options,
        org.apache.spark.sql.SparkSession session, String format, String text) {
        super(location, partitionSchema, dataSchema, bucketSpec, fileFormat, options, session);
        this.format = format;
        this.text = text;
    }

    public HadoopFsRelation copy(FileIndex location, StructType partitionSchema, StructType dataSchema,
        scala.Option bucketSpec, FileFormat fileFormat, scala.collection.immutable.Map options,
        org.apache.spark.sql.SparkSession session) {
        return new DescribedRelation(location, partitionSchema, dataSchema, bucketSpec, fileFormat, options, session,
            format, text);
    }

    /**
     * The text of the plain relation, unless a scan asks for its name.
     */
    public String toString() {
        StackTraceElement[] frames = new Throwable().getStackTrace();
        int at = 1;
        while (at < frames.length && !frames[at].getClassName().startsWith("org.apache.spark.")) {
            at++;
        }
        return at < frames.length && frames[at].getClassName().equals(SCAN) ? format + " (" + text + ")" : format;
    }
}
