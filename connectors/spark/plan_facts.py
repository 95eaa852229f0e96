"""Facts about a plan from the JVM: sizes of leaves, equal leaves and nodes, broadcast sides, fingerprints of leaves.

A fingerprint is equal only for leaves that read the same rows and columns: a connector names the snapshot of a leaf,
and this module adds everything else that its rows depend on.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from connectors.spark.jvm import JavaFile, instance, jvm_session
from connectors.spark.plan_reader import SparkPlan
from pruning.query.key_origins import filters_above
from pruning.query.plan import Join, Node, Relation, relations_of
from pruning.query.requests import RowShape
from pruning.reasons import Reason, ReasonCode

logger = logging.getLogger("scanprune")

_UNKNOWN, _NO_STORE = "!", "-"
# Types whose values may be long: rows with them have a lower limit.
_LONG = ("string", "char", "binary", "array", "map", "struct", "variant")


@dataclass(frozen=True, slots=True)
class LeafSizes:
    """The bytes that each relation reads by its place, and the places of relations over files of a known format.

    Files that the query's conditions on partitions (and on statistics, if a table has them) exclude do not count.
    `unpinned` are the relations whose file index holds no snapshot, so that each run of the plan may list other files.
    """

    sizes: Mapping[int, int]
    files: frozenset[int]
    unpinned: frozenset[int]


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """Facts about a plan without our filters, all by `Node.id`.

    - `leaves`: the bytes and the kinds of its relations
    - `first_leaf`: the first relation that reads the same files and columns, for each relation
    - `equal`: the first equal node, for each node with an equal one; empty if Spark reuses no exchange
    - `stores`: scheme and authority of the files of each relation, such as `s3a://lake`, where they are known
    """

    leaves: LeafSizes
    first_leaf: Mapping[int, int]
    equal: Mapping[int, int]
    stores: Mapping[int, str]

    def without(self, streams: frozenset[int]) -> PlanFacts:
        """The facts, in which scans of micro-batches are no scans of tables: their files are listed once."""
        leaves = self.leaves
        leaves = replace(leaves, files=leaves.files - streams, unpinned=leaves.unpinned - streams)
        return replace(self, leaves=leaves)


def plan_facts(plan: SparkPlan, formats: Collection[str], snapshot_calls: str) -> PlanFacts:
    """The facts about a plan, by one call to the JVM whatever the size of the plan.

    `formats` are the simple class names of the file formats whose rows may be keys. `snapshot_calls` are the snapshot
    calls of all connectors; a leaf is pinned if one of them returns the snapshot of its file index.
    """
    filters, relations, alike = filters_above(plan.root), relations_of(plan.root), _alike(plan)
    filtered = [each for relation in relations for each in (relation, *filters[relation.id])]
    leaves, equal = plan.facts(filtered, alike, formats, snapshot_calls).split("\n", 1)
    words, places = leaves.split(), [each.id for each in relations]
    return PlanFacts(
        _leaf_sizes(places, zip(words[::5], words[1::5], words[2::5], strict=True), formats),
        dict(zip(places, (places[int(first)] for first in words[3::5]), strict=True)),
        _equal_nodes(alike, equal),
        {at: store for at, store in zip(places, words[4::5], strict=True) if store != _NO_STORE},
    )


def _leaf_sizes(places: Sequence[int], leaves: Iterable[tuple[str, str, str]], formats: Collection[str]) -> LeafSizes:
    sizes: dict[int, int] = {}
    files: dict[int, bool] = {}
    for at, (kind, pinned, size) in zip(places, leaves, strict=True):
        sizes[at] = int(size)
        if kind in formats:
            files[at] = pinned == "true"
    return LeafSizes(sizes, frozenset(files), frozenset(at for at, is_pinned in files.items() if not is_pinned))


def _equal_nodes(alike: Sequence[Node], text: str) -> Mapping[int, int]:
    if text.startswith(_UNKNOWN):
        # Each of them may have an equal node.
        logger.debug("Finding subtrees that Spark runs once failed: %s", text.removeprefix(_UNKNOWN))
        return {node.id: node.id for node in alike}
    found = text.split()
    several = {first for first, times in Counter(found).items() if times > 1}
    pairs = zip(alike, found, strict=True)
    return {node.id: alike[int(first)].id for node, first in pairs if first in several}


def _alike(plan: SparkPlan) -> Sequence[Node]:
    """The nodes that may have an equal node, so that Spark may reuse their exchange."""
    leaves = Counter(_leaf(each) for each in plan.root.walk() if not each.children)
    is_reused = str(plan.spark.conf.get("spark.sql.exchange.reuse", "true")).lower() == "true"
    if not is_reused or max(leaves.values(), default=0) < 2:
        return ()
    shapes: dict[int, Hashable] = {}
    _shape(plan.root, shapes)
    often = Counter(shapes.values())
    return tuple(each for each in plan.root.walk() if often[shapes[each.id]] > 1)


def _leaf(node: Node) -> str:
    return node.table if isinstance(node, Relation) else node.kind


def _shape(node: Node, shapes: dict[int, Hashable]) -> Hashable:
    """A hash that is the same for equal nodes, and rarely for others."""
    below = tuple(_shape(each, shapes) for each in (*node.children, *node.subqueries))
    own = node.table if isinstance(node, Relation) else node.type if isinstance(node, Join) else ""
    # The shape of a whole subtree is hashed once, not once for each node above it.
    shapes[node.id] = hash((node.kind, own, len(node.output), below))
    return shapes[node.id]


def broadcast_limit(spark: SparkSession) -> int:
    """The bytes up to which the session broadcasts a side by itself; negative for never."""
    state: Any = jvm_session(spark).sessionState()
    return int(state.conf().autoBroadcastJoinThreshold())


def cores_of(spark: SparkSession) -> int:
    """The tasks that the session's executors run at a time."""
    return int(spark.sparkContext.defaultParallelism)


