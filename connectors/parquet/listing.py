"""The files of a DataFrame, from the listing that Spark made when it was opened, and DataFrames over some of them.

Statistics, decision and read use the same files whatever is written meanwhile. The DataFrame itself does not: Spark
lists paths again after it writes to them, and all DataFrames of a catalog table may share one listing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from connectors.parquet.row_groups import FileRef
from connectors.spark.jvm import JavaFile, analyzed_plan, frame_of, instance, java_names, jvm_session
from connectors.spark.own_queries import own_query
from connectors.spark.transfer import JvmList
from pruning.values.byte_strings import IntArray
from pruning.values.ranges import BoolArray

_DATASOURCES = "org.apache.spark.sql.execution.datasources"
_PARQUET = f"{_DATASOURCES}.parquet.ParquetFileFormat"
_STATUS = f"{_DATASOURCES}.FileStatusWithMetadata"
_DIRECTORY = f"{_DATASOURCES}.PartitionDirectory"
_FILE_STATUS = "org.apache.hadoop.fs.FileStatus"
_CACHE = f"{_DATASOURCES}.FileStatusCache"
_ALL_IN_MEMORY = 1 << 60
_PINNED = JavaFile("connectors.parquet", "PinnedFileIndex")
_LISTED = JavaFile("connectors.parquet", "ListedFiles")
# A file written twice within a tick of the store's clock has the same time, and clocks differ by seconds.
_SETTLED_MILLISECONDS = 60_000
# Files that are looked at, before and after a build: to look at more costs more than the build.
_FINGERPRINT_FILES = 32
# Nodes that Spark puts above a table of its catalog: its name, and the padding of `char` columns.
_HARMLESS = ("SubqueryAlias", "Project")


@dataclass(frozen=True, slots=True, eq=False)
class SparkFiles:
    """The `n` files that a DataFrame reads: their URIs, bytes and modification times in milliseconds since 1970.

    `partition_of` gives each file's partition, a row of `partitions()`.
    """

    paths: Sequence[str]
    sizes: IntArray
    modified: IntArray
    partition_of: IntArray
    partition_columns: tuple[str, ...]
    _df: DataFrame
    _path: tuple[Any, ...]
    _location: Any
    _statuses: JvmList
    _values: JvmList

    def __len__(self) -> int:
        return len(self.paths)

    def refs(self, indices: IntArray) -> list[FileRef]:
        """The files at `indices`, one by one."""
        paths = [self.paths[index] for index in indices.tolist()]
        return list(map(FileRef, paths, self.sizes[indices].tolist(), self.modified[indices].tolist()))

    def with_frame(self, df: DataFrame) -> SparkFiles:
        """These files for another DataFrame of the same relation."""
        return replace(self, _df=df, _path=_path_to_relation(df))

    @property
    def _relation(self) -> Any:
        return self._path[-1].relation()

    @property
    def _spark(self) -> SparkSession:
        return self._df.sparkSession

    def partitions(self) -> pa.Table:
        """A row for each partition: its values in Spark's own types, a column for each of `partition_columns`."""
        jvm = java_names(self._spark)
        attributes = jvm.org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes(
            self._relation.partitionSchema()
        )
        local = jvm.org.apache.spark.sql.catalyst.plans.logical.LocalRelation(
            attributes,
            self._values.as_scala(),
            False,  # noqa: FBT003 - Java has no names
            jvm.scala.Option.empty(),
        )
        return own_query(frame_of(self._spark, local)).toArrow()

    def restricted(self, kept: BoolArray) -> DataFrame:
        """The DataFrame over only the files where `kept` is True, with the same columns and listing."""
        *above, leaf = self._path
        relation = leaf.relation()
        fewer = relation.copy(
            self._index(kept),
            relation.partitionSchema(),
            relation.dataSchema(),
            relation.bucketSpec(),
            relation.fileFormat(),
            relation.options(),
            relation.sparkSession(),
        )
        plan = leaf.copy(fewer, leaf.output(), leaf.catalogTable(), leaf.isStreaming(), leaf.stream())
        for node in reversed(above):
            plan = node.withNewChildren(JvmList(self._spark, [plan]).as_scala())
        return frame_of(self._spark, plan)

    def _index(self, kept: BoolArray) -> Any:
        """A file index over some of the files, whose listing comes from a cache with only these and is never refreshed.

        Spark treats two indexes with equal root paths as the same, and would answer a read of the whole table from a
        cached or reused part of it. So an additional root without files, named after the kept files, makes them
        different. It comes first and has a short name, because `report()` finds a scan by its description, which Spark
        truncates after some 100 characters.
        """
        jvm = java_names(self._spark)
        roots = self._relation.location().rootPaths()
        # Spark and we call a table by the last part of its first root, so the marker has that of the first true root.
        name = roots.head().getName()
        marker = jvm.org.apache.hadoop.fs.Path(roots.head(), f"/.scanprune-{self._digest(kept)}/{name}")
        cache = jvm.org.apache.spark.sql.execution.datasources.SharedInMemoryCache(_ALL_IN_MEMORY, -1)
        cache = cache.createForNewClient()
        nothing = JvmList(self._spark, jvm.java.util.ArrayList()).as_array(_FILE_STATUS)
        JvmList.of_scala(self._spark, roots).pass_to(
            cache, f"{_CACHE}.putLeafFiles", "org.apache.hadoop.fs.Path", nothing
        )
        some = self._statuses.where(kept).map(f"{_STATUS}.fileStatus")
        cache.putLeafFiles(marker, some.as_array(_FILE_STATUS))
        none = jvm.scala.Option.empty()
        spec = jvm.scala.Option.apply(self._location.partitionSpec()) if self.partition_columns else none
        # Told to look for files below all roots, Spark makes no partitions of the names of folders.
        options = jvm.java.util.HashMap({} if self.partition_columns else {"recursiveFileLookup": "true"})
        scala_options = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(options)
        session = self._relation.sparkSession()
        files = none if self.partition_columns else jvm.scala.Option.apply(some.as_scala())
        arguments = (session, roots.prepended(marker), scala_options, none, cache, spec, files)
        return instance(self._spark, _PINNED, *arguments)

    @property
    def digest(self) -> str:
        """A digest of the paths, sizes and modification times of all files."""
        return self._digest(np.ones(len(self), bool))

    def _digest(self, kept: BoolArray) -> str:
        digest = hashlib.sha256("\n".join(compress(self.paths, kept)).encode())
        digest.update(self.sizes[kept].tobytes() + self.modified[kept].tobytes())
        return digest.hexdigest()


