"""`Snapshot`: the log of a Delta table at one version; `FileCatalog`: its files and the statistics fetched so far."""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, overload
from urllib.parse import unquote_plus

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from connectors.columns import Column
from connectors.delta.bounds import ANY_FLAW, Flaws, StoredBounds
from connectors.delta.field_metadata import FieldMetadata, types_before
from connectors.delta.statistics import (
    LogColumn,
    column_statistics,
    deleted_counts,
    flaws_of,
    has_vector,
    listing,
    row_counts,
)
from connectors.parquet.row_groups import FileRef
from connectors.spark.jvm import analyzed_plan, cancelled_job
from connectors.spark.own_queries import own_query
from pruning.scan.statistics import ColumnStatistics
from pruning.values.byte_strings import IntArray
from pruning.values.ranges import BoolArray
from pruning.values.types import ValueType

_RELATION = "LogicalRelation"
_FILE_RELATION = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"
# Nodes that Spark puts above a table of its catalog: its name, and the padding of `char` columns.
_HARMLESS = ("SubqueryAlias", "Project")
_FILE_INDEX = "org.apache.spark.sql.delta.files.TahoeLogFileIndex"
_DEFAULT_PREFIX = 32
_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """One version of the log.

    - `root`: the table's directory as a URI
    - `identity`: equal only for the same version of the same log
    - `schema`: the table's schema with Delta's own metadata on its fields
    - `metadata`: what counts of this metadata
    - `stale_names`: columns whose statistics may be those of another column; see `FieldMetadata`
    - `string_prefix`: the least number of UTF-16 units of a string that its statistics hold
    """

    root: str
    version: int
    identity: Hashable
    schema: StructType
    partition_columns: tuple[str, ...]
    metadata: FieldMetadata
    stale_names: tuple[str, ...]
    string_prefix: int
    _handle: Any
    _spark: SparkSession

    def actions(self) -> DataFrame:
        """The reconstructed state, a row for each action; Delta also caches it for its own planning."""
        return DataFrame(self._handle.stateDF(), self._spark)

    def count(self) -> int:
        """The number of files of the version; -1 if the log does not tell it at once."""
        return int(self._handle.files())

    def computed(self, name: str) -> Any:
        """The JVM's plan that computes a generated column from the others."""
        return self._handle.computed(name)

    def physical_path(self, column: Column) -> tuple[str, ...]:
        """The column's names in files, and in the log, from the top."""
        fields = fields_along(self.schema, column.path)
        return tuple(map(self.metadata.physical_name, fields))

    def log_column(self, column: Column, type_: ValueType) -> LogColumn:
        """The `LogColumn` of a column."""
        fields = fields_along(self.schema, column.path)
        was_float = type_.name == "double" and "float" in types_before(fields[-1])
        return LogColumn(
            column.name,
            self.physical_path(column),
            type_,
            column.spark_type,
            StoredBounds(type_, self.string_prefix, was_float, self._is_source(fields[-1].name, type_)),
            column.is_partition,
        )

    def least_digits(self, column: Column, type_: ValueType) -> int | None:
        """The digits of the narrowest decimal of the same scale that the column ever had; None if there was none."""
        if type_.name != "decimal":
            return None
        before = [_DECIMAL.fullmatch(each) for each in types_before(fields_along(self.schema, column.path)[-1])]
        digits = [int(each[1]) for each in before if each is not None and int(each[2]) == type_.scale]
        return min(digits, default=None)

    def _is_source(self, name: str, type_: ValueType) -> bool:
        """True if a predicate on the column may miss partitions; only the text of generated columns is searched."""
        generated = (self.metadata.generation_expression(self.schema[each]) for each in self.partition_columns)
        texts = [text for text in generated if name.lower().replace("`", "``") in text]
        match type_.name:
            case "timestamp":
                return bool(texts)
            case "string":
                return any("trunc" in text for text in texts)
            case _:
                return False

    def field_ids(self, column: Column) -> tuple[int, ...]:
        """The ids by which files are searched for the column; empty if files are searched by names."""
        if not self.metadata.finds_by_id:
            return ()
        return tuple(map(self.metadata.field_id, fields_along(self.schema, column.path)))

    def physical_top(self, name: str) -> str:
        """The physical name of a top-level column."""
        return self.metadata.physical_name(self.schema[name])