def row_shape(plan: SparkPlan, node: Node) -> RowShape:
    """Spark's estimate of the bytes of a row's values, and if some of its types may have long values."""
    schema = plan.node(node).schema()
    # A column whose name contains a type name counts as long, too, which only lowers a limit.
    types = str(schema.catalogString()).removeprefix("struct")
    return RowShape(int(schema.defaultSize()), any(kind in types for kind in _LONG))


_NAME = JavaFile("connectors.spark", "LeafName", others=("FileScan",))


def leaf_name(spark: SparkSession, leaf: Any) -> tuple[str, str] | None:
    """The name of the table at a leaf of a plan, and the class of its file format; None if it reads no files.

    The name is that in the catalog, else the last part of the path.
    """
    format_, _, name = str(instance(spark, _NAME, leaf).text()).partition("\n")
    return (name, format_) if format_ else None


FINGERPRINT_TEXT = "connectors.spark.FingerprintText"
_LEAVES = JavaFile("connectors.spark", "LeafFingerprints", others=("FingerprintText",))
_REFUSED = "!"


def refused(text: str) -> str | None:
    """The reason in an answer of the JVM that begins with an exclamation mark; None for any other answer."""
    return text.removeprefix(_REFUSED) if text.startswith(_REFUSED) else None


def no_fingerprint(why: str) -> Reason:
    """The reason why a build over a leaf is not cached."""
    return Reason(ReasonCode.NOT_CACHED, "a scan", why)


def leaf_fingerprints(
    spark: SparkSession, leaves: Sequence[Any], snapshots: Sequence[Sequence[object] | Reason] | JavaObject
) -> list[str | Reason]:
    """The fingerprints of leaves that read files, from the snapshot of each, in three calls to the JVM.

    A snapshot is a list of numbers, texts and lists of them that identifies the rows of the files, such as paths, sizes
    and times, or the table and its version. A list of the JVM has such lists, or a text of an exclamation mark and the
    reason why there is no snapshot.
    """
    if isinstance(snapshots, JavaObject):
        given: Any = snapshots
    else:
        given = [_REFUSED + each.detail if isinstance(each, Reason) else list(each) for each in snapshots]
    lines = str(instance(spark, _LEAVES, jvm_session(spark), leaves, given).text()).split("\n")
    return [line if (why := refused(line)) is None else no_fingerprint(why) for line in lines]
