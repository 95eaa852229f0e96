"""Packages and classes of the JVM, each of which is looked up once.

Small Java classes, compiled inside Spark's own process: for what no call from outside can express.
"""

from __future__ import annotations

import threading
from typing import Any

from py4j.java_gateway import JavaClass, JavaPackage
from pyspark.sql import SparkSession

_VIEW = "_scanprune_names"


class JavaNames:
    """What a view or a package of py4j has, by the same names.

    py4j asks the JVM at each dot whether there is such a class, and Java opens all of Spark's jars in vain for each
    package: with the imports that PySpark adds, `org` alone is looked for in a dozen of them. That was a third of
    what Java did for a query over small tables.
    """

    def __init__(self, of: Any) -> None:
        self._of = of

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._of, name)
        if isinstance(found, JavaPackage):
            found = JavaNames(found)
        elif not isinstance(found, JavaClass):
            return found
        # From here on Python finds it without asking.
        self.__dict__[name] = found
        return found


def java_names(spark: SparkSession) -> Any:
    """Those of a classic session's JVM, which keeps them."""
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark's only door to the JVM
    names = jvm.__dict__.get(_VIEW)
    if names is None:
        names = jvm.__dict__[_VIEW] = JavaNames(jvm)
    return names


_CLASSES = "_scanprune_classes"
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
        makers: dict[str, Any] = jvm.__dict__.setdefault(_CLASSES, {})
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
