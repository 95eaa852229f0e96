"""What the leaves of a plan read without any filter of ours, from the lists of files that the plan has pinned.

Which scans of a plan read the same table.

Which nodes of a plan make the same rows, as Spark sees it when it runs a part of a query once for several places.

What Spark itself would broadcast.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from connectors.spark.jvm import instance
from connectors.spark.plan_reader import SparkPlan
from pruning.query.exchanges import may_be_broadcast
from pruning.query.join_graph import JoinGraph
from pruning.query.key_origins import filters_above
from pruning.query.plan import Join, Node, Relation, relations_of

_SIZES = "LeafSizes"
# An index of Delta has been prepared with all conditions, and knows its size. Spark's own guess of a table is what
# ANALYZE once counted, or counts every partition of a path, or is scaled by a conf.
_SIZES_SOURCE = """
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
"""


@dataclass(frozen=True, slots=True)
class LeafSizes:
    """The bytes that each relation reads by its place, and the places of those that read files of Delta or Parquet.

    Of files it is the size of those that conditions on partitions leave, and in Delta those on statistics. Of Delta's a
    snapshot pins the files, but not of those `unpinned`.
    """

    sizes: Mapping[int, int]
    files: frozenset[int]
    unpinned: frozenset[int]


def leaf_sizes(plan: SparkPlan, graph: JoinGraph) -> LeafSizes:
    """What is known of the relations of a plan, by one call whatever their number."""
    filters = filters_above(graph.root)
    nodes = plan.nodes(each for relation in graph.relations for each in (relation, *filters[relation.at]))
    words = str(instance(plan.spark, _SIZES, _SIZES_SOURCE, nodes).lines()).split()
    places = [each.at for each in graph.relations]
    sizes = dict(zip(places, map(int, words[1::2]), strict=True))
    kinds = dict(zip(places, words[::2], strict=True))
    files = frozenset(at for at, kind in kinds.items() if kind != "other")
    return LeafSizes(sizes, files, frozenset(at for at, kind in kinds.items() if kind == "files"))


# A query names the same table many times, and what metadata tells of it is the same each time.
_SHARED = "SharedLeaves"
_SHARED_SOURCE = """
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

public class SharedLeaves {
    private final java.util.List leaves;

    public SharedLeaves(java.util.List leaves) {
        this.leaves = leaves;
    }

    public String firsts() throws Exception {
        StringBuilder text = new StringBuilder();
        java.util.ArrayList distinct = new java.util.ArrayList();
        for (int at = 0; at < leaves.size(); at++) {
            int first = at;
            for (int other = 0; other < distinct.size() && first == at; other++) {
                int before = ((Integer) distinct.get(other)).intValue();
                first = areSame((LogicalRelation) leaves.get(before), (LogicalRelation) leaves.get(at)) ? before : at;
            }
            if (first == at) {
                distinct.add(Integer.valueOf(at));
            }
            text.append(first).append(' ');
        }
        return text.toString();
    }

    private static boolean areSame(LogicalRelation one, LogicalRelation other) throws Exception {
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

    private static Object pinned(FileIndex index) throws Exception {
        String kind = index.getClass().getSimpleName();
        if (!kind.equals("PreparedDeltaFileIndex") && !kind.equals("KeptFileIndex")) {
            return index;
        }
        Object scan = index;
        if (kind.equals("PreparedDeltaFileIndex")) {
            scan = index.getClass().getMethod("preparedScan", new Class[0]).invoke(index, new Object[0]);
        }
        return scan.getClass().getMethod("scannedSnapshot", new Class[0]).invoke(scan, new Object[0]);
    }

    private static Object name(LogicalRelation leaf) {
        return leaf.catalogTable().isEmpty() ? ""
            : ((org.apache.spark.sql.catalyst.catalog.CatalogTable) leaf.catalogTable().get()).identifier();
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
}
"""


def shared_leaves(spark: SparkSession, leaves: Any) -> Sequence[int]:
    """For each of a list of leaves in the JVM the place there of the first that reads the same files and columns."""
    return tuple(map(int, str(instance(spark, _SHARED, _SHARED_SOURCE, leaves).firsts()).split()))


logger = logging.getLogger("scanprune")

_EQUAL = "EqualPlans"
_EQUAL_SOURCE = """
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

public class EqualPlans {
    private final java.util.List plans;

    public EqualPlans(java.util.List plans) {
        this.plans = plans;
    }

    public String firsts() {
        java.util.HashMap seen = new java.util.HashMap();
        StringBuilder text = new StringBuilder();
        for (int at = 0; at < plans.size(); at++) {
            Object plan = ((LogicalPlan) plans.get(at)).canonicalized();
            if (!seen.containsKey(plan)) {
                seen.put(plan, Integer.valueOf(at));
            }
            text.append(seen.get(plan)).append(' ');
        }
        return text.toString();
    }
}
"""


def equal_plans(plan: SparkPlan) -> Mapping[int, int]:
    """By `Node.at` that of the first equal node, for those that have an equal one; none where Spark runs all anew."""
    tables = Counter(each.table for each in relations_of(plan.root))
    is_reused = str(plan.spark.conf.get("spark.sql.exchange.reuse", "true")).lower() == "true"
    if not is_reused or max(tables.values(), default=0) < 2:
        return {}
    shapes: dict[int, Hashable] = {}
    _shape(plan.root, shapes)
    often = Counter(shapes.values())
    nodes = [each for each in plan.root.walk() if often[shapes[each.at]] > 1]
    try:
        found = str(instance(plan.spark, _EQUAL, _EQUAL_SOURCE, plan.nodes(nodes)).firsts()).split()
    except Py4JError:
        logger.debug("Finding what Spark runs once failed", exc_info=True)
        return {}
    several = {first for first, times in Counter(found).items() if times > 1}
    pairs = zip(nodes, found, strict=True)
    return {node.at: nodes[int(first)].at for node, first in pairs if first in several}


def _shape(node: Node, shapes: dict[int, Hashable]) -> Hashable:
    """What equal nodes have in common, and few others."""
    below = tuple(_shape(each, shapes) for each in (*node.children, *node.subqueries))
    own = node.table if isinstance(node, Relation) else node.type if isinstance(node, Join) else ""
    # The shape of a whole subtree is hashed once, not once for each node above it.
    shapes[node.at] = hash((node.kind, own, len(node.output), below))
    return shapes[node.at]


def broadcast_limit(spark: SparkSession) -> int:
    """Bytes; negative where the session broadcasts nothing of itself."""
    state: Any = spark._jsparkSession.sessionState()  # noqa: SLF001 - the conf's text may have any unit
    return int(state.conf().autoBroadcastJoinThreshold())


def has_small_side(plan: SparkPlan, join: Join) -> bool:
    """Whether Spark takes a side of a join that it may broadcast to be small enough, before anything of it has run."""
    limit = broadcast_limit(plan.spark)
    sides = (side for side in join.children if may_be_broadcast(join, side))
    return any(0 <= _size(plan, side) <= limit for side in sides)


def is_broadcast_side(plan: SparkPlan, join: Join, side: Node) -> bool:
    """Whether Spark takes a side of a join to be the one to broadcast: of two that it may, the smaller one."""
    other = join.right if side is join.left else join.left
    size, others = _size(plan, side), _size(plan, other)
    is_few = may_be_broadcast(join, side) and size <= broadcast_limit(plan.spark)
    return is_few and (size < others or not may_be_broadcast(join, other))


def _size(plan: SparkPlan, node: Node) -> int:
    """Bytes by Spark's own estimate."""
    return int(str(plan.node(node).stats().sizeInBytes()))
