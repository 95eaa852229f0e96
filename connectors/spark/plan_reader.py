"""Spark's optimised plan as an engine-free tree, read in a few calls whatever its size (classic sessions only).

An object of the JVM numbers and describes the nodes in one walk, and replaces them later. Spark's own runtime filters
are removed first. `is_candidate()` tests a query before it is optimised.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from connectors.spark.jvm import JavaFile, analyzed_plan, instance, jvm_session, optimized_plan, query_execution
from connectors.spark.plan_tree import plan_tree
from connectors.spark.transfer import packed_bytes
from pruning.errors import InvalidDataFrameError
from pruning.query.broadcasts import BroadcastSide
from pruning.query.plan import Node

_NO_SIDES: Mapping[int, BroadcastSide] = MappingProxyType({})


def check_is_query(df: DataFrame) -> None:
    """Raises `InvalidDataFrameError` for the result of a command."""
    execution = query_execution(df)
    if str(execution.commandExecuted().nodeName()) == "CommandResult":
        name = str(execution.analyzed().nodeName())
        msg = f"Cannot prune {name}, which has run already: expected a query; enable(spark) prunes what commands read"
        raise InvalidDataFrameError(msg)


_PLAN = JavaFile(
    "connectors.spark",
    "OptimizedPlan",
    others=(
        "PlanVisitor",
        "SparkFilterRemover",
        "AnalyzedPlan",
        "NodeLines",
        "ExpressionTraits",
        "RddRows",
        "NodeReplacer",
        "LeafFacts",
        "FileScan",
        "IndexCalls",
        "PackedText",
    ),
)


@dataclass(frozen=True, slots=True, eq=False)
class SparkPlan:
    """The optimised plan of a query: `root` as a tree, and the JVM's own object of each of its nodes.

    `used` are the ids of the columns that some expression or the result uses, `partitions` the ids of those by which
    Spark itself prunes partitions. `streams` are the places of the scans of files that hold the rows of a micro-batch.
    """

    spark: SparkSession
    root: Node
    used: frozenset[int]
    partitions: frozenset[int]
    _first: Mapping[int, int]
    _java: Any
    streams: frozenset[int] = frozenset()
    _given: dict[int, Any] = field(default_factory=dict)

    @staticmethod
    def of(df: DataFrame, optimized: Any = None) -> SparkPlan:
        """The plan of a DataFrame; `optimized` is its optimised JVM plan, if the caller has it.

        `UnreadablePlanError` if the plan is not a single tree.
        """
        return SparkPlan.read(
            df.sparkSession, analyzed_plan(df), optimized_plan(df) if optimized is None else optimized
        )

    @staticmethod
    def read(spark: SparkSession, analyzed: Any, optimized: Any, *, is_stream: bool = False) -> SparkPlan:
        """The plan of a query, from the JVM's plans before optimisation, if it is at hand, and after it."""
        java = instance(spark, _PLAN, analyzed, optimized)
        partitions, text, described = packed_bytes(java).decode().split("\n", 2)
        root, used = plan_tree(text, described)
        first = {node.id: node.subtree_start for node in root.walk()}
        pruned_by = frozenset(map(int, partitions.split()))
        streams = frozenset(map(int, str(java.streams()).split())) if is_stream else frozenset[int]()
        return SparkPlan(spark, root, used, pruned_by, first, java, streams)

    def node(self, node: Node) -> Any:
        """The JVM's object of a node."""
        return self._java.node(node.id)

    def facts(
        self, leaves_and_filters: Iterable[Node], alike: Iterable[Node], formats: Iterable[str], snapshot_calls: str
    ) -> str:
        """The text of `OptimizedPlan.facts` in Java, in one call."""
        leaves, nodes = (" ".join(str(node.id) for node in each) for each in (leaves_and_filters, alike))
        return str(self._java.facts(leaves, nodes, " ".join(formats), snapshot_calls))

    def nbytes(self, node: Node) -> int:
        """The bytes of the rows of a node by Spark's own estimate."""
        return self.nbytes_of([node])[0]

    def nbytes_of(self, nodes: Iterable[Node]) -> list[int]:
        """The bytes of the rows of each node by Spark's own estimate, in one call."""
        return [int(each) for each in str(self._java.bytes(" ".join(str(node.id) for node in nodes))).split()]

    def column(self, node: Node, place: int) -> Any:
        """The JVM's attribute of the column at a place of a node's output."""
        return self._java.column(node.id, place)

    def forget(self) -> None:
        """Drops the replacements that the JVM was given, which may hold the rows of builds."""
        if self._given:
            self._given.clear()
            self._java.forget()

    def replaced(self, below: Node, others: Mapping[int, Any], sides: Mapping[int, BroadcastSide] = _NO_SIDES) -> Any:
        """The JVM's plan of `below` with the nodes at the places in `others` replaced.

        Joins at the places in `sides` get a broadcast hint, unless the query has one itself.
        """
        inside = {at: other for at, other in others.items() if below.contains(at)}
        # Replacing a node also removes all nodes below it.
        gone = {at for top in inside for at in range(self._first[top], top)}
        inside = {at: other for at, other in inside.items() if at not in gone}
        remaining = {at for at in sides if below.contains(at)} - gone - inside.keys()
        chosen = {at: sides[at] for at in remaining}
        if not inside and not chosen:
            return self.node(below)
        hints = " ".join(f"{at} {side.value}" for at, side in chosen.items())
        for at, other in inside.items():
            # A replacement stays the same object while levels of builds are planned, so it is handed over once.
            if self._given.get(at) is not other:
                self._java.give(at, other)
                self._given[at] = other
        return self._java.replaced(below.subtree_start, below.id, " ".join(map(str, inside)), hints)


