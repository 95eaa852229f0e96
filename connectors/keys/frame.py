"""Keys of a DataFrame, collected by one job: a partial summary for each partition, then one task that merges them.

However large the DataFrame is, no process holds more of its keys than the limits allow. If a query reads little, its
rows are first fetched and summarised on the driver, if they are few: a shuffle and Python workers cost ten times as
much as such a query itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import StructField, StructType

from connectors.columns import resolve
from connectors.jobs import runner as builds
from connectors.jobs.executed_plan import ExecutedPlan, broadcasts_released, executed_plan
from connectors.jobs.runner import Build
from connectors.keys.local import built
from connectors.keys.worker import PIECES_DDL, KeyColumns, merge_task, messages, partial_task
from connectors.registry import before_execution
from connectors.spark.jvm import analyzed_plan, frame_in, has_jvm, java_names, jvm_frame, optimized_plan
from pruning.errors import InvalidKeysError
from pruning.keys.builder import IncompleteBuildError, KeyBuilder
from pruning.keys.key_set import KeyLimits
from pruning.keys.summary import KeySummary
from pruning.options import PruningOptions
from pruning.reasons import Reason
from pruning.values.types import Physical, ValueType

_SOURCE_LENGTH = 80
# Partitions of a build on the driver: each gives up to `driver_rows` or `joined_rows`, and all of them share it.
DRIVER_PARTITIONS = 32
# Bytes of a key: one longer key has the workers collect all of them.
_DRIVER_KEY_BYTES = 256
# Bytes that such a build may read, since it runs a second time if it has too many rows for the driver.
_DRIVER_BUILD_BYTES = 64 << 20


def collect(spark: SparkSession, df: DataFrame, options: PruningOptions, name: str) -> KeySummary | Reason:
    """The summary of all rows of `df`, whose columns are the keys; `name` describes the probe columns.

    A `Reason` if a column has an unsupported type, or if the job fails or takes longer than
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
    """Rows that one job reads for several keys; at least `at_least` rows are known to exist."""

    df: DataFrame
    keys: tuple[KeyColumns, ...]
    at_least: int = 0

    @property
    def name(self) -> str:
        """The name of the keys for messages."""
        return ", ".join(each.name for each in self.keys)


def collected(
    frames: Sequence[KeyFrame],
    options: PruningOptions,
    run_all: Callable[[Sequence[Build[list[KeySummary]]]], Sequence[list[KeySummary] | Reason]],
) -> list[list[KeySummary] | Reason]:
    """The summaries of the keys of each frame, in order, by one build for each frame; `run_all` runs the builds."""
    return list(run_all([Build(each.name, partial(_collect, each, options)) for each in frames]))


def key_types(schema: StructType, name: str) -> Sequence[ValueType] | Reason:
    """The types of the key columns; a `Reason` if one is not supported."""
    if not schema.fields:
        msg = f"Cannot use keys of {name!r}: found a DataFrame without columns"
        raise InvalidKeysError(msg)
    types = []
    for field in schema.fields:
        # Renamed, since column names may be empty or duplicated.
        renamed = StructType([StructField("key", field.dataType, metadata=field.metadata)])
        column = resolve(renamed, "key", table=name, case_sensitive=True)
        if column.type is None:
            refusal = column.refusal
            assert refusal is not None  # noqa: S101
            # A build of one key names its column.
            which = f"key column {field.name!r}" if len(schema.fields) > 1 else "keys"
            return Reason(refusal.code, name, f"{which} of type {field.dataType.simpleString()}")
        types.append(column.type)
    return types


