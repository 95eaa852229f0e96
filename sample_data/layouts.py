"""The layouts of tables that benchmarks compare: `LAYOUTS`, each written by `write_layout()`.

In each layout a fact has as many files and row groups as when it is clustered by date (`layout.py`), so that layouts
differ only in the order of rows. The exceptions are the partitioned layout, which has a file for each day, and the one
of small files.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal
from urllib.parse import unquote, urlsplit

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's users know

from sample_data.cache import Manifest, Progress, is_made, quiet
from sample_data.confs import conf
from sample_data.layout import (
    ROW_GROUPS_PER_FILE,
    WriteFact,
    manifest,
    row_groups_of,
    write,
    write_clustered,
)
from sample_data.source import Clustered, SourceFiles

# In files with fewer rows the footer is larger than the data.
ROWS_PER_PARTITION_AT_LEAST = 400
_SMALL_FILE_BYTES, _SMALL_FILE_GROUPS = 24_000_000, 3
_FILE, _AT = "__file__", "__at__"
_VACUUM_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
_LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_FILE_SIZE = "spark.databricks.delta.optimize.maxFileSize"


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout of facts; the tables of each scale are in a folder of its name."""

    name: str
    format: Literal["delta", "parquet"]
    says: str
    write_fact: WriteFact


def write_partitioned(rows: DataFrame, layout: Clustered, table_format: str, folder: Path) -> None:
    """Writes a fact partitioned by date, one file a day; or clustered by date if days have few rows."""
    count, days = rows.agg(F.count(F.lit(1)), F.countDistinct(layout.date)).first() or (0, 0)
    if count < ROWS_PER_PARTITION_AT_LEAST * days:
        write_clustered(rows, layout, table_format, folder)
        return
    # Rows are sorted by date within a task, so a task writes its days one after the other.
    tasks = rows.repartition(layout.files, layout.date).sortWithinPartitions(layout.date, *layout.unique)
    tasks.write.format(table_format).partitionBy(layout.date).save(str(folder))


def write_small_files(rows: DataFrame, layout: Clustered, table_format: str, folder: Path) -> None:
    """Writes a fact clustered by date to files of some 24 MB, with row groups of some 8 MB, by the size of its source.

    Files are no fewer than in other layouts.
    """
    size = sum(Path(unquote(urlsplit(each).path)).stat().st_size for each in rows.inputFiles())
    files = max(layout.files, round(size / _SMALL_FILE_BYTES))
    write_clustered(rows, replace(layout, files=files), table_format, folder, _SMALL_FILE_GROUPS)


def write_unclustered(rows: DataFrame, layout: Clustered, table_format: str, folder: Path) -> None:
    """Writes a fact in a random order, which is the same in each run."""
    count = rows.count()
    files = layout.files_of(count)
    laid_out = (
        rows.withColumn(_FILE, F.pmod(_shuffled(layout, 0), F.lit(files)).cast("int"))
        .withColumn(_AT, _shuffled(layout, 1))
        .repartitionById(files, F.col(_FILE))
        .sortWithinPartitions(_AT, *layout.unique)
        .select(*rows.columns)
    )
    with row_groups_of(rows.sparkSession, _rows_per_group(count, files)):
        laid_out.write.format(table_format).save(str(folder))


def write_zordered(rows: DataFrame, layout: Clustered, table_format: str, folder: Path) -> None:
    """Writes a fact Z-ordered by date and item by Delta's OPTIMIZE, and vacuums the former files."""
    spark = rows.sparkSession
    write_unclustered(rows, layout, table_format, folder)
    count = rows.count()
    files = layout.files_of(count)
    table = DeltaTable.forPath(spark, str(folder))
    size = table.detail().select("sizeInBytes").first()[0]  # type: ignore[index]
    with conf(spark, {_FILE_SIZE: str(size // files)}), row_groups_of(spark, _rows_per_group(count, files)):
        table.optimize().executeZOrderBy(layout.date, layout.item)
    # By default Delta lists old files in ten thousand tasks.
    with conf(spark, {_VACUUM_CHECK: "false", _LISTING_TASKS: str(files)}):
        table.vacuum(0)


# The demo and other benchmarks use the first two layouts.
LAYOUTS: Mapping[str, Layout] = MappingProxyType(
    {
        each.name: each
        for each in (
            Layout("delta", "delta", "Delta, clustered by date", write_clustered),
            Layout("parquet", "parquet", "Parquet without a log, clustered by date", write_clustered),
            Layout("small_files", "delta", "Delta, clustered by date, in files of 24 MB", write_small_files),
            Layout("partitioned", "delta", "Delta, partitioned by date", write_partitioned),
            Layout("zordered", "delta", "Delta, Z-ordered by date and item", write_zordered),
            Layout("unclustered", "delta", "Delta, in random order", write_unclustered),
        )
    }
)


def folder_of(layout: Layout, source: SourceFiles, folder: Path) -> Path:
    """The folder of the tables of a layout, below the folder of all generated tables."""
    return folder / source.schema.folder(source.scale, layout.name)


def is_written(layout: Layout, source: SourceFiles, folder: Path) -> bool:
    """True if `write_layout()` has nothing to do."""
    return is_made(folder_of(layout, source, folder), _manifest(layout, source), source.paths)


def write_layout(
    spark: SparkSession, layout: Layout, source: SourceFiles, folder: Path, progress: Progress = quiet
) -> Mapping[str, Path]:
    """The folder of each table in this layout; missing tables are written."""
    target = folder_of(layout, source, folder)
    return write(spark, source, target, _manifest(layout, source), layout.write_fact, progress)


def _manifest(layout: Layout, source: SourceFiles) -> Manifest:
    made = manifest(source, layout.format)
    return made if layout.write_fact is write_clustered else {**made, "facts": layout.name}


def _shuffled(layout: Clustered, salt: int) -> Column:
    return F.xxhash64(*map(F.col, layout.unique), F.lit(salt))


def _rows_per_group(rows: int, files: int) -> int:
    """The row count of row groups: a little more than the average, because files vary in size."""
    return math.ceil(1.1 * rows / files / ROW_GROUPS_PER_FILE)
