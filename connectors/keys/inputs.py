"""The entries of `keys`: each is collected into a filter, and available for the row filter that the plan chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from connectors.arrow_values import arrow_of, coded, value_type_of
from connectors.columns import Column
from connectors.jobs import runner as builds
from connectors.keys import frame as spark_keys
from connectors.keys import local as local_keys
from connectors.scan.spark_scan import RowKeys, keys_frame
from pruning.errors import InvalidKeysError
from pruning.keys.bitmap import Bitmap
from pruning.keys.bloom import BloomFilter
from pruning.keys.key_set import NAN_CODE, row_hashes
from pruning.keys.summary import KeySummary
from pruning.options import PruningOptions
from pruning.reasons import Reason, ReasonCode
from pruning.scan.key_filter import KeyFilter, key_filter
from pruning.scan.scan_plan import FilterDecision, RowFilter
from pruning.values.domain import Domain
from pruning.values.encoding import Codes
from pruning.values.types import ValueType

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class KeyInput:
    """The probe columns, and the caller's keys for them."""

    columns: tuple[Column, ...]
    data: Any

    @property
    def name(self) -> str:
        """The probe columns, for messages."""
        return ", ".join(column.name for column in self.columns)


@dataclass(frozen=True, slots=True)
class Collected:
    """The filter of one source, with the input of its row filter.

    `frame` returns the keys themselves if `summary` does not list them.
    """

    key_input: KeyInput
    filter: KeyFilter
    summary: KeySummary | None
    frame: DataFrame | None

    @property
    def columns(self) -> tuple[Column, ...]:
        """The probe columns."""
        return self.key_input.columns


def collect_all(
    spark: SparkSession,
    inputs: Sequence[KeyInput],
    options: PruningOptions,
    *,
    exact: bool,
    refusal: Reason | None = None,
) -> list[Collected]:
    """The filters of all sources, with builds run at the same time; a failed build gives a filter that is always true.

    With a `refusal` every filter is always true, and no build runs.
    """
    for key_input in inputs:
        _check(key_input, exact=exact)
    if refusal is not None or not options.enabled:
        refusals = [refusal or Reason(ReasonCode.SWITCHED_OFF, key_input.name) for key_input in inputs]
        return [_always_true(spark, *each, options, exact=exact) for each in zip(inputs, refusals, strict=True)]
    wanted = [(key_input.data, key_input.name) for key_input in inputs if isinstance(key_input.data, DataFrame)]
    results = iter(spark_keys.collect_all(spark, wanted, options))
    return [
        _from_frame(spark, key_input, next(results), options, exact=exact)
        if isinstance(key_input.data, DataFrame)
        else _from_local(spark, key_input, options, exact=exact)
        for key_input in inputs
    ]


def _check(key_input: KeyInput, *, exact: bool) -> None:
    """Raises an error for invalid keys that can be detected before collecting."""
    data = key_input.data
    if exact and isinstance(data, KeySummary) and not data.exact:
        msg = f"Cannot read just the keys of {key_input.name!r}: the summary does not hold each of them; pass the keys"
        raise InvalidKeysError(msg)
    if isinstance(data, DataFrame) and len(data.columns) != len(key_input.columns):
        found = f"found {len(data.columns)} columns, expected {len(key_input.columns)}"
        msg = f"Cannot use keys of {key_input.name!r}: {found}; select the key columns, in that order"
        raise InvalidKeysError(msg)


def _from_frame(
    spark: SparkSession, key_input: KeyInput, summary: KeySummary | Reason, options: PruningOptions, *, exact: bool
) -> Collected:
    if isinstance(summary, Reason):
        return _always_true(spark, key_input, summary, options, exact=exact)
    if not exact and (reason := _unrepeatable(summary)) is not None:
        # A later join runs the key query again and may need other keys. An exact read uses the keys of this moment.
        return _always_true(spark, key_input, reason, options, exact=exact)
    if summary.exact or not exact:
        return Collected(key_input, key_filter(key_input.columns, summary), summary, None)
    # The semi join reads the keys again, so it must read the keys that are summarised.
    frame, trouble = _pinned(spark, key_input.data.distinct(), key_input, options)
    if not trouble:
        again = spark_keys.collect(spark, frame, options, key_input.name)
        if isinstance(again, KeySummary):
            return Collected(key_input, key_filter(key_input.columns, again), again, frame)
        trouble = (again,)
    return Collected(key_input, KeyFilter.unknown(key_input.columns, "DataFrame", *trouble), None, frame)


