"""What a storage connector supplies: containers with statistics, and a pinned DataFrame. No predicate logic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from connectors.columns import Column
from connectors.stored_files import StoredFile
from pruning.byte_strings import IntArray
from pruning.intervals import BoolArray
from pruning.ranges import RangeSet
from pruning.reasons import Reason
from pruning.statistics import Containers


class Table(Protocol):
    """One table at one version: statistics, decision and read all see the same files.

    Trouble in reading metadata never raises: what could not be read is unknown, and `problems` says so.
    """

    @property
    def name(self) -> str:
        """What the caller called the table."""

    @property
    def format(self) -> str:
        """`delta` or `parquet`."""

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
    def names_files(self) -> bool:
        """True where `read` restricts itself to kept files; else only a pushed predicate skips files."""

    @property
    def problems(self) -> tuple[Reason, ...]:
        """What metadata could not be read so far."""

    def files(self, columns: Sequence[Column]) -> Containers:
        """Every file of the version; statistics of `columns` by `Column.name`, sizes are file sizes."""

    def row_groups(self, files: IntArray, columns: Sequence[Column], projected: Sequence[str] | None) -> Containers:
        """The row groups of the files at these indexes of `files()`, whose index each names as its parent.

        Sizes are the compressed bytes of the column chunks of the top-level columns `projected`, all if None.
        A file whose footer cannot be read is one container of unknown rows, of the file's size.
        """

    def stored(self, files: IntArray, columns: Sequence[Column]) -> list[StoredFile] | Reason:
        """The files at these indexes with their footers, and where they hold these top-level columns.

        A `Reason` where rows of a file are not simply those of its row groups, or a footer cannot be read.
        """

    def read(self, kept: BoolArray | None) -> DataFrame:
        """The pinned table; of the files where `kept` is True alone, as far as its reader can be given files.

        All files where `kept` is None, for a read to which no filter is added.
        """

    def widened(self, column: str, ranges: RangeSet) -> RangeSet:
        """A superset of `ranges` of a column under which storage, comparing bounds as it stores them, skips soundly.

        `column` is a `Column.name`.
        """
