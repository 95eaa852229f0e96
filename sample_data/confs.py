"""Settings of a Spark session for a block, and new sessions with equal settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Code generation of Spark, which the quick tier of tests switches off: with it, queries over hundreds of rows take
# twice as long, and writes of hundreds of thousands of rows a third of the time.
CODE_GENERATION: Mapping[str, str] = MappingProxyType(
    {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
)


@contextmanager
def conf(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Sets session settings inside the block and restores their former values afterwards."""
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, former in before.items():
            if former is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, former)


def same_session(spark: SparkSession) -> SparkSession:
    """A new session of the application with equal settings, including settings that Delta makes on the first read."""
    other = spark.newSession()
    for name, value in spark.conf.getAll.items():
        if other.conf.get(name, None) != value:
            other.conf.set(name, value)
    return other
