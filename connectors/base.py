"""`Connector` and `Table`: what a storage format supplies, so that its tables are pruned.

A connector claims tables, by what a caller calls them or by a leaf of a plan, and opens them at one version. A table
gives containers with statistics and a DataFrame over the kept ones. Neither holds predicate logic.

| a connector | by |
|---|---|
| claims a leaf of a plan, or a path | `file_formats` with `table_of`; `claims_path` |
| opens it at a pinned version | `table_of`, `open`; `snapshot_calls` tell leaves that are pinned already |
| gives statistics | `Table.files`, `Table.row_groups` |
| tells its size before the plan is optimised | `size_calls`; later the index itself has its size |
| identifies its snapshot | `Table.identity`; `snapshot_calls` for leaves of one plan |
| restricts it to kept files | `Table.read` |
| gives a fingerprint, by which builds are cached | `fingerprints` |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from connectors.columns import Column
from pruning.limits import Limits
from pruning.reasons import Reason
from pruning.scan.statistics import UNKNOWN, ContainerKind, Containers
from pruning.values.byte_strings import IntArray
from pruning.values.ranges import BoolArray, RangeSet
from pruning.values.types import ValueType


class Table(Protocol):
    """One table at one version: statistics, decision and read all see the same files.

    Trouble in reading metadata never raises: what could not be read is unknown, and `problems` says so.
    """

    @property
    def name(self) -> str:
        """The caller's name for the table."""

    @property
    def connector(self) -> Connector:
        """The connector that opened it."""

    @property
    def identity(self) -> Hashable:
        """The identity of the snapshot: equal only for two tables that read the same files."""

    @property
    def version(self) -> int | None:
        """The pinned version, None where the format has none."""

    @property
    def schema(self) -> StructType:
        """Spark's schema of the pinned version."""

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Top-level columns whose values come from the layout."""

    @property
    def accepts_file_list(self) -> bool:
        """True where `read` restricts itself to kept files; else only a pushed predicate skips files."""

    @property
    def problems(self) -> tuple[Reason, ...]:
        """Reasons why some metadata could not be read so far."""

    def files(self, columns: Sequence[Column]) -> Containers:
        """Every file of the version; statistics of `columns` by `Column.name`, sizes are file sizes."""

    def row_groups(self, files: IntArray, columns: Sequence[Column], projected: Sequence[str] | None) -> Containers:
        """The row groups of the files at these indexes of `files()`, whose index each names as its parent.

        Sizes are the compressed bytes of the column chunks of the top-level columns `projected`, all if None.
        A file whose footer cannot be read is one container of unknown rows, of the file's size.
        """

    def expect(self, columns: Iterable[Column]) -> Callable[[], object] | None:
        """Announces columns whose statistics may be asked for, so that one job may fetch them together.

        The action runs this job, at the same time as those of other tables; None where `files` needs none.
        """

    def with_frame(self, df: DataFrame) -> Table:
        """This snapshot, read by another DataFrame over the same relation."""

    def read(self, kept: BoolArray | None) -> DataFrame:
        """The pinned table; of the files where `kept` is True alone, as far as its reader can be given files.

        All files where `kept` is None, for a read to which no filter is added.
        """

    def storage_safe_ranges(self, column: str, ranges: RangeSet) -> RangeSet:
        """A superset of `ranges` of a column under which storage, comparing bounds as it stores them, skips soundly.

        `column` is a `Column.name`.
        """


class CommandScan(Protocol):
    """The scan in a plan of a command, such as a MERGE, that reads files of the command's own choice.

    The command goes on as it is, only with fewer files: nothing else in its plan changes.
    """

    @property
    def plan(self) -> Any:
        """The JVM's plan of the part that tells which rows of the scan the command needs, to be read as a query."""

    @property
    def refusal(self) -> Reason | None:
        """The reason why no file may be left out, in which case `plan` is the scan alone."""

    @property
    def needs_a_row(self) -> bool:
        """True if the command would notice that the scan gives no row which passes the filters above it."""

    @property
    def nbytes(self) -> int:
        """The bytes of the files that the command reads without pruning."""

    def is_scan(self, leaf: Any) -> bool:
        """True for the leaf of `plan` whose files may be left out."""

    def has_row(self, table: Table, kept: BoolArray) -> bool:
        """True if some row of the kept files passes the filters above the scan; it may run a job."""

    def over(self, table: Table, kept: BoolArray, text: str) -> Any:
        """The JVM's plan of the command over those of its files that are kept, among all files of the leaf's table.

        Its scan shows the text.
        """


