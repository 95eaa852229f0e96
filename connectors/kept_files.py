"""Delta scans of files that are known, which Delta need not list by a job for each scan and each predicate of ours."""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from connectors.compiled import instance
from connectors.jvm_lists import JvmList
from connectors.kept_index import CLASS, SOURCE
from connectors.session_cache import cache_of
from connectors.spark_files import frame_of

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
    cache = cache_of(spark)
    if cache.kept_files is None:
        cache.kept_files = instance(spark, CLASS, SOURCE, beside=index)
    return cache.kept_files


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
    kept = cache_of(spark).kept_files
    if kept is not None:
        kept.tell(plan)
