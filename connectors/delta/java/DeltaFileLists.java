import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.delta.OptimisticTransaction$;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.VersionChecksum;
import org.apache.spark.sql.delta.files.TahoeFileIndex;
import org.apache.spark.sql.delta.stats.DeltaScan;
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.immutable.Seq;

/**
 * The lists of files of table versions that a session has read, and file indexes over them in plans.
 *
 * The list of a whole version is read once and cached. restricted() puts an index over named files into a plan,
 * pinned() one over all files of a version for each scan, listed() one over the files that the conditions of a scan
 * keep, and registerConditions() adds the conditions that chose the files of each scan. snapshots() names the version
 * and the files of scans.
 *
 * It relies on Delta's Snapshot.getAllFiles() and filesForScan(), DeltaScan, VersionChecksum and OptimisticTransaction.
 */
public class DeltaFileLists {
    private final long mostVersions;
    private final long mostFiles;
    private final java.util.LinkedHashMap versions = new java.util.LinkedHashMap(16, 0.75f, true);

    public DeltaFileLists(Number mostVersions, Number mostFiles) {
        this.mostVersions = mostVersions.longValue();
        this.mostFiles = mostFiles.longValue();
    }

    public LogicalPlan restricted(LogicalPlan plan, TahoeFileIndex base, String paths) {
        java.util.Set wanted = new java.util.HashSet(java.util.Arrays.asList(paths.split("\n")));
        if (base instanceof PrunedFileIndex) {
            PrunedFileIndex index = (PrunedFileIndex) base;
            return placed(plan, new PrunedFileIndex(base, index.scannedSnapshot(), index.versionScanned(),
                PrunedFileIndex.at(wanted, index.files()), base.sizeInBytes(), index.known(), true));
        }
        DeltaScan scan = ((PreparedDeltaFileIndex) base).preparedScan();
        scala.collection.Iterable files = (scala.collection.Iterable) scan.files().distinct();
        return placed(plan, listed(base, scan, ((PreparedDeltaFileIndex) base).versionScanned(),
            PrunedFileIndex.at(wanted, files), scan.allFilters().iterator(), true));
    }

    static PrunedFileIndex listed(
        TahoeFileIndex base, DeltaScan scan, scala.Option asked, Seq files, scala.collection.Iterator conditions,
        boolean areNamed
    ) {
        scala.Option bytes = scan.scanned().bytesCompressed();
        long size = bytes.isDefined() ? ((Long) bytes.get()).longValue()
            : base.spark().sessionState().conf().defaultSizeInBytes();
        PrunedFileIndex index = new PrunedFileIndex(
            base, scan.scannedSnapshot(), asked, files, size, noneKnown(), areNamed);
        while (conditions.hasNext()) {
            index.learn(conditions.next());
        }
        return index;
    }

    public LogicalPlan pinned(LogicalPlan plan) {
        VersionPinning pins = new VersionPinning(this);
        pins.survey(plan, false);
        return OptimisticTransaction$.MODULE$.getActive().isDefined() || pins.isEmpty() ? null
            : (LogicalPlan) plan.transformUpWithSubqueries(pins);
    }

    public LogicalPlan listed(LogicalPlan plan) {
        ListedScans lists = new ListedScans();
        lists.survey(plan, new java.util.ArrayList());
        return lists.isEmpty() ? plan : (LogicalPlan) plan.transformUpWithSubqueries(lists);
    }

    synchronized Seq all(Snapshot snapshot) {
        scala.Option sums = snapshot.checksumOpt();
        Object key = identity(snapshot);
        Seq found = (Seq) versions.get(key);
        if (found == null && sums.isDefined() && ((VersionChecksum) sums.get()).numFiles() <= mostFiles) {
            found = snapshot.getAllFiles(false);
            versions.put(key, found);
            if (versions.size() > mostVersions) {
                versions.remove(versions.keySet().iterator().next());
            }
        }
        return found;
    }

    /**
     * An identity that is equal only for the same version of the same log: a table that is created again at its path
     * has another id, and a log that is written again has other commits.
     */
    static java.util.List identity(Snapshot snapshot) {
        scala.Option sums = snapshot.checksumOpt();
        return java.util.Arrays.asList(new Object[] {snapshot.path().toString(), snapshot.metadata().id(),
            Long.valueOf(snapshot.version()), sums.isDefined() ? ((VersionChecksum) sums.get()).txnId() : sums,
            Long.valueOf(snapshot.logSegment().lastCommitFileModificationTimestamp())});
    }

    public java.util.List snapshots(java.util.List leaves) {
        return new LeafSnapshots(leaves).all();
    }

    public void registerConditions(LogicalPlan plan) {
        registerConditions(plan, new java.util.ArrayList());
    }

    private static void registerConditions(LogicalPlan plan, java.util.List above) {
        scala.collection.Iterator inner = plan.subqueries().iterator();
        while (inner.hasNext()) {
            registerConditions((LogicalPlan) inner.next(), new java.util.ArrayList());
        }
        java.util.List here = new java.util.ArrayList();
        if (plan instanceof LogicalRelation && ((LogicalRelation) plan).relation() instanceof HadoopFsRelation) {
            Object index = ((HadoopFsRelation) ((LogicalRelation) plan).relation()).location();
            boolean learns = index instanceof PrunedFileIndex && ((PrunedFileIndex) index).areNamed();
            for (int at = 0; at < above.size() && learns; at++) {
                ((PrunedFileIndex) index).learn(above.get(at));
            }
        } else if (plan instanceof Filter) {
            here.addAll(above);
            split(((Filter) plan).condition(), here);
        } else if (plan instanceof Project) {
            here.addAll(above);
        }
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            registerConditions((LogicalPlan) children.next(), here);
        }
    }

    static void split(Expression condition, java.util.List into) {
        if (condition instanceof And) {
            split(((And) condition).left(), into);
            split(((And) condition).right(), into);
        } else {
            into.add(condition);
        }
    }

    static java.util.Set noneKnown() {
        return java.util.concurrent.ConcurrentHashMap.newKeySet();
    }

    private static LogicalPlan placed(LogicalPlan plan, PrunedFileIndex index) {
        if (plan instanceof LogicalRelation) {
            return over((LogicalRelation) plan, index);
        }
        java.util.ArrayList child = new java.util.ArrayList();
        child.add(placed((LogicalPlan) plan.children().head(), index));
        return (LogicalPlan) plan.withNewChildren(PrunedFileIndex.sequence(child));
    }

    static LogicalRelation over(LogicalRelation leaf, PrunedFileIndex index) {
        HadoopFsRelation relation = (HadoopFsRelation) leaf.relation();
        HadoopFsRelation fewer = relation.copy(index, relation.partitionSchema(), relation.dataSchema(),
            relation.bucketSpec(), relation.fileFormat(), relation.options(), relation.sparkSession());
        return leaf.copy(fewer, leaf.output(), leaf.catalogTable(), leaf.isStreaming(), leaf.stream());
    }
}
