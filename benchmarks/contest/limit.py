"""The row-group limit of a query: the bytes of all row groups with at least one row that passes every filter.

Filters are the conditions directly above a scan and the exact keys of the builds that `prune()` runs when size limits
for scans and builds are lifted. Every row is tested exactly by all filters, so neither statistics nor compaction
matter. A join that `prune()` rejects for other reasons is not a filter here either. Bytes are those of the needed
column chunks, without footers, logs and other reads of a process. Tables have no deletion vectors and no column
mapping.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from connectors.keys.inputs import key_arrays
from connectors.pipeline.query_run import QueryRun
from connectors.registry import PlanTable
from connectors.scan.decision import plan_column
from connectors.scan.spark_scan import RowKeys, keys_frame, semi_joined
from connectors.spark.jvm import frame_of
from connectors.spark.plan_reader import SparkPlan
from pruning.keys.summary import KeySummary
from pruning.options import PruningOptions
from pruning.query.key_origins import filters_above
from pruning.query.plan import Relation
from pruning.reasons import Reason, ReasonCode
from pruning.scan.statistics import Containers

# No size limits for scans and builds, no row filters and no changed join strategies.
OPEN = PruningOptions(always=True, broadcast_strategy="NONE").with_limits(max_footers=100_000)
_FAILED = frozenset({ReasonCode.BUILD_FAILED, ReasonCode.BUILD_TIMED_OUT})
_SCHEME = re.compile("^[A-Za-z][A-Za-z0-9+.-]*:/+")


def limit_bytes(df: DataFrame) -> int:
    """Bytes of a query's scans at the row-group limit; a row group that scans of equal columns share counts once.

    Raises `ValueError` if a table of the query has no footers, or a build failed.
    """
    query = QueryRun.of(SparkPlan.of(df), OPEN)
    query.run()
    if failed := [each for each in query.planner.reasons if each.code in _FAILED]:
        raise ValueError(f"Cannot tell the limit without all keys: {failed[0]}")
    # Spark may reuse equal scans, so a lower limit counts them once.
    found = {key: size for relation in query.planner.graph.relations for key, size in _chunks(query, relation)}
    return sum(found.values())


def _chunks(query: QueryRun, relation: Relation) -> Iterator[tuple[tuple[Any, ...], int]]:
    """Each row group that a scan has to open, with the bytes of the scan's columns in it."""
    plan = query.metadata.plan_table(relation)
    if isinstance(plan, Reason):
        raise ValueError(f"Cannot tell how a scan of {', '.join(relation.names)} is stored: {plan}")  # noqa: TRY004
    needed, files = query.metadata.needed(relation), plan.table.files([])
    groups = plan.table.row_groups(np.arange(len(files)), [], needed)
    for at in _opened(_survivors(query, relation, plan), files, groups):
        yield (id(query.metadata.table(relation)), needed, at), int(groups.sizes[at])


def _survivors(query: QueryRun, relation: Relation, plan: PlanTable) -> DataFrame:
    """The rows of a scan that pass keys and conditions, read as Parquet, because a Delta scan has no row positions."""
    table = plan.table
    reader = query.plan.spark.read.schema(table.schema)
    if table.partition_columns:
        reader = reader.option("basePath", _folder(table.files([]).names[0], len(table.partition_columns)))
    df = reader.parquet(*table.files([]).names)
    for columns, summary in _keys(query, relation):
        frame, is_small = keys_frame(query.plan.spark, summary.types, key_arrays(summary))
        df = semi_joined(df, RowKeys(tuple(plan_column(table, relation, each) for each in columns), frame, is_small))
    above = filters_above(query.plan.root)[relation.id]
    renamed = plan.plan_of(df)
    if not above:
        return frame_of(query.plan.spark, renamed)
    return frame_of(query.plan.spark, query.plan.replaced(above[0], {**query.replacements, relation.id: renamed}))


def _keys(query: QueryRun, relation: Relation) -> Iterator[tuple[tuple[int, ...], KeySummary]]:
    """The exact keys of a scan by its columns; ranges from metadata are not keys of a build and are left out."""
    single = {(column,): summaries for column, summaries in query.planner.keys.get(relation.id, {}).items()}
    tuples = query.planner.tuples.get(relation.id, {})
    for columns, summaries in (*single.items(), *tuples.items()):
        yield from ((columns, each) for each in summaries if each.exact)


def _folder(file: str, levels: int) -> str:
    """The folder of a table that is `levels` folders above the folder of one of its files."""
    return file.rsplit("/", levels + 1)[0]


def _opened(rows: DataFrame, files: Containers, groups: Containers) -> list[int]:
    """The row groups that contain `rows`, as positions in `groups`."""
    if groups.parents is None or not len(groups):
        return []
    begins = np.concatenate([_begins(groups.rows[groups.parents == at]) for at in np.unique(groups.parents)])
    places = pa.table(
        {
            "path": [_SCHEME.sub("/", files.names[at]) for at in groups.parents.tolist()],
            "first": begins,
            "end": begins + groups.rows,
            "at": np.arange(len(groups)),
        }
    )
    places_frame = rows.sparkSession.createDataFrame(places).hint("broadcast")
    name = F.regexp_replace("_metadata.file_path", _SCHEME.pattern, "/").alias("path")
    found = rows.select(name, F.col("_metadata.row_index").alias("row"))
    inside = found.join(places_frame, on="path", how="left").where("at IS NULL OR first <= row AND row < end")
    opened = [row[0] for row in inside.select("at").distinct().collect()]
    if None in opened:
        raise ValueError("Cannot tell in which row groups rows lie: Spark names their files otherwise than the table")
    return opened


def _begins(rows: Any) -> Any:
    """The number of the first row of each row group of a file."""
    return np.cumsum(rows) - rows
