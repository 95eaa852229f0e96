"""Streams of a session that prunes: static tables are read by keys of the micro-batch; all else is left to Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.functions import broadcast, expr, udf

from connectors.session import session_pruning
from pruning import PruningOptions, ReasonCode, disable
from sample_data.rows import Rows
from tests.costs import ALWAYS
from tests.queries.star import DAYS_PER_FILE, FILES, OPTIONS, ROWS_PER_DAY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ONE_FORMAT = pytest.mark.parametrize("star", ["delta"], indirect=True)
# The days of two micro-batches: those of the first lie in one file of the sales, those of the second in two.
FIRST, SECOND = (3, 4), (41, 60, 1000)
KEPT = [1, 2]


@pytest.fixture(scope="module")
def arrived(spark, tmp_path_factory) -> dict[str, str]:
    """Folders of two files, each the days of a micro-batch, by format."""
    folders = {}
    for format_ in ("delta", "parquet", "json"):
        folders[format_] = str(tmp_path_factory.mktemp("arrived") / format_)
        for days in (FIRST, SECOND):
            add(spark, folders[format_], days, format_)
    return folders


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


@pytest.fixture
def streams(spark, tmp_path, enabled) -> Iterator[Streams]:
    yield Streams(spark, tmp_path, enabled)
    disable(spark)
    assert [] == spark.streams.active
    deadline, tracker = time.monotonic() + 30, spark.sparkContext.statusTracker()
    while tracker.getActiveJobsIds() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [] == list(tracker.getActiveJobsIds())
    assert [] == [each.name for each in threading.enumerate() if each.name.startswith("build of")]


def read_by_plan(query: Any) -> set[int]:
    """The numbers of files that the scans of the latest micro-batch of a stream have read."""
    found, waiting = set[int](), [query._jsq.streamingQuery().lastExecution().executedPlan()]
    while waiting:
        node = waiting.pop()
        if node.metrics().contains("numFiles"):
            found.add(int(node.metrics().apply("numFiles").value()))
        inner = ("executedPlan",) if node.nodeName() == "AdaptiveSparkPlan" else ()
        inner = ("plan",) if node.nodeName().endswith("QueryStage") else inner
        waiting += [getattr(node, name)() for name in inner]
        children = node.children()
        waiting += [children.apply(at) for at in range(children.size())]
    return found


@pytest.mark.parametrize("how", ["inner", "left", "left_semi", "left_anti"])
@pytest.mark.parametrize("source", ["delta", "parquet", "json"])
def test_each_micro_batch_filters_a_static_table(spark, star, arrived, streams, source, how):
    static = spark.table(f"{star}sales")
    rows, counts = streams.agreed(lambda: stream(spark, arrived[source], source).join(static, "day", how))
    matched = {"inner": 4 * ROWS_PER_DAY, "left": 4 * ROWS_PER_DAY + 1, "left_semi": 4, "left_anti": 1}
    assert (matched[how], [[2], [3]]) == (len(rows), counts)
    assert KEPT == streams.kept()


@pytest.mark.full
@ONE_FORMAT
def test_the_executed_plan_of_a_micro_batch_reads_the_planned_files(spark, star, arrived, streams):
    streams.enabled()
    query = streams.started("pruned", stream(spark, arrived["delta"]).join(spark.table(f"{star}sales"), "day"))
    query.awaitTermination()
    assert {1, KEPT[-1]} == read_by_plan(query)
    assert [{None}, {None}] == [{each.measured for each in one.report().tables} for one in streams.records]


@pytest.mark.full
@ONE_FORMAT
def test_sinks_of_the_second_interface_get_the_rows(spark, star, arrived, streams):
    static = spark.table(f"{star}sales")
    streams.enabled()
    try:
        streams.started(
            "in_memory", stream(spark, arrived["delta"]).join(static, "day"), sink="memory"
        ).awaitTermination()
        assert 4 * ROWS_PER_DAY == spark.table("in_memory").count()
    finally:
        spark.catalog.dropTempView("in_memory")
    assert KEPT == streams.kept()


@ONE_FORMAT
@pytest.mark.parametrize("options", [OPTIONS, ALWAYS], ids=["worth", "always"])
def test_keys_of_a_static_table_never_filter_the_stream(spark, star, streams, options):
    """Rows of the micro-batch are counted by its scan, so a condition on it would lower the count."""
    folder, block = str(streams.folder / "arrived"), spark.sparkContext._jsc.hadoopConfiguration()
    block.set("parquet.block.size", "4000")
    try:
        many = spark.range(4_000).selectExpr("cast(id div 40 AS int) AS day", "cast(id AS string) AS name")
        many.coalesce(1).write.format("delta").save(folder)
    finally:
        block.unset("parquet.block.size")
    sales, days = spark.table(f"{star}sales"), spark.table(f"{star}days").where("month = 2")
    rows, counts = streams.agreed(lambda: stream(spark, folder).join(sales, "day").join(days, "day"), options)
    assert (30 * 40 * ROWS_PER_DAY, [[4_000]]) == (len(rows), counts)
    assert [2] == streams.kept()


@ONE_FORMAT
def test_a_side_that_is_left_without_rows_does_not_hide_the_stream(spark, star, streams):
    folder = str(streams.folder / "arrived")
    add(spark, folder, (1000, 2000))
    # Beside the broadcast of no row Spark does not read the stream.
    sales = spark.table(f"{star}sales")
    for at, hint in enumerate(("broadcast", "merge")):
        streams.folder = streams.folder / str(at)
        rows, counts = streams.agreed(lambda hint=hint: stream(spark, folder).join(sales.hint(hint), "day"))
        disable(spark)
        assert (0, [[2]]) == (len(rows), counts)
    assert ([], [{ReasonCode.NO_ROWS_LEFT}] * 2) == (streams.kept(), streams.codes())


@pytest.mark.full
@ONE_FORMAT
@pytest.mark.parametrize("how", ["inner", "right"])
def test_partitions_of_the_stream_are_not_pruned(spark, star, streams, tmp_path, how):
    folder = str(tmp_path / "partitioned")
    rows = spark.createDataFrame([(day, f"arrived {day}") for day in (*FIRST, *SECOND)], "day int, name string")
    rows.coalesce(1).write.format("delta").partitionBy("day").save(folder)
    arriving = spark.readStream.format("delta").load(folder)
    # Spark would prune partitions of the stream by a side that it takes for one with conditions.
    _, counts = streams.agreed(lambda: broadcast(spark.table(f"{star}sales")).join(arriving, "day", how), ALWAYS)
    assert [[5]] == counts
    assert [3] == streams.kept()


@pytest.mark.full
@ONE_FORMAT
def test_rows_that_may_not_be_read_twice_give_no_keys(spark, star, streams):
    """Other static tables filter nevertheless."""
    source = spark.readStream.format("rate").option("rowsPerSecond", 200).option("numPartitions", 1).load()
    df = source.selectExpr("cast(value % 160 AS int) AS day", "value").join(spark.table(f"{star}sales"), "day")
    df = df.join(spark.table(f"{star}days").where("month = 2"), "day").select("value", "amount")
    streams.enabled()
    writer = df.writeStream.format("delta").option("checkpointLocation", str(streams.folder / "checkpoint"))
    query = writer.trigger(processingTime="1 second").start(str(streams.folder / "out"))
    deadline = time.monotonic() + 60
    while not any(each.numInputRows for each in query.recentProgress) and time.monotonic() < deadline:
        time.sleep(0.1)
    query.stop()
    found = [value for value, _ in streams.rows("out")]
    wanted = [value for value in range(max(found) + 1) if 60 <= value % 160 < 90]
    assert sorted(wanted * ROWS_PER_DAY) == sorted(found)
    assert {2} == set(streams.kept())
    assert all(ReasonCode.UNREPEATABLE_KEYS in _codes(each) for each in streams.records if each.scans)


def _codes(record: Any) -> set[ReasonCode]:
    return {each.code for each in record.explanation().reasons}


STATEFUL = {
    "aggregation": (lambda df: df.groupBy("item").count(), "complete"),
    "duplicates": (lambda df: df.dropDuplicates(["day"]), "append"),
    "limit": (lambda df: df.limit(100_000), "append"),
}


@ONE_FORMAT
@pytest.mark.parametrize(("made", "mode"), STATEFUL.values(), ids=STATEFUL)
def test_a_stream_with_state_is_left_alone(spark, star, arrived, streams, made, mode):
    sales = spark.table(f"{star}sales").select("day", expr("item % 3").alias("item"))
    _, counts = streams.agreed(lambda: made(stream(spark, arrived["delta"]).join(sales, "day")), mode=mode)
    assert [[2], [3]] == counts
    # One record for all micro-batches of one start.
    assert [{ReasonCode.STATEFUL}] == streams.codes()
    assert "keeps state" in streams.records[0].report().verdict


@pytest.mark.full
@ONE_FORMAT
def test_a_join_of_two_streams_is_left_alone(spark, star, arrived, streams):
    def joined() -> DataFrame:
        other = stream(spark, arrived["delta"]).selectExpr("day", "name AS other")
        return stream(spark, arrived["delta"]).join(other, "day").join(spark.table(f"{star}sales"), "day")

    rows, _ = streams.agreed(joined)
    assert 4 * ROWS_PER_DAY == len(rows)
    assert [{ReasonCode.STATEFUL}] == streams.codes()
    assert "Join of two streams" in streams.records[0].report().verdict


@pytest.mark.full
@ONE_FORMAT
def test_disabling_takes_effect_at_the_next_micro_batch(spark, star, arrived, streams):
    found: list[int] = []

    def batch(df: DataFrame, number: int) -> None:
        found.append(df.count())
        if not number:
            disable(spark)

    streams.enabled()
    writer = stream(spark, arrived["delta"]).join(spark.table(f"{star}sales"), "day").writeStream.foreachBatch(batch)
    writer = writer.option("checkpointLocation", str(streams.folder / "checkpoint")).trigger(availableNow=True)
    writer.start().awaitTermination()
    assert [2 * ROWS_PER_DAY, 2 * ROWS_PER_DAY] == found
    assert KEPT[:1] == streams.kept()


@ONE_FORMAT
def test_plans_that_are_only_shown_inside_of_a_batch_start_nothing(spark, star, arrived, streams, planned):
    found: list[int] = []

    def batch(df: DataFrame, _: int) -> None:
        joined = df.join(df.sparkSession.table(f"{star}sales"), "day")
        before = planned()
        joined.explain()
        joined.inputFiles()
        found.extend([planned() - before, df.join(df.sparkSession.table(f"{star}sales"), "day").count()])
        found.append(planned() - before)

    streams.enabled()
    writer = stream(spark, arrived["delta"]).writeStream.foreachBatch(batch)
    writer = writer.option("checkpointLocation", str(streams.folder / "checkpoint")).trigger(availableNow=True)
    writer.start().awaitTermination()
    assert [0, 2 * ROWS_PER_DAY, 1] * 2 == found


@pytest.mark.full
@ONE_FORMAT
def test_a_stream_goes_on_from_its_checkpoint(spark, star, streams):
    sales, folders = spark.table(f"{star}sales"), {}
    for name in ("stock", "pruned"):
        if name == "pruned":
            streams.enabled()
        folders[name] = str(streams.folder / f"arrived {name}")
        for days in (FIRST, SECOND):
            add(spark, folders[name], days)
            _, counts = streams.ran(name, stream(spark, folders[name]).join(sales, "day", "left"))
            assert [[len(days)]] == counts
    assert streams.rows("stock") == streams.rows("pruned")
    assert KEPT == streams.kept()


@ONE_FORMAT
@pytest.mark.parametrize("sink", ["delta", "foreachBatch"])
def test_a_micro_batch_that_fails_is_written_once(spark, star, arrived, streams, sink):
    """A Python function fails in a task of the second micro-batch, or a function does after its MERGE."""
    flag = streams.folder / "fails"

    def checked(day: int) -> int:
        if day in SECOND and sink == "delta" and flag.exists():
            raise ValueError(day)
        return day

    def merged(target: str) -> Callable[[DataFrame, int], None]:
        def batch(df: DataFrame, number: int) -> None:
            df.createOrReplaceTempView("batch")
            df.sparkSession.sql(
                f"MERGE INTO delta.`{target}` t USING (SELECT b.day, s.amount FROM batch b JOIN {star}sales s"
                f" ON b.day = s.day) s ON t.amount = s.amount WHEN MATCHED THEN UPDATE SET seen = seen + 1"
                " WHEN NOT MATCHED THEN INSERT (day, amount, seen) VALUES (s.day, s.amount, 1)"
            )
            if number and flag.exists():
                raise ValueError(number)

        return batch

    def run(name: str) -> None:
        source, target = stream(spark, arrived["delta"]), str(streams.folder / name)
        if sink == "delta":
            joined = source.join(spark.table(f"{star}sales"), "day").withColumn(
                "day", udf(checked, "int", useArrow=False)("day")
            )
            streams.started(name, joined).awaitTermination()
        else:
            if not Path(target).exists():
                spark.sql(f"CREATE TABLE delta.`{target}` (day int, amount bigint, seen int) USING delta")
            writer = source.writeStream.foreachBatch(merged(target)).trigger(availableNow=True)
            checkpoint = str(streams.folder / "checkpoints" / name)
            writer.option("checkpointLocation", checkpoint).start().awaitTermination()

    for name in ("stock", "pruned"):
        if name == "pruned":
            streams.enabled()
        flag.touch()
        with pytest.raises(StreamingQueryException, match="STREAM_FAILED"):
            run(name)
        flag.unlink()
        run(name)
    found = streams.rows("pruned")
    assert (streams.rows("stock"), 4 * ROWS_PER_DAY) == (found, len(found))
    # The second micro-batch is planned again after the restart.
    assert [*KEPT, KEPT[-1]] == streams.kept()


# A driver that is killed in the middle of its second micro-batch unless it is the second one.
DRIVER = """
import os, signal, sys
from connectors.spark.session import spark_session
from pruning import enable
from pyspark.sql.functions import expr, udf
from tests.queries.star import OPTIONS

