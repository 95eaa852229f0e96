"""Java cannot call Python any more: queries of an enabled session run as without pruning, and none waits for ever."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pyspark
import pytest
from py4j.java_gateway import quiet_shutdown
from pyspark.serializers import UTF8Deserializer, read_int
from pyspark.sql.connect.session import SparkSession as RemoteSession

from connectors.session.session_pruning import records
from connectors.spark.jvm import start_callbacks
from pruning import disable, enable
from sample_data.rows import Rows
from tests.queries.star import FILES, OPTIONS, star_tables
from tests.session.conftest import MONTH, ROWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.full]

QUERY = MONTH.format(sales="sales", days="days")
# Deterministic, true, and evaluated for some seconds.
SLOW = "AND NOT exists(sequence(d.day, 500), x -> exists(sequence(d.day, 500), y -> x + y < d.day))"
PRUNED = f"reads 2 of {FILES} files"
WARNING = "A query ran without pruning"

# A driver whose Java process outlives it, as on a cluster that runs both apart.
DRIVER = """
import logging, sys, time
from pathlib import Path
from pyspark.sql import SparkSession
from connectors.session.session_pruning import enable_new_sessions
from connectors.spark.servers import Endpoint, served
from pruning import enable
from tests.queries.star import BY_JOB

folder = Path(sys.argv[1])
logger = logging.getLogger("scanprune")
logger.addHandler(logging.StreamHandler())
logger.setLevel(logging.INFO)
endpoint, builder = Endpoint.free("connect", "127.0.0.1", 0), SparkSession.builder.master("local[2]")
confs = {"spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.sql.shuffle.partitions": "2"}
confs |= {"spark.ui.port": "0", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
for name, value in {**confs, **endpoint.confs(folder)}.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
for name in ("sales", "days"):
    spark.sql(f"CREATE TABLE {name} USING parquet LOCATION '{folder / name}'")
enable(spark, options=BY_JOB)
enable_new_sessions(spark)
with served(spark, endpoint):
    print(endpoint.url, spark.sparkContext.uiWebUrl, spark.sparkContext.applicationId, flush=True)
    time.sleep(1000)
"""


@dataclass(frozen=True, slots=True)
class Driver:
    """The process of Python, the text by which clients connect, the web UI of Spark, and the logs of both processes."""

    process: subprocess.Popen[str]
    url: str
    jobs_url: str
    folder: Path

    @property
    def python_log(self) -> Path:
        return self.folder / "python.log"

    @property
    def java_log(self) -> Path:
        return self.folder / "java.log"

    def table(self, spark: SparkSession, name: str) -> DataFrame:
        """One of the tables that the driver serves."""
        return spark.read.parquet(str(self.folder / name))

    def kill(self) -> None:
        """Ends Python as a lack of memory would."""
        self.process.kill()
        self.process.wait()

    def running_jobs(self) -> list[Any]:
        """The jobs that Spark runs."""
        with urlopen(f"{self.jobs_url}?status=running", timeout=30) as answer:  # noqa: S310 - the UI of the test
            found: list[Any] = json.load(answer)
        return found


@contextmanager
def java_process(folder: Path) -> Iterator[dict[str, str]]:
    """A Java process of Spark that belongs to the test, and the environment by which a driver connects to it."""
    info, log = folder / "connection", folder / "java.log"
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            [str(submit), "pyspark-shell"],
            cwd=folder,
            env={**os.environ, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(info), "SPARK_CONNECT_MODE": "0"},
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=file,
        )
    try:
        while not info.exists():
            assert process.poll() is None, log.read_text("utf-8")
            time.sleep(0.1)
        with info.open("rb") as given:
            port, secret = read_int(given), UTF8Deserializer().loads(given)
        yield {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    finally:
        # Java ends with this pipe.
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)


@pytest.fixture
def driver(spark, tmp_path) -> Iterator[Driver]:
    for name, df in star_tables(spark).items():
        df.write.parquet(str(tmp_path / name))
    log = tmp_path / "python.log"
    with java_process(tmp_path) as connection, log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(tmp_path)],
            env={**os.environ, **connection},
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
        )
        try:
            assert process.stdout is not None
            first = process.stdout.readline().split()
            assert 3 == len(first), log.read_text("utf-8")
            url, ui, application = first
            yield Driver(process, url, f"{ui}/api/v1/applications/{application}/jobs", tmp_path)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()  # type: ignore[union-attr]


@pytest.mark.parametrize("when", ["between queries", "while a build runs"])
def test_queries_go_on_when_the_driver_is_killed(spark, driver, when):
    client, (sales, days) = RemoteSession(driver.url), (driver.table(spark, name) for name in ("sales", "days"))
    stock = Rows(sales.join(days.where("month = 2"), "day").drop("month").collect())
    assert ROWS == len(stock)
    assert stock == Rows(client.sql(QUERY).collect())
    assert 1 == driver.python_log.read_text("utf-8").count(PRUNED)
    found: list[Rows] = []
    if when == "while a build runs":
        before = driver.python_log.read_text("utf-8").count("Collecting the keys")
        query = threading.Thread(target=lambda: found.append(Rows(client.sql(f"{QUERY} {SLOW}").collect())))
        query.start()
        until = time.monotonic() + 60
        while driver.python_log.read_text("utf-8").count("Collecting the keys") == before and time.monotonic() < until:
            time.sleep(0.05)
        assert driver.running_jobs()
        driver.kill()
        query.join(300)
        assert not query.is_alive()
        assert [stock] == found
    else:
        driver.kill()
    for _ in range(2):
        assert stock == Rows(client.sql(QUERY).collect())
    # Later ones would tell no more.
    assert 1 == driver.java_log.read_text("utf-8").count(WARNING)
    # A build ends by itself, since nobody is left to cancel it.
    until = time.monotonic() + 120
    while driver.running_jobs() and time.monotonic() < until:
        time.sleep(0.2)
    assert [] == driver.running_jobs()
    client.client.close()


@pytest.fixture
def callbacks(spark) -> Iterator[Any]:
    """The callback server of PySpark, which the test may shut down."""
    start_callbacks(spark)
    yield spark.sparkContext._gateway._callback_server
    disable(spark)
    start_callbacks(spark)


def shut_down(server: Any) -> None:
    for connection in [*server.connections]:
        # py4j would wait for the thread that reads from it.
        quiet_shutdown(connection.socket)
    server.shutdown()


@pytest.mark.parametrize("star", ["delta"], indirect=True)
def test_queries_go_on_without_the_callback_server(spark, star, query, callbacks, tmp_path):
    """Queries of Python's own threads, and streams, which call from threads of Java."""
    arrived, sales = str(tmp_path / "arrived"), spark.table(f"{star}sales")
    spark.createDataFrame([(3, "a"), (4, "b")], "day int, name string").coalesce(1).write.parquet(arrived)

    def streamed(name: str) -> Rows:
        df = spark.readStream.schema("day int, name string").parquet(arrived).join(sales, "day")
        writer = df.writeStream.format("delta").option("checkpointLocation", str(tmp_path / f"checkpoint {name}"))
        writer.trigger(availableNow=True).start(str(tmp_path / name)).awaitTermination()
        return Rows(spark.read.format("delta").load(str(tmp_path / name)).collect())

    stock = Rows(spark.sql(query).collect()), streamed("stock")
    enable(spark, options=OPTIONS)
    before = records(spark)
    shut_down(callbacks)
    assert stock == (Rows(spark.sql(query).collect()), streamed("unpruned"))
    # A query with nothing to prune may take the place of the oldest record.
    assert set(map(id, before)) >= set(map(id, records(spark)))
    enable(spark, options=OPTIONS)
    assert stock == (Rows(spark.sql(query).collect()), streamed("pruned"))
    added = [each for each in records(spark) if not any(each is other for other in before)]
    assert [1, 2] == [table.planned.files_kept for each in added for table in each.report().tables]
