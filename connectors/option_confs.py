"""The confs of a session that are options of ours."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from connectors.jvm_lists import JvmList
from connectors.storage import has_jvm


def option_confs(spark: SparkSession, prefix: str) -> Mapping[str, str]:
    """The confs of a session whose names begin with `prefix`."""
    if not has_jvm(spark):
        return {name: text for name, text in spark.conf.getAll.items() if name.startswith(prefix)}
    # All names come in one answer; PySpark's `getAll` asks for each conf by itself.
    every = spark._jsparkSession.conf().getAllAsJava()  # noqa: SLF001 - the session's own confs, as PySpark reads them
    return {name: every[name] for name in JvmList(spark, every.keySet()).texts() if name.startswith(prefix)}
