"""Tables on disk with a given assignment of rows to files and row groups."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  its usual name
from pyspark.sql.pandas.types import from_arrow_schema

from sample_data.confs import conf

_ROWS_PER_GROUP = "parquet.block.row.count.limit"
_TIMESTAMPS = "spark.sql.parquet.outputTimestampType"
_FILE = "__file__"


@dataclass(frozen=True, slots=True)
class Lake:
    """One table: its location, and how to read all of it.

    `shared_as` names rows that never change and are the same in each format; it is empty for a table that may change.
    """

    spark: SparkSession
    source: str
    format: str
    shared_as: str = ""

    def whole(self, version: int | None = None) -> DataFrame:
        """The unpruned table."""
        reader = self.spark.read.format(self.format)
        if version is not None:
            reader = reader.option("versionAsOf", version)
        if self.format == "parquet":
            # Glob characters in the name of the folder have no meaning.
            reader = reader.option("__globPaths__", "false")
        return reader.load(self.source)


@dataclass(frozen=True, slots=True)
class Layout:
    """The division of rows, in the order of the Arrow table, into files of `file_rows`, and of files into row groups.

    `partition_by` are columns of the table; each value then has its own files.
    """

    file_rows: int = 15
    group_rows: int = 5
    partition_by: tuple[str, ...] = ()


def spark_frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """The rows as a DataFrame; a timestamp without a time zone stays one."""
    # One chunk, because Spark loses every row after an empty chunk.
    return spark.createDataFrame(rows.combine_chunks(), from_arrow_schema(rows.schema, prefer_timestamp_ntz=True))


def write(
    spark: SparkSession,
    folder: Path,
    format_: str,
    rows: pa.Table,
    layout: Layout = Layout(),
    *,
    options: Mapping[str, str] | None = None,
    confs: Mapping[str, str] | None = None,
    mode: str = "error",
) -> Lake:
    """The table `rows` in `folder` with the given layout, in the same files on each run."""
    files = max(1, -(-len(rows) // layout.file_rows))
    order = pa.array([at // layout.file_rows for at in range(len(rows))], pa.int32())
    names = [f"c{at}" for at in range(rows.num_columns)]
    # Written under plain names first, because hostile names would need quotes in each step.
    numbered = rows.rename_columns(names).append_column(_FILE, order)
    df = spark_frame(spark, numbered).repartitionById(files, F.col(_FILE)).drop(_FILE)
    # INT96 timestamps, Spark's default, have no statistics.
    settings = {_ROWS_PER_GROUP: str(layout.group_rows), _TIMESTAMPS: "TIMESTAMP_MICROS"}
    with conf(spark, {**settings, **(confs or {})}):
        writer = df.toDF(*rows.column_names).write.format(format_).options(**(options or {})).mode(mode)
        (writer.partitionBy(*layout.partition_by) if layout.partition_by else writer).save(str(folder))
    return Lake(spark, str(folder), format_)


def copied(lake: Lake, folder: Path) -> Lake:
    """A copy of the table in a folder of its own, which a test may change."""
    shutil.copytree(lake.source, folder)
    return Lake(lake.spark, str(folder), lake.format)


def data_files(lake: Lake) -> Sequence[Path]:
    """The Parquet files below the table's folder, by name."""
    return sorted(path for path in Path(lake.source).rglob("*.parquet") if "_delta_log" not in path.parts)
