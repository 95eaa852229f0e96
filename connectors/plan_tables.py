"""The tables that an optimised plan reads, each just as the plan has pinned it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from connectors.base import Table
from connectors.build_errors import one_line
from connectors.delta import DeltaSource
from connectors.delta_files import FileCatalog
from connectors.delta_log import snapshot_of
from connectors.fresh_columns import fresh_columns
from connectors.kept_files import KEPT_INDEX, PREPARED_INDEX, paths_left, snapshot_in
from connectors.parquet import ParquetSource, parquet_source
from connectors.session_cache import cache_of
from connectors.spark_files import frame_of, spark_files
from pruning.options import PruningOptions
from pruning.reasons import Reason, ReasonCode

_TROUBLE = (Py4JError, PySparkException, ValueError, TypeError, LookupError)
_DELTA_INDEXES = (KEPT_INDEX, PREPARED_INDEX)

OpenedTable: TypeAlias = DeltaSource | ParquetSource


@dataclass(frozen=True, slots=True, eq=False)
class PlanTable:
    """A table of a plan, and the way back from a DataFrame that reads it to the ids that the plan knows."""

    table: Table
    _fresh: Any
    _index: Any = None

    def listed(self, spark: SparkSession) -> pa.Array | None:
        """The paths in Delta's log of the files that the query's own conditions leave; None where all are."""
        return None if self._index is None else paths_left(spark, self._index)

    def renamed(self, df: DataFrame) -> Any:
        """The JVM's plan of `df` under the ids of the leaf that it stands for."""
        return self._fresh.renamed(df._jdf.queryExecution().analyzed())  # noqa: SLF001 - plans have no public door


def table_of(spark: SparkSession, leaf: Any, options: PruningOptions) -> OpenedTable | Reason:
    """The table behind a leaf."""
    name = _name(leaf)
    try:
        df, index = frame_of(spark, leaf), leaf.relation().location()
        kind = index.getClass()
        if str(kind.getName()) in _DELTA_INDEXES:
            snapshot = snapshot_of(spark, snapshot_in(index), index.path())
            cache = cache_of(spark)
            return DeltaSource(name, df, snapshot, cache.version(snapshot.identity, FileCatalog), cache.footers)
        files = spark_files(df)
        if files is None:
            return Reason(ReasonCode.NOT_FILES, name, str(kind.getSimpleName()))
        return parquet_source(spark, name, df, files, options.max_footers)
    except _TROUBLE as error:
        return Reason(ReasonCode.STATISTICS_FAILED, name, one_line(error))


def scan_of(spark: SparkSession, leaf: Any, table: OpenedTable) -> PlanTable | Reason:
    """A table that `table_of` has opened, for the scan at one leaf."""
    try:
        fresh, index = fresh_columns(spark, leaf), leaf.relation().location()
        own = table.with_frame(frame_of(spark, fresh.leaf()))
        return PlanTable(own, fresh, index if str(index.getClass().getName()) in _DELTA_INDEXES else None)
    except _TROUBLE as error:
        return Reason(ReasonCode.STATISTICS_FAILED, table.name, one_line(error))


def _name(leaf: Any) -> str:
    """The table's name in the catalog, else the last part of its path."""
    catalog = leaf.catalogTable()
    if catalog.isDefined():
        return str(catalog.get().identifier().unquotedString())
    roots = leaf.relation().location().rootPaths()
    return str(roots.head().getName()) if roots.size() else "files"