def _collect(frame: KeyFrame, options: PruningOptions) -> list[KeySummary]:
    limits = KeyLimits.of(options)
    df = frame.df.toDF(*(f"k{at}" for at in range(len(frame.df.columns))))
    types = {at: type_ for each in frame.keys for at, type_ in zip(each.places, each.types, strict=True)}
    few = few_rows(df, [types[at] for at in range(len(df.columns))], options, frame.at_least)
    if few is not None:
        return _summaries_here(frame, *few, limits)
    pieces = df.mapInArrow(partial_task(frame.keys, limits), PIECES_DDL)
    merged = pieces.repartition(1).mapInArrow(merge_task(frame.keys, limits), PIECES_DDL)
    with broadcasts_released(merged):
        received = sorted(messages(merged.toArrow().to_batches()))
    numbers = [number for number, _ in received]
    if numbers != list(range(len(frame.keys))):
        found = f"expected one message for each of {len(frame.keys)}, found messages {numbers}"
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


_NUMBER_BYTES = 8
_IS_LONG = "__is_long"


def few_rows(
    df: DataFrame, types: Sequence[ValueType], options: PruningOptions, at_least: int = 0
) -> tuple[DataFrame, pa.Table] | None:
    """All rows of `df` and the DataFrame that ran; None if it would read many bytes or gives too many rows.

    It is not run if `at_least`, the rows known to exist, are too many.
    """
    most = _most_rows(types, options)
    if most < 1 or most <= at_least or not has_jvm(df.sparkSession):
        return None
    cut = _limited(_shortened(df, types).coalesce(DRIVER_PARTITIONS), most)
    if _bytes_read(cut) > _DRIVER_BUILD_BYTES:
        return None
    with broadcasts_released(cut):
        rows = cut.toArrow()
    # A result with the limit of rows may have been cut.
    if rows.num_rows >= most or pc.any(rows.column(_IS_LONG)).as_py():
        return None
    return cut, rows.drop_columns(_IS_LONG)


def _shortened(df: DataFrame, types: Sequence[ValueType]) -> DataFrame:
    """The keys, with NULL for values that are too long, and a column that is True for rows with such a value."""
    too_long = {
        name: F.coalesce(F.octet_length(F.col(name)) > _DRIVER_KEY_BYTES, F.lit(False))  # noqa: FBT003
        for name, type_ in zip(df.columns, types, strict=True)
        if type_.physical is Physical.BYTES and type_.name != "decimal"
    }
    kept = [
        F.when(~too_long[name], F.col(name)).alias(name) if name in too_long else F.col(name) for name in df.columns
    ]
    return df.select(*kept, reduce(or_, too_long.values(), F.lit(False)).alias(_IS_LONG))  # noqa: FBT003


def _most_rows(types: Sequence[ValueType], options: PruningOptions) -> int:
    limits = options.limits
    is_long = any(each.physical is Physical.BYTES for each in types)
    width = (_DRIVER_KEY_BYTES if is_long else _NUMBER_BYTES) * len(types)
    most = limits.driver_long_rows if is_long else limits.driver_rows
    return min(most, limits.max_build_keys, options.max_build_bytes // width)


def _limited(df: DataFrame, most: int) -> DataFrame:
    """At most `most` rows of each partition, without the exchange that a global limit needs.

    If the result has fewer than `most` rows, it has all rows of `df`.
    """
    spark = df.sparkSession
    jvm = java_names(spark)
    count = jvm.org.apache.spark.sql.catalyst.expressions.Literal(
        most, jvm.org.apache.spark.sql.types.DataTypes.IntegerType
    )
    plan = jvm.org.apache.spark.sql.catalyst.plans.logical.LocalLimit(count, analyzed_plan(df))
    # In the session of the JVM that runs `df`, which may be another one than Python's.
    return frame_in(spark, jvm_frame(df).sparkSession(), plan)


def _bytes_read(df: DataFrame) -> int:
    """Spark's estimate of the bytes that a query reads; scans of listed files first get the query's conditions."""
    plan: Any = optimized_plan(df)
    before_execution(df.sparkSession, plan)
    leaves = plan.collectLeaves()
    return sum(int(str(leaves.apply(at).stats().sizeInBytes())) for at in range(leaves.size()))