def fields_along(schema: StructType, path: Sequence[str]) -> list[StructField]:
    """The fields that `path` leads through, from the top to the leaf."""
    fields: list[StructField] = []
    here: DataType = schema
    for part in path:
        if not isinstance(here, StructType):
            msg = f"Cannot follow {'.'.join(path)!r}: {part!r} lies in {here.simpleString()}, which has no fields"
            raise TypeError(msg)
        fields.append(here[part])
        here = fields[-1].dataType
    return fields


def file_index(df: DataFrame) -> Any | None:
    """The JVM's file index behind a plain read of one whole Delta table; None for anything else."""
    node: Any = analyzed_plan(df)
    while node.nodeName() in _HARMLESS:
        node = node.children().head()
    if node.nodeName() != _RELATION:
        return None
    kind = node.relation().getClass()
    if _FILE_RELATION not in (kind.getName(), kind.getSuperclass().getName()):
        return None
    index = node.relation().location()
    return index if index.getClass().getName() == _FILE_INDEX else None


def snapshot_of(spark: SparkSession, java: Any) -> Snapshot:
    """The snapshot that an object of `SnapshotText.java` describes, as statistics and plans need it."""
    root, version, last_commit, mode, generates, *encoded, partitions, columns = _text(java).split("\n", 9)
    *prefixes, table_id = map(unquote_plus, encoded)
    metadata = FieldMetadata(mode, generates == "true")
    return Snapshot(
        root=root,
        version=int(version),
        identity=(root, table_id, int(version), int(last_commit)),
        schema=_schema(columns),
        partition_columns=tuple(_schema(partitions).names),
        metadata=metadata,
        stale_names=_stale_names(columns, metadata),
        string_prefix=_string_prefix(prefixes),
        _handle=java,
        _spark=spark,
    )


def _text(java: Any) -> str:
    pieces = [str(java.piece(0))]
    while pieces[-1].endswith("+"):
        pieces.append(str(java.piece(len(pieces))))
    return "".join(each[:-1] for each in pieces)


@lru_cache(maxsize=128)
def _schema(text: str) -> StructType:
    """The schema of a JSON text; each query of a session reads those of the same tables."""
    return StructType.fromJson(json.loads(text))


@lru_cache(maxsize=128)
def _stale_names(text: str, metadata: FieldMetadata) -> tuple[str, ...]:
    """The stale names in a schema of a JSON text."""
    return metadata.stale_names(_schema(text))


def _string_prefix(texts: Sequence[str]) -> int:
    """The least prefix length of strings among the session's conf, the table's property and Delta's default."""
    lengths = [int(text) for text in texts if text.isdecimal()]
    return max(min([_DEFAULT_PREFIX, *lengths]), 1)


logger = logging.getLogger("scanprune")

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


@dataclass(frozen=True, slots=True, eq=False)
class Uris(Sequence[str]):
    """URIs of files, from their paths in the log, which are relative to `root` or absolute."""

    root: str
    paths: pa.ChunkedArray

    def __len__(self) -> int:
        return len(self.paths)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return tuple(self[each] for each in range(len(self))[index])
        path = str(self.paths[index].as_py())
        return path if _ABSOLUTE.match(path) else f"{self.root.rstrip('/')}/{path}"


@dataclass(frozen=True, slots=True, eq=False)
class DeltaFiles:
    """The `n` files of a version in the order of their paths.

    `rows` includes rows that a deletion vector marks as deleted: at most `deleted` of them, where `has_vector` is True.
    `modified` are milliseconds. `broken` counts the files whose statistics cannot be parsed completely.
    """

    uris: Uris
    rows: IntArray
    sizes: IntArray
    modified: IntArray
    has_vector: BoolArray
    deleted: IntArray
    broken: int

    def __len__(self) -> int:
        return len(self.rows)

    def reference(self, index: int) -> FileRef:
        """The file at `index` as its footer is read."""
        return FileRef(self.uris[index], int(self.sizes[index]), int(self.modified[index]))


# The key includes `StoredBounds`, which depends on the session, too.
_Key = tuple[tuple[str, ...], StoredBounds]


def key_of(column: LogColumn) -> _Key:
    """The key of the statistics of a column in a version."""
    return column.path, column.stored


