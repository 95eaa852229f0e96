"""Packages and classes of the JVM, each of which is looked up once.

Small Java classes, compiled inside Spark's own process: for what no call from outside can express.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from importlib import resources
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
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class JavaFile:
    """A class of Java in the folder `java` of a package, with the classes that are compiled together with it.

    Its name is unique among all packages: the JVM has one class of the name.
    """

    package: str
    name: str
    others: tuple[str, ...] = ()

    def source(self) -> str:
        """One compilation unit, which is all that Janino compiles at once: imports, then classes."""
        folder = resources.files(self.package) / "java"
        texts = [(folder / f"{name}.java").read_text(encoding="utf-8") for name in (self.name, *self.others)]
        if len(texts) == 1:
            return texts[0]
        lines = [line for text in texts for line in text.splitlines()]
        imports = dict.fromkeys(line for line in lines if _is_import(line))
        return "\n".join([*imports, *(line for line in lines if not _is_import(line))])


def _is_import(line: str) -> bool:
    return line.startswith("import ")


_FACTORY = JavaFile("connectors.spark", "ObjectFactory")


def instance(spark: SparkSession, java: JavaFile, *arguments: Any, beside: Any = None) -> Any:
    """An object of a class that is compiled once, made by its only constructor.

    It knows Spark's own classes, and those that are loaded with the class of the object `beside`.

    Once for all sessions: py4j keeps methods by the name of their class, and would call that of another session's.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark's only door to the JVM
    with _LOCK:
        factories: dict[str, Any] = jvm.__dict__.setdefault(_CLASSES, {})
        if _FACTORY.name not in factories:
            factories[_FACTORY.name] = _constructor(spark, _FACTORY, None)
        if java.name not in factories:
            constructor = java_names(spark).java.util.List.of(_constructor(spark, java, beside))
            factories[java.name] = factories[_FACTORY.name].newInstance(constructor.toArray())
    return factories[java.name].make(*arguments)


def _constructor(spark: SparkSession, java: JavaFile, beside: Any) -> Any:
    return _compiled(spark, java, beside).getConstructors()[0]


def _compiled(spark: SparkSession, java: JavaFile, beside: Any) -> Any:
    jvm = java_names(spark)
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    spark_class = jvm.org.apache.spark.util.Utils.classForName("org.apache.spark.sql.Row", True, False)  # noqa: FBT003
    compiler.setParentClassLoader((spark_class if beside is None else beside.getClass()).getClassLoader())
    compiler.cook(java.source())
    return compiler.getClassLoader().loadClass(java.name)
