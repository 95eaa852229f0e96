"""Actions that are no query of the user: no `QueryExecutionListener` of the session is told of them.

Spark names each action of a DataFrame, and tells the listeners that the session of the DataFrame has. So these run in
a clone of the session that has none. A clone has the confs of the moment, and the tags by which jobs are cancelled.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from connectors.spark.jvm import analyzed_plan, frame_in, has_jvm, jvm_session


def unheard_session(spark: SparkSession) -> Any:
    """A session of the JVM like that of `spark`, and without listeners; the same one if it has none."""
    session = jvm_session(spark)
    if not len(session.listenerManager().listListeners()):
        return session
    clone = session.cloneSession()
    clone.listenerManager().clear()
    return clone


def unheard(df: DataFrame) -> DataFrame:
    """The DataFrame of the same plan of whose actions no listener is told; that of Spark Connect as it is."""
    if not has_jvm(df.sparkSession):
        return df
    return frame_in(df.sparkSession, unheard_session(df.sparkSession), analyzed_plan(df))
