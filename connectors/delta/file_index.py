"""File lists for Delta scans, so that Delta does not run a listing job for each scan and each pushed predicate.

A file index in the JVM holds the files of a pinned version and replaces Delta's own index in plans.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from connectors.base import ScannedVersion
from connectors.spark.jvm import JavaFile, analyzed_plan, instance, jvm_frame, jvm_session
from connectors.spark.session_state import state_of
from connectors.spark.transfer import JvmList
from pruning.limits import LIMITS, Limits
from pruning.reasons import Reason, ReasonCode

logger = logging.getLogger("scanprune")

PRUNED_INDEX = "PrunedFileIndex"
PREPARED_INDEX = "org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex"
_PREPARED = (PREPARED_INDEX.rpartition(".")[2], PRUNED_INDEX)
_UNPREPARED = "TahoeLogFileIndex"
# The index of files that a command chose.
CHOSEN_INDEX = "TahoeBatchFileIndex"
SNAPSHOT_CALLS = (f"{_PREPARED[0]}.preparedScan.scannedSnapshot", f"{PRUNED_INDEX}.scannedSnapshot")
SIZE_CALLS = (f"{_UNPREPARED}.snapshotAtAnalysis.sizeInBytesIfKnown",)
_ADD_FILE = "org.apache.spark.sql.delta.actions.AddFile"
# While a plan is optimised, this rule of Delta lists the files of each scan by a separate job, one after the other.
PREPARING_RULE = "org.apache.spark.sql.delta.stats.PrepareDeltaScan"
_FINDER = JavaFile("connectors.delta", "DeltaFinder")
_LISTS = JavaFile(
    "connectors.delta",
    "DeltaFileLists",
    others=(
        *("EarlyLists", "ListedScans", "PinnedScans", "ListingPass", "KnownScanGenerator", "KnownScans"),
        *("ScanKey", "ListingConfs", "LeafSnapshots", PRUNED_INDEX, "SnapshotText", "MergeTarget"),
        *("connectors.spark.DescribedLeaves", "connectors.spark.DescribedRelation", "connectors.spark.FileScan"),
        "connectors.spark.PlanCopy",
    ),
)
SKIPPING_CONF = "spark.databricks.delta.stats.skipping"


class _FileLists:
    """The Java object of a session that has the file lists of plans; None before the first Delta table."""

    java: Any = None


def plan_early(spark: SparkSession) -> None:
    """Lets an enabled session list the files of its scans from memory, if Delta prepares its plans."""
    rule = instance(spark, _FINDER).rule(jvm_session(spark), PREPARING_RULE)
    if rule is not None:
        _file_lists(spark, rule)


def early_query(df: DataFrame) -> DataFrame | None:
    """A copy of a query whose scans get their files without a job for each; None if Spark has listed them already.

    Files are listed as by Delta, for all scans at once, and lists are remembered by version and conditions.
    """
    lists = state_of(df.sparkSession).slot(_FileLists).java or _first_lists(df)
    frame = None if lists is None else lists.early(jvm_frame(df))
    return None if frame is None else DataFrame(frame, df.sparkSession)


def _first_lists(df: DataFrame) -> Any:
    """The file lists of a session that has none; None if the query reads no Delta table."""
    index = instance(df.sparkSession, _FINDER).index(analyzed_plan(df), _UNPREPARED)
    return None if index is None else _file_lists(df.sparkSession, index)


def _file_lists(spark: SparkSession, delta: Any, limits: Limits = LIMITS) -> Any:
    """The session's `DeltaFileLists`; `delta` is any object of Delta.

    The first call makes them, and calls with other limits share them.
    """
    slot = state_of(spark).slot(_FileLists)
    if slot.java is None:
        slot.java = instance(spark, _LISTS, jvm_session(spark), limits.listed_files, beside=delta)
    return slot.java


def merge_target(spark: SparkSession, plan: Any) -> Any:
    """The JVM's `MergeTarget` of an optimised plan; None if no command chose the files of a scan in it."""
    index = instance(spark, _FINDER).index(plan, CHOSEN_INDEX)
    return None if index is None else _file_lists(spark, index).mergeTarget(plan)


