"""Queries in a session that prunes every query, beside the same queries by `prune()`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from pruning import PruneReport, PruningOptions, disable, enable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.session.session_history import QueryRecord

T = TypeVar("T")


def in_session(spark: SparkSession, options: PruningOptions, run: Callable[[], T]) -> tuple[T, PruneReport]:
    """The result of `run` while the session prunes, and the report of its last query; empty if none was handed over.

    A query without a join or a sorted limit over files is not handed over.
    """
    result, record = recorded_in_session(spark, options, run)
    return result, PruneReport((), "") if record is None else record.report()


def recorded_in_session(
    spark: SparkSession, options: PruningOptions, run: Callable[[], T]
) -> tuple[T, QueryRecord | None]:
    """The result of `run` while the session prunes, and the record of its last query; None if none was handed over."""
    from connectors.session.session_pruning import records  # noqa: PLC0415 - tests without Spark load none

    enable(spark, options=options)
    try:
        before = {id(each) for each in records(spark)}
        result = run()
        latest = [each for each in records(spark)[:1] if id(each) not in before]
    finally:
        disable(spark)
    return result, latest[0] if latest else None


def kept(told: PruneReport) -> list[tuple[str, int | None]]:
    """The files that each pruned scan was planned to read."""
    return sorted((each.planned.table, each.planned.files_kept) for each in told.tables)
