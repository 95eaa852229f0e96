import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Fingerprints of leaves that read files, each from the snapshot that a connector names. It walks no plan: the leaves
 * are those that PlanFingerprint found below a build.
 *
 * To the snapshot it adds the properties of the leaf in Spark: classes, schemas, options, and columns without their
 * ids. A leaf for which Spark ignores missing or corrupt files has no fingerprint, since its rows depend on the files
 * that could be read.
 *
 * A snapshot is any list of values that FingerprintText can write, or, after an exclamation mark, the reason why there
 * is none. text() has a line for each leaf: a digest, or such a reason.
 */
public class LeafFingerprints {
    private final SQLConf conf;
    private final java.util.List leaves;
    private final java.util.List snapshots;

    public LeafFingerprints(SparkSession session, java.util.List leaves, java.util.List snapshots) {
        this.conf = session.sessionState().conf();
        this.leaves = leaves;
        this.snapshots = snapshots;
    }

    public String text() throws Exception {
        StringBuilder lines = new StringBuilder();
        for (int at = 0; at < leaves.size(); at++) {
            lines.append(at == 0 ? "" : "\n").append(line((LogicalRelation) leaves.get(at), snapshots.get(at)));
        }
        return lines.toString();
    }

    private String line(LogicalRelation leaf, Object snapshot) throws Exception {
        if (snapshot instanceof String) {
            return (String) snapshot;
        }
        HadoopFsRelation relation = (HadoopFsRelation) leaf.relation();
        if (isOn(relation, "ignoreMissingFiles", conf.ignoreMissingFiles())
            || isOn(relation, "ignoreCorruptFiles", conf.ignoreCorruptFiles())) {
            return "!Spark reads on where a file of it is gone or broken";
        }
        try {
            FingerprintText text = new FingerprintText();
            addRead(text, leaf, relation);
            text.add(snapshot);
            return text.digest();
        } catch (UnsupportedOperationException refused) {
            return "!" + refused.getMessage();
        }
    }

    private static boolean isOn(HadoopFsRelation relation, String option, boolean byDefault) {
        scala.Option found = CaseInsensitiveMap$.MODULE$.apply(relation.options()).get(option);
        return found.isDefined() ? !"false".equalsIgnoreCase((String) found.get()) : byDefault;
    }

    private static void addRead(FingerprintText text, LogicalRelation leaf, HadoopFsRelation relation)
        throws Exception {
        text.write("format", relation.fileFormat().getClass().getName());
        text.add(relation.dataSchema());
        text.add(relation.partitionSchema());
        text.add(relation.options());
        scala.collection.Iterator output = leaf.output().iterator();
        while (output.hasNext()) {
            AttributeReference column = (AttributeReference) output.next();
            text.write("column", column.name());
            text.add(column.dataType());
            text.add(Boolean.valueOf(column.nullable()));
            text.add(column.metadata());
        }
    }
}