def spark_files(df: DataFrame) -> SparkFiles | None:
    """The files of a DataFrame that reads Parquet files and nothing else; None for any other."""
    spark = df.sparkSession
    path = _path_to_relation(df)
    if not path:
        return None
    jvm = java_names(spark)
    no_filters = JvmList(spark, jvm.java.util.ArrayList()).as_scala()
    location = path[-1].relation().location()
    if location.getClass().getName() == f"{_DATASOURCES}.CatalogFileIndex":
        location = location.filterPartitions(no_filters)
    directories = JvmList.of_scala(spark, location.listFiles(no_filters, no_filters))
    statuses = directories.flattened(f"{_DIRECTORY}.files")
    counts = directories.map(f"{_DIRECTORY}.files").numbers("scala.collection.SeqOps.size")
    return SparkFiles(
        statuses.texts(f"{_STATUS}.getPath", "org.apache.hadoop.fs.Path.toUri"),
        statuses.numbers(f"{_STATUS}.getLen"),
        statuses.numbers(f"{_STATUS}.getModificationTime"),
        np.repeat(np.arange(len(counts)), counts),
        tuple(path[-1].relation().partitionSchema().fieldNames()),
        df,
        path,
        location,
        statuses,
        directories.map(f"{_DIRECTORY}.values"),
    )


def listed_files(spark: SparkSession, leaves: Sequence[Any]) -> Any:
    """The files that each leaf of a plan reads, as a list of the JVM; see `ListedFiles.java`."""
    return instance(spark, _LISTED, jvm_session(spark), leaves, _SETTLED_MILLISECONDS, _FINGERPRINT_FILES)


def with_new_column_ids(df: DataFrame) -> DataFrame:
    """The DataFrame with new column ids, since all DataFrames of a catalog table share one relation.

    A DataFrame whose columns are computed from those of the relation, as padded ones are, is returned unchanged.
    """
    *above, leaf = _path_to_relation(df) or (None,)
    if leaf is None or any(node.nodeName() == "Project" for node in above):
        return df
    plan = leaf.newInstance()
    for node in reversed(above):
        plan = node.withNewChildren(JvmList(df.sparkSession, [plan]).as_scala())
    return frame_of(df.sparkSession, plan)


def _path_to_relation(df: DataFrame) -> tuple[Any, ...]:
    """The nodes of the plan from its top to its relation of Parquet files; empty for any other plan."""
    nodes = []
    node: Any = analyzed_plan(df)
    while node.nodeName() in _HARMLESS:
        nodes.append(node)
        node = node.children().head()
    if node.getClass().getName() != f"{_DATASOURCES}.LogicalRelation":
        return ()
    relation = node.relation()
    kind = relation.getClass()
    # A pruned scan has a relation that extends it.
    if f"{_DATASOURCES}.HadoopFsRelation" not in (kind.getName(), kind.getSuperclass().getName()):
        return ()
    return (*nodes, node) if relation.fileFormat().getClass().getName() == _PARQUET else ()
