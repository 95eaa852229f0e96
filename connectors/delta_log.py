"""The log of one Delta table at one version, as the DataFrame that reads the table holds it."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from connectors.columns import Column
from connectors.delta_bounds import StoredBounds
from connectors.delta_statistics import LogColumn
from pruning.value_type import ValueType

_RELATION = "LogicalRelation"
_FILE_RELATION = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"
# What Spark puts above a table of its catalog: its name, and the padding of `char` columns.
_HARMLESS = ("SubqueryAlias", "Project")
_FILE_INDEX = "org.apache.spark.sql.delta.files.TahoeLogFileIndex"
_PHYSICAL_NAME = "delta.columnMapping.physicalName"
_FIELD_ID = "delta.columnMapping.id"
_TYPE_CHANGES = "delta.typeChanges"
_GENERATED = "delta.generationExpression"
_PREFIX_PROPERTY = "delta.dataSkippingStringPrefixLength"
_PREFIX_CONF = "spark.databricks.io.skipping.stringPrefixLength"
_DEFAULT_PREFIX = 32
_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """One version of the log.

    - `root`: the table's directory as a URI
    - `identity`: equal only for the same version of the same log
    - `schema`: the table's schema with Delta's own metadata on its fields
    - `finds_by_id`: files are searched for a column by its id, not by its physical name
    - `generated`: the expressions, in lower case, that partition columns are computed by
    - `string_prefix`: how many UTF-16 units of a string its statistics keep at least
    """

    root: str
    version: int
    identity: Hashable
    schema: StructType
    partition_columns: tuple[str, ...]
    finds_by_id: bool
    generated: tuple[str, ...]
    string_prefix: int
    _handle: Any
    _spark: SparkSession

    def actions(self) -> DataFrame:
        """The reconstructed state, a row for each action; Delta caches it for its own planning, too."""
        return DataFrame(self._handle.stateDF(), self._spark)

    def physical_path(self, column: Column) -> tuple[str, ...]:
        """The column's names in files, and in the log, from the top."""
        fields = fields_along(self.schema, column.path)
        return tuple(str(field.metadata.get(_PHYSICAL_NAME, field.name)) for field in fields)

    def log_column(self, column: Column, type_: ValueType) -> LogColumn:
        """The column as the log names it."""
        fields = fields_along(self.schema, column.path)
        was_float = type_.name == "double" and "float" in _types_before(fields[-1])
        return LogColumn(
            column.name,
            self.physical_path(column),
            type_,
            column.spark_type,
            StoredBounds(type_, self.string_prefix, was_float, self._is_source(fields[-1].name, type_)),
            column.is_partition,
        )

    def least_digits(self, column: Column, type_: ValueType) -> int | None:
        """The digits of the narrowest decimal of the same scale that the column ever was; None where it was none."""
        if type_.name != "decimal":
            return None
        before = [_DECIMAL.fullmatch(each) for each in _types_before(fields_along(self.schema, column.path)[-1])]
        digits = [int(each[1]) for each in before if each is not None and int(each[2]) == type_.scale]
        return min(digits, default=None)

    def _is_source(self, name: str, type_: ValueType) -> bool:
        """True where a predicate on the column may miss partitions; names are only looked for in the text."""
        texts = [text for text in self.generated if name.lower() in text]
        match type_.name:
            case "timestamp":
                return bool(texts)
            case "string":
                return any("trunc" in text for text in texts)
            case _:
                return False

    def field_ids(self, column: Column) -> tuple[int, ...]:
        """The ids by which files are searched for the column; none where names are."""
        if not self.finds_by_id:
            return ()
        return tuple(int(field.metadata.get(_FIELD_ID, -1)) for field in fields_along(self.schema, column.path))

    def physical_top(self, name: str) -> str:
        """The physical name of a top-level column."""
        return str(self.schema[name].metadata.get(_PHYSICAL_NAME, name))


def _types_before(field: StructField) -> list[str]:
    """The types that the field had before it was widened, as the log writes them."""
    changes: Sequence[Any] = field.metadata.get(_TYPE_CHANGES) or ()
    return [str(change.get("fromType")) for change in changes]


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


def file_index(df: DataFrame, *kinds: str) -> Any | None:
    """The JVM's file index behind a plain read of one Delta table, of one of these classes; None for anything else.

    Without a class it is the index of a whole table.
    """
    node: Any = df._jdf.queryExecution().analyzed()  # noqa: SLF001 - the plan has no public door
    while node.nodeName() in _HARMLESS:
        node = node.children().head()
    if node.nodeName() != _RELATION:
        return None
    kind = node.relation().getClass()
    if _FILE_RELATION not in (kind.getName(), kind.getSuperclass().getName()):
        return None
    index = node.relation().location()
    return index if index.getClass().getName() in (kinds or (_FILE_INDEX,)) else None


def snapshot_of(spark: SparkSession, found: Any, path: Any) -> Snapshot:
    """The JVM's own snapshot of the table at `path`, a Hadoop path, as statistics and plans need it."""
    metadata = found.metadata()
    root, version = str(path.toUri().toString()), int(found.version())
    schema = StructType.fromJson(json.loads(found.schema().json()))
    partition_columns = tuple(map(str, metadata.partitionSchema().fieldNames()))
    last_commit = int(found.logSegment().lastCommitFileModificationTimestamp())
    return Snapshot(
        root=root,
        version=version,
        identity=(root, str(metadata.id()), version, last_commit),
        schema=schema,
        partition_columns=partition_columns,
        finds_by_id=str(metadata.columnMappingMode().name()) == "id",
        generated=tuple(str(schema[name].metadata.get(_GENERATED, "")).lower() for name in partition_columns),
        string_prefix=_string_prefix(metadata.configuration(), spark),
        _handle=found,
        _spark=spark,
    )


def _string_prefix(properties: Any, spark: SparkSession) -> int:
    """The least of what the table, the session and other writers cut strings to, as far as they say."""
    found = properties.get(_PREFIX_PROPERTY)
    texts = (str(found.get()) if found.isDefined() else "", str(spark.conf.get(_PREFIX_CONF, str(_DEFAULT_PREFIX))))
    lengths = [int(text) for text in texts if text.isdecimal()]
    return max(min([_DEFAULT_PREFIX, *lengths]), 1)
