"""Handwritten Delta logs, and the files that Delta itself keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from connectors.base import Table
from connectors.columns import Column, resolve
from connectors.delta.table import open_delta
from connectors.scan.literals import ranges_sql
from connectors.spark.session_state import SessionState
from pruning.scan.skipping import prune_containers
from pruning.values.domain import Domain

_JSON_TYPES = {"int": "integer", "bigint": "long"}
Types = Mapping[str, "str | Types"]


def schema_of(types: Types) -> StructType:
    """A schema with nullable fields of the given types; a mapping stands for a struct."""
    return StructType.fromJson(_struct(types))


def _struct(types: Types) -> dict[str, Any]:
    fields = [
        {"name": name, "type": _json_type(type_), "nullable": True, "metadata": {}} for name, type_ in types.items()
    ]
    return {"type": "struct", "fields": fields}


def _json_type(type_: str | Types) -> str | dict[str, Any]:
    return _JSON_TYPES.get(type_, type_) if isinstance(type_, str) else _struct(type_)


def write_log(
    directory: Path,
    schema: StructType,
    adds: Sequence[Mapping[str, Any]],
    *,
    partitions: Sequence[str] = (),
    configuration: Mapping[str, str] | None = None,
    table_id: str = "11111111-2222-3333-4444-555555555555",
) -> str:
    """A log of one commit with the given add actions, completed by defaults; there are no data files."""
    log = directory / "_delta_log"
    log.mkdir(parents=True)
    metadata = {
        "id": table_id,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema.json(),
        "partitionColumns": list(partitions),
        "configuration": dict(configuration or {}),
    }
    features = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["timestampNtz"]}
    actions = [{"protocol": {**features, "writerFeatures": ["timestampNtz"]}}, {"metaData": metadata}]
    actions += [{"add": _add(index, add)} for index, add in enumerate(adds)]
    (log / f"{0:020}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))
    return str(directory)


def _add(index: int, given: Mapping[str, Any]) -> dict[str, Any]:
    stats = given.get("stats")
    text = stats if stats is None or isinstance(stats, str) else json.dumps(stats)
    defaults = {"path": f"{index:04}.parquet", "partitionValues": {}, "size": 100 + index, "modificationTime": 0}
    return {**defaults, "dataChange": True, **given, "stats": text}


def opened(spark: SparkSession, source: object, **options: Any) -> Table:
    """The table, opened with an empty cache."""
    return open_delta(spark, str(source), cache=SessionState(), **options)


def column_of(table: Table, name: str) -> Column:
    return resolve(table.schema, name, table=table.name, case_sensitive=False, partitions=table.partition_columns)


def kept_files(table: Table, name: str, domain: Domain) -> set[int]:
    """The indexes of the files that may have a row whose column lies in `domain`."""
    column = column_of(table, name)
    pruned = prune_containers(table.files([column]), {column.name: domain})
    return set(np.flatnonzero(pruned.kept).tolist())


def pushed(table: Table, name: str, domain: Domain) -> DataFrame:
    """The ids of the scan under the predicate that pruning would push."""
    column = column_of(table, name)
    predicate = ranges_sql(column.sql, table.storage_safe_ranges(column.name, domain.ranges))
    return table.read(None).where(predicate).select("id")


def ids(df: DataFrame) -> list[int]:
    """The sorted values of a DataFrame with one column."""
    return sorted(row[0] for row in df.collect())


def files_delta_keeps(df: DataFrame) -> int:
    """The number of files that Delta plans to read for a query over one table."""
    leaf = df._jdf.queryExecution().optimizedPlan().collectLeaves().apply(0)
    return leaf.relation().location().preparedScan().files().size()