folder, pruned, kills = sys.argv[1], sys.argv[2] == "pruned", sys.argv[3] == "kills"
spark = spark_session("killed", conf={"spark.sql.shuffle.partitions": "2"})
if pruned:
    enable(spark, options=OPTIONS)
parent = os.getpid()

def checked(day):
    if kills and day > 40:
        os.kill(parent, signal.SIGKILL)
    return day

arrived = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(f"{folder}/arrived")
sales = spark.read.format("delta").load(f"{folder}/sales")
joined = arrived.join(sales, "day").withColumn("day", udf(checked, "int")("day"))
writer = joined.writeStream.format("delta").trigger(availableNow=True)
name = sys.argv[2]
writer.option("checkpointLocation", f"{folder}/checkpoint {name}").start(f"{folder}/{name}").awaitTermination()
if pruned:
    from pruning import history
    print("kept", [table.planned.files_kept for each in history(spark) for table in each.tables])
spark.stop()
"""


@pytest.mark.full
def test_a_driver_that_is_killed_in_a_micro_batch_leaves_every_row_once(spark, streams):
    folder = streams.folder
    sales = spark.range(0, FILES * DAYS_PER_FILE * ROWS_PER_DAY, 1, FILES)
    sales = sales.selectExpr(f"cast(id div {ROWS_PER_DAY} AS int) AS day", "id AS amount")
    sales.write.format("delta").save(str(folder / "sales"))
    for days in (FIRST, SECOND):
        add(spark, str(folder / "arrived"), days)

    def driver(name: str, kills: str) -> subprocess.CompletedProcess[str]:
        given = [sys.executable, "-c", DRIVER, str(folder), name, kills]
        return subprocess.run(given, capture_output=True, text=True, timeout=300, check=False, env=os.environ)

    for name in ("stock", "pruned"):
        assert -signal.SIGKILL == driver(name, "kills").returncode
        assert 2 * ROWS_PER_DAY == len(streams.rows(name))
        done = driver(name, "ends")
        assert 0 == done.returncode, done.stderr
    assert f"kept [{KEPT[-1]}]" in done.stdout
    found = streams.rows("pruned")
    assert (streams.rows("stock"), 4 * ROWS_PER_DAY) == (found, len(found))
