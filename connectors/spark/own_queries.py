"""Queries of pruning itself, over plans that Spark has optimised: builds, reads of logs, and the pruned plan.

Spark names each action of a DataFrame, and tells the `QueryExecutionListener`s that the session of the DataFrame has.
It lets the optimiser rules of users meet each plan. So these run in a clone of the session that has neither.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from connectors.spark.jvm import JavaFile, analyzed_plan, frame_in, has_jvm, instance, jvm_session

_OWN = JavaFile("connectors.spark", "OwnQueries")


def own_session(spark: SparkSession) -> Any:
    """A session of the JVM like that of `spark`, without listeners and rules of users; that one if it has none."""
    return instance(spark, _OWN, jvm_session(spark)).session()


def own_query(df: DataFrame) -> DataFrame:
    """The DataFrame of the same plan in an own session; that of Spark Connect as it is."""
    if not has_jvm(df.sparkSession):
        return df
    return frame_in(df.sparkSession, own_session(df.sparkSession), analyzed_plan(df))


def optimized_once(spark: SparkSession, plan: Any, *, may_raise: bool) -> DataFrame:
    """The DataFrame of a plan made of an optimised one, optimised again without the rules of users.

    If one of its expressions `may_raise` an error, rules that move conditions by joins are left out, too.
    """
    return DataFrame(instance(spark, _OWN, jvm_session(spark)).optimized(plan, may_raise), spark)