class Connector(ABC):
    """A storage format. The registry asks its connectors in turn, and the first that claims a table opens it.

    Methods that raise raise an error of `pruning.errors` for what the caller named wrongly. Trouble with metadata is no
    error: a table is opened of which nothing is known, or a `Reason` is returned.
    """

    # The name for `format=`, of the catalog's provider, and in messages.
    name: str
    # Simple names of the classes by which Spark reads the format (`HadoopFsRelation.fileFormat`).
    file_formats: tuple[str, ...]
    # True if a caller may ask for an older version of a table.
    has_versions: bool = False
    # The session's conf that switches off skipping by statistics.
    skipping_conf: str
    # The confs of the vectorised reader for top-level and for nested columns, if predicates may be pushed only into
    # it: without it, the reader of Parquet may return values of other rows. Empty for other readers.
    vectorised_confs: tuple[str, str] | tuple[()]
    # `Class.method.method` of file indexes in optimised plans, which returns the snapshot that scans of it share. They
    # tell pinned leaves: an index without such a call may list other files at each run, so `table_of` pins its files.
    snapshot_calls: tuple[str, ...] = ()
    # Such calls in analysed plans, which return an Option of the table's bytes, empty if only a job could compute them.
    size_calls: tuple[str, ...] = ()
    # Confs in which the format notes what the session did; no rows depend on them.
    noted_confs: tuple[str, ...] = ()
    # Simple names of the file indexes of pruned scans: a session that prunes every query leaves such queries alone.
    settled_indexes: tuple[str, ...] = ()
    # Simple names of the file indexes by which commands of the format read files of their own choice.
    command_indexes: tuple[str, ...] = ()
    # Simple names of the file indexes by which the format reads its own log.
    log_indexes: tuple[str, ...] = ()
    # Simple names of expressions that count rows for the history of a command, and count twice if evaluated twice.
    counters: tuple[str, ...] = ()

    @abstractmethod
    def claims_path(self, spark: SparkSession, path: str) -> bool:
        """True where a path holds a table of this format."""

    @abstractmethod
    def open(
        self, spark: SparkSession, source: str, *, version: int | None, timestamp: str | None, limits: Limits
    ) -> Table:
        """The table at a path or of a catalog name, pinned to `version` or to the newest one at `timestamp`.

        Raises `SourceNotFoundError` if there is none, `InvalidOptionError` for a version it cannot have.
        """

    @abstractmethod
    def table_of(self, spark: SparkSession, name: str, leaf: Any, limits: Limits) -> Table | Reason | None:
        """The table of a leaf of a plan, a `LogicalRelation` of the JVM, at the version that the plan has pinned.

        Connectors may share a file format: None for a leaf of another connector, which is asked next. A `Reason` says
        why a leaf of this connector has no table, and no other connector is asked.

        The leaf's own listing counts: its files are those that its file index lists, which Spark may have listed when
        the DataFrame was made, whatever the table's path or log holds by now. Metadata that was read later may only
        describe these files; a file that it does not know is a container of unknown values.
        """

    def fingerprints(
        self,
        spark: SparkSession,  # noqa: ARG002 - a default
        leaves: Sequence[Any],
    ) -> Sequence[str | Reason | None]:
        """The fingerprint of each leaf of builds: equal only for leaves that read the same rows and columns.

        It covers the snapshot (the table and its version, or each file with its size and time), the columns, and the
        options of the read. The connector knows the snapshot; `connectors.spark.plan_facts` adds columns and options.
        A `Reason` for a leaf whose rows may change: its build runs for each query. None for a leaf that is not known:
        the next connector of its file format is asked.

        Fingerprints are asked for before builds run and again afterwards, and a build is kept if they are the same.
        `leaves` are a list in the JVM, so that one call may tell of all.
        """
        return [None] * len(leaves)

    def files_left(self, spark: SparkSession, leaf: Any, table: Table) -> BoolArray | None:  # noqa: ARG002 - a default
        """The files of `table` that conditions of the query itself leave at a leaf; None if all or not known."""
        return None

    def pinned_plan(self, spark: SparkSession, plan: Any) -> Any:  # noqa: ARG002 - a default
        """An optimised plan with the scans pinned that the format itself has not; None if there are none."""
        return None

    def command_scan(self, spark: SparkSession, plan: Any) -> CommandScan | Reason | None:  # noqa: ARG002 - a default
        """The scan in a plan of a command of the format whose files may be left out; a `Reason` if none may be.

        None for a plan that is not of a command.
        """
        return None

    def plan_early(self, spark: SparkSession) -> None:  # noqa: B027 - a default
        """Lets Spark plan the queries of an enabled session faster, if the format can; called when it is enabled."""

    def early_query(self, df: DataFrame) -> DataFrame | None:  # noqa: ARG002 - a default
        """A query with the rows of `df` that Spark plans faster, if the format can make it; else None."""
        return None

    def before_execution(self, spark: SparkSession, plan: Any) -> None:  # noqa: B027 - a default
        """Learns from an optimised plan that is about to run."""

    def scanned_version(self, index: Any) -> ScannedVersion | None:  # noqa: ARG002 - a default
        """The version that a file index of an executed plan read; None for an index of another format."""
        return None

    def is_compared_whole(self, type_: ValueType) -> bool:  # noqa: ARG002 - a default
        """True for types whose values storage compares as they are, even if nothing is known of its files."""
        return False