def pinned_plan(spark: SparkSession, plan: Any) -> Any:
    """An optimised plan whose scans Delta has not prepared, with each pinned to one version; None if there is none."""
    index = instance(spark, _FINDER).index(plan, _UNPREPARED)
    return None if index is None else _file_lists(spark, index).pinned(plan)


def over_files(df: DataFrame, index: Any, paths: pa.Array | pa.ChunkedArray) -> DataFrame | None:
    """A plain read of one Delta table, restricted to the files at `paths` of the log in an index, its own if None.

    Files that the query's own conditions have excluded from the index are not read. The result is None for an index
    that does not hold one version.
    """
    spark = df.sparkSession
    # A read that is not part of a plan holds no version, and the index of a plan has made the lists.
    lists = state_of(spark).slot(_FileLists).java if index is None else _file_lists(spark, index)
    frame = None if lists is None else lists.restricted(jvm_frame(df), index, "\n".join(paths.to_pylist()))
    return None if frame is None else DataFrame(frame, spark)


def scanned_snapshot(spark: SparkSession, leaf: Any) -> Any:
    """The JVM's description of the version that a leaf of a plan reads; None if its index does not hold one version."""
    lists = state_of(spark).slot(_FileLists).java or _file_lists(spark, leaf.relation().location())
    return lists.scanned(leaf)


def analyzed_snapshot(spark: SparkSession, index: Any) -> Any:
    """The JVM's description of the version that an index of a whole table reads."""
    return _file_lists(spark, index).analyzed(index)


def paths_left(spark: SparkSession, index: Any) -> pa.Array | None:
    """The paths in Delta's log of the files that an index of a plan lists; None if it lists all files of the table."""
    if index.getClass().getName() == PRUNED_INDEX:
        files = index.files()
    else:
        scan = index.preparedScan()
        if scan.allFilters().isEmpty():
            return None
        files = scan.files()
    return pa.array(JvmList.of_scala(spark, files).texts(f"{_ADD_FILE}.path"), pa.string())


def snapshots(spark: SparkSession, leaves: Sequence[Any]) -> Any:
    """The table, version and files that each leaf of a plan reads, as a list of the JVM; see `LeafSnapshots.java`."""
    lists = state_of(spark).slot(_FileLists).java or _file_lists(spark, leaves[0].relation().location())
    return lists.snapshots(leaves)


def register_conditions(spark: SparkSession, plan: Any) -> None:
    """Registers the conditions on each scan of listed files in an optimised plan, so that Delta does not list again."""
    lists = state_of(spark).slot(_FileLists).java
    if lists is not None:
        lists.registerConditions(plan)


def why_not_pinned(spark: SparkSession, name: str, index: Any) -> Reason:
    """The reason why an index of an optimised plan does not hold one version.

    Delta prepares scans only by its rule for data skipping. A scan that is not prepared reads the newest version each
    time that it is planned.
    """
    kind = str(index.getClass().getSimpleName())
    if kind != _UNPREPARED:
        return Reason(ReasonCode.NOT_FILES, name, kind)
    if not is_skipping(spark):
        return Reason(ReasonCode.SKIPPING_DISABLED, name, f"{SKIPPING_CONF} is false, so Delta pins no version")
    return Reason(ReasonCode.SKIPPING_DISABLED, name, "the plan was optimised without it, so Delta pinned no version")


def is_skipping(spark: SparkSession) -> bool:
    """True if Delta skips files by statistics in this session."""
    return str(spark.conf.get(SKIPPING_CONF, "true")).lower() != "false"


def scanned_version(index: Any) -> ScannedVersion | None:
    """The version that an index of an executed plan read; None for an index that is not Delta's."""
    kind = str(index.getClass().getSimpleName())
    if kind not in {*_PREPARED, _UNPREPARED}:
        return None
    pinned = index.versionScanned() if kind in _PREPARED else index.versionToUse()
    return ScannedVersion(str(index.path().toString()), int(index.version()), is_pinned=bool(pinned.isDefined()))