class FileCatalog:
    """The files and statistics fetched of one version; thread-safe, and each column is fetched once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: DeltaFiles | None = None
        self._columns: dict[_Key, ColumnStatistics] = {}
        self._flaws: dict[_Key, Flaws] = {}
        self._expected: dict[_Key, LogColumn] = {}
        self._derived: dict[Hashable, ColumnStatistics] = {}

    @property
    def is_fetched(self) -> bool:
        """True if the files and the statistics of some columns were fetched."""
        return self._files is not None

    def expect(self, columns: Sequence[LogColumn]) -> None:
        """Adds columns to the next job, since their statistics may be needed later."""
        with self._lock:
            self._expected |= {key_of(each): each for each in columns if key_of(each) not in self._columns}

    def files(self, snapshot: Snapshot, columns: Sequence[LogColumn]) -> tuple[DeltaFiles, list[ColumnStatistics]]:
        """The files, and the statistics of `columns`; one Spark job fetches those that are missing."""
        with self._lock:
            files = self._files
            missing = [column for column in columns if key_of(column) not in self._columns]
            if files is None or missing:
                files = self._fetched(snapshot, missing)
            return files, self.known(columns)

    def known(self, columns: Sequence[LogColumn]) -> list[ColumnStatistics]:
        """The statistics of columns that were fetched."""
        return [self._columns[key_of(column)] for column in columns]

    def derived(self, key: Hashable, make: Callable[[], ColumnStatistics]) -> ColumnStatistics:
        """The statistics cached under `key`, those of `make` if there are none; equal keys have equal statistics."""
        found = self._derived.get(key)
        return self._derived.setdefault(key, make()) if found is None else found

    def flaws(self, column: LogColumn) -> Flaws:
        """The flaws of the bounds of a column; all possible flaws if it was not fetched."""
        with self._lock:
            return self._flaws.get(key_of(column), ANY_FLAW)

    def _fetched(self, snapshot: Snapshot, columns: Sequence[LogColumn]) -> DeltaFiles:
        asked = {key_of(each) for each in columns}
        more = [each for key, each in self._expected.items() if key not in asked and key not in self._columns]
        self._expected.clear()
        if more:
            every = [*columns, *more]
            try:
                table = own_query(listing(snapshot.actions(), every)).toArrow()
                # Expected columns are dropped if some statistics cannot be parsed, which may hide those of others.
                if not pc.any(table["broken"]).as_py():
                    return self._kept(snapshot, table, every)
            except Exception as error:
                if cancelled_job(error) is not None:
                    raise
                # The error is raised again when one of the expected columns is requested.
                logger.debug("Fetching statistics of further columns failed", exc_info=True)
        return self._kept(snapshot, own_query(listing(snapshot.actions(), columns)).toArrow(), columns)

    def _kept(self, snapshot: Snapshot, table: pa.Table, columns: Sequence[LogColumn]) -> DeltaFiles:
        files = self.keep(snapshot.root, snapshot.version, table, columns)
        # Arrow would keep 200 MB of free memory for a million files.
        pa.default_memory_pool().release_unused()
        return files

    def keep(self, root: str, version: int, table: pa.Table, columns: Sequence[LogColumn]) -> DeltaFiles:
        """The files of a `listing` of these columns, whose statistics are cached."""
        # A state that is reconstructed again may have another order.
        table = table.sort_by([("path", "ascending"), ("vector", "ascending")]).combine_chunks()
        files = self._files or _files(root, table)
        if not table["path"].equals(files.uris.paths):
            msg = f"Cannot join statistics of {root!r}: version {version} lists other files than before"
            raise ValueError(msg)
        found = {key_of(column): column_statistics(table, index, column) for index, column in enumerate(columns)}
        flaws = {key_of(column): flaws_of(table, index, column) for index, column in enumerate(columns)}
        self._files = files
        self._columns |= found
        self._flaws |= flaws
        return files


def _files(root: str, table: pa.Table) -> DeltaFiles:
    numbers = {name: np.asarray(table[name].to_numpy(), np.int64) for name in ("size", "modified")}
    broken = int(np.count_nonzero(table["broken"].to_numpy(zero_copy_only=False)))
    return DeltaFiles(
        Uris(root, table["path"]),
        row_counts(table),
        numbers["size"],
        numbers["modified"],
        has_vector(table),
        deleted_counts(table),
        broken,
    )
