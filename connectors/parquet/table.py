"""The Parquet connector: one file, a directory, hive partitions, a glob, or a Parquet table of the catalog."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from connectors.arrow_values import coded
from connectors.base import Connector, OpaqueTable, Table
from connectors.columns import Column
from connectors.parquet.listing import SparkFiles, listed_files, spark_files, with_new_column_ids
from connectors.parquet.pushdown import NO_LIMITS, VECTORISED_CONFS, ReaderLimits
from connectors.parquet.row_groups import (
    FooterCache,
    FooterColumn,
    read_row_groups,
)
from connectors.spark.files import Storage, exists, is_name, storage_of
from connectors.spark.jvm import error_kind, frame_of, has_jvm, java_message
from connectors.spark.plan_facts import leaf_fingerprints
from connectors.spark.session_state import state_of
from connectors.spark.versions import version_refusal
from pruning.errors import SourceNotFoundError
from pruning.limits import LIMITS, Limits
from pruning.reasons import Reason, ReasonCode
from pruning.scan.skipping import fold_column, fold_rows, parents_of
from pruning.scan.statistics import UNKNOWN, ColumnStatistics, ContainerKind, Containers
from pruning.values.byte_strings import IntArray
from pruning.values.ranges import BoolArray, RangeSet
from pruning.values.types import ValueType

_CASE_CONF = "spark.sql.caseSensitive"
_FIELD_ID_CONF = "spark.sql.parquet.fieldId.read.enabled"
_DEFAULT_METADATA = "EXISTS_DEFAULT"
_FIELD_ID_METADATA = "parquet.field.id"
_NO_ID = -1
_NOT_FILES = "Spark reads it as something else than Parquet files"


def open_parquet(
    spark: SparkSession, source: str, *, limits: Limits = LIMITS, cache: FooterCache | None = None
) -> Table:
    """The Parquet files that Spark finds under `source` at this moment, a path or a name of the catalog.

    At most `limits.max_footers` footers are read at a time, and cached in `cache`. `SourceNotFoundError` if there is
    nothing to read. If Spark does not name its files, the table is read whole, and `problems` says why.
    """
    df = parquet_frame(spark, source)
    refusal = version_refusal(spark) if has_jvm(spark) else Reason(ReasonCode.NO_JVM, source)
    if refusal is not None:
        return OpaqueTable(source, PARQUET, df, (refusal,))
    try:
        df = with_new_column_ids(df)
        files, detail = spark_files(df), _NOT_FILES
    except (Py4JError, PySparkException) as error:
        files, detail = None, error_kind(error)
    if files is None:
        return OpaqueTable(source, PARQUET, df, (Reason(ReasonCode.STATISTICS_FAILED, source, detail),))
    return parquet_table(spark, source, df, files, limits, FooterCache() if cache is None else cache)


def parquet_table(  # noqa: PLR0913, PLR0917 - what a source is made of
    spark: SparkSession,
    name: str,
    df: DataFrame,
    files: SparkFiles,
    limits: Limits,
    cache: FooterCache | None = None,
) -> ParquetTable:
    """The table that `df` reads, whose `files` are known; footers are cached in `cache`, the session's if None."""
    footers = state_of(spark).slot(FooterCache) if cache is None else cache
    return ParquetTable(name, df, files, _Footers(storage_of(spark), footers, limits))


class ParquetConnector(Connector):
    """Parquet files, in directories, hive partitions and patterns: statistics from footers, files by name."""

    name = "parquet"
    file_formats = ("ParquetFileFormat",)
    skipping_conf = "spark.sql.parquet.filterPushdown"
    vectorised_confs = VECTORISED_CONFS
    settled_indexes = ("PinnedFileIndex",)

    def claims_path(self, spark: SparkSession, path: str) -> bool:  # noqa: ARG002 - the last one that is asked
        """True: any path may hold Parquet files."""
        return True

    def open(
        self,
        spark: SparkSession,
        source: str,
        *,
        version: int | None,  # noqa: ARG002 - files have none
        timestamp: str | None,  # noqa: ARG002 - the same
        limits: Limits,
    ) -> Table:
        """The files that Spark finds at this moment."""
        return open_parquet(spark, source, limits=limits, cache=state_of(spark).slot(FooterCache))

    def table_of(self, spark: SparkSession, name: str, leaf: Any, limits: Limits) -> Table | Reason:
        """The files of a leaf, listed now if Spark has not listed them yet."""
        df = frame_of(spark, leaf)
        files = spark_files(df)
        if files is None:
            return Reason(ReasonCode.NOT_FILES, name, str(leaf.relation().location().getClass().getSimpleName()))
        return parquet_table(spark, name, df, files, limits)

    def fingerprints(self, spark: SparkSession, leaves: Sequence[Any]) -> Sequence[str | Reason]:
        """Fingerprints by the listed files of a leaf, if each is unchanged and was written a minute ago or more."""
        return leaf_fingerprints(spark, leaves, listed_files(spark, leaves))

    def is_compared_whole(self, type_: ValueType) -> bool:
        """True for all types but decimals, whose literals the reader cuts to the width of a file's numbers."""
        return type_.name != "decimal"


