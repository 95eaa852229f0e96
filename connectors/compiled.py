"""Small Java classes, compiled inside Spark's own process: for what no call from outside can express."""

from __future__ import annotations

import threading
from typing import Any

from pyspark.sql import SparkSession

from connectors.java_names import java_names

_ATTRIBUTE = "_scanprune_classes"
_LOCK = threading.Lock()


def instance(spark: SparkSession, name: str, source: str, *arguments: Any, beside: Any = None) -> Any:
    """An object of the class called `name`, which is compiled once, made by its only constructor.

    It knows Spark's own classes, and those that are loaded with the class of the object `beside`.

    Once for all sessions: py4j keeps methods by the name of their class, and would call that of another session's.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark's only door to the JVM
    with _LOCK:
        constructors: dict[str, Any] = jvm.__dict__.setdefault(_ATTRIBUTE, {})
        if name not in constructors:
            constructors[name] = _compiled(spark, name, source, beside).getConstructors()[0]
    return constructors[name].newInstance(java_names(spark).java.util.List.of(*arguments).toArray())


def _compiled(spark: SparkSession, name: str, source: str, beside: Any) -> Any:
    jvm = java_names(spark)
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    spark_class = jvm.org.apache.spark.util.Utils.classForName("org.apache.spark.sql.Row", True, False)  # noqa: FBT003
    compiler.setParentClassLoader((spark_class if beside is None else beside.getClass()).getClassLoader())
    compiler.cook(source)
    return compiler.getClassLoader().loadClass(name)
