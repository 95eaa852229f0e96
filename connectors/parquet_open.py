"""A DataFrame over Parquet files, or an error that says what was asked for and what was found."""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from connectors.names import is_name
from connectors.storage import exists, has_jvm, java_message
from pruning.errors import SourceNotFoundError

_GLOB_CHARACTERS = frozenset("{}[]*?\\")


def parquet_frame(spark: SparkSession, source: str) -> DataFrame:
    """What Spark reads at a path or under a name of its catalog; `SourceNotFoundError` where it reads nothing."""
    try:
        df = _unresolved(spark, source)
        # A remote session looks for the source only when it is asked for something.
        _ = df.schema
    except (PySparkException, Py4JError, OSError) as error:
        raise SourceNotFoundError(_explained(source, error)) from error
    return df


def _unresolved(spark: SparkSession, source: str) -> DataFrame:
    if is_name(spark, source):
        return spark.table(source)
    # A path that is there by its very name is no pattern, whatever characters it holds.
    if _GLOB_CHARACTERS.intersection(source) and has_jvm(spark) and exists(spark, source):
        return spark.read.option("__globPaths__", "false").parquet(source)
    return spark.read.parquet(source)


def _explained(source: str, error: PySparkException | Py4JError | OSError) -> str:
    match error.getCondition() if isinstance(error, PySparkException) else None:
        case "PATH_NOT_FOUND":
            return f"No Parquet files at {source!r}: there is no such path"
        case "UNABLE_TO_INFER_SCHEMA":
            return f"No Parquet files in {source!r}: name a directory that holds some, or one file"
        case "TABLE_OR_VIEW_NOT_FOUND" | "PARSE_SYNTAX_ERROR":
            return f"No table {source!r} in the catalog: name a table, or a path that holds a slash"
        case _:
            text = java_message(error) if isinstance(error, Py4JError) else str(error)
            return f"Cannot open {source!r} as Parquet: {text.strip().splitlines()[0]}"