PARQUET = ParquetConnector()


@dataclass(frozen=True, slots=True)
class _Footers:
    """The reader of footers, their cache, and the limits of reading them."""

    storage: Storage
    cache: FooterCache
    limits: Limits


@dataclass(slots=True, eq=False)
class ParquetTable:
    """A `Table` without versions: Parquet files from one listing by Spark."""

    name: str
    _df: DataFrame
    _files: SparkFiles
    _footers: _Footers
    _problems: dict[Reason, None] = field(default_factory=dict)
    _partition_values: pa.Table | None = None
    _reader_limits: ReaderLimits = NO_LIMITS

    @property
    def connector(self) -> Connector:
        """The connector of Parquet files."""
        return PARQUET

    @property
    def identity(self) -> Hashable:
        """A digest of the paths, sizes and modification times of the files."""
        return self._files.digest

    @property
    def version(self) -> int | None:
        """None: Parquet files have no versions."""
        return None

    @property
    def schema(self) -> StructType:
        """Spark's schema of the files."""
        return self._df.schema

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Top-level columns whose values come from directory names."""
        return self._files.partition_columns

    @property
    def accepts_file_list(self) -> bool:
        """True: `read` restricts itself to kept files."""
        return True

    @property
    def problems(self) -> tuple[Reason, ...]:
        """Reasons why some metadata could not be read so far."""
        return tuple(self._problems)

    def files(self, columns: Sequence[Column]) -> Containers:
        """Every file, with the statistics of its row groups taken together."""
        count = len(self._files)
        every = np.arange(count)
        groups = self._groups(every, columns, ())
        rows = fold_rows(groups, count)
        folded = {name: fold_column(each, groups, count) for name, each in groups.columns.items()}
        statistics = {**folded, **self._partition_statistics(columns, every, rows)}
        return Containers(ContainerKind.FILE, self._files.paths, rows, self._files.sizes, statistics)

    def row_groups(self, files: IntArray, columns: Sequence[Column], projected: Sequence[str] | None) -> Containers:
        """The row groups of the files at these indexes; one container for each file if there are too many footers."""
        files = np.asarray(files, np.int64)
        groups = self._groups(files, columns, projected)
        parents = files[parents_of(groups)]
        statistics = {**groups.columns, **self._partition_statistics(columns, parents, groups.rows)}
        return Containers(groups.kind, groups.names, groups.rows, groups.sizes, statistics, parents)

    def read(self, kept: BoolArray | None) -> DataFrame:
        """The DataFrame over the listed files where `kept` is True; over all if None."""
        try:
            return self._files.restricted(np.ones(len(self._files), bool) if kept is None else kept)
        except (Py4JError, PySparkException) as error:
            self._add(Reason(ReasonCode.STATISTICS_FAILED, self.name, error_kind(error)))
            return self._df

    def storage_safe_ranges(self, column: str, ranges: RangeSet) -> RangeSet:
        """`ranges`, widened only for literals that the reader compares wrongly: row-group bounds cover their values.

        No literal is safe if the reader finds columns by id: in each file, it compares the column of the same name.
        """
        if _has_ids(self.schema) and self._is_on(_FIELD_ID_CONF) and not ranges.is_none:
            return RangeSet.all(ranges.type)
        return self._reader_limits.storage_safe_ranges(column, ranges)

    def expect(self, columns: Iterable[Column]) -> None:
        """Does nothing: one read of a footer gives the statistics of all its columns."""

    def with_frame(self, df: DataFrame) -> ParquetTable:
        """These files, read by another DataFrame of the same relation."""
        return ParquetTable(self.name, df, self._files.with_frame(df), self._footers)

    def _add(self, *problems: Reason) -> None:
        self._problems.update(dict.fromkeys(problems))

    def _groups(self, files: IntArray, columns: Sequence[Column], projected: Sequence[str] | None) -> Containers:
        """Row groups with the statistics that footers hold; parents are positions in `files`."""
        limits = self._footers.limits
        if len(files) > limits.max_footers:
            detail = f"{len(files)} files, {limits.max_footers} footers allowed"
            self._add(Reason(ReasonCode.NO_ROW_GROUPS_READ, self.name, detail))
            return self._unread(files)
        by_id, case_sensitive = self._is_on(_FIELD_ID_CONF), self._is_on(_CASE_CONF)
        stored = [
            _stored(self.schema, column, by_id=by_id)
            for column in columns
            if column.type is not None and not column.is_partition
        ]
        result = read_row_groups(
            self._files.refs(files),
            stored,
            projected,
            self._footers.storage,
            self._footers.cache,
            case_sensitive=case_sensitive,
        )
        self._add(*result.problems)
        self._reader_limits = self._reader_limits.union(result.limits)
        return result.containers

    def _unread(self, files: IntArray) -> Containers:
        count = len(files)
        names = [self._files.paths[index] for index in files.tolist()]
        rows = np.full(count, UNKNOWN, np.int64)
        return Containers(ContainerKind.ROW_GROUP, names, rows, self._files.sizes[files], {}, np.arange(count))

    def _is_on(self, conf: str) -> bool:
        return str(self._df.sparkSession.conf.get(conf, "false")).lower() == "true"

    def _partition_statistics(
        self, columns: Sequence[Column], files: IntArray, rows: IntArray
    ) -> dict[str, ColumnStatistics]:
        """The partition values of containers of `rows` rows that lie in `files`."""
        return {
            column.name: self._partition_column(column.path[0], column.type, files, rows)
            for column in columns
            if column.type is not None and column.is_partition
        }

    def _partition_column(self, name: str, type_: ValueType, files: IntArray, rows: IntArray) -> ColumnStatistics:
        if self._partition_values is None:
            self._partition_values = self._files.partitions()
        values = coded(self._partition_values.column(self.partition_columns.index(name)), type_)
        partition = self._files.partition_of[files]
        codes, valid, nan = values.codes.take(partition), values.valid[partition], values.nan[partition]
        nulls = np.where(valid | nan, 0, rows)
        return ColumnStatistics(type_, codes, codes, valid, valid, nulls, nan, is_partition=True)


def _stored(schema: StructType, column: Column, *, by_id: bool) -> FooterColumn:
    fields = tuple(_fields(schema, column.path))
    ids = tuple(int(each.metadata.get(_FIELD_ID_METADATA, _NO_ID)) for each in fields)
    return FooterColumn(
        column.name,
        column.path,
        column.type,
        missing_is_null=not any(_DEFAULT_METADATA in each.metadata for each in fields),
        field_ids=ids if by_id and set(ids) != {_NO_ID} else (),
    )


def _has_ids(type_: DataType) -> bool:
    """True if a field of a struct that is not inside of an array or a map has an id."""
    fields = type_.fields if isinstance(type_, StructType) else ()
    return any(_FIELD_ID_METADATA in each.metadata or _has_ids(each.dataType) for each in fields)


def _fields(schema: StructType, path: Sequence[str]) -> Iterator[StructField]:
    here: DataType = schema
    for part in path:
        if not isinstance(here, StructType):
            return
        yield here[part]
        here = here[part].dataType


_GLOB_CHARACTERS = frozenset("{}[]*?\\")


def parquet_frame(spark: SparkSession, source: str) -> DataFrame:
    """The DataFrame over a path or a name of the catalog; `SourceNotFoundError` where it reads nothing."""
    try:
        df = _unresolved(spark, source)
        # A remote session looks for the source only when the schema is needed.
        _ = df.schema
    except (PySparkException, Py4JError, OSError) as error:
        raise SourceNotFoundError(_explained(source, error)) from error
    return df


def _unresolved(spark: SparkSession, source: str) -> DataFrame:
    if is_name(spark, source):
        return spark.table(source)
    # A path that exists literally is no pattern, whatever characters it holds.
    if _GLOB_CHARACTERS.intersection(source) and has_jvm(spark) and exists(spark, source):
        return spark.read.option("__globPaths__", "false").parquet(source)
    return spark.read.parquet(source)


def _explained(source: str, error: PySparkException | Py4JError | OSError) -> str:
    match error.getCondition() if isinstance(error, PySparkException) else None:
        case "PATH_NOT_FOUND":
            return f"No Parquet files at {source!r}: there is no such path"
        case "UNABLE_TO_INFER_SCHEMA":
            return f"No Parquet files in {source!r}: name a directory that holds some, or one file"
        case "TABLE_OR_VIEW_NOT_FOUND" | "PARSE_SYNTAX_ERROR":
            return f"No table {source!r} in the catalog: name a table, or a path that holds a slash"
        case _:
            text = java_message(error) if isinstance(error, Py4JError) else str(error)
            return f"Cannot open {source!r} as Parquet: {text.strip().splitlines()[0]}"
