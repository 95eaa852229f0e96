"""One pruned read, step by step."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from connectors.base import OpaqueTable, Table
from connectors.columns import Column, quoted, resolve
from connectors.cost_rates import rates_of
from connectors.keys.inputs import Collected, KeyInput, collect_all, row_keys
from connectors.pipeline.frame_source import table_of_frame
from connectors.pipeline.records import PrunedScan
from connectors.registry import ViewFoundError, open_table
from connectors.scan.capabilities import capabilities_of
from connectors.scan.decision import decide
from connectors.scan.spark_scan import pruned_frame
from connectors.spark.jvm import error_kind
from connectors.spark.versions import version_refusal, warn_of_version
from pruning.errors import ColumnNotFoundError, InvalidKeysError, InvalidOptionError, PruningError
from pruning.options import PruningOptions
from pruning.reasons import Reason, ReasonCode
from pruning.results.verdict import verdict_of_scan
from pruning.scan.key_filter import KeyFilter
from pruning.scan.pushdown import PushdownCapabilities

logger = logging.getLogger("scanprune")


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """The arguments of a `pruned_read()`."""

    source: str | DataFrame
    keys: Mapping[str | tuple[str, ...], Any]
    columns: Sequence[str] | None
    format: str | None
    version: int | None
    timestamp: str | None
    options: PruningOptions
    exact: bool


def run(spark: SparkSession, request: ReadRequest) -> tuple[DataFrame, PrunedScan]:
    """The pruned DataFrame and its record."""
    rates = rates_of(spark, request.options)
    request = replace(request, options=request.options.with_limits(costs=rates))
    table, visible = _opened(spark, request)
    refusal = _refusal(spark, request.options)
    if refusal is not None or not request.options.enabled:
        table = OpaqueTable(
            table.name, table.connector, table.read(None), table.problems, table.version, table.partition_columns
        )
    case_sensitive = str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
    resolver = _Resolver(table, visible, case_sensitive=case_sensitive)
    inputs = [KeyInput(resolver.key_columns(names), data) for names, data in request.keys.items()]
    names = request.columns if visible is None or request.columns is not None else [quoted(name) for name in visible]
    projected = [resolver.column(name) for name in names] if names is not None else None
    collected = collect_all(spark, inputs, request.options, exact=request.exact, refusal=refusal)
    read = _read_of(projected)
    try:
        df, record = pruned_scan(spark, table, collected, read, request.options, exact=request.exact)
    except PruningError:
        raise
    except Exception as error:
        logger.debug("Pruning %s failed", table.name, exc_info=True)
        reason = Reason(ReasonCode.STATISTICS_FAILED, table.name, error_kind(error))
        whole = OpaqueTable(table.name, table.connector, table.read(None), (reason,), table.version)
        unknown = [replace(each, filter=KeyFilter.unknown(each.columns, "keys", reason)) for each in collected]
        df, record = pruned_scan(spark, whole, unknown, read, request.options, exact=request.exact)
    warn(table.name, record.reasons)
    return df, record


def _opened(spark: SparkSession, request: ReadRequest) -> tuple[Table, list[str] | None]:
    """The table of a request, and the columns that a DataFrame or view has of it; None for all."""
    source, limits = request.source, request.options.limits
    asked = (request.format, request.version, request.timestamp)
    if isinstance(source, DataFrame):
        if any(each is not None for each in asked):
            msg = (
                "Cannot read a DataFrame at another version or in another format: leave out format, version, timestamp"
            )
            raise InvalidOptionError(msg)
        return table_of_frame(spark, source, "a DataFrame", limits)
    format_, version, timestamp = asked
    try:
        table = open_table(spark, source, format_=format_, version=version, timestamp=timestamp, limits=limits)
    except ViewFoundError:
        if any(each is not None for each in asked):
            raise
        return table_of_frame(spark, spark.table(source), f"the view {source!r}", limits)
    return table, None


def _refusal(spark: SparkSession, options: PruningOptions) -> Reason | None:
    """The reason not to prune at all, although the options enable it: an unknown version of Spark."""
    refusal = version_refusal(spark) if options.enabled else None
    if refusal is not None:
        warn_of_version(spark)
    return refusal


@dataclass(frozen=True, slots=True)
class Read:
    """The top-level columns that are read, all if None, and the SQL expressions of the result."""

    columns: tuple[str, ...] | None = None
    selected: tuple[str, ...] | None = None


def _read_of(projected: Sequence[Column] | None) -> Read:
    if projected is None:
        return Read()
    return Read(tuple(column.path[0] for column in projected), tuple(column.selected_sql for column in projected))


def pruned_scan(  # noqa: PLR0913 - a table, its keys, and how to read it
    spark: SparkSession,
    table: Table,
    collected: Sequence[Collected],
    read: Read,
    options: PruningOptions,
    *,
    exact: bool = False,
    restricted: Callable[[PushdownCapabilities], PushdownCapabilities] | None = None,
    has_conditions: bool = False,
) -> tuple[DataFrame, PrunedScan]:
    """The scan and its record for collected keys: reads statistics, decides, builds the DataFrame.

    `restricted` gives the capabilities of the scan in a query, of those that it has by itself; `has_conditions` is True
    where the query has conditions of its own on it.
    """
    probes = {column.name: column for each in collected for column in each.columns}
    fields = {field.name: field.dataType for field in table.schema.fields}
    # A scan reads the whole top-level column of a nested leaf.
    tops = (
        fields if read.columns is None else dict.fromkeys((*read.columns, *(each.path[0] for each in probes.values())))
    )
    capabilities = capabilities_of(spark, table, [fields[name] for name in tops], probes.values(), exact=exact)
    capabilities = capabilities if restricted is None else restricted(capabilities)
    needed = None if read.columns is None else tuple(tops)
    decided = decide(table, [each.filter for each in collected], probes, needed, capabilities, options)
    decisions = zip(collected, decided.plan.decisions, strict=True)
    keys = [row_keys(spark, each, decision, options) for each, decision in decisions]
    verdict = verdict_of_scan(decided.plan, decided.files, decided.row_groups, has_conditions=has_conditions)
    text = f"scanprune: {verdict}" if verdict else ""
    df = pruned_frame(table, decided.plan, probes, keys, read.selected, options.limits, text)
    return df, PrunedScan.of(df, table, decided, needed, options)


@dataclass(frozen=True, slots=True)
class _Resolver:
    table: Table
    visible: Sequence[str] | None
    case_sensitive: bool

    def column(self, name: str) -> Column:
        column = resolve(
            self.table.schema,
            name,
            table=self.table.name,
            case_sensitive=self.case_sensitive,
            partitions=self.table.partition_columns,
        )
        if self.visible is not None and column.path[0] not in self.visible:
            msg = f"Cannot read {name!r}: the source has the columns {', '.join(self.visible)}"
            raise ColumnNotFoundError(msg)
        return column

    def key_columns(self, names: str | tuple[str, ...]) -> tuple[Column, ...]:
        asked = names if isinstance(names, tuple) else (names,)
        if not asked or not all(isinstance(name, str) for name in asked):
            msg = f"Cannot prune by {names!r}: expected a column name or a tuple of them"
            raise InvalidKeysError(msg)
        columns = tuple(self.column(name) for name in asked)
        if len({column.path for column in columns}) < len(columns):
            msg = f"Cannot prune by {names!r}: it names a column twice"
            raise InvalidKeysError(msg)
        return columns


_TROUBLE = {
    ReasonCode.BUILD_CANCELLED,
    ReasonCode.BUILD_FAILED,
    ReasonCode.BUILD_RAISED,
    ReasonCode.UNREPEATABLE_KEYS,
    ReasonCode.BUILD_TIMED_OUT,
    ReasonCode.STATISTICS_FAILED,
    ReasonCode.NOT_VECTORISED,
    ReasonCode.SKIPPING_DISABLED,
    ReasonCode.UNSUPPORTED_TYPE,
    ReasonCode.COLLATED,
    ReasonCode.CHAR_PADDED,
    ReasonCode.INEXACT_CAST,
}


# A join side that cannot be run beforehand is no failure, and a query with a cancelled build ends with an error. One
# whose expression fails for a row ends with this error, too, or the query drops that row before and is fine.
NO_FAILURE = frozenset({ReasonCode.UNREPEATABLE_KEYS, ReasonCode.BUILD_RAISED})
NO_TROUBLE = NO_FAILURE | {ReasonCode.BUILD_CANCELLED}


def warn(read: str, reasons: Sequence[Reason], *, besides: Collection[ReasonCode] = ()) -> None:
    """Logs one warning for failures, but not for those `besides`; a filter that is not worth it is no failure."""
    trouble = [reason for reason in reasons if reason.code in _TROUBLE and reason.code not in besides]
    if trouble:
        described = "; ".join(f"{each}; try: {each.remedy}" for each in trouble)
        logger.warning("Reading %s with less pruning than asked: %s", read, described)