@dataclass(frozen=True, slots=True)
class ScannedVersion:
    """The version of a table that an executed plan read; `is_pinned` if the query asked for that version."""

    path: str
    version: int
    is_pinned: bool


@dataclass(frozen=True, slots=True)
class OpaqueTable:
    """One container of unknown rows, size and values, and the reason why no more is known."""

    name: str
    connector: Connector
    df: DataFrame
    problems: tuple[Reason, ...]
    version: int | None = None
    partition_columns: tuple[str, ...] = ()
    accepts_file_list: bool = False

    @property
    def identity(self) -> Hashable:
        """Equal for no other table."""
        return id(self)

    @property
    def schema(self) -> StructType:
        """The schema of the DataFrame."""
        return self.df.schema

    def files(self, columns: Sequence[Column]) -> Containers:  # noqa: ARG002 - nothing is known of any
        """The table as one file."""
        return self._whole(ContainerKind.FILE, None)

    def row_groups(
        self,
        files: IntArray,
        columns: Sequence[Column],  # noqa: ARG002 - nothing is known of any
        projected: Sequence[str] | None,  # noqa: ARG002
    ) -> Containers:
        """The table as one row group, or none where no file is asked for."""
        return self._whole(ContainerKind.ROW_GROUP, np.asarray(files, np.int64))

    def expect(self, columns: Iterable[Column]) -> None:
        """Fetches nothing."""

    def with_frame(self, df: DataFrame) -> OpaqueTable:
        """This table, read by another DataFrame."""
        return replace(self, df=df)

    def read(self, kept: BoolArray | None) -> DataFrame:  # noqa: ARG002 - its files have no names
        """The whole table."""
        return self.df

    def storage_safe_ranges(self, column: str, ranges: RangeSet) -> RangeSet:  # noqa: ARG002 - all columns of a type are alike
        """Every value of types whose bounds or literals storage may cut short; else the same ranges."""
        is_whole = ranges.is_none or self.connector.is_compared_whole(ranges.type)
        return ranges if is_whole else RangeSet.all(ranges.type)

    def _whole(self, kind: ContainerKind, parents: IntArray | None) -> Containers:
        count = 1 if parents is None else len(parents)
        return Containers(
            kind,
            (self.name,) * count,
            np.full(count, UNKNOWN, np.int64),
            np.zeros(count, np.int64),
            {},
            parents,
            is_listed=False,
        )
