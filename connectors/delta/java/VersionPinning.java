import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.delta.GeneratedColumn$;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.files.TahoeLogFileIndex;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.immutable.Seq;

/**
 * Pinning of the Delta scans of an analysed plan to one version each, with the list of all its files.
 *
 * Scans that Delta answers from metadata, streams, tables with generated columns, and versions with too many files are
 * not changed. A query with a single scan is not changed at all.
 *
 * It relies on Delta's GeneratedColumn and TahoeLogFileIndex.getSnapshot(), versionToUse() and snapshotAtAnalysis().
 */
public class VersionPinning extends scala.runtime.AbstractPartialFunction {
    private final DeltaFileLists files;
    private final java.util.LinkedHashMap indexes = new java.util.LinkedHashMap();
    private final java.util.HashSet left = new java.util.HashSet();
    private final java.util.HashMap versions = new java.util.HashMap();
    private java.util.HashMap pinned = null;
    private int leaves = 0;
    private boolean areOthersFixed = true;

    VersionPinning(DeltaFileLists files) {
        this.files = files;
    }

    void survey(LogicalPlan plan, boolean isExposed) {
        leaves += plan.children().isEmpty() ? 1 : 0;
        TahoeLogFileIndex index = indexOf(plan);
        areOthersFixed = areOthersFixed && (index != null || !plan.children().isEmpty() || isFixed(plan));
        if (index != null) {
            indexes.put(key(index), index);
            if (isExposed || !index.partitionFilters().isEmpty() || plan.isStreaming()
                || GeneratedColumn$.MODULE$.enforcesGeneratedColumns(index.protocol(), index.metadata())) {
                left.add(index.deltaLog().compositeId());
            }
        }
        scala.collection.Iterator inner = plan.subqueries().iterator();
        while (inner.hasNext()) {
            survey((LogicalPlan) inner.next(), false);
        }
        boolean isPassing = plan instanceof Project || plan instanceof Filter || plan instanceof SubqueryAlias
            || plan instanceof View;
        boolean isAnswered = plan instanceof Aggregate && ((Aggregate) plan).groupingExpressions().isEmpty()
            || plan instanceof GlobalLimit || plan instanceof LocalLimit;
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            survey((LogicalPlan) children.next(), isAnswered || isExposed && isPassing);
        }
    }

    boolean isEmpty() {
        java.util.HashMap snapshots = new java.util.HashMap();
        pinned = new java.util.HashMap();
        if (leaves < 2) {
            // No build filters the only scan of a query, and Spark's own listing is then reused by the query itself.
            return true;
        }
        java.util.Iterator each = indexes.values().iterator();
        while (each.hasNext()) {
            TahoeLogFileIndex index = (TahoeLogFileIndex) each.next();
            Object log = index.deltaLog().compositeId();
            // Called for each index, since getSnapshot() checks that the table still has the analysed columns.
            Snapshot snapshot = index.getSnapshot();
            versions.put(key(index), DeltaFileLists.identity(snapshot));
            if (left.contains(log)) {
                continue;
            }
            if (!index.isTimeTravelQuery()) {
                snapshots.putIfAbsent(log, snapshot);
                snapshot = (Snapshot) snapshots.get(log);
            }
            VersionFiles all = files.all(snapshot);
            if (all == null) {
                left.add(log);
            } else {
                pinned.put(key(index), new PrunedFileIndex(index, snapshot, index.versionToUse(), all.files(),
                    bytes(all.files()), DeltaFileLists.noneKnown(), false));
            }
        }
        each = indexes.values().iterator();
        while (each.hasNext()) {
            TahoeLogFileIndex index = (TahoeLogFileIndex) each.next();
            if (left.contains(index.deltaLog().compositeId())) {
                pinned.remove(key(index));
            }
        }
        return pinned.isEmpty();
    }

    /**
     * True if the plan depends on nothing that changes but the versions of its Delta tables: every other leaf is a part
     * of the plan itself.
     */
    boolean areAll() {
        return areOthersFixed;
    }

    /**
     * True if each table has the version that it had before the plan was optimised, so that Delta would read the same
     * files; it raises Delta's error for a table that is another one than was analysed.
     */
    boolean areNewest() {
        java.util.Iterator each = indexes.values().iterator();
        while (each.hasNext()) {
            TahoeLogFileIndex index = (TahoeLogFileIndex) each.next();
            // A version that the query names is that of its analysis.
            if (!index.isTimeTravelQuery()
                && !versions.get(key(index)).equals(DeltaFileLists.identity(index.getSnapshot()))) {
                return false;
            }
        }
        return true;
    }

    private static boolean isFixed(LogicalPlan leaf) {
        return leaf instanceof LocalRelation || leaf instanceof OneRowRelation || leaf instanceof Range
            || leaf instanceof InMemoryRelation || leaf instanceof CTERelationRef;
    }

    public boolean isDefinedAt(Object node) {
        TahoeLogFileIndex index = indexOf(node);
        return index != null && pinned.containsKey(key(index));
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
        return isDefinedAt(node)
            ? DeltaFileLists.over((LogicalRelation) node, (PrunedFileIndex) pinned.get(key(indexOf(node))))
            : otherwise.apply(node);
    }

    private static TahoeLogFileIndex indexOf(Object node) {
        if (!(node instanceof LogicalRelation) || !(((LogicalRelation) node).relation() instanceof HadoopFsRelation)) {
            return null;
        }
        Object index = ((HadoopFsRelation) ((LogicalRelation) node).relation()).location();
        return index.getClass() == TahoeLogFileIndex.class ? (TahoeLogFileIndex) index : null;
    }

    private static Object key(TahoeLogFileIndex index) {
        return java.util.Arrays.asList(new Object[] {index.deltaLog().compositeId(), index.path(),
            index.versionToUse(), index.snapshotAtAnalysis().metadata()});
    }

    private static long bytes(Seq files) {
        long sum = 0;
        scala.collection.Iterator each = files.iterator();
        while (each.hasNext()) {
            sum += ((AddFile) each.next()).size();
        }
        return sum;
    }
}
