"""Streams of a session that prunes end at any moment and start again: every row is written once, as without pruning."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.functions import udf

from pruning import ReasonCode
from tests.queries.star import BY_JOB, DAYS_PER_FILE, FILES, ROWS_PER_DAY
from tests.session.streams import FIRST, KEPT, SECOND, add, stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ONE_FORMAT = pytest.mark.parametrize("star", ["delta"], indirect=True)


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
def test_a_micro_batch_that_fails_is_written_once(spark, star, batches, streams, sink):
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
        source, target = stream(spark, batches["delta"]), str(streams.folder / name)
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


@pytest.mark.full
@ONE_FORMAT
def test_a_stream_that_is_stopped_during_a_build_goes_on_from_its_checkpoint(spark, star, batches, streams):
    # Days of every micro-batch, by a condition that is evaluated longer than any test waits.
    days = spark.table(f"{star}days").where("day < 100")
    endless = days.where("NOT exists(sequence(day, 500), x -> exists(sequence(day, 500), y -> x + y < day))")

    def joined(static: DataFrame) -> DataFrame:
        return stream(spark, batches["delta"]).join(spark.table(f"{star}sales"), "day").join(static, "day")

    counts = {}
    for name in ("stock", "pruned"):
        if name == "pruned":
            streams.enabled(BY_JOB)
        query = streams.started(name, joined(endless))
        deadline = time.monotonic() + 60
        while not (is_at_work(spark) and (name == "stock" or building())) and time.monotonic() < deadline:
            time.sleep(0.05)
        at_work = is_at_work(spark), bool(building())
        query.stop()
        assert (True, name == "pruned") == at_work
        assert (False, None) == (query.isActive, query.exception())
        # A cancelled task runs to the end of its batch, but Spark gives its job up.
        deadline = time.monotonic() + 30
        while (is_at_work(spark) or building()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert (False, []) == (is_at_work(spark), building())
        rows, counts[name] = streams.ran(name, joined(days))
        assert (4 * ROWS_PER_DAY, [[2], [3]]) == (len(rows), counts[name])
    assert streams.rows("stock") == streams.rows("pruned")
    assert [True, False, False] == [ReasonCode.BUILD_CANCELLED in each for each in streams.codes()]
    assert KEPT == streams.kept()


def building() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("build of")]


def is_at_work(spark: SparkSession) -> bool:
    return bool(spark.sparkContext.statusTracker().getActiveJobsIds())


# A driver that is killed in the middle of its second micro-batch, or while it waits for the time of the second one.
DRIVER = """
import os, signal, sys, time
from connectors.spark.session import spark_session
from pruning import enable
from pyspark.sql.functions import expr, udf
from tests.queries.star import OPTIONS

folder, pruned, killed = sys.argv[1], sys.argv[2] == "pruned", sys.argv[3]
spark = spark_session("killed", conf={"spark.sql.shuffle.partitions": "2"})
if pruned:
    enable(spark, options=OPTIONS)
parent = os.getpid()

def checked(day):
    if killed == "in a micro-batch" and day > 40:
        os.kill(parent, signal.SIGKILL)
    return day

arrived = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(f"{folder}/arrived")
sales = spark.read.format("delta").load(f"{folder}/sales")
joined = arrived.join(sales, "day").withColumn("day", udf(checked, "int")("day"))
name, waits = sys.argv[2], killed == "between micro-batches"
writer = joined.writeStream.format("delta").option("checkpointLocation", f"{folder}/checkpoint {name}")
trigger = {"processingTime": "10000 days"} if waits else {"availableNow": True}
query = writer.trigger(**trigger).start(f"{folder}/{name}")
while waits:
    if query.recentProgress:
        assert [0] == [each.batchId for each in query.recentProgress]
        os.kill(parent, signal.SIGKILL)
    time.sleep(0.05)
query.awaitTermination()
if pruned:
    from pruning import history
    print("kept", [table.planned.files_kept for each in history(spark) for table in each.tables])
spark.stop()
"""


@pytest.mark.full
@pytest.mark.parametrize("killed", ["in a micro-batch", "between micro-batches"])
def test_a_driver_that_is_killed_leaves_every_row_once(spark, streams, killed):
    folder = streams.folder
    sales = spark.range(0, FILES * DAYS_PER_FILE * ROWS_PER_DAY, 1, FILES)
    sales = sales.selectExpr(f"cast(id div {ROWS_PER_DAY} AS int) AS day", "id AS amount")
    sales.write.format("delta").save(str(folder / "sales"))
    for days in (FIRST, SECOND):
        add(spark, str(folder / "arrived"), days)

    def driver(name: str, ended: str) -> subprocess.CompletedProcess[str]:
        given = [sys.executable, "-c", DRIVER, str(folder), name, ended]
        return subprocess.run(given, capture_output=True, text=True, timeout=300, check=False, env=os.environ)

    for name in ("stock", "pruned"):
        assert -signal.SIGKILL == driver(name, killed).returncode
        assert 2 * ROWS_PER_DAY == len(streams.rows(name))
        done = driver(name, "by itself")
        assert 0 == done.returncode, done.stderr
    assert f"kept [{KEPT[-1]}]" in done.stdout
    found = streams.rows("pruned")
    assert (streams.rows("stock"), 4 * ROWS_PER_DAY) == (found, len(found))
