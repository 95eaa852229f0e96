"""Packages and classes of the JVM, each of which is looked up once."""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaPackage
from pyspark.sql import SparkSession

_ATTRIBUTE = "_scanprune_names"


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
    names = jvm.__dict__.get(_ATTRIBUTE)
    if names is None:
        names = jvm.__dict__[_ATTRIBUTE] = JavaNames(jvm)
    return names