def _unrepeatable(summary: KeySummary) -> Reason | None:
    return next((each for each in summary.reasons if each.code is ReasonCode.UNREPEATABLE_KEYS), None)


def _pinned(
    spark: SparkSession, keys: DataFrame, key_input: KeyInput, options: PruningOptions
) -> tuple[DataFrame, tuple[Reason, ...]]:
    """The keys pinned at this moment; if that fails, the unpinned keys and the reason."""
    result = builds.run(
        spark,
        keys.localCheckpoint,
        timeout=options.build_timeout_seconds,
        description=key_input.name,
    )
    if isinstance(result, Reason):
        return keys, (result, Reason(ReasonCode.UNPINNED_KEYS, key_input.name))
    return result, ()


def _from_local(spark: SparkSession, key_input: KeyInput, options: PruningOptions, *, exact: bool) -> Collected:
    refusals = [column.refusal for column in key_input.columns if column.refusal is not None]
    if refusals:
        return _always_true(spark, key_input, refusals[0], options, exact=exact)
    if isinstance(key_input.data, KeySummary):
        summary = local_keys.summary_of(key_input.data, _types(key_input), options, key_input.name)
        return Collected(key_input, key_filter(key_input.columns, summary), summary, None)
    table = local_keys.key_table(key_input.data, _types(key_input), key_input.name)
    summary = local_keys.summary_of_table(table, options, key_input.name, source=type(key_input.data).__name__)
    frame = _table_frame(spark, table) if exact and not summary.exact else None
    return Collected(key_input, key_filter(key_input.columns, summary), summary, frame)


def _types(key_input: KeyInput) -> list[ValueType]:
    return [column.type for column in key_input.columns if column.type is not None]


def _always_true(
    spark: SparkSession, key_input: KeyInput, reason: Reason, options: PruningOptions, *, exact: bool
) -> Collected:
    kind = type(key_input.data).__name__
    if not exact:
        return Collected(key_input, KeyFilter.unknown(key_input.columns, kind, reason), None, None)
    frame = _keys_again(spark, key_input)
    trouble: tuple[Reason, ...] = ()
    if isinstance(key_input.data, DataFrame):
        if reason.code is ReasonCode.BUILD_TIMED_OUT:
            # The first attempt reached the timeout, so keys are not collected a second time.
            trouble = (Reason(ReasonCode.UNPINNED_KEYS, key_input.name),)
        else:
            frame, trouble = _pinned(spark, frame, key_input, options)
    return Collected(key_input, KeyFilter.unknown(key_input.columns, kind, reason, *trouble), None, frame)


def _keys_again(spark: SparkSession, key_input: KeyInput) -> DataFrame:
    """The keys as a DataFrame, used only for a semi join."""
    if isinstance(key_input.data, DataFrame):
        return key_input.data
    if isinstance(key_input.data, KeySummary):
        return keys_frame(spark, key_input.data.types, key_arrays(key_input.data))[0]
    if len(_types(key_input)) == len(key_input.columns):
        return _table_frame(spark, local_keys.key_table(key_input.data, _types(key_input), key_input.name))
    return _untyped_frame(spark, key_input)


def _table_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A DataFrame of keys that are too many for an exact summary, without NULL, which equals nothing."""
    present = table.drop_null()
    types = [value_type_of(column.type) for column in present.columns]
    arrays = [_typed_array(column, type_) for column, type_ in zip(present.columns, types, strict=True)]
    return keys_frame(spark, types, arrays)[0]


def _typed_array(column: pa.ChunkedArray, type_: ValueType) -> pa.Array:
    """The values in the Arrow type that Spark reads as `type_`; floats without codes, since NaN has no code."""
    flat = column.combine_chunks()
    return flat.cast(type_.name) if type_.is_float else arrow_of(type_, coded(flat, type_).codes)


def _untyped_frame(spark: SparkSession, key_input: KeyInput) -> DataFrame:
    """A DataFrame of local keys in the probe columns' types, for types that only Spark can compare."""
    fields = [StructField(f"k{at}", column.spark_type) for at, column in enumerate(key_input.columns)]
    rows = [value if isinstance(value, tuple) else (value,) for value in _plain_values(key_input)]
    if any(len(row) != len(fields) for row in rows):
        msg = f"Cannot use keys of {key_input.name!r}: expected {len(fields)} values in each; pass them as a DataFrame"
        raise InvalidKeysError(msg)
    return spark.createDataFrame(rows, StructType(fields))


