"""A DataFrame that reads one version of a Delta table, or an error that says what was requested and found."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  its usual name

from connectors.columns import quoted, split_name
from connectors.delta.log import file_index
from connectors.spark.files import exists, is_name
from connectors.spark.jvm import has_jvm, java_message
from connectors.spark.session import delta_remedy
from pruning.errors import (
    EnvironmentProblem,
    InvalidOptionError,
    PruningError,
    SourceNotFoundError,
)

_LOG = "_delta_log"
VERSION_OPTION = "versionAsOf"
TIMESTAMP_OPTION = "timestampAsOf"
_CONDITION = re.compile(r"^\[[A-Z_.0-9]+\] ")
_ERROR_LENGTH = 300
_NO_TABLE = {
    "PATH_NOT_FOUND",
    "TABLE_OR_VIEW_NOT_FOUND",
    "SCHEMA_NOT_FOUND",
    "DELTA_TABLE_NOT_FOUND",
    "DELTA_PATH_DOES_NOT_EXIST",
    "DELTA_MISSING_DELTA_TABLE",
    "DELTA_INVALID_PARTITION_PATH",
    "PARSE_SYNTAX_ERROR",
    "PARSE_EMPTY_STATEMENT",
    "INVALID_IDENTIFIER",
    "REQUIRES_SINGLE_PART_NAMESPACE",
}
_NO_DELTA = {"DATA_SOURCE_NOT_FOUND", "DELTA_CONFIGURE_SPARK_SESSION_WITH_EXTENSION_AND_CATALOG"}
# Spark's error without a condition, which only names the class that it looked for last.
_NO_DELTA_CLASS = "delta.DefaultSource"


def pinned_frame(spark: SparkSession, source: str, version: int | None, timestamp: str | None) -> tuple[DataFrame, Any]:
    """The table at `version` or `timestamp`, else as it is at this moment, and its file index in the JVM.

    Whatever is committed later, the DataFrame reads the same files. Raises `SourceNotFoundError`,
    `InvalidOptionError` or `EnvironmentProblem`.
    """
    df = _load(spark, source, _options(source, version, timestamp))
    index = _index_of(df, source)
    if not index.isTimeTravelQuery():
        # Without a version a scan looks for the newest one each time that it is planned.
        df = _load(spark, source, {VERSION_OPTION: str(index.snapshotAtAnalysis().version())})
        index = _index_of(df, source)
    return df, index


def publicly_pinned_frame(
    spark: SparkSession, source: str, version: int | None, timestamp: str | None
) -> tuple[DataFrame, int]:
    """The table at a version by Spark's public API alone, and the version, which is read from the table's history.

    This is for Spark Connect, and for a version of Spark whose internals are unknown.
    """
    options = _options(source, version, timestamp)
    df = _load(spark, source, options)
    if version is None:
        version = _version_in_history(spark, source, timestamp)
        df = _load(spark, source, {VERSION_OPTION: str(version)})
    return df, version


def _options(source: str, version: int | None, timestamp: str | None) -> dict[str, str]:
    if version is not None and timestamp is not None:
        msg = f"Cannot read both version {version} and timestamp {timestamp!r} of {source!r}: give one of them"
        raise InvalidOptionError(msg)
    given: object = version
    if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < 0):
        msg = f"Cannot read version {version!r} of {source!r}: expected a whole number from 0"
        raise InvalidOptionError(msg)
    if timestamp is not None:
        return {TIMESTAMP_OPTION: timestamp}
    return {} if version is None else {VERSION_OPTION: str(version)}


def _load(spark: SparkSession, source: str, options: Mapping[str, str]) -> DataFrame:
    reader = spark.read.format("delta").options(**options)
    try:
        df = reader.table(source) if is_name(spark, source) else reader.load(source)
        df.schema  # noqa: B018 - a remote session analyses the query here
    except (PySparkException, Py4JError) as error:
        raise _explained(source, options, error) from error
    return df


def _index_of(df: DataFrame, source: str) -> Any:
    index = file_index(df)
    if index is None:
        msg = f"Cannot read {source!r} as one Delta table: name the table itself, not a view or a partition of it"
        raise SourceNotFoundError(msg)
    return index


def _version_in_history(spark: SparkSession, source: str, timestamp: str | None) -> int:
    name = ".".join(map(quoted, split_name(source))) if is_name(spark, source) else f"delta.{quoted(source)}"
    history = spark.sql(f"DESCRIBE HISTORY {name}")
    if timestamp is not None:
        history = history.where(F.col("timestamp") <= F.lit(timestamp).cast("timestamp"))
    return int(history.agg(F.max("version")).collect()[0][0])


def _explained(source: str, options: Mapping[str, str], error: PySparkException | Py4JError) -> PruningError:
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    text = str(error) if isinstance(error, PySparkException) else java_message(error)
    # The query or a stack trace follows after a blank line.
    found = _CONDITION.sub("", " ".join(text.strip().split("\n\n")[0].split()))[:_ERROR_LENGTH]
    asked = "".join(f" at {name[:-4]} {value!r}" for name, value in options.items())
    if condition in _NO_DELTA or _NO_DELTA_CLASS in text:
        msg = f"Cannot read {source!r}: this session lacks Delta Lake; {delta_remedy()}"
        return EnvironmentProblem(msg)
    if condition in _NO_TABLE:
        msg = f"No Delta table {source!r}: expected a directory that holds _delta_log, or a table of the catalog"
        return SourceNotFoundError(msg)
    return SourceNotFoundError(f"Cannot read Delta table {source!r}{asked}: {found}")


def has_log(spark: SparkSession, source: str) -> bool:
    """True if a path holds a log; `SourceNotFoundError` if the path cannot be accessed."""
    log = source.rstrip("/") + "/" + _LOG
    if not has_jvm(spark):
        # For a remote session the client's files are checked, which are most likely the same.
        return Path(source.removeprefix("file:"), _LOG).is_dir()
    try:
        return exists(spark, log)
    except OSError as error:
        msg = f"Cannot look at {source!r}: {str(error).splitlines()[0]}"
        raise SourceNotFoundError(msg) from error
