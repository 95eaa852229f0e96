import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.execution.datasources.CatalogFileIndex;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;
import org.apache.spark.sql.types.StructType;

/**
 * Facts about the leaves of an optimised plan that are relations: kind, pinned or not, size, and equal leaves.
 *
 * It walks no plan: OptimizedPlan has the leaves, and the filters above each, whose conditions on partitions exclude
 * files. The index of a table with versions was prepared with all conditions, and has its size. Spark's own estimate of
 * a table may come from an old ANALYZE, count every partition of a path, or be scaled by a conf, so it is not used. A
 * query often names the same table many times, so each leaf has the number of the first leaf that reads the same files
 * and columns, and metadata is read once for all of them.
 *
 * It relies on connectors for the snapshot of an index, on CatalogFileIndex and on PartitioningAwareFileIndex.
 */
public class LeafFacts {
    private static final java.util.List NONE = new java.util.ArrayList();
    private final java.util.List formats;
    private final IndexCalls snapshots;
    private final java.util.ArrayList known = new java.util.ArrayList();

    LeafFacts(String formats, String snapshotCalls) {
        this.formats = java.util.Arrays.asList(formats.split(" "));
        this.snapshots = new IndexCalls(snapshotCalls);
    }

    /**
     * Five words for each leaf of a list that has the filters above a leaf after it: the format of its files, true if
     * its index holds a snapshot, its bytes, the number in the text of the first leaf that reads the same, and scheme
     * and authority of its files, with a dash for each that is not known.
     */
    String text(java.util.List leavesAndFilters) throws Exception {
        StringBuilder words = new StringBuilder();
        for (int at = 0; at < leavesAndFilters.size();) {
            LogicalRelation leaf = (LogicalRelation) leavesAndFilters.get(at++);
            java.util.ArrayList conditions = new java.util.ArrayList();
            while (at < leavesAndFilters.size() && leavesAndFilters.get(at) instanceof Filter) {
                addPartitions(leaf, ((Filter) leavesAndFilters.get(at++)).condition(), conditions);
            }
            words.append(format(leaf)).append(' ').append(isPinned(leaf)).append(' ');
            words.append(bytes(leaf, conditions)).append(' ').append(first(leaf)).append(' ');
            words.append(store(leaf)).append(' ');
            known.add(leaf);
        }
        return words.toString();
    }

    private int first(LogicalRelation leaf) throws Exception {
        for (int at = 0; at < known.size(); at++) {
            if (areSame((LogicalRelation) known.get(at), leaf)) {
                return at;
            }
        }
        return known.size();
    }

    private String format(LogicalRelation leaf) {
        return isKnown(leaf) ? FileScan.files(leaf).fileFormat().getClass().getSimpleName() : "-";
    }

    private boolean isKnown(LogicalRelation leaf) {
        HadoopFsRelation files = FileScan.files(leaf);
        return files != null && formats.contains(files.fileFormat().getClass().getSimpleName());
    }

    private String store(LogicalRelation leaf) {
        HadoopFsRelation files = FileScan.files(leaf);
        if (files == null || files.location().rootPaths().isEmpty()) {
            return "-";
        }
        java.net.URI root = ((org.apache.hadoop.fs.Path) files.location().rootPaths().head()).toUri();
        String authority = root.getAuthority();
        return root.getScheme() == null ? "-" : root.getScheme() + "://" + (authority == null ? "" : authority);
    }

    private boolean isPinned(LogicalRelation leaf) throws Exception {
        return isKnown(leaf) && snapshots.result(FileScan.files(leaf).location()) != null;
    }

    private String bytes(LogicalRelation leaf, java.util.List conditions) {
        if (!isKnown(leaf)) {
            return leaf.stats().sizeInBytes().toString();
        }
        FileIndex index = FileScan.files(leaf).location();
        boolean isListed = index instanceof CatalogFileIndex
            || index instanceof PartitioningAwareFileIndex && !conditions.isEmpty();
        return Long.toString(isListed ? listed(index, conditions) : index.sizeInBytes());
    }

    private static long listed(FileIndex index, java.util.List conditions) {
        long bytes = 0;
        scala.collection.Iterator partitions = index.listFiles(sequence(conditions), sequence(NONE)).iterator();
        while (partitions.hasNext()) {
            scala.collection.Iterator files = ((PartitionDirectory) partitions.next()).files().iterator();
            while (files.hasNext()) {
                bytes += ((FileStatusWithMetadata) files.next()).getLen();
            }
        }
        return bytes;
    }

    private void addPartitions(LogicalRelation leaf, Expression condition, java.util.List conditions) {
        if (condition instanceof And) {
            addPartitions(leaf, ((And) condition).left(), conditions);
            addPartitions(leaf, ((And) condition).right(), conditions);
        } else if (isKnown(leaf) && isOfPartitions(FileScan.files(leaf).partitionSchema(), condition)) {
            conditions.add(condition);
        }
    }

    private static boolean isOfPartitions(StructType partitions, Expression condition) {
        boolean isIt = condition.deterministic() && !SubqueryExpression$.MODULE$.hasSubquery(condition)
            && !condition.references().isEmpty();
        scala.collection.Iterator columns = condition.references().iterator();
        while (isIt && columns.hasNext()) {
            isIt = partitions.getFieldIndex(((Attribute) columns.next()).name()).isDefined();
        }
        return isIt;
    }

    private static scala.collection.immutable.Seq sequence(java.util.List items) {
        return scala.jdk.javaapi.CollectionConverters.asScala(items).toSeq();
    }

    private boolean areSame(LogicalRelation one, LogicalRelation other) throws Exception {
        HadoopFsRelation first = FileScan.files(one);
        HadoopFsRelation second = FileScan.files(other);
        return first != null && second != null
            && pinned(first.location()) == pinned(second.location())
            && first.fileFormat().getClass() == second.fileFormat().getClass()
            && first.options().equals(second.options())
            && name(one).equals(name(other))
            && columns(one).equals(columns(other));
    }

    private Object pinned(FileIndex index) throws Exception {
        Object snapshot = snapshots.result(index);
        return snapshot == null ? index : snapshot;
    }

    private static Object name(LogicalRelation leaf) {
        return leaf.catalogTable().isEmpty() ? ""
            : ((CatalogTable) leaf.catalogTable().get()).identifier();
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
