"""The column ids of pruned scans: the plan's own above each scan, or the scan's all the way up."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from connectors.spark.jvm import JavaFile, instance

_FRESH = JavaFile("connectors.spark", "FreshColumns")
_OWN = JavaFile("connectors.spark", "OwnColumns")


def fresh_columns(spark: SparkSession, leaf: Any) -> Any:
    """`leaf()`: one of the JVM with column ids of its own; `renamed()`: a plan over it, under the ids of the old."""
    return instance(spark, _FRESH, leaf)


def with_own_columns(spark: SparkSession, plan: Any) -> Any:
    """A plan of the JVM without the projections above its pruned scans, under the ids that it had at its top."""
    return instance(spark, _OWN, plan).kept()
