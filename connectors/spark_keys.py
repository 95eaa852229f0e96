"""Keys of a DataFrame, collected by one job: a partial summary for each partition, then one task that merges them.

The rows of a query that reads little are summarised on the driver instead (see `few_keys`). However
large the DataFrame is, no process holds more of its keys than the limits allow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from connectors import builds
from connectors.builds import Build
from connectors.columns import resolve
from connectors.executed_plan import executed_plan
from connectors.few_keys import few_rows
from connectors.key_tasks import PIECES_DDL, merge_task, messages, partial_task
from connectors.local_keys import built
from connectors.plan_broadcasts import broadcasts_released
from pruning.errors import InvalidKeysError
from pruning.key_builder import IncompleteBuildError, KeyBuilder
from pruning.key_sets import KeyLimits
from pruning.key_summary import KeySummary
from pruning.options import PruningOptions
from pruning.reasons import Reason
from pruning.value_type import ValueType

_SOURCE_LENGTH = 80


def collect(spark: SparkSession, df: DataFrame, options: PruningOptions, name: str) -> KeySummary | Reason:
    """The summary of all rows of `df`, whose columns are the keys; `name` says what they filter.

    A `Reason` where a column's type cannot be pruned by, and where the job fails or takes longer than
    `options.build_timeout_seconds`.
    """
    (result,) = collect_all(spark, [(df, name)], options)
    return result


def collect_all(
    spark: SparkSession, frames: Sequence[tuple[DataFrame, str]], options: PruningOptions
) -> list[KeySummary | Reason]:
    """The result of `collect` for each DataFrame and name, collected at the same time."""
    run_all = partial(builds.run_all, spark, timeout=options.build_timeout_seconds)
    return collected([(df, name, 0) for df, name in frames], options, run_all)


def collected(
    frames: Sequence[tuple[DataFrame, str, int]],
    options: PruningOptions,
    run_all: Callable[[Sequence[Build[KeySummary]]], Sequence[KeySummary | Reason]],
) -> list[KeySummary | Reason]:
    """The same by builds that `run_all` runs; of each DataFrame it is known that it has so many rows at least."""
    prepared = [_prepared(*each, options) for each in frames]
    results = iter(run_all([each for each in prepared if isinstance(each, Build)]))
    return [next(results) if isinstance(each, Build) else each for each in prepared]


def _prepared(df: DataFrame, name: str, at_least: int, options: PruningOptions) -> Build[KeySummary] | Reason:
    types = key_types(df.schema, name)
    if isinstance(types, Reason):
        return types
    return Build(name, lambda: _collect(df, types, KeyLimits.of(options), name, at_least))


def key_types(schema: StructType, name: str) -> Sequence[ValueType] | Reason:
    """The types of keys with such columns; a `Reason` where one cannot be pruned by."""
    if not schema.fields:
        msg = f"Cannot use keys of {name!r}: found a DataFrame without columns"
        raise InvalidKeysError(msg)
    types = []
    for field in schema.fields:
        # Under a name of our own, since theirs may be empty or occur twice.
        renamed = StructType([StructField("key", field.dataType, metadata=field.metadata)])
        column = resolve(renamed, "key", table=name, case_sensitive=True)
        if column.type is None:
            refusal = column.refusal
            assert refusal is not None  # noqa: S101
            return Reason(refusal.code, name, f"key column {field.name!r} of type {field.dataType.simpleString()}")
        types.append(column.type)
    return types


def _collect(df: DataFrame, types: Sequence[ValueType], limits: KeyLimits, name: str, at_least: int) -> KeySummary:
    keys = df.toDF(*(f"k{at}" for at in range(len(types))))
    few = few_rows(keys, types, limits, at_least)
    if few is not None:
        return _summary_here(df, *few, types, limits, name)
    pieces = keys.mapInArrow(partial_task(types, limits), PIECES_DDL)
    merged = pieces.repartition(1).mapInArrow(merge_task(types, limits), PIECES_DDL)
    with broadcasts_released(merged):
        received = list(messages(merged.toArrow().to_batches()))
    if len(received) != 1:
        msg = f"Cannot collect the keys of {name}: expected one message, found {len(received)}"
        raise IncompleteBuildError(msg)
    builder = KeyBuilder.from_bytes(received[0])
    ran = executed_plan(merged, name)
    return builder.finish(
        builder.partitions_seen if ran.tasks is None else ran.tasks,
        source=_source(df),
        subject=name,
        versions=ran.versions,
        reasons=ran.reasons,
    )


def _summary_here(  # noqa: PLR0913, PLR0917 - what a summary is made of
    df: DataFrame, ran: DataFrame, rows: pa.Table, types: Sequence[ValueType], limits: KeyLimits, name: str
) -> KeySummary:
    plan = executed_plan(ran, name)
    return built(rows, types, limits).finish(
        1, source=_source(df), subject=name, versions=plan.versions, reasons=plan.reasons
    )


def _source(df: DataFrame) -> str:
    text = f"DataFrame({', '.join(df.columns)})"
    return text if len(text) <= _SOURCE_LENGTH else f"{text[: _SOURCE_LENGTH - 4]}...)"
