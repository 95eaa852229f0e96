import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Deduplicate;
import org.apache.spark.sql.catalyst.plans.logical.Distinct;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.execution.datasources.CatalogFileIndex;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;
import org.apache.spark.sql.types.StructType;

/**
 * Facts about a plan without our filters, in one text, whose format text() explains.
 *
 * The constructor takes leaves with the filters above each, whose conditions on partitions exclude files. The index of
 * a table with versions was prepared with all conditions, and has its size. Spark's own estimate of a table may come
 * from an old ANALYZE, count every partition of a path, or be scaled by a conf, so it is not used. A query often names
 * the same table many times, so each leaf has the place of the first leaf that reads the same files and columns, and
 * metadata is read once for all of them.
 *
 * Spark allows input_file_name() and related expressions above a plan whose rows come from a single source of files (or
 * one for each branch of a union), and refuses them for any other query. Sources behind cached rows count, and plans
 * inside expressions do not. Above an aggregate the expressions give nothing, since no file is open there, and the
 * columns of _metadata do not pass an aggregate.
 *
 * It relies on connectors for the snapshot of an index, on CatalogFileIndex, PartitioningAwareFileIndex and
 * HiveTableRelation, and on LogicalPlan.canonicalized(), by which Spark itself finds the parts of a query that it runs
 * once.
 */
public class PlanFacts {
    private static final java.util.List NONE = new java.util.ArrayList();
    private static final int SEVERAL = 2;
    private final LogicalPlan analyzed;
    private final java.util.List leaves;
    private final java.util.List alike;
    private final java.util.List formats;
    private final IndexCalls snapshots;

    public PlanFacts(LogicalPlan analyzed, java.util.List leaves, java.util.List alike, String formats,
        String snapshotCalls) {
        this.analyzed = analyzed;
        this.leaves = leaves;
        this.alike = alike;
        this.formats = java.util.Arrays.asList(formats.split(" "));
        this.snapshots = new IndexCalls(snapshotCalls);
    }

    /**
     * Three lines: true if a query above may use input_file_name(); for each leaf its kind, true if its index holds a
     * snapshot, its bytes, and the place of the first leaf that reads the same; for each plan that may have equals the
     * place of the first equal plan, or, after an exclamation mark, the reason why it is unknown.
     */
    public String text() throws Exception {
        return (count(analyzed) < SEVERAL && isOpenAbove(analyzed)) + "\n" + leafWords() + "\n" + equalWords();
    }

    private String leafWords() throws Exception {
        StringBuilder words = new StringBuilder();
        java.util.ArrayList known = new java.util.ArrayList();
        for (int at = 0; at < leaves.size();) {
            LogicalRelation leaf = (LogicalRelation) leaves.get(at++);
            java.util.ArrayList conditions = new java.util.ArrayList();
            while (at < leaves.size() && leaves.get(at) instanceof Filter) {
                addPartitions(leaf, ((Filter) leaves.get(at++)).condition(), conditions);
            }
            words.append(kind(leaf)).append(' ').append(isPinned(leaf)).append(' ');
            words.append(bytes(leaf, conditions)).append(' ').append(first(leaf, known)).append(' ');
            known.add(leaf);
        }
        return words.toString();
    }

    private int first(LogicalRelation leaf, java.util.List known) throws Exception {
        for (int at = 0; at < known.size(); at++) {
            if (areSame((LogicalRelation) known.get(at), leaf)) {
                return at;
            }
        }
        return known.size();
    }

    private String equalWords() {
        java.util.HashMap seen = new java.util.HashMap();
        StringBuilder words = new StringBuilder();
        try {
            for (int at = 0; at < alike.size(); at++) {
                Object plan = ((LogicalPlan) alike.get(at)).canonicalized();
                if (!seen.containsKey(plan)) {
                    seen.put(plan, Integer.valueOf(at));
                }
                words.append(seen.get(plan)).append(' ');
            }
        } catch (Throwable unknown) {
            return "!" + unknown;
        }
        return words.toString();
    }

    private String kind(LogicalRelation leaf) {
        return readsFiles(leaf) ? relation(leaf).fileFormat().getClass().getSimpleName() : "-";
    }

    private boolean isPinned(LogicalRelation leaf) throws Exception {
        return readsFiles(leaf) && snapshots.result(relation(leaf).location()) != null;
    }

    private boolean readsFiles(LogicalRelation leaf) {
        return leaf.relation() instanceof HadoopFsRelation
            && formats.contains(relation(leaf).fileFormat().getClass().getSimpleName());
    }

    private String bytes(LogicalRelation leaf, java.util.List conditions) {
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

    private void addPartitions(LogicalRelation leaf, Expression condition, java.util.List conditions) {
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

    private boolean areSame(LogicalRelation one, LogicalRelation other) throws Exception {
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

    private static boolean isSource(LogicalPlan plan) {
        return plan instanceof HiveTableRelation
            || plan instanceof LogicalRelation && ((LogicalRelation) plan).relation() instanceof HadoopFsRelation;
    }

    private static int count(LogicalPlan plan) {
        int sum = isSource(plan) ? 1 : 0;
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            int found = count((LogicalPlan) children.next());
            sum = plan instanceof Union ? Math.max(sum, found) : sum + found;
        }
        return sum;
    }

    private static boolean isOpenAbove(LogicalPlan plan) {
        if (plan instanceof Aggregate || plan instanceof Distinct || plan instanceof Deduplicate) {
            return false;
        }
        boolean isIt = isSource(plan);
        scala.collection.Iterator children = plan.children().iterator();
        while (!isIt && children.hasNext()) {
            isIt = isOpenAbove((LogicalPlan) children.next());
        }
        return isIt;
    }
}
