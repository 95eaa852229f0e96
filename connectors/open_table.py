"""From what a caller calls a table to the connector that reads it."""

from __future__ import annotations

from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from connectors.base import Table
from connectors.delta import open_delta
from connectors.names import is_name
from connectors.parquet import open_parquet
from connectors.session_cache import cache_of
from connectors.storage import exists, has_jvm
from pruning.errors import InvalidOptionError, SourceNotFoundError

FORMATS = ("delta", "parquet")
_LOG = "_delta_log"
_VIEW = "view"


def open_table(  # noqa: PLR0913 - keywords
    spark: SparkSession,
    source: str,
    *,
    format_: str | None,
    version: int | None,
    timestamp: str | None,
    max_footers: int,
) -> Table:
    """The table called `source`, a path or a catalog name, pinned to one version.

    `SourceNotFoundError` where there is none, `InvalidOptionError` for a format or version it cannot have.
    """
    found = format_.lower() if format_ else _format_of(spark, source)
    if version is not None and timestamp is not None:
        msg = f"Cannot read both version {version} and timestamp {timestamp!r} of {source!r}: give one of them"
        raise InvalidOptionError(msg)
    match found:
        case "delta":
            return open_delta(spark, source, version=version, timestamp=timestamp)
        case "parquet" if version is None and timestamp is None:
            if format_:
                _check_no_log(spark, source)
            return open_parquet(spark, source, max_footers=max_footers, cache=cache_of(spark).footers)
        case "parquet":
            msg = f"Cannot read an older version of {source!r}: only Delta tables have versions, and this is Parquet"
            raise InvalidOptionError(msg)
        case _ if format_:
            msg = f"Cannot read {source!r} as {format_!r}: expected one of {', '.join(FORMATS)}"
            raise InvalidOptionError(msg)
        case other:
            kind = "a view" if other == _VIEW else f"a table of {other!r}"
            msg = f"Cannot prune {source!r}: found {kind}, expected a table of {' or '.join(FORMATS)}; name one"
            raise InvalidOptionError(msg)


def _format_of(spark: SparkSession, source: str) -> str:
    if is_name(spark, source):
        return _provider_of(spark, source)
    return "delta" if _has_log(spark, source) else "parquet"


def _check_no_log(spark: SparkSession, source: str) -> None:
    """Raises for a Delta table: Parquet alone does not know which of its files count."""
    if not is_name(spark, source) and _has_log(spark, source):
        msg = f"Cannot read {source!r} as 'parquet': it is a Delta table, leave `format` out"
        raise InvalidOptionError(msg)


def _has_log(spark: SparkSession, source: str) -> bool:
    log = source.rstrip("/") + "/" + _LOG
    if not has_jvm(spark):
        # A remote session's files are looked at from here, where they are most likely the same.
        return Path(source.removeprefix("file:"), _LOG).is_dir()
    try:
        return exists(spark, log)
    except OSError as error:
        msg = f"Cannot look at {source!r}: {str(error).splitlines()[0]}"
        raise SourceNotFoundError(msg) from error


def _provider_of(spark: SparkSession, name: str) -> str:
    try:
        # PySpark writes a long line to standard error where a query names no table.
        if not spark.catalog.tableExists(name):
            raise _no_table(name)
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    except PySparkException as error:
        raise _no_table(name) from error
    providers = [str(row["data_type"]).lower() for row in rows if row["col_name"] == "Provider"]
    # A column of that name comes first.
    return providers[-1] if providers else _VIEW


def _no_table(name: str) -> SourceNotFoundError:
    return SourceNotFoundError(
        f"No table {name!r} in the catalog, and no such path: name a table, or a path that holds a slash"
    )
