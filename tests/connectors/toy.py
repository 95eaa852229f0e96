"""A connector in one file: ORC files, with statistics in `_statistics.json` beside them."""

from __future__ import annotations

import json
import time
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import compute as pc
from pyarrow import orc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from connectors.base import Connector, Table
from connectors.columns import Column
from connectors.spark.files import local_path
from connectors.spark.jvm import frame_of
from connectors.spark.plan_facts import leaf_fingerprints
from connectors.spark.transfer import JvmList
from pruning.errors import SourceNotFoundError
from pruning.limits import Limits
from pruning.reasons import Reason, ReasonCode
from pruning.scan.statistics import ColumnStatistics, ContainerKind, Containers
from pruning.values.byte_strings import IntArray
from pruning.values.ranges import BoolArray, RangeSet

STATISTICS = "_statistics.json"


class ToyConnector(Connector):
    """A connector for directories with a statistics file, by path and as leaves of a plan that read ORC."""

    name = "toy"
    file_formats = ("OrcFileFormat",)
    skipping_conf = "spark.sql.orc.filterPushdown"

    def claims_path(self, spark: SparkSession, path: str) -> bool:  # noqa: ARG002 - a local path
        return Path(path.removeprefix("file:"), STATISTICS).is_file()

    def open(self, spark: SparkSession, source: str, **options: Any) -> Table:  # noqa: ARG002 - it has no versions
        if not self.claims_path(spark, source):
            msg = f"No toy table at {source!r}: expected a directory that holds {STATISTICS}"
            raise SourceNotFoundError(msg)
        return ToyTable.of(source, source, spark.read.orc(source))

    def table_of(self, spark: SparkSession, name: str, leaf: Any, limits: Limits) -> Table | Reason:  # noqa: ARG002
        path = str(leaf.relation().location().rootPaths().head().toUri().getPath())
        if not self.claims_path(spark, path):
            return Reason(ReasonCode.NO_STATISTICS, name, f"no {STATISTICS}")
        return ToyTable.of(name, path, frame_of(spark, leaf))

    def fingerprints(self, spark: SparkSession, leaves: Sequence[Any]) -> Sequence[str | Reason]:
        return leaf_fingerprints(spark, leaves, [_files(spark, each) for each in leaves])


def _files(spark: SparkSession, leaf: Any) -> Sequence[str] | Reason:
    """The files of a leaf, each with its size and time, if it still is the one that Spark listed."""
    listed, status = JvmList.of_scala(spark, leaf.relation().location().allFiles()), "org.apache.hadoop.fs.FileStatus"
    names = listed.texts(f"{status}.getPath", "org.apache.hadoop.fs.Path.toUri")
    sizes, times = listed.numbers(f"{status}.getLen"), listed.numbers(f"{status}.getModificationTime")
    found = [local_path(each).stat() for each in names]
    if [*zip(sizes, times, strict=True)] != [(each.st_size, each.st_mtime_ns // 1_000_000) for each in found]:
        return Reason(ReasonCode.NOT_CACHED, "a scan", "a file of it is not the one that was listed")
    if max(times, default=0) > (time.time() - 60) * 1000:
        return Reason(ReasonCode.NOT_CACHED, "a scan", "a file of it was written less than 60 seconds ago")
    return sorted(map(str, zip(names, sizes.tolist(), times.tolist(), strict=True)))


TOY = ToyConnector()


@dataclass(frozen=True)
class ToyTable:
    """The files that the statistics file named when the table was opened."""

    name: str
    df: DataFrame
    listed: dict[str, dict[str, Any]]
    problems: tuple[Reason, ...] = ()
    connector: Connector = TOY
    version: int | None = None
    partition_columns: tuple[str, ...] = ()
    accepts_file_list: bool = True

    @staticmethod
    def of(name: str, path: str, df: DataFrame) -> ToyTable:
        folder = Path(path.removeprefix("file:"))
        try:
            stated = json.loads((folder / STATISTICS).read_text())
        except ValueError as error:
            unknown = {str(each): {} for each in sorted(folder.glob("*.orc"))}
            return ToyTable(name, df, unknown, (Reason(ReasonCode.STATISTICS_FAILED, name, str(error)),))
        return ToyTable(name, df, {str(folder / file): facts for file, facts in stated.items()})

    @property
    def schema(self) -> StructType:
        return self.df.schema

    @property
    def identity(self) -> Hashable:
        return json.dumps(self.listed, sort_keys=True)

    def files(self, columns: Sequence[Column]) -> Containers:
        return self._containers(ContainerKind.FILE, np.arange(len(self.listed)), columns)

    def row_groups(self, files: IntArray, columns: Sequence[Column], projected: Sequence[str] | None) -> Containers:  # noqa: ARG002
        """The files as row groups, one row group per file."""
        return replace(self._containers(ContainerKind.ROW_GROUP, files, columns), parents=np.asarray(files))

    def _containers(self, kind: ContainerKind, files: IntArray, columns: Sequence[Column]) -> Containers:
        names = [list(self.listed)[at] for at in files.tolist()]
        facts = [self.listed[each] for each in names]
        rows, sizes = (np.array([each.get(key, -1) for each in facts], np.int64) for key in ("rows", "size"))
        known = [each for each in columns if each.type is not None and each.type.is_integer and all(facts)]
        statistics = {
            each.name: ColumnStatistics.of(each.type, [tuple(it["columns"][each.path[0]]) for it in facts])
            for each in known
        }
        return Containers(kind, names, rows, np.maximum(sizes, 0), statistics)

    def read(self, kept: BoolArray | None) -> DataFrame:
        names = [each for at, each in enumerate(self.listed) if kept is None or kept[at]]
        spark = self.df.sparkSession
        return spark.read.schema(self.schema).orc(names) if names else self.df.where("false")

    def storage_safe_ranges(self, column: str, ranges: RangeSet) -> RangeSet:  # noqa: ARG002 - alike for all columns
        return ranges

    def expect(self, columns: Iterable[Column]) -> None:
        """Nothing to fetch; all statistics are in memory."""

    def with_frame(self, df: DataFrame) -> ToyTable:
        return replace(self, df=df)


def write_statistics(folder: Path) -> None:
    """Writes the statistics file of a folder of ORC files: rows, bytes, and the least, greatest and NULL count
    of integers.
    """
    found = {}
    for file in sorted(folder.glob("*.orc")):
        table = orc.read_table(file)
        columns = {
            name: [*(pc.min_max(table[name]).as_py().values()), table[name].null_count]
            for name in table.column_names
            if str(table[name].type).startswith("int")
        }
        found[file.name] = {"rows": table.num_rows, "size": file.stat().st_size, "columns": columns}
    (folder / STATISTICS).write_text(json.dumps(found))
