"""From what a caller calls a table to the connector that reads it.

The tables that an optimised plan reads, each just as the plan has pinned it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from connectors.base import Table
from connectors.delta.file_index import PREPARED_INDEX, PRUNED_INDEX, paths_left, snapshot_in
from connectors.delta.log import FileCatalog, snapshot_of
from connectors.delta.table import DeltaSource, open_delta
from connectors.jobs.progress import one_line
from connectors.parquet.listing import spark_files
from connectors.parquet.row_groups import FooterCache
from connectors.parquet.table import ParquetSource, open_parquet, parquet_source
from connectors.spark.files import exists, is_name
from connectors.spark.jvm import analyzed_plan, frame_of, has_jvm
from connectors.spark.plan_reader import fresh_columns
from connectors.spark.session_state import state_of
from pruning.errors import InvalidOptionError, SourceNotFoundError
from pruning.options import PruningOptions
from pruning.reasons import Reason, ReasonCode

FORMATS = ("delta", "parquet")
_LOG = "_delta_log"
_VIEW = "view"


def open_table(  # noqa: PLR0913 - keywords
    spark: SparkSession,
    source: str,
    *,
    format_: str | None,
    version: int | None,
    timestamp: str | None,
    max_footers: int,
) -> Table:
    """The table called `source`, a path or a catalog name, pinned to one version.

    `SourceNotFoundError` where there is none, `InvalidOptionError` for a format or version it cannot have.
    """
    found = format_.lower() if format_ else _format_of(spark, source)
    if version is not None and timestamp is not None:
        msg = f"Cannot read both version {version} and timestamp {timestamp!r} of {source!r}: give one of them"
        raise InvalidOptionError(msg)
    match found:
        case "delta":
            return open_delta(spark, source, version=version, timestamp=timestamp)
        case "parquet" if version is None and timestamp is None:
            if format_:
                _check_no_log(spark, source)
            return open_parquet(spark, source, max_footers=max_footers, cache=state_of(spark).slot(FooterCache))
        case "parquet":
            msg = f"Cannot read an older version of {source!r}: only Delta tables have versions, and this is Parquet"
            raise InvalidOptionError(msg)
        case _ if format_:
            msg = f"Cannot read {source!r} as {format_!r}: expected one of {', '.join(FORMATS)}"
            raise InvalidOptionError(msg)
        case other:
            kind = "a view" if other == _VIEW else f"a table of {other!r}"
            msg = f"Cannot prune {source!r}: found {kind}, expected a table of {' or '.join(FORMATS)}; name one"
            raise InvalidOptionError(msg)


def _format_of(spark: SparkSession, source: str) -> str:
    if is_name(spark, source):
        return _provider_of(spark, source)
    return "delta" if _has_log(spark, source) else "parquet"


def _check_no_log(spark: SparkSession, source: str) -> None:
    """Raises for a Delta table: Parquet alone does not know which of its files count."""
    if not is_name(spark, source) and _has_log(spark, source):
        msg = f"Cannot read {source!r} as 'parquet': it is a Delta table, leave `format` out"
        raise InvalidOptionError(msg)


def _has_log(spark: SparkSession, source: str) -> bool:
    log = source.rstrip("/") + "/" + _LOG
    if not has_jvm(spark):
        # A remote session's files are looked at from here, where they are most likely the same.
        return Path(source.removeprefix("file:"), _LOG).is_dir()
    try:
        return exists(spark, log)
    except OSError as error:
        msg = f"Cannot look at {source!r}: {str(error).splitlines()[0]}"
        raise SourceNotFoundError(msg) from error


def _provider_of(spark: SparkSession, name: str) -> str:
    try:
        # PySpark writes a long line to standard error where a query names no table.
        if not spark.catalog.tableExists(name):
            raise _no_table(name)
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    except PySparkException as error:
        raise _no_table(name) from error
    providers = [str(row["data_type"]).lower() for row in rows if row["col_name"] == "Provider"]
    # A column of that name comes first.
    return providers[-1] if providers else _VIEW


def _no_table(name: str) -> SourceNotFoundError:
    return SourceNotFoundError(
        f"No table {name!r} in the catalog, and no such path: name a table, or a path that holds a slash"
    )


_TROUBLE = (Py4JError, PySparkException, ValueError, TypeError, LookupError)
_DELTA_INDEXES = (PRUNED_INDEX, PREPARED_INDEX)

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
        return self._fresh.renamed(analyzed_plan(df))


def table_of(spark: SparkSession, leaf: Any, options: PruningOptions) -> OpenedTable | Reason:
    """The table behind a leaf."""
    name = _name(leaf)
    try:
        df, index = frame_of(spark, leaf), leaf.relation().location()
        kind = index.getClass()
        if str(kind.getName()) in _DELTA_INDEXES:
            snapshot = snapshot_of(spark, snapshot_in(index), index.path())
            state = state_of(spark)
            catalog = state.version(snapshot.identity, FileCatalog)
            return DeltaSource(name, df, snapshot, catalog, state.slot(FooterCache))
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
