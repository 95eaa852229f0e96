"""Delta scans of files that are known, which Delta need not list by a job for each scan and each predicate of ours.

The JVM's side of `kept_files`: an index of Delta over files that are named, and what puts it into plans.
"""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from connectors.parquet.listing import frame_of
from connectors.spark.jvm import instance
from connectors.spark.session_state import state_of
from connectors.spark.transfer import JvmList

logger = logging.getLogger("scanprune")

KEPT_INDEX = "KeptFileIndex"
PREPARED_INDEX = "org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex"
_ADD_FILE = "org.apache.spark.sql.delta.actions.AddFile"
# A log entry takes some 2 KB in the JVM with its statistics. More of them are listed by Delta for each scan.
MOST_FILES = 100_000
# Delta lists what each scan reads by a job of its own while a plan is optimised, and one after the other.
_FIND = "DeltaIndex"
_FIND_SOURCE = """
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

public class DeltaIndex {
    private final LogicalPlan plan;

    public DeltaIndex(LogicalPlan plan) {
        this.plan = plan;
    }

    public Object any() {
        return any(plan);
    }

    private static Object any(LogicalPlan plan) {
        if (plan instanceof LogicalRelation && ((LogicalRelation) plan).relation() instanceof HadoopFsRelation) {
            Object index = ((HadoopFsRelation) ((LogicalRelation) plan).relation()).location();
            return index.getClass().getSimpleName().equals("TahoeLogFileIndex") ? index : null;
        }
        Object found = null;
        scala.collection.Iterator children = plan.children().iterator();
        while (found == null && children.hasNext()) {
            found = any((LogicalPlan) children.next());
        }
        return found;
    }
}
"""
_SKIPPING_CONF = "spark.databricks.delta.stats.skipping"


class _KeptFiles:
    """The Java object that holds the files of table versions for a session; None before the first Delta table."""

    java: Any = None


def optimised(df: DataFrame) -> Any:
    """The optimised plan of a query, made without a job for each scan of Delta.

    The list of a whole version is asked for once and kept, and Delta lists anew where a condition of the query may
    leave out one of several files.
    """
    execution: Any = df._jdf.queryExecution()  # noqa: SLF001 - plans have no public door
    spark = df.sparkSession
    is_done = execution.tracker().phases().contains("optimization")
    if is_done or str(spark.conf.get(_SKIPPING_CONF, "true")).lower() == "false":
        return execution.optimizedPlan()
    try:
        plan = execution.withCachedData()
        index = instance(spark, _FIND, _FIND_SOURCE, plan).any()
        kept = None if index is None else _kept_files(spark, index)
        pinned = None if kept is None else kept.pinned(plan)
        if kept is None or pinned is None:
            return execution.optimizedPlan()
        return kept.listed(frame_of(spark, pinned)._jdf.queryExecution().optimizedPlan())  # noqa: SLF001 - as above
    except (Py4JError, PySparkException):
        # What is wrong with the query itself, Spark says again.
        logger.debug("Optimising without lists of files failed", exc_info=True)
        return execution.optimizedPlan()


def _kept_files(spark: SparkSession, index: Any) -> Any:
    """What the session knows of versions of Delta tables; `index` is any index of Delta."""
    slot = state_of(spark).slot(_KeptFiles)
    if slot.java is None:
        slot.java = instance(spark, CLASS, SOURCE, beside=index)
    return slot.java


def over_files(df: DataFrame, index: Any, paths: pa.Array | pa.ChunkedArray) -> DataFrame:
    """A plain read of one Delta table over those files of its index alone that lie at `paths` of the log.

    Never more files than the index lists: what the query's own conditions leave out stays out.
    """
    spark = df.sparkSession
    plan: Any = df._jdf.queryExecution().analyzed()  # noqa: SLF001 - plans have no public door
    return frame_of(spark, _kept_files(spark, index).restricted(plan, index, "\n".join(paths.to_pylist())))


def paths_left(spark: SparkSession, index: Any) -> pa.Array | None:
    """The paths in Delta's log of the files that an index of a plan lists; None where it lists all of the table."""
    if index.getClass().getName() == KEPT_INDEX:
        files = index.files()
    else:
        scan = index.preparedScan()
        if scan.allFilters().isEmpty():
            return None
        files = scan.files()
    return pa.array(JvmList.of_scala(spark, files).texts(f"{_ADD_FILE}.path"), pa.string())


def snapshot_in(index: Any) -> Any:
    """The version that an index of a plan reads."""
    return (
        index.scannedSnapshot() if index.getClass().getName() == KEPT_INDEX else index.preparedScan().scannedSnapshot()
    )


