"""Streams of files that tests start twice: with pruning and without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectors.session import session_pruning
from pruning import PruningOptions, ReasonCode
from sample_data.rows import Rows
from tests.queries.star import OPTIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The days of two micro-batches: those of the first lie in one file of the sales, those of the second in two.
FIRST, SECOND = (3, 4), (41, 60, 1000)
KEPT = [1, 2]


def add(spark: SparkSession, folder: str, days: tuple[int, ...], format_: str = "delta") -> None:
    """Appends a file with these days."""
    rows = spark.createDataFrame([(day, f"arrived {day}") for day in days], "day int, name string")
    rows.coalesce(1).write.format(format_).mode("append").save(folder)


def stream(spark: SparkSession, folder: str, format_: str = "delta") -> DataFrame:
    """The stream of a folder, a file at a time."""
    reader = spark.readStream.format(format_).option("maxFilesPerTrigger", 1)
    return (reader if format_ == "delta" else reader.schema("day int, name string")).load(folder)


class Streams:
    """Streams that write to tables of their own, and the records that the session has made since."""

    def __init__(self, spark: SparkSession, folder: Path, enabled: Callable[..., object]) -> None:
        self.spark, self.folder, self.enabled = spark, folder, enabled
        self.before = [*session_pruning.records(spark)]

    def started(self, name: str, df: DataFrame, mode: str = "append", sink: str = "delta") -> Any:
        """The started stream of all that is there, from the checkpoint of an earlier stream of that name."""
        writer = df.writeStream.format(sink).outputMode(mode).trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(self.folder / "checkpoints" / name))
        if sink == "memory":
            return writer.queryName(name).start()
        return writer.start(str(self.folder / name))

    def rows(self, name: str) -> Rows:
        """The rows of a table that a stream has written."""
        return Rows(self.spark.read.format("delta").load(str(self.folder / name)).collect())

    def ran(self, name: str, df: DataFrame, mode: str = "append") -> tuple[Rows, list[list[int]]]:
        """The rows that a stream has written, and the input rows of its sources for each micro-batch."""
        query = self.started(name, df, mode)
        query.awaitTermination()
        return self.rows(name), [[each.numInputRows for each in one.sources] for one in query.recentProgress]

    def agreed(
        self, df: Callable[[], DataFrame], options: PruningOptions = OPTIONS, mode: str = "append"
    ) -> tuple[Rows, list[list[int]]]:
        """The rows and counts of a stream, which are equal with pruning and without."""
        stock = self.ran("stock", df(), mode)
        self.enabled(options)
        assert stock == self.ran("pruned", df(), mode)
        return stock

    @property
    def records(self) -> list[Any]:
        """The records of the session since now, oldest first."""
        found = session_pruning.records(self.spark)
        return [each for each in reversed(found) if not any(each is known for known in self.before)]

    def kept(self, table: str = "sales") -> list[int]:
        """The files that were kept of a table, for each record with a filter of it."""
        reports = [table for each in self.records for table in each.report().tables]
        return [each.planned.files_kept for each in reports if each.planned.table.endswith(table)]

    def codes(self) -> list[set[ReasonCode]]:
        """The codes of the reasons of each record."""
        return [{reason.code for reason in each.reasons} for each in self.records]
