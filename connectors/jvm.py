"""Names of the JVM, each looked up once a session."""

from __future__ import annotations

from functools import reduce
from typing import Any

from pyspark.sql import SparkSession

_ATTRIBUTE = "_scanprune_jvm_names"


def jvm_name(spark: SparkSession, name: str) -> Any:
    """A class of the JVM, or a static method of one, by its full name.

    Through the bridge each dot of a name is a call of its own: one class takes longer to find than to use.
    """
    names: dict[str, Any] = spark.__dict__.setdefault(_ATTRIBUTE, {})
    if name not in names:
        names[name] = reduce(getattr, name.split("."), spark._jvm)  # noqa: SLF001 - PySpark's only door to the JVM
    return names[name]
