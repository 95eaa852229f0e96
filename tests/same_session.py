"""A second session of the application with equal confs."""

from __future__ import annotations


def same_session(spark):
    """A second session with equal confs; Delta sets some confs when it first reads a table."""
    other = spark.newSession()
    for name, value in spark.conf.getAll.items():
        if other.conf.get(name, None) != value:
            other.conf.set(name, value)
    return other
