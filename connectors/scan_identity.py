"""What tells the scan of one DataFrame from every other scan of the session (classic sessions only)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from connectors.session_cache import cache_of
from connectors.status_store import last_execution

_ATTRIBUTE = re.compile(r"#(\d+)")
# The listing of a read, by enough of its digest; Spark cuts long descriptions short.
_LISTING = re.compile(r"\.scanprune-[0-9a-f]{16}")
_WITHOUT_COLUMNS = re.compile(r"FileScan \w+ [^\[\]]*\[\] ")


@dataclass(frozen=True, slots=True)
class ScanIdentity:
    """What tells the scan of one DataFrame from every other: the ids of its relation's attributes.

    - `reads_nothing`: the plan keeps no file, so Spark drops the scan, and no attribute of it is left to find
    - `listing`: a name that only scans of the same kept files have, by which to find one that needs no column, such
      as a plain count, unless several reads of the session keep these; empty where there is none
    """

    attributes: frozenset[str]
    after_execution: int
    reads_nothing: bool
    listing: str = ""

    def is_in(self, description: str) -> bool:
        """True for a scan, as a plan describes it, that reads a column of this one."""
        return not self.attributes.isdisjoint(_ATTRIBUTE.findall(description))

    def is_count(self, description: str) -> bool:
        """True for a scan of this one's files that reads no column of them, of which no attribute is left."""
        is_bare = _WITHOUT_COLUMNS.match(description) and not _ATTRIBUTE.search(description)
        return bool(is_bare and self.listing and self.listing in description)

    def is_alone(self, spark: SparkSession) -> bool:
        """True where no other read of the session keeps the same files."""
        return cache_of(spark).listings[self.listing] == 1


def identity_of(df: DataFrame, *, reads_nothing: bool = False) -> ScanIdentity:
    """The identity of the table that `df` reads; executions up to here are not its actions."""
    found = _without_semi_joins(df._jdf.queryExecution().analyzed()).collectLeaves()  # noqa: SLF001 - no other door
    leaves = [found.apply(index) for index in range(found.size())]
    attributes = {match for leaf in leaves for match in _ATTRIBUTE.findall(leaf.output().mkString(" "))}
    listing = _listing(leaves[0]) if len(leaves) == 1 else ""
    cache_of(df.sparkSession).listings[listing] += 1
    return ScanIdentity(frozenset(attributes), last_execution(df.sparkSession), reads_nothing, listing)


def reads(df: DataFrame, identity: ScanIdentity) -> bool:
    """True where the plan of `df`, as its last execution changed it, still reads the scan."""
    plan = df._jdf.queryExecution().executedPlan()  # noqa: SLF001 - PySpark shows no plan otherwise
    if plan.nodeName() == "AdaptiveSparkPlan":
        plan = plan.executedPlan()
    lines = [line for line in str(plan).splitlines() if "FileScan" in line]
    return any(identity.is_in(line) for line in lines)


def _without_semi_joins(plan: Any) -> Any:
    """The part of a plan below the semi joins at its top, whose other sides read keys."""
    node = plan
    # A name may be that of a view, whose joins are its own.
    while node.nodeName() != "SubqueryAlias" and node.children().size():
        if node.children().size() > 1 and not (node.nodeName() == "Join" and str(node.joinType()) == "LeftSemi"):
            return node
        node = node.children().head()
    return node


def _listing(leaf: Any) -> str:
    """The name of the listing of a relation that keeps only some files."""
    if leaf.getClass().getSimpleName() != "LogicalRelation":
        return ""
    relation = leaf.relation()
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        return ""
    match = _LISTING.search(relation.location().rootPaths().mkString(" "))
    return match[0] if match else ""
