"""What a session, a read or a table asks of Spark's own reader that no other one does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from connectors.abilities import skipping_switched_off
from connectors.base import Table
from connectors.columns import Column
from pruning.reasons import Reason, ReasonCode

# With these Spark reads on where a file is gone or broken; what is then read is Spark's to say.
_IGNORING = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
# Parquet's own setting, by which its reader fails at a page whose bytes are not those that were written.
_CHECKSUMS = "parquet.page.verify-checksum.enabled"
# The same as options of one read, which go before the session's.
_OPTIONS = ("ignorecorruptfiles", "ignoremissingfiles", "datetimerebasemode", _CHECKSUMS)
# By these a read has settings of file systems of its own.
_FILE_SYSTEM_OPTIONS = "fs."


def reader_refusal(spark: SparkSession, table: Table, whole: DataFrame, compared: Sequence[Column]) -> Reason | None:
    """Why Spark's reader has to read a table; `compared` are the columns by which containers are skipped."""
    if (why := next(_reasons(spark, whole), None)) is not None:
        return Reason(ReasonCode.NOT_READ_BY_ARROW, table.name, why)
    conf = skipping_switched_off(spark, table, compared)
    return None if conf is None else Reason(ReasonCode.SKIPPING_DISABLED, table.name, conf)


def lenient_settings(whole: DataFrame) -> list[str]:
    """Settings by which Spark's reader may give other rows than another one, or go on where files are gone."""
    conf = whole.sparkSession.conf
    options = str(_relation(whole).options().keys().mkString(" ")).lower().split()
    found = [name for name in _IGNORING if str(conf.get(name, "false")).lower() == "true"]
    return [*found, *(each for each in options if each in _OPTIONS or each.startswith(_FILE_SYSTEM_OPTIONS))]


def _relation(whole: DataFrame) -> Any:
    leaves: Any = whole._jdf.queryExecution().analyzed().collectLeaves()  # noqa: SLF001 - no other door
    return leaves.head().relation()


def _reasons(spark: SparkSession, whole: DataFrame) -> Iterator[str]:
    """By which Spark's reader may give other rows, go on where another fails, or fail where another goes on."""
    yield from (f"{each} is set" for each in lenient_settings(whole))
    if _has_checksums(spark):
        yield f"{_CHECKSUMS} is set"
    session: Any = spark._jsparkSession  # noqa: SLF001 - no other door
    if _relation(whole).bucketSpec().isDefined() and session.sessionState().conf().bucketingEnabled():
        yield "it is bucketed, so its rows may be where a join wants them"


def _has_checksums(spark: SparkSession) -> bool:
    # A session's own settings are Hadoop's, too, and go before those of the context.
    hadoop: Any = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 - no other door
    return str(spark.conf.get(_CHECKSUMS, hadoop.get(_CHECKSUMS, "false"))).strip().lower() == "true"
