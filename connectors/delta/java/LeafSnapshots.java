import org.apache.spark.sql.delta.DeltaParquetFileFormat;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.files.TahoeFileIndex;
import org.apache.spark.sql.delta.stats.DeltaScan;
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * Snapshots of the leaves of a plan that read Delta tables: table, version and files of each.
 *
 * A leaf whose index does not hold one version has the reason, after an exclamation mark, instead of a snapshot.
 *
 * It relies on Delta's PreparedDeltaFileIndex.preparedScan() and DeltaScan.
 */
public class LeafSnapshots {
    private final java.util.List leaves;

    LeafSnapshots(java.util.List leaves) {
        this.leaves = leaves;
    }

    java.util.List all() {
        java.util.ArrayList found = new java.util.ArrayList();
        for (int at = 0; at < leaves.size(); at++) {
            HadoopFsRelation relation = (HadoopFsRelation) ((LogicalRelation) leaves.get(at)).relation();
            found.add(relation.fileFormat().getClass() == DeltaParquetFileFormat.class ? snapshot(relation.location())
                : "!it reads files by " + relation.fileFormat().getClass().getSimpleName());
        }
        return found;
    }

    private static Object snapshot(FileIndex index) {
        if (index instanceof PrunedFileIndex) {
            PrunedFileIndex pruned = (PrunedFileIndex) index;
            return snapshot(pruned, pruned.scannedSnapshot(), pruned.files());
        }
        if (index.getClass() == PreparedDeltaFileIndex.class) {
            DeltaScan scan = ((PreparedDeltaFileIndex) index).preparedScan();
            return snapshot((PreparedDeltaFileIndex) index, scan.scannedSnapshot(), scan.files());
        }
        return "!the files of a " + index.getClass().getSimpleName() + " are not pinned";
    }

    private static Object snapshot(TahoeFileIndex index, Snapshot snapshot, scala.collection.Iterable files) {
        if (snapshot.version() < 0) {
            return "!it reads a table without a version";
        }
        java.util.TreeSet paths = new java.util.TreeSet();
        scala.collection.Iterator each = files.iterator();
        while (each.hasNext()) {
            paths.add(((AddFile) each.next()).path());
        }
        return java.util.Arrays.asList(new Object[] {index.path().toString(), DeltaFileLists.identity(snapshot),
            new java.util.ArrayList(paths)});
    }
}
