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

from connectors.spark.jvm import JavaFile, instance, jvm_session
from connectors.spark.plan_reader import SparkPlan
from pruning.query.exchanges import may_be_broadcast
from pruning.query.join_graph import JoinGraph
from pruning.query.key_origins import filters_above
from pruning.query.plan import Join, Node, Relation, relations_of

_SIZES = JavaFile("connectors.spark", "LeafSizes")


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
    words = str(instance(plan.spark, _SIZES, nodes).lines()).split()
    places = [each.at for each in graph.relations]
    sizes = dict(zip(places, map(int, words[1::2]), strict=True))
    kinds = dict(zip(places, words[::2], strict=True))
    files = frozenset(at for at, kind in kinds.items() if kind != "other")
    return LeafSizes(sizes, files, frozenset(at for at, kind in kinds.items() if kind == "files"))


_SHARED = JavaFile("connectors.spark", "SharedLeaves")


def shared_leaves(spark: SparkSession, leaves: Any) -> Sequence[int]:
    """For each of a list of leaves in the JVM the place there of the first that reads the same files and columns."""
    return tuple(map(int, str(instance(spark, _SHARED, leaves).firsts()).split()))


logger = logging.getLogger("scanprune")

_EQUAL = JavaFile("connectors.spark", "EqualPlans")


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
        found = str(instance(plan.spark, _EQUAL, plan.nodes(nodes)).firsts()).split()
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
    state: Any = jvm_session(spark).sessionState()
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
