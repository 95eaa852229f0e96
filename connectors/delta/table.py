"""The Delta connector: a table by path or by name in the catalog, pinned to one version."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from connectors.base import CommandScan, Connector, OpaqueTable, ScannedVersion, Table
from connectors.columns import Column, quoted, resolve
from connectors.delta.file_index import (
    CHOSEN_INDEX,
    PRUNED_INDEX,
    SIZE_CALLS,
    SKIPPING_CONF,
    SNAPSHOT_CALLS,
    analyzed_snapshot,
    early_query,
    over_files,
    paths_left,
    pinned_plan,
    plan_early,
    register_conditions,
    scanned_snapshot,
    scanned_version,
    snapshots,
    why_not_pinned,
)
from connectors.delta.generated import Narrowing, generated_columns
from connectors.delta.log import DeltaFiles, FileCatalog, Snapshot, Uris, snapshot_of
from connectors.delta.merge import merge_scan
from connectors.delta.open import has_log, pinned_frame, publicly_pinned_frame
from connectors.parquet.pushdown import NO_LIMITS, VECTORISED_CONFS, ReaderLimits, within_digits
from connectors.parquet.row_groups import (
    FooterCache,
    FooterColumn,
    read_row_groups,
)
from connectors.spark.files import storage_of
from connectors.spark.jvm import error_kind, frame_of, has_jvm
from connectors.spark.plan_facts import leaf_fingerprints
from connectors.spark.session_state import SessionState, state_of
from connectors.spark.versions import version_refusal
from pruning.errors import PruningError
from pruning.limits import LIMITS, Limits
from pruning.reasons import Reason, ReasonCode
from pruning.scan.skipping import parents_of
from pruning.scan.statistics import ColumnStatistics, ContainerKind, Containers
from pruning.values.byte_strings import IntArray
from pruning.values.ranges import BoolArray, RangeSet
from pruning.values.types import ValueType

logger = logging.getLogger("scanprune")

_CASE_CONF = "spark.sql.caseSensitive"
# Columns that a message names.
_NAMED = 3
# Files at most of which one job fetches statistics of all columns: each job takes 0.2 s.
_WHOLE_LOG_FILES = 2_000
# Columns at most that it fetches: tables keep statistics of so many by default.
_WHOLE_LOG_COLUMNS = 32
# Errors of Spark, Delta and Arrow at metadata that cannot be read or is malformed.
_TROUBLE = (Py4JError, PySparkException, pa.ArrowException, ValueError, TypeError, LookupError)


class DeltaConnector(Connector):
    """Delta tables: statistics and partition values from the log, files skipped by Delta's own predicate."""

    name = "delta"
    file_formats = ("DeltaParquetFileFormat", "DeltaParquetFileFormatV2")
    has_versions = True
    skipping_conf = SKIPPING_CONF
    vectorised_confs = VECTORISED_CONFS
    snapshot_calls = SNAPSHOT_CALLS
    size_calls = SIZE_CALLS
    noted_confs = ("spark.databricks.delta.lastCommitVersionInSession",)
    settled_indexes = (PRUNED_INDEX,)
    command_indexes = (CHOSEN_INDEX,)
    log_indexes = ("DeltaLogFileIndex",)
    counters = ("IncrementMetric",)

    def claims_path(self, spark: SparkSession, path: str) -> bool:
        """True for a directory that holds a log."""
        return has_log(spark, path)

    def open(
        self,
        spark: SparkSession,
        source: str,
        *,
        version: int | None,
        timestamp: str | None,
        limits: Limits,
    ) -> Table:
        """The table at a path or of a catalog name."""
        return open_delta(spark, source, version=version, timestamp=timestamp, limits=limits)

    def table_of(self, spark: SparkSession, name: str, leaf: Any, limits: Limits) -> Table | Reason:
        """The table of a leaf, of the snapshot that its index has prepared."""
        found = scanned_snapshot(spark, leaf)
        if found is None:
            return why_not_pinned(spark, name, leaf.relation().location())
        snapshot, state = snapshot_of(spark, found), state_of(spark)
        catalog = state.version(snapshot.identity, FileCatalog)
        return DeltaTable(name, frame_of(spark, leaf), snapshot, catalog, state.slot(FooterCache), limits)

    def fingerprints(self, spark: SparkSession, leaves: Sequence[Any]) -> Sequence[str | Reason]:
        """Fingerprints by the id of a leaf's table, its version and its files, which no later commit changes."""
        return leaf_fingerprints(spark, leaves, snapshots(spark, leaves))

    def files_left(self, spark: SparkSession, leaf: Any, table: Table) -> BoolArray | None:
        """The files in the leaf's index, after Delta's own skipping by the query's conditions."""
        paths, names = paths_left(spark, leaf.relation().location()), table.files([]).names
        if paths is None or not isinstance(names, Uris):
            return None
        left: BoolArray = pc.is_in(names.paths, value_set=paths).to_numpy(zero_copy_only=False)
        return left

    def pinned_plan(self, spark: SparkSession, plan: Any) -> Any:
        """The plan, with scans that Delta leaves alone in a write by the second interface of sources."""
        return pinned_plan(spark, plan)

    def command_scan(self, spark: SparkSession, plan: Any) -> CommandScan | Reason | None:
        """The scan of the target of a MERGE."""
        return merge_scan(spark, plan)

    def plan_early(self, spark: SparkSession) -> None:
        """Lets Delta's scans have their files from memory."""
        plan_early(spark)

    def early_query(self, df: DataFrame) -> DataFrame | None:
        """The query, whose scans have their files from memory; None if it reads no Delta table."""
        return early_query(df)

    def before_execution(self, spark: SparkSession, plan: Any) -> None:
        """Registers the conditions on scans of listed files."""
        register_conditions(spark, plan)

    def scanned_version(self, index: Any) -> ScannedVersion | None:
        """The version of an index of Delta, prepared or not."""
        return scanned_version(index)

    def is_compared_whole(self, type_: ValueType) -> bool:
        """True for integers and dates: stored bounds of other types are truncated."""
        return type_.is_integer or type_.name == "date"


