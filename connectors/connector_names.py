"""The names by which Spark's plans and confs of all connectors are known: of classes, of methods, of confs."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from connectors.registry import connectors_of


def snapshot_calls(spark: SparkSession) -> str:
    """The `Connector.snapshot_calls` of all connectors, with spaces between them."""
    return " ".join(call for each in connectors_of(spark) for call in each.snapshot_calls)


def size_calls(spark: SparkSession) -> str:
    """The `Connector.size_calls` of all connectors, with spaces between them."""
    return " ".join(call for each in connectors_of(spark) for call in each.size_calls)


def noted_confs(spark: SparkSession) -> str:
    """The `Connector.noted_confs` of all connectors, with spaces between them."""
    return " ".join(conf for each in connectors_of(spark) for conf in each.noted_confs)


def file_formats(spark: SparkSession) -> frozenset[str]:
    """The `Connector.file_formats` of all connectors."""
    return frozenset(format_ for each in connectors_of(spark) for format_ in each.file_formats)


@dataclass(frozen=True, slots=True)
class SessionNames:
    """The simple names, of all connectors together, by which a session knows nodes of a plan."""

    settled_indexes: tuple[str, ...]
    command_indexes: tuple[str, ...]
    log_indexes: tuple[str, ...]
    counters: tuple[str, ...]


def session_names(spark: SparkSession) -> SessionNames:
    """The names that the connectors give."""
    every = connectors_of(spark)
    return SessionNames(
        tuple(name for each in every for name in each.settled_indexes),
        tuple(name for each in every for name in each.command_indexes),
        tuple(name for each in every for name in each.log_indexes),
        tuple(name for each in every for name in each.counters),
    )