def tell_conditions(spark: SparkSession, plan: Any) -> None:
    """Tells each scan of kept files in an optimised plan the conditions on it, which are no reason to list again."""
    kept = state_of(spark).slot(_KeptFiles).java
    if kept is not None:
        kept.tell(plan)


CLASS = "KeptFiles"
# A prepared scan of Delta is listed again, by a job of Spark, wherever it meets other conditions than it was prepared
# with: those that we push, and those that Spark infers from these. What is listed here has been chosen by them, so
# only conditions that nobody has seen, as of a query built on the pruned one, ask Delta again, and only of these files.
# That they are compared without the ids of columns is safe: a file more is read, and its rows are tested.
# Conditions on partitions are another matter: Spark drops them from the rows' tests, so they hold for each file here.
# The size is that before our filters, so that joins are planned as without them.
SOURCE = """
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
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.delta.OptimisticTransaction$;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.VersionChecksum;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.files.TahoeFileIndex;
import org.apache.spark.sql.delta.files.TahoeFileIndexWithSnapshotDescriptor;
import org.apache.spark.sql.delta.files.TahoeLogFileIndex;
import org.apache.spark.sql.delta.stats.DeltaScan;
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import scala.collection.immutable.Seq;

public class KeptFiles {
    private static final int MOST_VERSIONS = 16;
    private static final long MOST_FILES = 10000L;
    private final java.util.LinkedHashMap versions = new java.util.LinkedHashMap(16, 0.75f, true);

    public LogicalPlan restricted(LogicalPlan plan, TahoeFileIndex base, String paths) {
        java.util.Set wanted = new java.util.HashSet(java.util.Arrays.asList(paths.split("\\n")));
        if (base instanceof KeptFileIndex) {
            KeptFileIndex index = (KeptFileIndex) base;
            return placed(plan, new KeptFileIndex(base, index.scannedSnapshot(), index.versionScanned(),
                KeptFileIndex.at(wanted, index.files()), base.sizeInBytes(), index.known(), true));
        }
        DeltaScan scan = ((PreparedDeltaFileIndex) base).preparedScan();
        scala.collection.Iterable files = (scala.collection.Iterable) scan.files().distinct();
        return placed(plan, listed(base, scan, ((PreparedDeltaFileIndex) base).versionScanned(),
            KeptFileIndex.at(wanted, files), scan.allFilters().iterator(), true));
    }

    static KeptFileIndex listed(
        TahoeFileIndex base, DeltaScan scan, scala.Option asked, Seq files, scala.collection.Iterator conditions,
        boolean areNamed
    ) {
        scala.Option bytes = scan.scanned().bytesCompressed();
        long size = bytes.isDefined() ? ((Long) bytes.get()).longValue()
            : base.spark().sessionState().conf().defaultSizeInBytes();
        KeptFileIndex index = new KeptFileIndex(
            base, scan.scannedSnapshot(), asked, files, size, noneKnown(), areNamed);
        while (conditions.hasNext()) {
            index.learn(conditions.next());
        }
        return index;
    }

    public LogicalPlan pinned(LogicalPlan plan) {
        Pins pins = new Pins(this);
        pins.survey(plan, false);
        return OptimisticTransaction$.MODULE$.getActive().isDefined() || pins.isEmpty() ? null
            : (LogicalPlan) plan.transformUpWithSubqueries(pins);
    }

    public LogicalPlan listed(LogicalPlan plan) {
        Lists lists = new Lists();
        lists.survey(plan, new java.util.ArrayList());
        return lists.isEmpty() ? plan : (LogicalPlan) plan.transformUpWithSubqueries(lists);
    }

    synchronized Seq all(Snapshot snapshot) {
        scala.Option sums = snapshot.checksumOpt();
        Object commit = sums.isDefined() ? ((VersionChecksum) sums.get()).txnId() : sums;
        Object key = java.util.Arrays.asList(new Object[] {snapshot.path(), snapshot.metadata().id(),
            Long.valueOf(snapshot.version()), commit,
            Long.valueOf(snapshot.logSegment().lastCommitFileModificationTimestamp())});
        Seq found = (Seq) versions.get(key);
        if (found == null && sums.isDefined() && ((VersionChecksum) sums.get()).numFiles() <= MOST_FILES) {
            found = snapshot.getAllFiles(false);
            versions.put(key, found);
            if (versions.size() > MOST_VERSIONS) {
                versions.remove(versions.keySet().iterator().next());
            }
        }
        return found;
    }

    public void tell(LogicalPlan plan) {
        tell(plan, new java.util.ArrayList());
    }

    private static void tell(LogicalPlan plan, java.util.List above) {
        scala.collection.Iterator inner = plan.subqueries().iterator();
        while (inner.hasNext()) {
            tell((LogicalPlan) inner.next(), new java.util.ArrayList());
        }
        java.util.List here = new java.util.ArrayList();
        if (plan instanceof LogicalRelation && ((LogicalRelation) plan).relation() instanceof HadoopFsRelation) {
            Object index = ((HadoopFsRelation) ((LogicalRelation) plan).relation()).location();
            boolean learns = index instanceof KeptFileIndex && ((KeptFileIndex) index).areNamed();
            for (int at = 0; at < above.size() && learns; at++) {
                ((KeptFileIndex) index).learn(above.get(at));
            }
        } else if (plan instanceof Filter) {
            here.addAll(above);
            split(((Filter) plan).condition(), here);
        } else if (plan instanceof Project) {
            here.addAll(above);
        }
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            tell((LogicalPlan) children.next(), here);
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

    private static LogicalPlan placed(LogicalPlan plan, KeptFileIndex index) {
        if (plan instanceof LogicalRelation) {
            return over((LogicalRelation) plan, index);
        }
        java.util.ArrayList child = new java.util.ArrayList();
        child.add(placed((LogicalPlan) plan.children().head(), index));
        return (LogicalPlan) plan.withNewChildren(KeptFileIndex.sequence(child));
    }

    static LogicalRelation over(LogicalRelation leaf, KeptFileIndex index) {
        HadoopFsRelation relation = (HadoopFsRelation) leaf.relation();
        HadoopFsRelation fewer = relation.copy(index, relation.partitionSchema(), relation.dataSchema(),
            relation.bucketSpec(), relation.fileFormat(), relation.options(), relation.sparkSession());
        return leaf.copy(fewer, leaf.output(), leaf.catalogTable(), leaf.isStreaming(), leaf.stream());
    }
}

class Pins extends scala.runtime.AbstractPartialFunction {
    private final KeptFiles files;
    private final java.util.LinkedHashMap indexes = new java.util.LinkedHashMap();
    private final java.util.HashSet left = new java.util.HashSet();
    private java.util.HashMap pinned = null;
    private int leaves = 0;

    Pins(KeptFiles files) {
        this.files = files;
    }

    void survey(LogicalPlan plan, boolean isExposed) {
        leaves += plan.children().isEmpty() ? 1 : 0;
        TahoeLogFileIndex index = indexOf(plan);
        if (index != null) {
            indexes.put(key(index), index);
            if (isExposed || !index.partitionFilters().isEmpty() || plan.isStreaming() || computes(index)) {
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
        java.util.Iterator each = indexes.values().iterator();
        // Nothing filters the only scan of a query, and what Spark finds out of it is then of use to the query itself.
        while (leaves > 1 && each.hasNext()) {
            TahoeLogFileIndex index = (TahoeLogFileIndex) each.next();
            Object log = index.deltaLog().compositeId();
            if (left.contains(log)) {
                continue;
            }
            // Each is asked, since it looks whether the table still has the columns that its query was analysed with.
            Snapshot snapshot = index.getSnapshot();
            if (!index.isTimeTravelQuery()) {
                snapshots.putIfAbsent(log, snapshot);
                snapshot = (Snapshot) snapshots.get(log);
            }
            Seq all = files.all(snapshot);
            if (all == null) {
                left.add(log);
            } else {
                pinned.put(key(index), new KeptFileIndex(index, snapshot, index.versionToUse(), all, bytes(all),
                    KeptFiles.noneKnown(), false));
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

    public boolean isDefinedAt(Object node) {
        TahoeLogFileIndex index = indexOf(node);
        return index != null && pinned.containsKey(key(index));
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
        return isDefinedAt(node)
            ? KeptFiles.over((LogicalRelation) node, (KeptFileIndex) pinned.get(key(indexOf(node))))
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

    private static boolean computes(TahoeLogFileIndex index) {
        scala.collection.Iterator fields = index.metadata().schema().iterator();
        while (fields.hasNext()) {
            if (((StructField) fields.next()).metadata().contains("delta.generationExpression")) {
                return true;
            }
        }
        return false;
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

class Lists extends scala.runtime.AbstractPartialFunction {
    private final java.util.IdentityHashMap conditions = new java.util.IdentityHashMap();
    private final java.util.IdentityHashMap indexes = new java.util.IdentityHashMap();

    void survey(LogicalPlan plan, java.util.List above) {
        scala.collection.Iterator inner = plan.subqueries().iterator();
        while (inner.hasNext()) {
            survey((LogicalPlan) inner.next(), new java.util.ArrayList());
        }
        java.util.List here = new java.util.ArrayList();
        if (plan instanceof Filter) {
            here.addAll(above);
            KeptFiles.split(((Filter) plan).condition(), here);
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
        boolean skips = false;
        for (int at = 0; at < above.size(); at++) {
            Expression condition = (Expression) above.get(at);
            // Delta evaluates what names no data column once for each file, so it must not differ between two runs.
            if (condition.deterministic() && condition.references().subsetOf(leaf.outputSet())
                && !SubqueryExpression$.MODULE$.hasSubquery(condition)) {
                own.add(condition);
                skips = skips || !KeptFileIndex.isSeen(condition);
            }
        }
        if (!skips || indexOf(leaf).files().size() < 2) {
            own.clear();
        }
        java.util.List before = (java.util.List) conditions.get(leaf);
        conditions.put(leaf, before == null || before.equals(own) ? own : new java.util.ArrayList());
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
            KeptFileIndex index = indexOf(entry.getKey());
            java.util.ArrayList named = new java.util.ArrayList();
            for (int at = 0; at < own.size(); at++) {
                named.add(KeptFileIndex.named((Expression) own.get(at)));
            }
            Object key = java.util.Arrays.asList(new Object[] {index.deltaLog().compositeId(),
                index.scannedSnapshot(), named});
            DeltaScan scan = (DeltaScan) known.get(key);
            if (scan == null) {
                scan = index.scannedSnapshot().filesForScan(KeptFileIndex.sequence(own), false);
                known.put(key, scan);
            }
            indexes.put(entry.getKey(), KeptFiles.listed(index, scan, index.versionScanned(),
                (Seq) scan.files().distinct(), scan.allFilters().iterator(), false));
        }
        return indexes.isEmpty();
    }

    public boolean isDefinedAt(Object node) {
        return indexes.containsKey(node);
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
        return isDefinedAt(node) ? KeptFiles.over((LogicalRelation) node, (KeptFileIndex) indexes.get(node))
            : otherwise.apply(node);
    }

    private static KeptFileIndex indexOf(Object node) {
        if (!(node instanceof LogicalRelation) || !(((LogicalRelation) node).relation() instanceof HadoopFsRelation)) {
            return null;
        }
        Object index = ((HadoopFsRelation) ((LogicalRelation) node).relation()).location();
        return index instanceof KeptFileIndex && !((KeptFileIndex) index).areNamed() ? (KeptFileIndex) index : null;
    }

}

public class KeptFileIndex extends TahoeFileIndexWithSnapshotDescriptor {
    private static final ExprId NO_ID = ExprId.apply(0L, new java.util.UUID(0L, 0L));
    private final Snapshot snapshot;
    private final scala.Option asked;
    private final Seq files;
    private final long bytes;
    private final java.util.Set known;
    private final boolean areNamed;

    KeptFileIndex(TahoeFileIndex base, Snapshot snapshot, scala.Option asked, Seq files, long bytes,
        java.util.Set known, boolean areNamed) {
        super(base.spark(), base.deltaLog(), base.path(), snapshot);
        this.snapshot = snapshot;
        this.asked = asked;
        this.files = files;
        this.bytes = bytes;
        this.known = known;
        this.areNamed = areNamed;
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

    boolean areNamed() {
        return areNamed;
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
            return at(listed(partitionFilters, dataFilters), files);
        }
        return areKnown(dataFilters) || left.size() < 2 ? left : at(listed(partitionFilters, dataFilters), left);
    }

    private java.util.Set listed(Seq partitionFilters, Seq dataFilters) {
        java.util.HashSet paths = new java.util.HashSet();
        Seq conditions = (Seq) partitionFilters.appendedAll(dataFilters);
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

    private boolean areKnown(Seq conditions) {
        scala.collection.Iterator each = conditions.iterator();
        while (each.hasNext()) {
            Expression condition = (Expression) each.next();
            if (!isSeen(condition) && !known.contains(named(condition))) {
                return false;
            }
        }
        return true;
    }

    static boolean isSeen(Expression condition) {
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
        if (!(other instanceof KeptFileIndex)) {
            return false;
        }
        KeptFileIndex that = (KeptFileIndex) other;
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
"""
