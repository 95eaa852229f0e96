"""A connector in one file: ORC files, with statistics in `_statistics.json` beside them."""

from __future__ import annotations

import json
import time
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from connectors.base import Connector, Table
from connectors.columns import Column
from connectors.spark.files import local_path
from connectors.spark.jvm import analyzed_plan, frame_of
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
    vectorised_confs = ()

    def claims_path(self, spark: SparkSession, path: str) -> bool:  # noqa: ARG002 - a local path
        return Path(path.removeprefix("file:"), STATISTICS).is_file()

    def open(self, spark: SparkSession, source: str, **options: Any) -> Table:  # noqa: ARG002 - it has no versions
        if not self.claims_path(spark, source):
            msg = f"No toy table at {source!r}: expected a directory that holds {STATISTICS}"
            raise SourceNotFoundError(msg)
        df = spark.read.orc(source)
        return ToyTable.of(source, df, _listed(spark, analyzed_plan(df)))

    def table_of(self, spark: SparkSession, name: str, leaf: Any, limits: Limits) -> Table | Reason:  # noqa: ARG002
        path = str(leaf.relation().location().rootPaths().head().toUri().getPath())
        if not self.claims_path(spark, path):
            return Reason(ReasonCode.NO_STATISTICS, name, f"no {STATISTICS}")
        return ToyTable.of(name, frame_of(spark, leaf), _listed(spark, leaf))

    def fingerprints(self, spark: SparkSession, leaves: Sequence[Any]) -> Sequence[str | Reason]:
        return leaf_fingerprints(spark, leaves, [_files(spark, each) for each in leaves])


def _listed(spark: SparkSession, leaf: Any) -> dict[Path, tuple[int, int]]:
    """The files that Spark listed for a leaf, each with its size and time."""
    status, files = "org.apache.hadoop.fs.FileStatus", JvmList.of_scala(spark, leaf.relation().location().allFiles())
    paths = map(local_path, files.texts(f"{status}.getPath", "org.apache.hadoop.fs.Path.toUri"))
    numbers = (files.numbers(f"{status}.{each}").tolist() for each in ("getLen", "getModificationTime"))
    return dict(sorted(zip(paths, zip(*numbers, strict=True), strict=True)))


def _files(spark: SparkSession, leaf: Any) -> Sequence[str] | Reason:
    """The listed files of a leaf, if none was written since, or may be written again with the same time."""
    listed = _listed(spark, leaf)
    found = [each.stat() for each in listed]
    if [*listed.values()] != [(each.st_size, each.st_mtime_ns // 1_000_000) for each in found]:
        return Reason(ReasonCode.NOT_CACHED, "a scan", "a file of it is not the one that was listed")
    if max((modified for _, modified in listed.values()), default=0) > (time.time() - 60) * 1000:
        return Reason(ReasonCode.NOT_CACHED, "a scan", "a file of it was written less than 60 seconds ago")
    return list(map(str, listed.items()))


TOY = ToyConnector()


@dataclass(frozen=True)
class ToyTable:
    """The files that Spark listed, with what the statistics file says of them."""

    name: str
    df: DataFrame
    listed: dict[str, dict[str, Any]]
    problems: tuple[Reason, ...] = ()
    connector: Connector = TOY
    version: int | None = None
    partition_columns: tuple[str, ...] = ()
    accepts_file_list: bool = True

    @staticmethod
    def of(name: str, df: DataFrame, files: dict[Path, tuple[int, int]]) -> ToyTable:
        known: dict[Path, dict[str, Any]] = {}
        problems: tuple[Reason, ...] = ()
        try:
            for side in {each.with_name(STATISTICS) for each in files}:
                known |= {side.with_name(file): facts for file, facts in json.loads(side.read_text()).items()}
        except ValueError as error:
            problems = (Reason(ReasonCode.STATISTICS_FAILED, name, str(error)),)
        unknown = {each: {"size": size} for each, (size, _) in files.items()}
        same = {each: facts for each, facts in known.items() if unknown.get(each) == {"size": facts["size"]}}
        return ToyTable(name, df, {str(each): same.get(each, facts) for each, facts in unknown.items()}, problems)

    @property
    def schema(self) -> StructType:
        return self.df.schema

    @property
    def identity(self) -> Hashable:
        return json.dumps(self.listed, sort_keys=True)

    def files(self, columns: Sequence[Column]) -> Containers:
        return self._containers(ContainerKind.FILE, np.arange(len(self.listed)), columns)

    def row_groups(self, files: IntArray, columns: Sequence[Column], projected: Sequence[str] | None) -> Containers:  # noqa: ARG002
        return replace(self._containers(ContainerKind.ROW_GROUP, files, columns), parents=np.asarray(files))

    def _containers(self, kind: ContainerKind, files: IntArray, columns: Sequence[Column]) -> Containers:
        names = [list(self.listed)[at] for at in files.tolist()]
        facts = [self.listed[each] for each in names]
        rows, sizes = (np.array([each.get(key, -1) for each in facts], np.int64) for key in ("rows", "size"))
        known = columns if all("columns" in each for each in facts) else ()
        statistics = {
            each.name: ColumnStatistics.of(each.type, [tuple(it["columns"][each.path[0]]) for it in facts])
            for each in known
            if each.type is not None and each.type.is_integer
        }
        return Containers(kind, names, rows, sizes, statistics)

    def read(self, kept: BoolArray | None) -> DataFrame:
        names = [each for at, each in enumerate(self.listed) if kept is None or kept[at]]
        spark = self.df.sparkSession
        return spark.read.schema(self.schema).orc(names) if names else self.df.where("false")

    def storage_safe_ranges(self, column: str, ranges: RangeSet) -> RangeSet:  # noqa: ARG002 - alike for all columns
        return ranges

    def expect(self, columns: Iterable[Column]) -> None: ...

    def with_frame(self, df: DataFrame) -> ToyTable:
        return replace(self, df=df)
