"""Records of pruned reads and queries, found by the DataFrame that was returned.

The DataFrame itself is left as Spark made it. A record goes with its DataFrame, which nothing in the record may hold:
`keep` returns another object for the same DataFrame, and that one is given to the user.
"""

from __future__ import annotations

from typing import Any, Protocol
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame

from connectors.spark.jvm import same_frame


class Record(Protocol):
    """The plan of a pruned read or query, from which `explain()` and `report()` answer."""

    def explanation(self) -> Any:
        """The plan, from metadata alone."""

    def report(self) -> Any:
        """The plan beside the measurements of the latest action."""


_RECORDS: WeakKeyDictionary[DataFrame, Record] = WeakKeyDictionary()


def keep(df: DataFrame, record: Record) -> DataFrame:
    """A new DataFrame over the plan of `df`, by which `record` is found."""
    result = same_frame(df)
    _RECORDS[result] = record
    return result


def record_of(df: DataFrame) -> Record | None:
    """The record of a DataFrame that `keep` returned; None for any other."""
    return _RECORDS.get(df)
