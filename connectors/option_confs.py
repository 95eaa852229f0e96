"""The confs of a session that are options of ours."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from connectors.java_names import java_names
from connectors.jvm_lists import JvmList
from connectors.storage import has_jvm


def option_confs(spark: SparkSession, prefix: str) -> Mapping[str, str]:
    """The confs of a session whose names begin with `prefix`."""
    if not has_jvm(spark):
        return {name: text for name, text in spark.conf.getAll.items() if name.startswith(prefix)}
    # Sorted in the JVM, where those of a prefix are one part; PySpark's `getAll` asks for each conf by itself.
    every = spark._jsparkSession.conf().getAllAsJava()  # noqa: SLF001 - the session's own confs, as PySpark reads them
    own = java_names(spark).java.util.TreeMap(every).subMap(prefix, f"{prefix}\uffff")
    if own.isEmpty():
        # The end of an iterator of Java is an exception, of which PySpark asks by some eighty calls what it means.
        return {}
    return {name: own[name] for name in JvmList(spark, own.keySet()).texts()}
