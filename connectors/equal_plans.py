"""Which nodes of a plan make the same rows, as Spark sees it when it runs a part of a query once for several places."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Hashable, Mapping

from py4j.protocol import Py4JError

from connectors.compiled import instance
from connectors.plan_reader import SparkPlan
from pruning.query_plan import Join, Node, Relation, relations_of

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
