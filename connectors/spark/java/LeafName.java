import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * The name of the table at a leaf of a plan, and the class of its file format. It walks no plan: the leaf is given.
 *
 * It relies on FileIndex.rootPaths().
 */
public class LeafName {
    private final LogicalPlan leaf;

    public LeafName(LogicalPlan leaf) {
        this.leaf = leaf;
    }

    /**
     * The format, and after a line feed the name in the catalog, else the last part of the path; empty for a leaf that
     * reads no files.
     */
    public String text() {
        HadoopFsRelation files = FileScan.files(leaf);
        if (files == null) {
            return "";
        }
        scala.Option table = ((LogicalRelation) leaf).catalogTable();
        scala.collection.Seq roots = files.location().rootPaths();
        String name = table.isDefined() ? ((CatalogTable) table.get()).identifier().unquotedString()
            : roots.isEmpty() ? "files" : ((org.apache.hadoop.fs.Path) roots.head()).getName();
        return files.fileFormat().getClass().getSimpleName() + "\n" + name;
    }
}
