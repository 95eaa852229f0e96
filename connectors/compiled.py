"""Small Java classes, compiled inside Spark's own process: for what no call from outside can express."""

from __future__ import annotations

import threading
from typing import Any

from pyspark.sql import SparkSession

from connectors.java_names import java_names

_ATTRIBUTE = "_scanprune_classes"
# What takes arguments of any number by a call that has just as many: an array of them would take three calls more.
_MAKER = "Maker"
_MOST_ARGUMENTS = 7
_NAMES = [f"a{at}" for at in range(_MOST_ARGUMENTS)]
_METHODS = "\n".join(
    f"""
    public Object make({", ".join(f"Object {each}" for each in _NAMES[:count])}) throws Exception {{
        return constructor.newInstance(new Object[] {{{", ".join(_NAMES[:count])}}});
    }}"""
    for count in range(_MOST_ARGUMENTS + 1)
)
_MAKER_SOURCE = f"""
public class {_MAKER} {{
    private final java.lang.reflect.Constructor constructor;

    public {_MAKER}(java.lang.reflect.Constructor constructor) {{
        this.constructor = constructor;
    }}
{_METHODS}
}}
"""
_LOCK = threading.Lock()


def instance(spark: SparkSession, name: str, source: str, *arguments: Any, beside: Any = None) -> Any:
    """An object of the class called `name`, which is compiled once, made by its only constructor.

    It knows Spark's own classes, and those that are loaded with the class of the object `beside`.

    Once for all sessions: py4j keeps methods by the name of their class, and would call that of another session's.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark's only door to the JVM
    with _LOCK:
        makers: dict[str, Any] = jvm.__dict__.setdefault(_ATTRIBUTE, {})
        if _MAKER not in makers:
            makers[_MAKER] = _constructor(spark, _MAKER, _MAKER_SOURCE, None)
        if name not in makers:
            constructor = java_names(spark).java.util.List.of(_constructor(spark, name, source, beside))
            makers[name] = makers[_MAKER].newInstance(constructor.toArray())
    return makers[name].make(*arguments)


def _constructor(spark: SparkSession, name: str, source: str, beside: Any) -> Any:
    return _compiled(spark, name, source, beside).getConstructors()[0]


def _compiled(spark: SparkSession, name: str, source: str, beside: Any) -> Any:
    jvm = java_names(spark)
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    spark_class = jvm.org.apache.spark.util.Utils.classForName("org.apache.spark.sql.Row", True, False)  # noqa: FBT003
    compiler.setParentClassLoader((spark_class if beside is None else beside.getClass()).getClassLoader())
    compiler.cook(source)
    return compiler.getClassLoader().loadClass(name)
