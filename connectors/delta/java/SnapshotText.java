import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.optimizer.ConstantFolding$;
import org.apache.spark.sql.catalyst.optimizer.ReplaceExpressions$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.GeneratedColumn$;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.types.StructType;

/**
 * Description of one version of a table, from Delta's own snapshot of it, without reading its files.
 *
 * Lines: the path as a URI, the version, the time of the last commit, the mode of column mapping, whether the protocol
 * has generated columns, the session's and the table's length of string prefixes (empty if the table has none), the
 * table's id, its partition columns, its columns.
 * Texts that a user may set are URL-encoded; columns are JSON.
 *
 * It relies on Delta's Metadata, GeneratedColumn, Snapshot.stateDF() and logSegment().
 */
public class SnapshotText {
    private static final String CONF = "spark.databricks.io.skipping.stringPrefixLength";
    private static final int MOST = 8000;
    private static final String PROPERTY = "delta.dataSkippingStringPrefixLength";
    private static final String EXPRESSION = "delta.generationExpression";
    private final SparkSession session;
    private final Snapshot snapshot;
    private final String text;

    SnapshotText(SparkSession session, Snapshot snapshot, Path path) {
        this.session = session;
        this.snapshot = snapshot;
        org.apache.spark.sql.delta.actions.Metadata metadata = snapshot.metadata();
        scala.Option prefix = metadata.configuration().get(PROPERTY);
        text = path.toUri().toString() + "\n" + snapshot.version() + "\n"
            + snapshot.logSegment().lastCommitFileModificationTimestamp() + "\n"
            + metadata.columnMappingMode().name() + "\n"
            + GeneratedColumn$.MODULE$.satisfyGeneratedColumnProtocol(snapshot.protocol()) + "\n"
            + encoded(session.sessionState().conf().getConfString(CONF, "32")) + "\n"
            + encoded(prefix.isDefined() ? (String) prefix.get() : "") + "\n" + encoded(metadata.id()) + "\n"
            + metadata.partitionSchema().json() + "\n" + snapshot.schema().json();
    }

    private static String encoded(String text) {
        return java.net.URLEncoder.encode(text, java.nio.charset.StandardCharsets.UTF_8);
    }

    /**
     * The number of files, if a checksum of the version tells it; -1 otherwise.
     */
    public long files() {
        scala.Option sums = snapshot.checksumOpt();
        return sums.isDefined() ? ((org.apache.spark.sql.delta.VersionChecksum) sums.get()).numFiles() : -1L;
    }

    /**
     * The state of the log, a row for each action.
     */
    public Dataset stateDF() {
        return (Dataset) snapshot.stateDF();
    }

    /**
     * The plan that computes a generated column from the others, without rows, in the form of an optimised plan.
     */
    public LogicalPlan computed(String name) {
        StructType schema = snapshot.schema();
        String[] expressions = new String[] {schema.apply(name).metadata().getString(EXPRESSION)};
        LogicalPlan plan = session.createDataFrame(new java.util.ArrayList(), schema).selectExpr(expressions)
            .queryExecution().analyzed();
        return (LogicalPlan) ConstantFolding$.MODULE$.apply(ReplaceExpressions$.MODULE$.apply(plan));
    }

    /**
     * The piece at a place from 0, which fits into one packet of py4j's bridge, and a full stop or, if more follows, a
     * plus sign.
     */
    public String piece(int at) {
        int end = Math.min((at + 1) * MOST, text.length());
        return text.substring(at * MOST, end) + (end == text.length() ? "." : "+");
    }
}
