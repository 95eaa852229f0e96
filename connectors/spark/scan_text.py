"""A text beside the scan of a read, where Spark shows its plan: in `explain()` and in the SQL tab of its UI."""

from __future__ import annotations

import logging

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from connectors.spark.jvm import JavaFile, has_jvm, instance, jvm_frame

logger = logging.getLogger("scanprune")

_SCAN = JavaFile("connectors.spark", "DescribedScan", others=("DescribedRelation", "FileScan"))
# By these, the executions of a scan are found: the ids of its columns, and the list of them.
_RESERVED = str.maketrans("#[]", "   ")


def with_scan_text(df: DataFrame, text: str) -> DataFrame:
    """A plain read of one table whose scan shows a text; the read as it is without one, and over Spark Connect."""
    if not text or not has_jvm(df.sparkSession):
        return df
    try:
        described = instance(df.sparkSession, _SCAN, jvm_frame(df), text.translate(_RESERVED))
        return DataFrame(described.frame(), df.sparkSession)
    except (Py4JError, PySparkException):
        logger.debug("Describing a scan failed", exc_info=True)
        return df
