"""Small Java classes, compiled inside Spark's own process: for what no call from outside can express."""

from __future__ import annotations

import threading
from typing import Any

from pyspark.sql import SparkSession

from connectors.java_names import java_names

_ATTRIBUTE = "_scanprune_classes"
_LOCK = threading.Lock()


def instance(spark: SparkSession, name: str, source: str, *arguments: Any) -> Any:
    """An object of the class called `name`, which each session compiles once, made by its only constructor."""
    with _LOCK:
        classes: dict[str, Any] = spark.__dict__.setdefault(_ATTRIBUTE, {})
        if name not in classes:
            classes[name] = _compiled(spark, name, source)
    return classes[name].getConstructors()[0].newInstance(_array(spark, arguments))


def _compiled(spark: SparkSession, name: str, source: str) -> Any:
    jvm = java_names(spark)
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    spark_class = jvm.org.apache.spark.util.Utils.classForName("org.apache.spark.sql.Row", True, False)  # noqa: FBT003
    compiler.setParentClassLoader(spark_class.getClassLoader())
    compiler.cook(source)
    return compiler.getClassLoader().loadClass(name)


def _array(spark: SparkSession, items: tuple[Any, ...]) -> Any:
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
    packed = gateway.new_array(java_names(spark).java.lang.Object, len(items))
    for position, item in enumerate(items):
        packed[position] = item
    return packed
