import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.files.TahoeFileIndex;
import org.apache.spark.sql.delta.files.TahoeFileIndexWithSnapshotDescriptor;
import org.apache.spark.sql.types.Metadata;
import scala.collection.immutable.Seq;

/**
 * File index of Delta over files that are known: matchingFiles() starts no job where all conditions are known.
 *
 * Delta lists a prepared scan again, by a Spark job, if it has other conditions than those it was prepared with: our
 * pushed predicates, and conditions that Spark infers from them. The files here were chosen by these conditions, so
 * Delta lists again only by unknown conditions, as of a query built on the pruned one, and only among these files. It
 * may take counts of rows and of NULL for others than a writer meant, so it is not asked by what pruning has added.
 * Conditions are compared without the ids of columns, which is safe: at worst one file more is read, and its rows are
 * tested. Conditions on partitions are tested on each file here, since Spark does not test rows by them. The size is
 * that before our filters, so that joins are planned as without them.
 *
 * It extends Delta's TahoeFileIndexWithSnapshotDescriptor, and relies on matchingFiles() and getPartitionValuesRow().
 */
public class PrunedFileIndex extends TahoeFileIndexWithSnapshotDescriptor {
    private static final ExprId NO_ID = ExprId.apply(0L, new java.util.UUID(0L, 0L));
    private final Snapshot snapshot;
    private final scala.Option asked;
    private final Seq files;
    private final long bytes;
    private final java.util.Set known;

    PrunedFileIndex(TahoeFileIndex base, Snapshot snapshot, scala.Option asked, Seq files, long bytes,
        java.util.Set known) {
        super(base.spark(), base.deltaLog(), base.path(), snapshot);
        this.snapshot = snapshot;
        this.asked = asked;
        this.files = files;
        this.bytes = bytes;
        this.known = known;
    }

    public Snapshot scannedSnapshot() {
        return snapshot;
    }

    public scala.Option versionScanned() {
        return asked;
    }

    public Seq files() {
        return files;
    }

    java.util.Set known() {
        return known;
    }

    void learn(Object condition) {
        if (!isSeen((Expression) condition)) {
            known.add(named((Expression) condition));
        }
    }

    public Seq matchingFiles(Seq partitionFilters, Seq dataFilters) {
        Seq left = null;
        try {
            left = inPartitions(partitionFilters);
        } catch (Exception unevaluated) {
            return at(listed((Seq) partitionFilters.appendedAll(unknown(dataFilters))), files);
        }
        Seq unknown = unknown(dataFilters);
        return unknown.isEmpty() || left.size() < 2 ? left : at(listed(unknown), left);
    }

    private java.util.Set listed(Seq conditions) {
        java.util.HashSet paths = new java.util.HashSet();
        scala.collection.Iterator found = snapshot.filesForScan(conditions, false).files().iterator();
        while (found.hasNext()) {
            paths.add(((AddFile) found.next()).path());
        }
        return paths;
    }

    static Seq at(java.util.Set paths, scala.collection.Iterable candidates) {
        java.util.ArrayList some = new java.util.ArrayList();
        scala.collection.Iterator each = candidates.iterator();
        while (each.hasNext()) {
            AddFile file = (AddFile) each.next();
            if (paths.contains(file.path())) {
                some.add(file);
            }
        }
        return sequence(some);
    }

    private Seq unknown(Seq conditions) {
        java.util.ArrayList found = new java.util.ArrayList();
        scala.collection.Iterator each = conditions.iterator();
        while (each.hasNext()) {
            Expression condition = (Expression) each.next();
            if (!isSeen(condition) && !known.contains(named(condition))) {
                found.add(condition);
            }
        }
        return sequence(found);
    }

    private static boolean isSeen(Expression condition) {
        return condition instanceof Literal || condition instanceof IsNotNull || isOfRows(condition);
    }

    private static boolean isOfRows(Expression condition) {
        String name = condition.getClass().getSimpleName();
        if (name.equals("BloomFilterMightContain")) {
            return true;
        }
        if (condition instanceof Attribute) {
            return ((Attribute) condition).name().startsWith("__delta_internal");
        }
        scala.collection.Iterator children = condition.children().iterator();
        while (children.hasNext()) {
            if (isOfRows((Expression) children.next())) {
                return true;
            }
        }
        return false;
    }

    static Expression named(Expression condition) {
        if (condition instanceof Attribute) {
            Attribute column = (Attribute) condition;
            return new AttributeReference(column.name(), column.dataType(), true, Metadata.empty(), NO_ID,
                sequence(new java.util.ArrayList()));
        }
        java.util.ArrayList children = new java.util.ArrayList();
        scala.collection.Iterator each = condition.children().iterator();
        while (each.hasNext()) {
            children.add(named((Expression) each.next()));
        }
        return children.isEmpty() ? condition : (Expression) condition.withNewChildren(sequence(children));
    }

    private Seq inPartitions(Seq conditions) {
        Expression all = null;
        scala.collection.Iterator each = conditions.iterator();
        while (each.hasNext()) {
            Expression condition = (Expression) each.next();
            if (!Literal.TrueLiteral().equals(condition)) {
                all = all == null ? condition : new And(all, condition);
            }
        }
        if (all == null) {
            return files;
        }
        BasePredicate test = Predicate$.MODULE$.createInterpreted(bound(all));
        java.util.HashMap known = new java.util.HashMap();
        java.util.ArrayList some = new java.util.ArrayList();
        scala.collection.Iterator candidates = files.iterator();
        while (candidates.hasNext()) {
            AddFile file = (AddFile) candidates.next();
            Object holds = known.get(file.partitionValues());
            if (holds == null) {
                holds = Boolean.valueOf(test.eval((InternalRow) getPartitionValuesRow(file.partitionValues())));
                known.put(file.partitionValues(), holds);
            }
            if (((Boolean) holds).booleanValue()) {
                some.add(file);
            }
        }
        return sequence(some);
    }

    private Expression bound(Expression condition) {
        if (condition instanceof Attribute) {
            int at = partitionSchema().fieldIndex(((Attribute) condition).name());
            return new BoundReference(at, partitionSchema().apply(at).dataType(), true);
        }
        java.util.ArrayList children = new java.util.ArrayList();
        scala.collection.Iterator each = condition.children().iterator();
        while (each.hasNext()) {
            children.add(bound((Expression) each.next()));
        }
        return children.isEmpty() ? condition : (Expression) condition.withNewChildren(sequence(children));
    }

    public String[] inputFiles() {
        String[] found = new String[files.size()];
        scala.collection.Iterator each = files.iterator();
        for (int at = 0; at < found.length; at++) {
            found[at] = absolutePath(((AddFile) each.next()).path()).toString();
        }
        return found;
    }

    public void refresh() {}

    public long sizeInBytes() {
        return bytes;
    }

    public boolean equals(Object other) {
        if (this == other) {
            return true;
        }
        if (!(other instanceof PrunedFileIndex)) {
            return false;
        }
        PrunedFileIndex that = (PrunedFileIndex) other;
        return deltaLog().equals(that.deltaLog()) && path().equals(that.path())
            && snapshot.version() == that.snapshot.version() && asked.equals(that.asked)
            && partitionSchema().equals(that.partitionSchema()) && files.equals(that.files);
    }

    public int hashCode() {
        return java.util.Objects.hash(new Object[] {path(), Long.valueOf(snapshot.version()),
            Integer.valueOf(files.size())});
    }

    static Seq sequence(java.util.List items) {
        return scala.jdk.javaapi.CollectionConverters.asScala(items).toSeq();
    }
}
