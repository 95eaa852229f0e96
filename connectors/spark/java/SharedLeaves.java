import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * Leaves of a plan that read the same files and columns, each by the place of the first of them.
 *
 * A query names the same table many times, and metadata tells the same of it each time.
 *
 * It relies on the names of two Delta indexes, and calls their preparedScan() and scannedSnapshot() by reflection.
 */
public class SharedLeaves {
    private final java.util.List leaves;

    public SharedLeaves(java.util.List leaves) {
        this.leaves = leaves;
    }

    public String firsts() throws Exception {
        StringBuilder text = new StringBuilder();
        java.util.ArrayList distinct = new java.util.ArrayList();
        for (int at = 0; at < leaves.size(); at++) {
            int first = at;
            for (int other = 0; other < distinct.size() && first == at; other++) {
                int before = ((Integer) distinct.get(other)).intValue();
                first = areSame((LogicalRelation) leaves.get(before), (LogicalRelation) leaves.get(at)) ? before : at;
            }
            if (first == at) {
                distinct.add(Integer.valueOf(at));
            }
            text.append(first).append(' ');
        }
        return text.toString();
    }

    private static boolean areSame(LogicalRelation one, LogicalRelation other) throws Exception {
        if (!(one.relation() instanceof HadoopFsRelation) || !(other.relation() instanceof HadoopFsRelation)) {
            return false;
        }
        HadoopFsRelation first = (HadoopFsRelation) one.relation();
        HadoopFsRelation second = (HadoopFsRelation) other.relation();
        return pinned(first.location()) == pinned(second.location())
            && first.fileFormat().getClass() == second.fileFormat().getClass()
            && first.options().equals(second.options())
            && name(one).equals(name(other))
            && columns(one).equals(columns(other));
    }

    private static Object pinned(FileIndex index) throws Exception {
        String kind = index.getClass().getSimpleName();
        if (!kind.equals("PreparedDeltaFileIndex") && !kind.equals("PrunedFileIndex")) {
            return index;
        }
        Object scan = index;
        if (kind.equals("PreparedDeltaFileIndex")) {
            scan = index.getClass().getMethod("preparedScan", new Class[0]).invoke(index, new Object[0]);
        }
        return scan.getClass().getMethod("scannedSnapshot", new Class[0]).invoke(scan, new Object[0]);
    }

    private static Object name(LogicalRelation leaf) {
        return leaf.catalogTable().isEmpty() ? ""
            : ((org.apache.spark.sql.catalyst.catalog.CatalogTable) leaf.catalogTable().get()).identifier();
    }

    private static java.util.List columns(LogicalRelation leaf) {
        java.util.ArrayList found = new java.util.ArrayList();
        scala.collection.Iterator output = leaf.output().iterator();
        while (output.hasNext()) {
            Attribute column = (Attribute) output.next();
            found.add(column.name());
            found.add(column.dataType());
            found.add(column.metadata());
        }
        return found;
    }
}
