"""The confs of a session that are options of ours."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote_plus

from pyspark.sql import SparkSession

from connectors.compiled import instance
from connectors.long_text import long_text
from connectors.storage import has_jvm

# Reading all confs from outside takes a call for each of them.
_CONFS = "PrefixedConfs"
_CONFS_SOURCE = """
public class PrefixedConfs {
    private final java.util.ArrayList lines = new java.util.ArrayList();

    public PrefixedConfs(java.util.Map all, String prefix) {
        java.util.Iterator names = all.keySet().iterator();
        while (names.hasNext()) {
            String name = (String) names.next();
            if (name.startsWith(prefix)) {
                lines.add(encoded(name) + " " + encoded((String) all.get(name)));
            }
        }
    }

    public java.util.List lines() {
        return lines;
    }

    private static String encoded(String text) {
        return java.net.URLEncoder.encode(text, java.nio.charset.StandardCharsets.UTF_8);
    }
}
"""


def option_confs(spark: SparkSession, prefix: str) -> Mapping[str, str]:
    """The confs of a session whose names begin with `prefix`."""
    if not has_jvm(spark):
        return {name: text for name, text in spark.conf.getAll.items() if name.startswith(prefix)}
    every = spark._jsparkSession.conf().getAllAsJava()  # noqa: SLF001 - the session's own confs, as PySpark reads them
    lines = long_text(spark, instance(spark, _CONFS, _CONFS_SOURCE, every, prefix).lines()).splitlines()
    # A value may be empty.
    pairs = (line.partition(" ") for line in lines)
    return {unquote_plus(name): unquote_plus(text) for name, _, text in pairs}
