"""Streams of a session that prunes: static tables are read by keys of the micro-batch; all else is left to Spark."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.functions import broadcast, expr

from pruning import ReasonCode, disable
from tests.costs import ALWAYS
from tests.queries.star import OPTIONS, ROWS_PER_DAY
from tests.session.streams import FIRST, KEPT, SECOND, add, stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ONE_FORMAT = pytest.mark.parametrize("star", ["delta"], indirect=True)


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
def test_each_micro_batch_filters_a_static_table(spark, star, batches, streams, source, how):
    static = spark.table(f"{star}sales")
    rows, counts = streams.agreed(lambda: stream(spark, batches[source], source).join(static, "day", how))
    matched = {"inner": 4 * ROWS_PER_DAY, "left": 4 * ROWS_PER_DAY + 1, "left_semi": 4, "left_anti": 1}
    assert (matched[how], [[2], [3]]) == (len(rows), counts)
    assert KEPT == streams.kept()


@pytest.mark.full
@ONE_FORMAT
def test_the_executed_plan_of_a_micro_batch_reads_the_planned_files(spark, star, batches, streams):
    streams.enabled()
    query = streams.started("pruned", stream(spark, batches["delta"]).join(spark.table(f"{star}sales"), "day"))
    query.awaitTermination()
    assert {1, KEPT[-1]} == read_by_plan(query)
    assert [{None}, {None}] == [{each.measured for each in one.report().tables} for one in streams.records]


@pytest.mark.full
@ONE_FORMAT
def test_sinks_of_the_second_interface_get_the_rows(spark, star, batches, streams):
    static = spark.table(f"{star}sales")
    streams.enabled()
    try:
        streams.started(
            "in_memory", stream(spark, batches["delta"]).join(static, "day"), sink="memory"
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
def test_a_stream_with_state_is_left_alone(spark, star, batches, streams, made, mode):
    sales = spark.table(f"{star}sales").select("day", expr("item % 3").alias("item"))
    _, counts = streams.agreed(lambda: made(stream(spark, batches["delta"]).join(sales, "day")), mode=mode)
    assert [[2], [3]] == counts
    # One record for all micro-batches of one start.
    assert [{ReasonCode.STATEFUL}] == streams.codes()
    assert "keeps state" in streams.records[0].report().verdict


@pytest.mark.full
@ONE_FORMAT
def test_a_join_of_two_streams_is_left_alone(spark, star, batches, streams):
    def joined() -> DataFrame:
        other = stream(spark, batches["delta"]).selectExpr("day", "name AS other")
        return stream(spark, batches["delta"]).join(other, "day").join(spark.table(f"{star}sales"), "day")

    rows, _ = streams.agreed(joined)
    assert 4 * ROWS_PER_DAY == len(rows)
    assert [{ReasonCode.STATEFUL}] == streams.codes()
    assert "Join of two streams" in streams.records[0].report().verdict


@pytest.mark.full
@ONE_FORMAT
def test_disabling_takes_effect_at_the_next_micro_batch(spark, star, batches, streams):
    found: list[int] = []

    def batch(df: DataFrame, number: int) -> None:
        found.append(df.count())
        if not number:
            disable(spark)

    streams.enabled()
    writer = stream(spark, batches["delta"]).join(spark.table(f"{star}sales"), "day").writeStream.foreachBatch(batch)
    writer = writer.option("checkpointLocation", str(streams.folder / "checkpoint")).trigger(availableNow=True)
    writer.start().awaitTermination()
    assert [2 * ROWS_PER_DAY, 2 * ROWS_PER_DAY] == found
    assert KEPT[:1] == streams.kept()


@ONE_FORMAT
def test_plans_that_are_only_shown_inside_of_a_batch_start_nothing(spark, star, batches, streams, planned):
    found: list[int] = []

    def batch(df: DataFrame, _: int) -> None:
        joined = df.join(df.sparkSession.table(f"{star}sales"), "day")
        before = planned()
        joined.explain()
        joined.inputFiles()
        found.extend([planned() - before, df.join(df.sparkSession.table(f"{star}sales"), "day").count()])
        found.append(planned() - before)

    streams.enabled()
    writer = stream(spark, batches["delta"]).writeStream.foreachBatch(batch)
    writer = writer.option("checkpointLocation", str(streams.folder / "checkpoint")).trigger(availableNow=True)
    writer.start().awaitTermination()
    assert [0, 2 * ROWS_PER_DAY, 1] * 2 == found


@ONE_FORMAT
@pytest.mark.parametrize("limits", [{}, {"joined_rows": 1, "joined_long_rows": 1}], ids=["few", "many"])
def test_a_batch_that_gives_keys_is_read_once(spark, star, batches, streams, limits):
    def batch(df: DataFrame, _: int) -> None:
        joined = df.join(df.sparkSession.table(f"{star}sales"), "day")
        joined.write.format("delta").mode("append").save(str(streams.folder / "joined"))

    streams.enabled(ALWAYS.with_limits(**limits))
    writer = stream(spark, batches["delta"]).writeStream.foreachBatch(batch)
    writer = writer.option("checkpointLocation", str(streams.folder / "checkpoint")).trigger(availableNow=True)
    query = writer.start()
    query.awaitTermination()
    assert (4 * ROWS_PER_DAY, KEPT) == (len(streams.rows("joined")), streams.kept())
    assert [2, 3] == [each.numInputRows for each in query.recentProgress]
