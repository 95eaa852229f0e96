"""`generated_columns`: the generated columns of a Delta table whose statistics tell of their source, and the reverse.

Delta checks the expression of a generated column on each write, in the session of the writer: with the writer's time
zone, for one. It keeps the text of the expression, which Spark parses here.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField

from connectors.columns import Column, quoted, resolve
from connectors.delta.field_metadata import types_before
from connectors.delta.log import DeltaFiles, FileCatalog, Snapshot, key_of
from connectors.delta.statistics import LogColumn
from connectors.spark.plan_reader import SparkPlan
from connectors.spark.plan_tree import UnreadablePlanError
from connectors.spark.session_state import state_of
from pruning.errors import PruningError
from pruning.query.key_functions import KeyPath, key_path
from pruning.query.plan import Project
from pruning.scan.generated_columns import GeneratedColumn, narrowed
from pruning.scan.statistics import ColumnStatistics

logger = logging.getLogger("scanprune")

_Path: TypeAlias = tuple[str, ...]

# Schemas of a session whose expressions are remembered.
_MOST_SCHEMAS = 64
_TROUBLE = (Py4JError, PySparkException, PruningError, UnreadablePlanError, ValueError, TypeError, LookupError)


class _Known:
    """The generated columns by schema; each version of a table has the same."""

    def __init__(self) -> None:
        self.found: dict[Hashable, tuple[GeneratedColumn, ...]] = {}


def generated_columns(spark: SparkSession, snapshot: Snapshot) -> tuple[GeneratedColumn, ...]:
    """The top-level columns that are known functions of another one, by an expression that counts."""
    fields = [each for each in snapshot.schema.fields if snapshot.metadata.generation_expression(each)]
    if not fields:
        return ()
    key = snapshot.schema.json()
    known = state_of(spark).slot(_Known).found
    if key not in known:
        if len(known) >= _MOST_SCHEMAS:
            known.clear()
        known[key] = tuple(_found(spark, snapshot, fields))
    return known[key]


def _found(spark: SparkSession, snapshot: Snapshot, fields: list[StructField]) -> Iterator[GeneratedColumn]:
    for each in fields:
        try:
            column = _generated(spark, snapshot, each.name)
        except _TROUBLE:
            logger.debug("Reading the expression of the column %s failed", each.name, exc_info=True)
            continue
        if column is not None:
            yield column


def _generated(spark: SparkSession, snapshot: Snapshot, name: str) -> GeneratedColumn | None:
    plan = snapshot.computed(name)
    root = SparkPlan.read(spark, plan, plan).root
    if not isinstance(root, Project) or root.made is None:
        return None
    path = key_path(root.made[root.output[0]])
    # The rows below have the columns of the table, whose names the expression may write in another case.
    columns = root.children[0].output
    if path is None or path.column not in columns:
        return None
    source = top_column(snapshot, snapshot.schema.names[columns.index(path.column)])
    column = top_column(snapshot, name)
    # Values from before a change of type were computed in the former type.
    changed = any(types_before(snapshot.schema[each.path[0]]) for each in (source, column))
    is_known = not changed and _has_types(path, source, column)
    return GeneratedColumn(name, source.path[0], path.functions) if is_known else None


def _has_types(path: KeyPath, source: Column, column: Column) -> bool:
    """True if the column has the type of its expression, and both have types whose statistics are known."""
    if source.type is None or column.type is None or source.type.is_float:
        return False
    return path.type == column.type


def top_column(snapshot: Snapshot, name: str) -> Column:
    """The top-level column of a name."""
    return resolve(
        snapshot.schema,
        quoted(name),
        table=snapshot.root,
        case_sensitive=True,
        partitions=snapshot.partition_columns,
    )


@dataclass(frozen=True, slots=True)
class Narrowing:
    """The statistics of one version, where those of a generated column and of its source narrow each other."""

    snapshot: Snapshot
    catalog: FileCatalog
    generated: tuple[GeneratedColumn, ...]

    def files(self, columns: Sequence[Column]) -> tuple[DeltaFiles, dict[str, ColumnStatistics]]:
        """The files, and the statistics of columns by `Column.name`; one Spark job fetches those that are missing."""
        logged = self.logged(columns)
        files, statistics = self.catalog.files(self.snapshot, [*logged.values()])
        family = _Family(self.catalog, logged, dict(zip(logged, statistics, strict=True)), self.generated)
        return files, {each.name: family.statistics(each.path) for each in columns if each.path in logged}

    def logged(self, columns: Iterable[Column]) -> dict[_Path, LogColumn]:
        """The columns that have a type, and those that tell of them, by `Column.path`."""
        wanted = {each.path: each for each in columns}
        inexact = {path for path, each in wanted.items() if not each.is_partition}
        for source in {each.source for each in self.generated if {(each.name,), (each.source,)} & inexact}:
            for name in (source, *(each.name for each in self.generated if each.source == source)):
                wanted.setdefault((name,), top_column(self.snapshot, name))
        typed = ((path, each, each.type) for path, each in wanted.items() if each.type is not None)
        return {path: self.snapshot.log_column(each, type_) for path, each, type_ in typed}


@dataclass(frozen=True, slots=True)
class _Family:
    """Columns by their paths, and their statistics as they are stored."""

    catalog: FileCatalog
    columns: Mapping[_Path, LogColumn]
    stored: Mapping[_Path, ColumnStatistics]
    generated: tuple[GeneratedColumn, ...]

    def statistics(self, path: _Path) -> ColumnStatistics:
        """The statistics of a column; values of partitions are exact."""
        sources = {each.source for each in self.generated if path in {(each.name,), (each.source,)}}
        if self.columns[path].is_partition or not sources:
            return self.stored[path]
        made = (each for each in self.generated if each.source in sources)
        related = {(name,) for each in made for name in (each.name, each.source)} & self.columns.keys()
        key = (path, *((each, key_of(self.columns[each])) for each in sorted(related)))
        return self.catalog.derived(key, partial(self._narrowed, path))

    def _narrowed(self, path: _Path) -> ColumnStatistics:
        found, type_ = self.stored[path], self.columns[path].type
        for each in self.generated:
            derived = None
            if path == (each.source,):
                derived = each.of_source(self.stored[each.name,], type_)
            elif path == (each.name,):
                derived = each.of_result(self.statistics((each.source,)), type_)
            found = found if derived is None else narrowed(found, derived)
        return found