DELTA = DeltaConnector()


def open_delta(  # noqa: PLR0913 - keywords
    spark: SparkSession,
    source: str,
    *,
    version: int | None = None,
    timestamp: str | None = None,
    limits: Limits = LIMITS,
    cache: SessionState | None = None,
) -> Table:
    """The Delta table at a path or of a name in the catalog, at `version` or `timestamp`, else as it is.

    The version is pinned: whatever is committed later, statistics and read are of the same files. Statistics and
    footers are cached in `cache`, the session's if None. Raises `SourceNotFoundError`, `InvalidOptionError` or
    `EnvironmentProblem`. Over Spark Connect, and with an unknown version of Spark, nothing is known of the files, and
    `problems` says so.
    """
    refusal = version_refusal(spark) if has_jvm(spark) else Reason(ReasonCode.NO_JVM, source)
    if refusal is not None:
        df, found = publicly_pinned_frame(spark, source, version, timestamp)
        return OpaqueTable(source, DELTA, df, (refusal,), version=found)
    df, index = pinned_frame(spark, source, version, timestamp)
    try:
        snapshot = snapshot_of(spark, analyzed_snapshot(spark, index))
    except _TROUBLE as error:
        return OpaqueTable(source, DELTA, df, (Reason(ReasonCode.STATISTICS_FAILED, source, error_kind(error)),))
    cache = state_of(spark) if cache is None else cache
    catalog = cache.version(snapshot.identity, FileCatalog)
    return DeltaTable(source, df, snapshot, catalog, cache.slot(FooterCache), limits)


