import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
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
 * What a session asks about Delta's scans in plans, and the file indexes that it puts into them.
 *
 * early() and pinned() give scans their files by EarlyLists, restricted() puts an index over named files into a
 * plan, and registerConditions() adds the conditions that chose the files of each scan. snapshots() names the version
 * and the files of scans.
 *
 * It relies on Delta's Snapshot, DeltaScan and VersionChecksum.
 */
public class DeltaFileLists {
    private final SparkSession session;
    private final EarlyLists early;

    public DeltaFileLists(SparkSession session, Number mostFiles) throws Exception {
        this.session = session;
        this.early = EarlyLists.of(session, mostFiles.longValue());
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
                PrunedFileIndex.at(wanted, pruned.files()), pruned.sizeInBytes(), pruned.known()));
        }
        if (base == null || base.getClass() != PreparedDeltaFileIndex.class) {
            return null;
        }
        PreparedDeltaFileIndex prepared = (PreparedDeltaFileIndex) base;
        DeltaScan scan = prepared.preparedScan();
        scala.collection.Iterable files = (scala.collection.Iterable) scan.files().distinct();
        return placed(read, listed(prepared, scan, prepared.versionScanned(), PrunedFileIndex.at(wanted, files),
            scan.allFilters().iterator()));
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
        TahoeFileIndex base, DeltaScan scan, scala.Option asked, Seq files, scala.collection.Iterator conditions
    ) {
        scala.Option bytes = scan.scanned().bytesCompressed();
        long size = bytes.isDefined() ? ((Long) bytes.get()).longValue()
            : base.spark().sessionState().conf().defaultSizeInBytes();
        PrunedFileIndex index = new PrunedFileIndex(
            base, scan.scannedSnapshot(), asked, files, size, noneKnown());
        while (conditions.hasNext()) {
            index.learn(conditions.next());
        }
        return index;
    }

    /**
     * The same query, whose scans get their files from memory; null if Spark has optimised it already.
     */
    public Dataset early(Dataset frame) {
        return frame.queryExecution().tracker().phases().contains("optimization") ? null : early.early(frame);
    }

    /**
     * An optimised plan with those scans pinned that Delta has left alone.
     */
    public LogicalPlan pinned(LogicalPlan plan) {
        return early.pinned(session, plan);
    }

    public MergeTarget mergeTarget(LogicalPlan plan) {
        return new MergeTarget(plan);
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
            for (int at = 0; at < above.size() && index instanceof PrunedFileIndex; at++) {
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
