"""What a session's scans can do with a plan, read from its configuration and the columns asked for."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DecimalType,
    MapType,
    StructType,
    TimestampNTZType,
    TimestampType,
    UserDefinedType,
)

from connectors.base import Table
from connectors.columns import Column
from connectors.storage import has_jvm
from pruning.reasons import ReasonCode
from pruning.scan_abilities import ScanAbilities

_VECTORISED = "spark.sql.parquet.enableVectorizedReader"
_NESTED_VECTORISED = "spark.sql.parquet.enableNestedColumnVectorizedReader"
_PARQUET_PUSHDOWN = "spark.sql.parquet.filterPushdown"
# Types of which a conf alone says whether the reader takes a predicate.
_PUSHDOWN_OF = {
    DateType: f"{_PARQUET_PUSHDOWN}.date",
    DecimalType: f"{_PARQUET_PUSHDOWN}.decimal",
    TimestampType: f"{_PARQUET_PUSHDOWN}.timestamp",
}
_NESTED_PUSHDOWN = "spark.sql.optimizer.nestedPredicatePushdown.supportedFileSources"
_DELTA_SKIPPING = "spark.databricks.delta.stats.skipping"
# Without a zone, a timestamp has no counterpart among the predicates that the reader can write for Parquet.
_NOT_PUSHED = {TimestampNTZType()}


def abilities_of(
    spark: SparkSession, table: Table, types: Iterable[DataType], probes: Iterable[Column], *, exact: bool
) -> ScanAbilities:
    """The abilities of a scan of `table` that reads columns of these `types` and is filtered on `probes`."""
    return ScanAbilities(
        names_files=table.names_files,
        push_refusal=_push_refusal(spark, table, types),
        tests_bloom=has_jvm(spark),
        must_be_exact=exact,
        widen=table.widened,
        file_only=frozenset(column.name for column in probes if not _reaches_row_groups(spark, column)),
        pushes_blindly=not has_jvm(spark),
    )


def _push_refusal(spark: SparkSession, table: Table, types: Iterable[DataType]) -> ReasonCode | None:
    """Page skipping in the row-by-row reader of parquet-java can return a value of another row (parquet-java#3747)."""
    nested = any(isinstance(each, StructType | ArrayType | MapType | UserDefinedType) for each in types)
    if not _is_on(spark, _VECTORISED) or (nested and not _is_on(spark, _NESTED_VECTORISED)):
        return ReasonCode.NOT_VECTORISED
    return None if _is_on(spark, _skipping_conf(table)) else ReasonCode.SKIPPING_DISABLED


def skipping_switched_off(spark: SparkSession, table: Table, columns: Iterable[Column]) -> str | None:
    """The conf, if any, by which the session tells readers not to trust statistics of files or row groups.

    It counts for a reader of our own as for Spark's, be the scan vectorised or not.
    """
    confs = [_skipping_conf(table), _PARQUET_PUSHDOWN, *(conf for each in columns for conf in _pushdown_confs(each))]
    return next((conf for conf in confs if not _is_on(spark, conf)), None)


def _skipping_conf(table: Table) -> str:
    return _DELTA_SKIPPING if table.format == "delta" else _PARQUET_PUSHDOWN


def _pushdown_confs(column: Column) -> list[str]:
    return [_PARQUET_PUSHDOWN, *(conf for kind, conf in _PUSHDOWN_OF.items() if isinstance(column.spark_type, kind))]


def _reaches_row_groups(spark: SparkSession, column: Column) -> bool:
    """Whether Spark's Parquet reader takes a predicate on the column; one on a partition column never needs it."""
    if column.is_partition:
        return True
    if len(column.path) > 1 and not _pushes_nested(spark):
        return False
    return column.spark_type not in _NOT_PUSHED and all(_is_on(spark, conf) for conf in _pushdown_confs(column))


def _pushes_nested(spark: SparkSession) -> bool:
    """Whether Spark hands predicates on fields of a column to Parquet files."""
    sources = str(spark.conf.get(_NESTED_PUSHDOWN, "parquet,orc"))
    return "parquet" in {each.strip().lower() for each in sources.split(",")}


def _is_on(spark: SparkSession, conf: str) -> bool:
    return str(spark.conf.get(conf, "true")).lower() != "false"
