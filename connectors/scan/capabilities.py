"""Capabilities of a session's scans for pushed predicates, and settings that only Spark's reader follows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
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
from connectors.spark.confs import Confs
from connectors.spark.jvm import analyzed_plan, has_jvm
from pruning.reasons import ReasonCode
from pruning.scan.pushdown import PushdownCapabilities

_PARQUET_PUSHDOWN = "spark.sql.parquet.filterPushdown"
# The confs that switch on predicates of the reader for single types.
_PUSHDOWN_OF = {
    DateType: f"{_PARQUET_PUSHDOWN}.date",
    DecimalType: f"{_PARQUET_PUSHDOWN}.decimal",
    TimestampType: f"{_PARQUET_PUSHDOWN}.timestamp",
}
_NESTED_PUSHDOWN = "spark.sql.optimizer.nestedPredicatePushdown.supportedFileSources"
# Spark's Parquet reader has no predicate for timestamps without a zone.
_NOT_PUSHED = {TimestampNTZType()}


def capabilities_of(
    spark: SparkSession, table: Table, types: Iterable[DataType], probes: Iterable[Column], *, exact: bool
) -> PushdownCapabilities:
    """The capabilities of a scan of `table` that reads columns of `types` and is filtered on `probes`."""
    columns = tuple(probes)
    confs = Confs.of(spark, _names(table))
    return PushdownCapabilities(
        accepts_file_list=table.accepts_file_list,
        push_refusal=_push_refusal(confs, table, types),
        tests_keys=has_jvm(spark),
        must_be_exact=exact,
        widen=table.storage_safe_ranges,
        file_only=frozenset(column.name for column in columns if not _reaches_row_groups(confs, column)),
        pushes_without_statistics=not has_jvm(spark),
    )


def _names(table: Table) -> tuple[str, ...]:
    """The confs that the capabilities of a scan may depend on."""
    own = *table.connector.vectorised_confs, table.connector.skipping_conf
    return *own, _PARQUET_PUSHDOWN, *_PUSHDOWN_OF.values(), _NESTED_PUSHDOWN


def _push_refusal(confs: Confs, table: Table, types: Iterable[DataType]) -> ReasonCode | None:
    """The reason not to push predicates; None if they may be pushed."""
    nested = any(isinstance(each, StructType | ArrayType | MapType | UserDefinedType) for each in types)
    vectorised = table.connector.vectorised_confs if nested else table.connector.vectorised_confs[:1]
    if not all(confs.is_on(each) for each in vectorised):
        return ReasonCode.NOT_VECTORISED
    return None if confs.is_on(table.connector.skipping_conf) else ReasonCode.SKIPPING_DISABLED


def skipping_switched_off(spark: SparkSession, table: Table, columns: Iterable[Column]) -> str | None:
    """The conf, if any, by which the session forbids readers to skip by statistics of files or row groups.

    Readers follow the conf, vectorised or not.
    """
    confs = [
        table.connector.skipping_conf,
        _PARQUET_PUSHDOWN,
        *(conf for each in columns for conf in _pushdown_confs(each)),
    ]
    found = Confs.of(spark, confs)
    return next((conf for conf in confs if not found.is_on(conf)), None)


def _pushdown_confs(column: Column) -> list[str]:
    return [_PARQUET_PUSHDOWN, *(conf for kind, conf in _PUSHDOWN_OF.items() if isinstance(column.spark_type, kind))]


def _reaches_row_groups(confs: Confs, column: Column) -> bool:
    """True if Spark's Parquet reader takes a predicate on the column, or needs none, as on a partition column."""
    if column.is_partition:
        return True
    if len(column.path) > 1 and not _pushes_nested(confs):
        return False
    return column.spark_type not in _NOT_PUSHED and all(map(confs.is_on, _pushdown_confs(column)))


def _pushes_nested(confs: Confs) -> bool:
    """True if Spark hands predicates on fields of a column to Parquet files."""
    sources = confs.values.get(_NESTED_PUSHDOWN, "parquet,orc")
    return "parquet" in {each.strip().lower() for each in sources.split(",")}


# With these confs Spark skips missing or corrupt files, so metadata does not tell which rows remain.
_IGNORING = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
# Parquet's setting by which its reader fails at a page with a wrong checksum.
_CHECKSUMS = "parquet.page.verify-checksum.enabled"
# Options of a single read with the same effect, which override the session's confs.
_OPTIONS = ("ignorecorruptfiles", "ignoremissingfiles", "datetimerebasemode", _CHECKSUMS)
# The prefix of options that set file system settings for a single read.
_FILE_SYSTEM_OPTIONS = "fs."


def lenient_settings(whole: DataFrame) -> list[str]:
    """Settings with which a read may give other rows than metadata tells, or skips missing files."""
    confs = Confs.of(whole.sparkSession, _IGNORING)
    options = str(_relation(whole).options().keys().mkString(" ")).lower().split()
    found = [name for name in _IGNORING if confs.values.get(name, "").lower() == "true"]
    return [*found, *(each for each in options if each in _OPTIONS or each.startswith(_FILE_SYSTEM_OPTIONS))]


def _relation(whole: DataFrame) -> Any:
    leaves: Any = analyzed_plan(whole).collectLeaves()
    return leaves.head().relation()
