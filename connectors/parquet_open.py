"""A DataFrame over Parquet files, or an error that says what was asked for and what was found."""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from connectors.storage import exists, has_jvm, is_path, java_message, local_path
from pruning.errors import SourceNotFoundError

_GLOB_CHARACTERS = frozenset("{}[]*?\\")


def parquet_frame(spark: SparkSession, source: str) -> DataFrame:
    """What Spark reads at a path or under a name of its catalog; `SourceNotFoundError` where it reads nothing."""
    try:
        if not is_path(source):
            return spark.table(source)
        reader = spark.read
        if _GLOB_CHARACTERS.intersection(source) and _exists(spark, source):
            reader = reader.option("__globPaths__", "false")
        df = reader.parquet(source)
        df.schema  # noqa: B018 - a remote session finds out here
    except (PySparkException, Py4JError) as error:
        raise SourceNotFoundError(_explained(source, error)) from error
    return df


def _explained(source: str, error: PySparkException | Py4JError) -> str:
    match error.getCondition() if isinstance(error, PySparkException) else None:
        case "PATH_NOT_FOUND":
            return f"No Parquet files at {source!r}: there is no such path"
        case "UNABLE_TO_INFER_SCHEMA":
            return f"No Parquet files in {source!r}: name a directory that holds some, or one file"
        case "TABLE_OR_VIEW_NOT_FOUND" | "PARSE_SYNTAX_ERROR":
            return f"No table {source!r} in the catalog: name a table, or a path that holds a slash"
        case _:
            text = str(error) if isinstance(error, PySparkException) else java_message(error)
            return f"Cannot open {source!r} as Parquet: {text.strip().splitlines()[0]}"


def _exists(spark: SparkSession, source: str) -> bool:
    """True where `source` is there by its very name, so that a bracket in it is no pattern."""
    if local := local_path(source):
        return local.exists()
    return has_jvm(spark) and exists(spark, source)
