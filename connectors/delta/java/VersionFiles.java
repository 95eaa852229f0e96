import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/**
 * The files of a table version, and the columns that have files with nothing but NULL.
 *
 * Nearly every scan below a join has the condition that its keys are not NULL, and it seldom excludes a file. Delta
 * lists files by such a condition once for each column, so that further queries need no job for it.
 *
 * It relies on Delta's Snapshot.getAllFiles() and filesForScan().
 */
public class VersionFiles {
    private final Seq files;
    private final java.util.Map excluded = new java.util.concurrent.ConcurrentHashMap();

    VersionFiles(Snapshot snapshot) {
        this.files = snapshot.getAllFiles(false);
    }

    Seq files() {
        return files;
    }

    /**
     * True for the condition that a column of the files, or a field of one, is not NULL.
     */
    static boolean isOfColumn(Expression condition, StructType partitions) {
        if (!(condition instanceof IsNotNull)) {
            return false;
        }
        Expression column = ((IsNotNull) condition).child();
        while (column instanceof GetStructField) {
            column = ((GetStructField) column).child();
        }
        return column instanceof Attribute
            && !java.util.Arrays.asList(partitions.fieldNames()).contains(((Attribute) column).name());
    }

    /**
     * True if one of the conditions, each that a column is not NULL, excludes a file of the version, which is given.
     */
    boolean areExcludedBy(Snapshot snapshot, java.util.List conditions) {
        java.util.ArrayList unknown = new java.util.ArrayList();
        boolean found = false;
        for (int at = 0; at < conditions.size(); at++) {
            Object known = excluded.get(PrunedFileIndex.named((Expression) conditions.get(at)));
            found = found || Boolean.TRUE.equals(known);
            if (known == null) {
                unknown.add(conditions.get(at));
            }
        }
        return found || !unknown.isEmpty() && isExcluding(snapshot, unknown);
    }

    private boolean isExcluding(Snapshot snapshot, java.util.List unknown) {
        boolean found = snapshot.filesForScan(PrunedFileIndex.sequence(unknown), false).files().size() < files.size();
        for (int at = 0; at < unknown.size(); at++) {
            boolean isOne = found
                && (unknown.size() == 1 || isExcluding(snapshot, unknown.subList(at, at + 1)));
            excluded.put(PrunedFileIndex.named((Expression) unknown.get(at)), Boolean.valueOf(isOne));
        }
        return found;
    }
}
