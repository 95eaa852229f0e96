"""Delta scans of exactly the files that are named, which Delta need not list again for a predicate of ours."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from connectors.compiled import instance
from connectors.jvm_lists import JvmList
from connectors.spark_files import frame_of

KEPT_INDEX = "KeptFileIndex"
PREPARED_INDEX = "org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex"
_ADD_FILE = "org.apache.spark.sql.delta.actions.AddFile"
# A log entry takes some 2 KB in the JVM with its statistics. More of them are listed by Delta for each scan.
MOST_FILES = 100_000
# A prepared scan of Delta is listed again, by a job of Spark, wherever it meets other conditions than it was prepared
# with: those that we push, and those that Spark infers from these. What is listed here has been chosen by them, so
# only conditions that nobody has seen, as of a query built on the pruned one, ask Delta again, and only of these files.
# That they are told by their text, without the ids of columns, is safe: a file more is read, and its rows are tested.
# Conditions on partitions are another matter: Spark drops them from the rows' tests, so they hold for each file here.
# The size is that before our filters, so that joins are planned as without them.
_KEPT_SOURCE = """
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.files.TahoeFileIndex;
import org.apache.spark.sql.delta.files.TahoeFileIndexWithSnapshotDescriptor;
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.immutable.Seq;

public class KeptFileIndex extends TahoeFileIndexWithSnapshotDescriptor implements java.util.function.Consumer {
    private final Snapshot snapshot;
    private final scala.Option asked;
    private final Seq files;
    private final long bytes;
    private final java.util.Set known;

    public KeptFileIndex(TahoeFileIndex base, String paths) {
        super(base.spark(), base.deltaLog(), base.path(), snapshotOf(base));
        snapshot = snapshotOf(base);
        bytes = base.sizeInBytes();
        if (base instanceof KeptFileIndex) {
            asked = ((KeptFileIndex) base).asked;
            known = ((KeptFileIndex) base).known;
        } else {
            asked = ((PreparedDeltaFileIndex) base).versionScanned();
            known = java.util.concurrent.ConcurrentHashMap.newKeySet();
            scala.collection.Iterator conditions =
                ((PreparedDeltaFileIndex) base).preparedScan().allFilters().iterator();
            while (conditions.hasNext()) {
                accept(conditions.next());
            }
        }
        files = at(new java.util.HashSet(java.util.Arrays.asList(paths.split("\\n"))), filesOf(base));
    }

    private static Snapshot snapshotOf(TahoeFileIndex base) {
        return base instanceof KeptFileIndex ? ((KeptFileIndex) base).snapshot
            : ((PreparedDeltaFileIndex) base).preparedScan().scannedSnapshot();
    }

    private static scala.collection.Iterable filesOf(TahoeFileIndex base) {
        return base instanceof KeptFileIndex ? ((KeptFileIndex) base).files
            : (scala.collection.Iterable) ((PreparedDeltaFileIndex) base).preparedScan().files().distinct();
    }

    public LogicalPlan placed(LogicalPlan plan) {
        if (plan instanceof LogicalRelation) {
            LogicalRelation leaf = (LogicalRelation) plan;
            HadoopFsRelation relation = (HadoopFsRelation) leaf.relation();
            HadoopFsRelation fewer = relation.copy(this, relation.partitionSchema(), relation.dataSchema(),
                relation.bucketSpec(), relation.fileFormat(), relation.options(), relation.sparkSession());
            return leaf.copy(fewer, leaf.output(), leaf.catalogTable(), leaf.isStreaming(), leaf.stream());
        }
        java.util.ArrayList child = new java.util.ArrayList();
        child.add(placed((LogicalPlan) plan.children().head()));
        return (LogicalPlan) plan.withNewChildren(sequence(child));
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

    public void accept(Object condition) {
        if (isSeen((Expression) condition)) {
            return;
        }
        known.add(text((Expression) condition));
    }

    public Seq matchingFiles(Seq partitionFilters, Seq dataFilters) {
        Seq left = null;
        try {
            left = inPartitions(partitionFilters);
        } catch (Exception unevaluated) {
            return at(listed(partitionFilters, dataFilters), files);
        }
        return areKnown(dataFilters) || left.isEmpty() ? left : at(listed(partitionFilters, dataFilters), left);
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

    private static Seq at(java.util.Set paths, scala.collection.Iterable candidates) {
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
            if (!isSeen(condition) && !known.contains(text(condition))) {
                return false;
            }
        }
        return true;
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

    private static String text(Expression condition) {
        return condition.toString().replaceAll("#[0-9]+L?", "");
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

    private static Seq sequence(java.util.List items) {
        return scala.jdk.javaapi.CollectionConverters.asScala(items).toSeq();
    }
}
"""
# Of another loader than the index, since not every session has Delta Lake.
_CONDITIONS = "KeptFileConditions"
_CONDITIONS_SOURCE = """
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

public class KeptFileConditions {
    public KeptFileConditions(LogicalPlan plan) {
        tell(plan, new java.util.ArrayList());
    }

    private static void tell(LogicalPlan plan, java.util.List above) {
        scala.collection.Iterator inner = plan.subqueries().iterator();
        while (inner.hasNext()) {
            tell((LogicalPlan) inner.next(), new java.util.ArrayList());
        }
        java.util.List here = new java.util.ArrayList();
        if (plan instanceof LogicalRelation && ((LogicalRelation) plan).relation() instanceof HadoopFsRelation) {
            FileIndex index = ((HadoopFsRelation) ((LogicalRelation) plan).relation()).location();
            for (int at = 0; at < above.size() && index instanceof java.util.function.Consumer; at++) {
                ((java.util.function.Consumer) index).accept(above.get(at));
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

    private static void split(Expression condition, java.util.List into) {
        if (condition instanceof And) {
            split(((And) condition).left(), into);
            split(((And) condition).right(), into);
        } else {
            into.add(condition);
        }
    }
}
"""


def over_files(df: DataFrame, index: Any, paths: pa.Array | pa.ChunkedArray) -> DataFrame:
    """A plain read of one Delta table over those files of its index alone that lie at `paths` of the log.

    Never more files than the index lists: what the query's own conditions leave out stays out.
    """
    spark = df.sparkSession
    kept = instance(spark, KEPT_INDEX, _KEPT_SOURCE, index, "\n".join(paths.to_pylist()), beside=index)
    return frame_of(spark, kept.placed(df._jdf.queryExecution().analyzed()))  # noqa: SLF001 - no other door


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
    instance(spark, _CONDITIONS, _CONDITIONS_SOURCE, plan)
