"""Another session of the application, with the same confs."""

from __future__ import annotations


def same_session(spark):
    """Another session with the same confs; Delta sets some when a table is first read."""
    other = spark.newSession()
    for name, value in spark.conf.getAll.items():
        if other.conf.get(name, None) != value:
            other.conf.set(name, value)
    return other
