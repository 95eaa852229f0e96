"""What a storage connector supplies: containers with statistics, and a pinned DataFrame. No predicate logic.

A table whose files Spark does not name: it can be read, and nothing is known of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from connectors.columns import Column
from connectors.parquet.row_groups import FileLayout
from pruning.reasons import Reason, ReasonCode
from pruning.scan.statistics import UNKNOWN, ContainerKind, Containers
from pruning.values.byte_strings import IntArray
from pruning.values.ranges import BoolArray, RangeSet


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
    def accepts_file_list(self) -> bool:
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

    def stored(self, files: IntArray, columns: Sequence[Column]) -> list[FileLayout] | Reason:
        """The files at these indexes with their footers, and where they hold these top-level columns.

        A `Reason` where rows of a file are not simply those of its row groups, or a footer cannot be read.
        """

    def read(self, kept: BoolArray | None) -> DataFrame:
        """The pinned table; of the files where `kept` is True alone, as far as its reader can be given files.

        All files where `kept` is None, for a read to which no filter is added.
        """

    def storage_safe_ranges(self, column: str, ranges: RangeSet) -> RangeSet:
        """A superset of `ranges` of a column under which storage, comparing bounds as it stores them, skips soundly.

        `column` is a `Column.name`.
        """


@dataclass(frozen=True, slots=True)
class OpaqueTable:
    """One container of unknown rows, size and values, and the reason why no more is known."""

    name: str
    format: str
    df: DataFrame
    problems: tuple[Reason, ...]
    version: int | None = None
    partition_columns: tuple[str, ...] = ()
    accepts_file_list: bool = False

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

    def stored(self, files: IntArray, columns: Sequence[Column]) -> Reason:  # noqa: ARG002 - nothing is known of any
        """Why there are none."""
        return Reason(ReasonCode.NOT_FILES, self.name)

    def read(self, kept: BoolArray | None) -> DataFrame:  # noqa: ARG002 - its files have no names
        """The whole table."""
        return self.df

    def storage_safe_ranges(self, column: str, ranges: RangeSet) -> RangeSet:  # noqa: ARG002 - all columns of a type are alike
        """Every value of types whose bounds or literals storage may cut short; else the same ranges."""
        type_ = ranges.type
        # The reader of Parquet files cuts a decimal's literal to the width of a file's numbers.
        is_whole = type_.is_integer or type_.name == "date" if self.format == "delta" else type_.name != "decimal"
        return ranges if is_whole or ranges.is_none else RangeSet.all(type_)

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
