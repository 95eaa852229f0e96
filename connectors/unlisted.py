"""A table whose files Spark does not name: it can be read, and nothing is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from connectors.columns import Column
from pruning.byte_strings import IntArray
from pruning.intervals import BoolArray
from pruning.ranges import RangeSet
from pruning.reasons import Reason, ReasonCode
from pruning.statistics import UNKNOWN, ContainerKind, Containers


@dataclass(frozen=True, slots=True)
class UnlistedTable:
    """One container of unknown rows, size and values, and the reason why no more is known."""

    name: str
    format: str
    df: DataFrame
    problems: tuple[Reason, ...]
    version: int | None = None
    partition_columns: tuple[str, ...] = ()
    names_files: bool = False

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

    def widened(self, column: str, ranges: RangeSet) -> RangeSet:  # noqa: ARG002 - all columns of a type are alike
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
