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
 * Kinds and bytes of the leaves of a plan, of which partition conditions above a leaf leave out files.
 *
 * An index of Delta has been prepared with all conditions, and knows its size. Spark's own estimate of a table is the
 * one that ANALYZE once counted, or counts every partition of a path, or is scaled by a conf.
 *
 * It relies on the names of Delta's and Parquet's file formats, and on CatalogFileIndex and PartitioningAwareFileIndex.
 */
public class LeafSizes {
    private static final java.util.List NONE = new java.util.ArrayList();
    private final java.util.List nodes;

    public LeafSizes(java.util.List nodes) {
        this.nodes = nodes;
    }

    public String lines() {
        StringBuilder lines = new StringBuilder();
        for (int at = 0; at < nodes.size();) {
            LogicalRelation leaf = (LogicalRelation) nodes.get(at++);
            java.util.ArrayList conditions = new java.util.ArrayList();
            while (at < nodes.size() && nodes.get(at) instanceof Filter) {
                addPartitions(leaf, ((Filter) nodes.get(at++)).condition(), conditions);
            }
            lines.append(kind(leaf)).append(' ').append(bytes(leaf, conditions)).append(' ');
        }
        return lines.toString();
    }

    private static String kind(LogicalRelation leaf) {
        boolean isDelta = readsFiles(leaf) && relation(leaf).fileFormat().getClass().getSimpleName().contains("Delta");
        return isDelta ? "delta" : readsFiles(leaf) ? "files" : "other";
    }

    private static boolean readsFiles(LogicalRelation leaf) {
        return leaf.relation() instanceof HadoopFsRelation
            && relation(leaf).fileFormat().getClass().getName().contains("Parquet");
    }

    private static String bytes(LogicalRelation leaf, java.util.List conditions) {
        if (!readsFiles(leaf)) {
            return leaf.stats().sizeInBytes().toString();
        }
        FileIndex index = relation(leaf).location();
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

    private static HadoopFsRelation relation(LogicalRelation leaf) {
        return (HadoopFsRelation) leaf.relation();
    }

    private static void addPartitions(LogicalRelation leaf, Expression condition, java.util.List conditions) {
        if (condition instanceof And) {
            addPartitions(leaf, ((And) condition).left(), conditions);
            addPartitions(leaf, ((And) condition).right(), conditions);
        } else if (readsFiles(leaf) && isOfPartitions(relation(leaf).partitionSchema(), condition)) {
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
}