def _plain_values(key_input: KeyInput) -> list[Any]:
    match key_input.data:
        case pa.Array() | pa.ChunkedArray():
            return key_input.data.to_pylist()  # type: ignore[no-any-return]
        case np.ndarray() if key_input.data.ndim == 1:
            return list(key_input.data.tolist())
        case list() | tuple() | set() | frozenset() | range():
            return list(key_input.data)
        case _:
            types = ", ".join(column.spark_type.simpleString() for column in key_input.columns)
            found = type(key_input.data).__name__
            msg = f"Cannot use keys of {key_input.name!r}: found a {found} for {types}; pass them as a DataFrame"
            raise InvalidKeysError(msg)


def row_keys(spark: SparkSession, collected: Collected, decision: FilterDecision, options: PruningOptions) -> RowKeys:
    """The input of the row filter of a decision; empty for a row filter by literals."""
    summary = collected.summary
    match decision.test:
        case RowFilter.SEMI_JOIN if summary is not None and summary.exact:
            frame, broadcast = keys_frame(spark, summary.types, key_arrays(summary))
            return RowKeys(collected.columns, frame, broadcast)
        case RowFilter.SEMI_JOIN:
            return RowKeys(collected.columns, collected.frame)
        case RowFilter.BITMAP:
            (domain,) = decision.filter.domains.values()
            return RowKeys(collected.columns, bitmap=Bitmap.of(np.asarray(domain.ranges.points())))
        case RowFilter.BLOOM if summary is not None:
            return _bloom_keys(collected, summary, options)
        case _:
            return RowKeys(collected.columns)


def key_arrays(summary: KeySummary) -> list[pa.Array]:
    """The keys of an exact summary, an array for each column."""
    rows = summary.key_rows.columns if summary.key_rows is not None else (_points(summary.domains[0]),)
    return [arrow_of(type_, codes) for type_, codes in zip(summary.types, rows, strict=True)]


def _points(domain: Domain) -> Codes:
    """Every value of an exact domain, NaN as its code."""
    points = domain.ranges.points()
    return np.append(points, NAN_CODE) if domain.nan and isinstance(points, np.ndarray) else points


def _bloom_keys(collected: Collected, summary: KeySummary, options: PruningOptions) -> RowKeys:
    columns, filter_ = collected.columns, collected.filter
    if filter_.is_exact and columns[0].type is not None:
        points = _points(filter_.domains[columns[0].name])
        return RowKeys(
            columns, bloom=_bloom_bytes([columns[0].type], (points,), options), bloom_columns=(columns[0].sql,)
        )
    texts = tuple(
        column.sql if column.type == key else f"try_cast({column.sql} AS {key})"
        for column, key in zip(columns, summary.types, strict=True)
    )
    if summary.bloom is not None:
        return RowKeys(columns, bloom=summary.bloom.to_bytes(), bloom_columns=texts)
    rows = summary.key_rows.columns if summary.key_rows is not None else ()
    return RowKeys(columns, bloom=_bloom_bytes(summary.types, rows, options), bloom_columns=texts)


def _bloom_bytes(types: Sequence[ValueType], rows: Sequence[Codes], options: PruningOptions) -> bytes | None:
    """Spark's binary form of a bloom filter of the rows, hashed block by block to save memory; None if too large."""
    count = len(rows[0]) if rows else 0
    bloom = BloomFilter.of_capacity(count, options.limits.bloom_fpp)
    if not isinstance(bloom, BloomFilter):
        return None
    for begin in range(0, count, _BLOCK):
        block = np.arange(begin, min(begin + _BLOCK, count))
        bloom = bloom.adding(row_hashes(types, tuple(codes.take(block) for codes in rows)))
    return bloom.to_bytes()
