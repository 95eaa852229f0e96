"""A text beside the scan of a read, where Spark shows its plan: in `explain()` and in the SQL tab of its UI."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from connectors.spark.jvm import JavaFile, has_jvm, instance, jvm_frame

logger = logging.getLogger("scanprune")

_OTHERS = ("DescribedRelation", "FileScan", "PlanCopy")
_LEAVES = JavaFile("connectors.spark", "DescribedLeaves", others=_OTHERS)
_SCAN = JavaFile("connectors.spark", "DescribedScan", others=("DescribedLeaves", *_OTHERS))
# By these, the executions of a scan are found: the ids of its columns, and the list of them.
_RESERVED = str.maketrans("#[]", "   ")


def shown(text: str) -> str:
    """A text without the signs that have a meaning for Spark where it shows a plan."""
    return text.translate(_RESERVED)


def with_leaf_texts(spark: SparkSession, plan: Any, texts: Sequence[tuple[Any, str]]) -> Any:
    """A plan of the JVM whose leaves show texts; they are nodes of the plan."""
    leaves = instance(spark, _LEAVES, plan)
    for leaf, text in texts:
        leaves.describe(leaf, shown(text))
    return leaves.described()


def with_scan_text(df: DataFrame, text: str) -> DataFrame:
    """A plain read of one table whose scan shows a text; the read as it is without one, and over Spark Connect."""
    if not text or not has_jvm(df.sparkSession):
        return df
    try:
        described = instance(df.sparkSession, _SCAN, jvm_frame(df), shown(text))
        return DataFrame(described.frame(), df.sparkSession)
    except (Py4JError, PySparkException):
        logger.debug("Describing a scan failed", exc_info=True)
        return df
