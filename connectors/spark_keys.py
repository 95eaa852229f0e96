"""Keys of a DataFrame, collected by one job: a partial summary for each partition, then one task that merges them.

The rows of a query that reads little are summarised on the driver instead (see `few_keys`). However
large the DataFrame is, no process holds more of its keys than the limits allow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from connectors import builds
from connectors.builds import Build
from connectors.columns import resolve
from connectors.executed_plan import ExecutedPlan, executed_plan
from connectors.few_keys import few_rows
from connectors.key_tasks import PIECES_DDL, KeyColumns, merge_task, messages, partial_task
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
    types = [key_types(df.schema, name) for df, name in frames]
    wanted = [
        KeyFrame(df, (KeyColumns(name, tuple(range(len(found))), tuple(found)),))
        for (df, name), found in zip(frames, types, strict=True)
        if not isinstance(found, Reason)
    ]
    results = iter(collected(wanted, options, run_all))
    return [found if isinstance(found, Reason) else _first(next(results)) for found in types]


def _first(found: list[KeySummary] | Reason) -> KeySummary | Reason:
    return found if isinstance(found, Reason) else found[0]


@dataclass(frozen=True, slots=True)
class KeyFrame:
    """Rows that one job reads for several keys; it is known that there are `at_least` so many."""

    df: DataFrame
    keys: tuple[KeyColumns, ...]
    at_least: int = 0

    @property
    def name(self) -> str:
        """What the keys filter, for messages."""
        return ", ".join(each.name for each in self.keys)


def collected(
    frames: Sequence[KeyFrame],
    options: PruningOptions,
    run_all: Callable[[Sequence[Build[list[KeySummary]]]], Sequence[list[KeySummary] | Reason]],
) -> list[list[KeySummary] | Reason]:
    """The summaries of the keys of each frame, in their order, by one build for each frame; `run_all` runs them."""
    limits = KeyLimits.of(options)
    return list(run_all([Build(each.name, partial(_collect, each, limits)) for each in frames]))


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


def _collect(frame: KeyFrame, limits: KeyLimits) -> list[KeySummary]:
    df = frame.df.toDF(*(f"k{at}" for at in range(len(frame.df.columns))))
    types = {at: type_ for each in frame.keys for at, type_ in zip(each.places, each.types, strict=True)}
    few = few_rows(df, [types[at] for at in range(len(df.columns))], limits, frame.at_least)
    if few is not None:
        return _summaries_here(frame, *few, limits)
    pieces = df.mapInArrow(partial_task(frame.keys, limits), PIECES_DDL)
    merged = pieces.repartition(1).mapInArrow(merge_task(frame.keys, limits), PIECES_DDL)
    with broadcasts_released(merged):
        received = sorted(messages(merged.toArrow().to_batches()))
    numbers = [number for number, _ in received]
    if numbers != list(range(len(frame.keys))):
        found = f"expected one message for each of {len(frame.keys)}, found those of the numbers {numbers}"
        msg = f"Cannot collect the keys of {frame.name}: {found}"
        raise IncompleteBuildError(msg)
    ran = executed_plan(merged, frame.name)
    builders = [KeyBuilder.from_bytes(message) for _, message in received]
    return [
        _finished(frame, at, builder, builder.partitions_seen if ran.tasks is None else ran.tasks, ran)
        for at, builder in enumerate(builders)
    ]


def _summaries_here(frame: KeyFrame, ran: DataFrame, rows: pa.Table, limits: KeyLimits) -> list[KeySummary]:
    plan, share = executed_plan(ran, frame.name), limits.shared(len(frame.keys))
    return [
        _finished(frame, at, built(rows.select(list(each.places)), each.types, share), 1, plan)
        for at, each in enumerate(frame.keys)
    ]


def _finished(frame: KeyFrame, at: int, builder: KeyBuilder, partitions: int, ran: ExecutedPlan) -> KeySummary:
    keys = frame.keys[at]
    return builder.finish(
        partitions,
        source=_source([frame.df.columns[place] for place in keys.places]),
        subject=keys.name,
        versions=ran.versions,
        reasons=[replace(each, subject=keys.name) for each in ran.reasons],
    )


def _source(columns: Sequence[str]) -> str:
    text = f"DataFrame({', '.join(columns)})"
    return text if len(text) <= _SOURCE_LENGTH else f"{text[: _SOURCE_LENGTH - 4]}...)"
