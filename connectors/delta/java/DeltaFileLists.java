import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.OptimisticTransaction$;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.VersionChecksum;
import org.apache.spark.sql.delta.files.TahoeFileIndex;
import org.apache.spark.sql.delta.files.TahoeLogFileIndex;
import org.apache.spark.sql.delta.stats.DeltaScan;
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.immutable.Seq;

/**
 * The lists of files of table versions that a session has read, and file indexes over them in plans.
 *
 * The list of a whole version is read once and cached. query() optimises a query with these lists, restricted() puts an
 * index over named files into a plan, and registerConditions() adds the conditions that chose the files of each scan.
 * snapshots() names the version and the files of scans.
 *
 * It relies on Delta's Snapshot, DeltaScan and VersionChecksum.
 */
public class DeltaFileLists {
    private final long mostVersions;
    private final long mostFilesOfVersion;
    private final long mostFiles;
    private final java.util.LinkedHashMap versions = new java.util.LinkedHashMap(16, 0.75f, true);
    private long held = 0;

    public DeltaFileLists(Number mostVersions, Number mostFilesOfVersion, Number mostFiles) {
        this.mostVersions = mostVersions.longValue();
        this.mostFilesOfVersion = mostFilesOfVersion.longValue();
        this.mostFiles = mostFiles.longValue();
    }

    /**
     * A plain read of one table over those files of an index that are at some paths of the log, with a line feed
     * between them. The index is the read's own if none is given. The result is null for an index that does not hold
     * one version.
     */
    public Dataset restricted(Dataset read, Object index, String paths) {
        Object base = index == null ? indexBelow(read.queryExecution().analyzed()) : index;
        java.util.Set wanted = new java.util.HashSet(java.util.Arrays.asList(paths.split("\n")));
        if (base instanceof PrunedFileIndex) {
            PrunedFileIndex pruned = (PrunedFileIndex) base;
            return placed(read, new PrunedFileIndex(pruned, pruned.scannedSnapshot(), pruned.versionScanned(),
                PrunedFileIndex.at(wanted, pruned.files()), pruned.sizeInBytes(), pruned.known(), true));
        }
        if (base == null || base.getClass() != PreparedDeltaFileIndex.class) {
            return null;
        }
        PreparedDeltaFileIndex prepared = (PreparedDeltaFileIndex) base;
        DeltaScan scan = prepared.preparedScan();
        scala.collection.Iterable files = (scala.collection.Iterable) scan.files().distinct();
        return placed(read, listed(prepared, scan, prepared.versionScanned(), PrunedFileIndex.at(wanted, files),
            scan.allFilters().iterator(), true));
    }

    /**
     * The index of the only table of a plan, below its name in the catalog and the padding of char columns.
     */
    private static Object indexBelow(LogicalPlan plan) {
        LogicalPlan node = plan;
        while (node instanceof SubqueryAlias || node instanceof Project) {
            node = (LogicalPlan) node.children().head();
        }
        return node instanceof LogicalRelation && ((LogicalRelation) node).relation() instanceof HadoopFsRelation
            ? ((HadoopFsRelation) ((LogicalRelation) node).relation()).location() : null;
    }

    /**
     * The version that a leaf reads; null if its index does not hold one version.
     */
    public SnapshotText scanned(LogicalRelation leaf) {
        Object index = ((HadoopFsRelation) leaf.relation()).location();
        Snapshot snapshot = index instanceof PrunedFileIndex ? ((PrunedFileIndex) index).scannedSnapshot()
            : index.getClass() == PreparedDeltaFileIndex.class
            ? ((PreparedDeltaFileIndex) index).preparedScan().scannedSnapshot() : null;
        return snapshot == null ? null : described((TahoeFileIndex) index, snapshot);
    }

    /**
     * The version that an index of a whole table reads.
     */
    public SnapshotText analyzed(TahoeLogFileIndex index) {
        return described(index, index.getSnapshot());
    }

    private static SnapshotText described(TahoeFileIndex index, Snapshot snapshot) {
        return new SnapshotText((SparkSession) index.spark(), snapshot, index.path());
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

    /**
     * The plan with its scans pinned and listed; null if there is nothing to pin, or in a transaction, which pins them.
     */
    public LogicalPlan pinned(LogicalPlan plan) {
        VersionPinning pins = new VersionPinning(this);
        pins.survey(plan, false);
        if (OptimisticTransaction$.MODULE$.getActive().isDefined() || pins.isEmpty()) {
            return null;
        }
        LogicalPlan pinned = (LogicalPlan) plan.transformUpWithSubqueries(pins);
        ListedScans scans = new ListedScans(this);
        scans.survey(pinned, new java.util.ArrayList());
        return scans.isEmpty() ? pinned : (LogicalPlan) pinned.transformUpWithSubqueries(scans);
    }

    public MergeTarget mergeTarget(LogicalPlan plan) {
        return new MergeTarget(plan);
    }

    public ListedQuery query(Dataset frame) {
        return new ListedQuery(this, frame);
    }

    /**
     * The files of a version; null if it has too many.
     */
    synchronized VersionFiles all(Snapshot snapshot) {
        scala.Option sums = snapshot.checksumOpt();
        Object key = identity(snapshot);
        VersionFiles found = (VersionFiles) versions.get(key);
        if (found == null && sums.isDefined() && ((VersionChecksum) sums.get()).numFiles() <= mostFilesOfVersion) {
            found = new VersionFiles(snapshot);
            versions.put(key, found);
            held += found.files().size();
            while (versions.size() > mostVersions || held > mostFiles && versions.size() > 1) {
                held -= ((VersionFiles) versions.remove(versions.keySet().iterator().next())).files().size();
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

    private static Dataset placed(Dataset read, PrunedFileIndex index) {
        return Dataset.ofRows(read.sparkSession(), placed(read.queryExecution().analyzed(), index));
    }

    private static LogicalPlan placed(LogicalPlan plan, PrunedFileIndex index) {
        if (plan instanceof LogicalRelation) {
            return over((LogicalRelation) plan, index);
        }
        java.util.ArrayList child = new java.util.ArrayList();
        child.add(placed((LogicalPlan) plan.children().head(), index));
        return (LogicalPlan) plan.withNewChildren(PrunedFileIndex.sequence(child));
    }

    static LogicalRelation over(LogicalRelation leaf, TahoeFileIndex index) {
        HadoopFsRelation relation = (HadoopFsRelation) leaf.relation();
        HadoopFsRelation fewer = relation.copy(index, relation.partitionSchema(), relation.dataSchema(),
            relation.bucketSpec(), relation.fileFormat(), relation.options(), relation.sparkSession());
        return leaf.copy(fewer, leaf.output(), leaf.catalogTable(), leaf.isStreaming(), leaf.stream());
    }
}
