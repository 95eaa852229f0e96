import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.delta.stats.DeltaScan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.immutable.Seq;

/**
 * Pinned scans of an optimised plan, each with the files that Delta lists for the conditions on it.
 *
 * Scans of the same version with equal conditions are listed once.
 *
 * It relies on Delta's Snapshot.filesForScan().
 */
public class ListedScans extends scala.runtime.AbstractPartialFunction {
    private final DeltaFileLists lists;
    private final java.util.IdentityHashMap conditions = new java.util.IdentityHashMap();
    private final java.util.IdentityHashMap indexes = new java.util.IdentityHashMap();
    private boolean areWhole = true;

    ListedScans(DeltaFileLists lists) {
        this.lists = lists;
    }

    void survey(LogicalPlan plan, java.util.List above) {
        scala.collection.Iterator inner = plan.subqueries().iterator();
        while (inner.hasNext()) {
            survey((LogicalPlan) inner.next(), new java.util.ArrayList());
        }
        java.util.List here = new java.util.ArrayList();
        if (plan instanceof Filter) {
            here.addAll(above);
            DeltaFileLists.split(((Filter) plan).condition(), here);
        } else if (plan instanceof Project && isPlain((Project) plan)) {
            here.addAll(above);
        } else if (indexOf(plan) != null) {
            add(plan, above);
        }
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            survey((LogicalPlan) children.next(), here);
        }
    }

    private static boolean isPlain(Project project) {
        scala.collection.Iterator columns = project.projectList().iterator();
        while (columns.hasNext()) {
            if (!(columns.next() instanceof Attribute)) {
                return false;
            }
        }
        return true;
    }

    private void add(LogicalPlan leaf, java.util.List above) {
        java.util.ArrayList own = new java.util.ArrayList();
        java.util.ArrayList notNull = new java.util.ArrayList();
        PrunedFileIndex index = indexOf(leaf);
        boolean skips = false;
        for (int at = 0; at < above.size(); at++) {
            Expression condition = (Expression) above.get(at);
            // Delta evaluates a condition without data columns once for each file, so it must be deterministic.
            if (condition.deterministic() && condition.references().subsetOf(leaf.outputSet())
                && !SubqueryExpression$.MODULE$.hasSubquery(condition)) {
                own.add(condition);
                skips = skips || !PrunedFileIndex.isSeen(condition);
                if (VersionFiles.isOfColumn(condition, index.partitionSchema())) {
                    notNull.add(condition);
                }
            }
        }
        if (index.files().size() < 2 || !skips && !excludesNulls(index, notNull)) {
            own.clear();
        }
        java.util.List before = (java.util.List) conditions.get(leaf);
        conditions.put(leaf, before == null || before.equals(own) ? own : new java.util.ArrayList());
    }

    private boolean excludesNulls(PrunedFileIndex index, java.util.List notNull) {
        VersionFiles version = notNull.isEmpty() ? null : lists.all(index.scannedSnapshot());
        return version != null && version.areExcludedBy(index.scannedSnapshot(), notNull);
    }

    boolean isEmpty() {
        java.util.HashMap known = new java.util.HashMap();
        java.util.Iterator each = conditions.entrySet().iterator();
        while (each.hasNext()) {
            java.util.Map.Entry entry = (java.util.Map.Entry) each.next();
            java.util.List own = (java.util.List) entry.getValue();
            if (own.isEmpty()) {
                continue;
            }
            PrunedFileIndex index = indexOf(entry.getKey());
            java.util.ArrayList named = new java.util.ArrayList();
            for (int at = 0; at < own.size(); at++) {
                named.add(PrunedFileIndex.named((Expression) own.get(at)));
            }
            Object key = java.util.Arrays.asList(new Object[] {index.deltaLog().compositeId(),
                index.scannedSnapshot(), named});
            DeltaScan scan = (DeltaScan) known.get(key);
            if (scan == null) {
                scan = index.scannedSnapshot().filesForScan(PrunedFileIndex.sequence(own), false);
                known.put(key, scan);
            }
            PrunedFileIndex listed = DeltaFileLists.listed(index, scan, index.versionScanned(),
                (Seq) scan.files().distinct(), scan.allFilters().iterator(), false);
            areWhole = areWhole && listed.sizeInBytes() == index.sizeInBytes();
            indexes.put(entry.getKey(), listed);
        }
        return indexes.isEmpty();
    }

    /**
     * True if conditions exclude no file of any scan, so that each has the size with which it was optimised.
     */
    boolean areWhole() {
        return areWhole;
    }

    public boolean isDefinedAt(Object node) {
        return indexes.containsKey(node);
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
        return isDefinedAt(node) ? DeltaFileLists.over((LogicalRelation) node, (PrunedFileIndex) indexes.get(node))
            : otherwise.apply(node);
    }

    private static PrunedFileIndex indexOf(Object node) {
        if (!(node instanceof LogicalRelation) || !(((LogicalRelation) node).relation() instanceof HadoopFsRelation)) {
            return null;
        }
        Object index = ((HadoopFsRelation) ((LogicalRelation) node).relation()).location();
        boolean isPinned = index instanceof PrunedFileIndex && !((PrunedFileIndex) index).areNamed();
        return isPinned ? (PrunedFileIndex) index : null;
    }
}
