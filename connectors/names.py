"""Whether what a caller calls a table is a path or a name in the catalog."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

# The quoted parts of a name may hold anything, as in delta.`/data/sales`.
_IN_BACKTICKS = re.compile(r"`(?:[^`]|``)*`")


def is_name(spark: SparkSession, source: str) -> bool:
    """True for a name in the catalog; whatever has a slash outside of backticks is a path.

    A word that names both a table and something in the working directory is the table, as it is for Spark.
    """
    if "/" in _IN_BACKTICKS.sub("x", source):
        return False
    return not Path(source).exists() or _is_in_catalog(spark, source)


def _is_in_catalog(spark: SparkSession, source: str) -> bool:
    try:
        return spark.catalog.tableExists(source)
    except PySparkException:
        # No name at all, such as `sales.parquet.bak`.
        return False