@dataclass(slots=True, eq=False)
class DeltaTable:
    """One version of a Delta table: a `Table` whose own log skips files by the pushed predicate."""

    name: str
    _df: DataFrame
    _snapshot: Snapshot
    _catalog: FileCatalog
    _footers: FooterCache
    _limits: Limits
    _problems: dict[Reason, None] = field(default_factory=dict)
    _reader_limits: ReaderLimits = NO_LIMITS
    _schema: StructType | None = None

    @property
    def connector(self) -> Connector:
        """The connector of Delta tables."""
        return DELTA

    @property
    def identity(self) -> Hashable:
        """The id of the table and its version."""
        return self._snapshot.identity

    @property
    def version(self) -> int | None:
        """The pinned version."""
        return self._snapshot.version

    @property
    def schema(self) -> StructType:
        """Spark's schema of the pinned version."""
        if self._schema is None:
            self._schema = self._df.schema
        return self._schema

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Top-level columns whose values the log holds for each file."""
        return self._snapshot.partition_columns

    @property
    def accepts_file_list(self) -> bool:
        """False: the pushed predicate has to skip the files, since a list of kept files may not be accepted."""
        return False

    @property
    def problems(self) -> tuple[Reason, ...]:
        """Reasons why some metadata could not be read so far."""
        return tuple(self._problems)

    def files(self, columns: Sequence[Column]) -> Containers:
        """Every file of the version, in the order of their paths; rows include those that vectors delete."""
        listed = self._listed(columns)
        if listed is None:
            return self._unlisted().files(columns)
        files, statistics = listed
        return Containers(ContainerKind.FILE, files.uris, files.rows, files.sizes, statistics, deleted=files.deleted)

    def row_groups(self, files: IntArray, columns: Sequence[Column], projected: Sequence[str] | None) -> Containers:
        """The row groups of the files at these indexes, by their footers."""
        listed = self._listed([column for column in columns if column.is_partition])
        if listed is None:
            return self._unlisted().row_groups(files, columns, projected)
        listing, partitions = listed
        files = np.asarray(files, np.int64)
        result = read_row_groups(
            [listing.reference(index) for index in files.tolist()],
            [self._footer_column(each) for each in columns if each.type is not None and not each.is_partition],
            None if projected is None else self._physical(projected),
            storage_of(self._df.sparkSession),
            self._footers,
            case_sensitive=self._is_case_sensitive,
        )
        self._add(*result.problems)
        self._reader_limits = self._reader_limits.union(result.limits)
        groups = result.containers
        parents = files[parents_of(groups)]
        repeated = {name: _repeated(each, listing, parents, groups.rows) for name, each in partitions.items()}
        statistics = {**groups.columns, **repeated}
        # The deleted rows of a file may lie in any of its row groups.
        deleted = listing.deleted[parents]
        return Containers(groups.kind, groups.names, groups.rows, groups.sizes, statistics, parents, deleted=deleted)

    @property
    def _is_case_sensitive(self) -> bool:
        return str(self._df.sparkSession.conf.get(_CASE_CONF, "false")).lower() == "true"

    def read(self, kept: BoolArray | None) -> DataFrame:
        """The pinned table, restricted to the kept files if their list can be planned; else Delta skips files."""
        if kept is None or np.count_nonzero(kept) > self._limits.max_listed_files:
            return self._df
        try:
            listed = self._listed(())
            if listed is None:
                return self._df
            return over_files(self._df, None, listed[0].uris.paths.filter(pa.array(kept))) or self._df
        except _TROUBLE:
            # Delta then skips the files by the predicate, with one more job.
            logger.debug("Restricting the files of %s failed", self.name, exc_info=True)
            return self._df

    def storage_safe_ranges(self, column: str, ranges: RangeSet) -> RangeSet:
        """A superset of `ranges` with which Delta, which compares stored bounds, and the files' reader skip soundly."""
        found = resolve(self.schema, column, table=self.name, case_sensitive=True, partitions=self.partition_columns)
        if self._snapshot.stale_names and not ranges.is_none:
            return RangeSet.all(ranges.type)
        if found.is_partition:
            return ranges
        # Only the fetched statistics show if stored bounds can be trusted.
        self._listed([found])
        logged = self._snapshot.log_column(found, ranges.type)
        flaws = self._catalog.flaws(logged)
        if flaws.inverted:
            self._add(Reason(ReasonCode.STATISTICS_FAILED, column, "the minimum of a file is greater than its maximum"))
        comparable = logged.stored.comparable(ranges, flaws)
        digits = self._snapshot.least_digits(found, ranges.type)
        # Footers show the same, but only for files whose footers were read.
        comparable = comparable if digits is None or comparable.is_none else within_digits(comparable, digits)
        return self._reader_limits.storage_safe_ranges(column, comparable)

    def expect(self, columns: Iterable[Column]) -> Callable[[], object] | None:
        """Adds columns to the next job, so that one job fetches the statistics of all of them; the action runs it.

        All columns are added for a version with few files, since a further job takes longer than they do.
        """
        if self._catalog.is_fetched:
            return None
        try:
            few = 0 <= self._snapshot.count() <= _WHOLE_LOG_FILES
            asked = [*columns, *(self._columns() if few else ())]
            self._catalog.expect([*self._narrowing.logged(asked).values()])
        except (*_TROUBLE, PruningError):
            logger.debug("Resolving columns of %s in its log failed", self.name, exc_info=True)
            return None
        return partial(self._catalog.files, self._snapshot, ())

    def _columns(self) -> Iterator[Column]:
        """The top-level columns, at most as many as Delta keeps statistics of by default."""
        for each in self.schema.fields[:_WHOLE_LOG_COLUMNS]:
            name = quoted(each.name)
            yield resolve(self.schema, name, table=self.name, case_sensitive=True, partitions=self.partition_columns)

    def with_frame(self, df: DataFrame) -> DeltaTable:
        """This version, read by another DataFrame of it with the same columns."""
        parts = self.name, df, self._snapshot, self._catalog, self._footers, self._limits
        return DeltaTable(*parts, _schema=self._schema)

    def _listed(self, columns: Sequence[Column]) -> tuple[DeltaFiles, dict[str, ColumnStatistics]] | None:
        """The files and the statistics of `columns`; None, with the reason in `problems`, if the log cannot be read.

        Without statistics if they may be those of other columns.
        """
        if stale := self._snapshot.stale_names:
            self._add(Reason(ReasonCode.STALE_NAMES, self.name, ", ".join(stale[:_NAMED])))
            columns = ()
        try:
            files, statistics = self._narrowing.files(columns)
        except _TROUBLE as error:
            self._add(Reason(ReasonCode.STATISTICS_FAILED, self.name, error_kind(error)))
            return None
        if files.broken:
            detail = f"{files.broken} of {len(files)} files have statistics that cannot be parsed"
            self._add(Reason(ReasonCode.STATISTICS_FAILED, self.name, detail))
        return files, statistics

    @property
    def _narrowing(self) -> Narrowing:
        return Narrowing(self._snapshot, self._catalog, generated_columns(self._df.sparkSession, self._snapshot))

    def _unlisted(self) -> OpaqueTable:
        return OpaqueTable(self.name, DELTA, self._df, self.problems, self.version, self.partition_columns)

    def _footer_column(self, column: Column) -> FooterColumn:
        path, ids = self._snapshot.physical_path(column), self._snapshot.field_ids(column)
        # Spark takes no predicate on a column that a file lacks, so none of its row groups are skipped.
        return FooterColumn(column.name, path, column.type, missing_is_null=False, field_ids=ids)

    def _physical(self, names: Sequence[str]) -> list[str]:
        # `names` may also hold metadata columns of Spark, such as the size of the file.
        stored = set(self._snapshot.schema.names).difference(self.partition_columns)
        return [self._snapshot.physical_top(name) for name in names if name in stored]

    def _add(self, *problems: Reason) -> None:
        self._problems.update(dict.fromkeys(problems))


def _repeated(statistics: ColumnStatistics, files: DeltaFiles, parents: IntArray, rows: IntArray) -> ColumnStatistics:
    """The exact values of files for their row groups of `rows` rows."""
    taken = statistics.take(parents)
    all_null = taken.all_null(files.rows[parents])
    return replace(taken, null_count=np.where(all_null, rows, taken.null_count))
