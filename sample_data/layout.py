"""Tables laid out as in a lakehouse: facts clustered by date in several files.

`layouts.py` has other layouts of facts, for comparison.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's users know

from sample_data.cache import Manifest, Progress, cache_folder, made_whole, quiet
from sample_data.confs import conf
from sample_data.source import Clustered, SourceFiles
from sample_data.tpcds import SCHEMA

FACTS: Mapping[str, Clustered] = SCHEMA.facts
ROW_GROUPS_PER_FILE = 4
_REVISION = 1
_ROWS_PER_GROUP = "parquet.block.row.count.limit"
_FILE, _DAY = "__file__", "__day__"

# A function that writes all rows of a fact as a table of a format to a new folder.
WriteFact = Callable[[DataFrame, Clustered, str, Path], None]


def write_delta(
    spark: SparkSession, source: SourceFiles, target: Path, progress: Progress = quiet
) -> Mapping[str, Path]:
    """The folder of each table as a Delta table below `target`; missing tables are written."""
    return write(spark, source, target, manifest(source, "delta"), write_clustered, progress)


def write_parquet(
    spark: SparkSession, source: SourceFiles, target: Path, progress: Progress = quiet
) -> Mapping[str, Path]:
    """The folder of each table as Parquet files below `target`; missing tables are written."""
    return write(spark, source, target, manifest(source, "parquet"), write_clustered, progress)


def manifest(source: SourceFiles, table_format: Literal["delta", "parquet"]) -> Manifest:
    """The manifest that identifies tables of this source and format."""
    return {**source.manifest, "format": table_format, "layout": _REVISION}


def write(  # noqa: PLR0913, PLR0917
    spark: SparkSession,
    source: SourceFiles,
    target: Path,
    made: Manifest,
    write_fact: WriteFact,
    progress: Progress = quiet,
) -> Mapping[str, Path]:
    """The folder of each table below `target`: facts written by `write_fact`, dimensions as one file each."""
    table_format = str(made["format"])
    folders = {table: target / table for table in source.paths}
    with cache_folder(target, made, source.schema.tables):
        missing = {table: path for table, path in source.paths.items() if not folders[table].exists()}
        sizes = {table: path.stat().st_size for table, path in missing.items()}
        done = 0
        for table, path in missing.items():
            progress(f"Writing {table} as {table_format}", done / sum(sizes.values()))
            with made_whole(folders[table]) as unfinished:
                rows = spark.read.parquet(str(path))
                if table in source.schema.facts:
                    write_fact(rows, source.schema.facts[table], table_format, unfinished)
                else:
                    rows.coalesce(1).write.format(table_format).save(str(unfinished))
            done += sizes[table]
    progress(f"Tables written as {table_format}", 1.0)
    return folders


def write_clustered(
    rows: DataFrame, layout: Clustered, table_format: str, folder: Path | str, groups: int = ROW_GROUPS_PER_FILE
) -> None:
    """Writes a fact to files of whole days and `groups` row groups each, in the order of days.

    `folder` is a path or a URI.
    """
    spark = rows.sparkSession
    days = [(day, count) for day, count in rows.groupBy(layout.date).count().orderBy(layout.date).collect()]
    total = sum(count for _, count in days)
    files = layout.files_of(total)
    file_of_day = list(_file_of_day(days, total, files))
    small = spark.createDataFrame(
        file_of_day, f"{_DAY} {rows.schema[layout.date].dataType.simpleString()}, {_FILE} int"
    )
    laid_out = (
        rows.join(F.broadcast(small), F.col(layout.date).eqNullSafe(F.col(_DAY)))
        # By partition id, because Spark samples the boundaries of range partitions, which differ from run to run.
        .repartitionById(files, F.col(_FILE))
        .sortWithinPartitions(layout.date, *layout.unique)
        .select(*rows.columns)
    )
    with row_groups_of(spark, _rows_per_group(days, file_of_day, groups)):
        laid_out.write.format(table_format).save(str(folder))


def _file_of_day(days: list[tuple[Any, int]], total: int, files: int) -> Iterator[tuple[Any, int]]:
    """The file of each day, such that files have nearly equal numbers of rows."""
    before = 0
    for day, count in days:
        yield day, before * files // total
        before += count


def _rows_per_group(days: list[tuple[Any, int]], file_of_day: list[tuple[Any, int]], groups: int) -> int:
    """The row-group size that cuts the largest file into so many row groups, and no file into more."""
    rows_of_file: Counter[int] = Counter()
    for (_, count), (_, file) in zip(days, file_of_day, strict=True):
        rows_of_file[file] += count
    return math.ceil(max(rows_of_file.values(), default=1) / groups)


@contextmanager
def row_groups_of(spark: SparkSession, rows: int) -> Iterator[None]:
    """Sets the row count of row groups for writes inside the block, by a conf, because Delta has no option for it."""
    with conf(spark, {_ROWS_PER_GROUP: str(rows)}):
        yield