_PRECHECK = JavaFile("connectors.spark", "Precheck", others=("FileScan", "IndexCalls"))


def is_candidate(spark: SparkSession, plan: Any, least_bytes: int, size_calls: str | None, *, top_k: bool) -> bool:
    """False if a query has no join (nor, with `top_k`, a limit over an order), or no scan of `least_bytes`.

    `size_calls` are the size calls of all connectors for an analysed plan, None for an optimised one.
    """
    return bool(instance(spark, _PRECHECK, plan, least_bytes, top_k, size_calls).isCandidate())


_LEAF = JavaFile("connectors.spark", "LeafColumns", others=("SameColumns",))
_NEW = JavaFile("connectors.spark", "NewScanColumns", others=("SameColumns",))
_STREAM = JavaFile("connectors.spark", "StreamLeaves", others=("PlanVisitor",))
_OPTIMIZER = JavaFile("connectors.spark", "StreamOptimizer", others=("OwnQueries",))
_SAME = JavaFile("connectors.spark", "SameColumns")
_BLOOMS = JavaFile("connectors.spark", "CoveredBlooms", others=("PlanVisitor", "SparkFilterRemover", "AnalyzedPlan"))


def with_columns_of_leaf(spark: SparkSession, plan: Any, leaf: Any) -> Any:
    """A JVM plan with the columns of the leaf in whose place it stands, in their order and with their ids."""
    return instance(spark, _LEAF, leaf, plan).plan()


def with_new_scan_columns(spark: SparkSession, plan: Any, scans: Iterable[Any]) -> tuple[Any, list[frozenset[str]]]:
    """A JVM plan with new column ids for scans, parts of it, below unchanged ids at its top; and the ids of each scan.

    No ids of a scan that does not read files.
    """
    renewed = instance(spark, _NEW, plan)
    for each in scans:
        renewed.add(each)
    made = renewed.rewritten()
    return made, [frozenset(line.split()) for line in str(renewed.text()).split("\n")]


def with_columns_of(spark: SparkSession, plan: Any, known: Any) -> Any:
    """A JVM plan with the column ids of the plan that it was made of, which rules of Spark may have changed."""
    return instance(spark, _SAME, plan, known).plan()


def without_blooms(spark: SparkSession, plan: Any, tested: Collection[int]) -> Any:
    """An optimised JVM plan without Spark's runtime bloom filters of columns that other filters test, by their ids."""
    return instance(spark, _BLOOMS, " ".join(map(str, tested))).without(plan) if tested else plan


def as_batch(spark: SparkSession, plan: Any) -> Any:
    """A JVM plan that reads the files of a micro-batch as those of a table, so that it runs outside of its stream."""
    return instance(spark, _STREAM, plan).asBatch()


def optimized_stream(spark: SparkSession, plan: Any, stock: Any) -> Any:
    """A JVM plan of a micro-batch, optimised again; no condition on a table is copied to the rows of the stream.

    `stock` is the plan that Spark has made without pruning.
    """
    return instance(spark, _OPTIMIZER, jvm_session(spark), plan, stock).optimized()
