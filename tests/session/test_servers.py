"""`scanprune serve`: clients in other processes get pruned queries from Spark's own servers, each in a session."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import urlopen

import pyspark
import pytest
from pyspark.sql.connect.session import SparkSession as RemoteSession

from connectors.spark.servers import Endpoint
from sample_data import process_tree
from sample_data.rows import Rows
from tests.session.server import Server, gone, server

pytestmark = [pytest.mark.spark, pytest.mark.slow]

README = Path(__file__).parents[2] / "README.md"
FILES, ROWS = 8, 60
QUERY = "SELECT s.* FROM sales s JOIN days d ON s.day = d.day WHERE month = 2"
PRUNED = f"reads 2 of {FILES} files"
# Deterministic, and runs longer than any test waits.
ENDLESS = "AND NOT exists(sequence(d.day, 500), x -> exists(sequence(d.day, 500), y -> x + y < d.day))"
OPTIONS = ("--conf", "always=true", "--conf", "spark.sql.shuffle.partitions=2")


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    sales = spark.range(0, 320, 1, FILES).selectExpr("cast(id div 2 AS int) AS day", "id AS amount")
    days = spark.range(0, 160, 1, 1).selectExpr("cast(id AS int) AS day", "cast(id div 30 AS int) AS month")
    sales.write.format("delta").save(str(folder / "sales"))
    days.write.parquet(str(folder / "days"))
    return folder


@pytest.fixture(scope="module")
def stock(spark, lake) -> Rows:
    sales, days = spark.read.format("delta").load(str(lake / "sales")), spark.read.parquet(str(lake / "days"))
    return Rows(sales.join(days, "day").where("month = 2").select("day", "amount").collect())


def started(kind: str, lake: Path, folder: Path) -> Iterator[Server]:
    """The server that README starts, over these tables and with these options."""
    (command,) = re.findall(rf"^scanprune serve {kind} (.*)$", README.read_text(encoding="utf-8"), re.MULTILINE)
    with server(kind, folder, *OPTIONS, *shlex.split(command.replace("/lake", str(lake)))) as running:
        yield running


@pytest.fixture(scope="module")
def connect(lake, tmp_path_factory) -> Iterator[Server]:
    yield from started("connect", lake, tmp_path_factory.mktemp("connect"))


@pytest.fixture(scope="module")
def thrift(lake, tmp_path_factory) -> Iterator[Server]:
    yield from started("thrift", lake, tmp_path_factory.mktemp("thrift"))


@pytest.fixture
def client(connect):
    """Starts sessions of Spark Connect, which end with the test."""
    sessions = []

    def start():
        sessions.append(RemoteSession(connect.url))
        return sessions[-1]

    yield start
    for each in sessions:
        each.client.release_session()
        each.client.close()


def test_a_client_of_connect_gets_pruned_queries(connect, client, stock):
    before, spark = len(connect.told()), client()
    assert stock == Rows(spark.sql(QUERY).collect())
    assert ROWS == spark.sql(QUERY).count() == len(spark.sql(QUERY).toPandas())
    told = connect.told()[before:]
    assert [True] * 3 == [each.startswith(PRUNED) for each in told]
    # Plans that are only shown start no build.
    assert "PreparedDeltaFileIndex" in spark.sql(f"EXPLAIN {QUERY}").collect()[0][0]
    assert FILES + 1 == len(spark.sql(QUERY).inputFiles())
    assert before + 3 == len(connect.told())


@pytest.mark.full
def test_sessions_of_clients_are_apart(connect, client, stock):
    before, one, other = len(connect.told()), client(), client()
    one.sql("SET spark.pruning.auto = false").collect()
    one.sql("CREATE TEMP VIEW mine AS SELECT 1 AS one").collect()
    assert stock == Rows(one.sql(QUERY).collect())
    assert before == len(connect.told())
    assert stock == Rows(other.sql(QUERY).collect())
    assert before + 1 == len(connect.told())
    assert not other.catalog.tableExists("mine")


@pytest.mark.full
def test_commands_of_a_client_are_pruned(connect, client, stock, tmp_path):
    before, spark = len(connect.told()), client()
    spark.sql(QUERY).write.format("delta").save(str(tmp_path / "written"))
    assert stock == Rows(spark.read.format("delta").load(str(tmp_path / "written")).collect())
    spark.sql(f"CREATE TABLE made USING delta LOCATION '{tmp_path / 'made'}' AS {QUERY}").collect()
    try:
        spark.sql(f"INSERT INTO made {QUERY}").collect()
        assert 2 * ROWS == spark.table("made").count()
        assert [True] * 3 == [each.startswith(PRUNED) for each in connect.told()[before:]]
        merge = "MERGE INTO made t USING (SELECT 61 AS day, -1L AS amount) s ON t.day = s.day"
        spark.sql(f"{merge} WHEN MATCHED THEN UPDATE SET *").collect()
        assert 4 == spark.table("made").where("amount = -1").count()
    finally:
        spark.sql("DROP TABLE made").collect()


@pytest.mark.full
def test_many_clients_at_once(connect, client, stock):
    before, sessions = len(connect.told()), [client() for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda at: Rows(sessions[at % 4].sql(QUERY).collect()), range(16)))
    assert [stock] * 16 == answers
    assert [True] * 16 == [each.startswith(PRUNED) for each in connect.told()[before:]]


@pytest.mark.full
def test_an_interrupted_query_ends_while_its_build_runs(connect, client, stock):
    spark, failed = client(), []
    spark.conf.set("spark.pruning.limits.driver_scan_files", "0")

    def run() -> None:
        try:
            spark.sql(f"{QUERY} {ENDLESS}").collect()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            failed.append(str(error))

    query = threading.Thread(target=run, daemon=True)
    before = connect.log.read_text("utf-8").count("Collecting the keys")
    query.start()
    until = time.monotonic() + 60
    while connect.log.read_text("utf-8").count("Collecting the keys") == before and time.monotonic() < until:
        time.sleep(0.1)
    assert spark.interruptAll()
    query.join(60)
    assert not query.is_alive()
    assert "OPERATION_CANCELED" in failed[0]
    assert stock == Rows(spark.sql(QUERY).collect())


def beeline_command(url: str, *statements: str) -> list[str]:
    jars = Path(pyspark.__file__).parent / "jars"
    java = shutil.which("java")
    assert java is not None
    command = [java, "-cp", f"{jars}/*", "org.apache.hive.beeline.BeeLine", "-u", url, "-n", "someone"]
    options = ["--silent=true", "--showHeader=false", "--outputformat=tsv2"]
    return [*command, *options, *(part for statement in statements for part in ("-e", statement))]


def beeline(url: str, *statements: str) -> str:
    done = subprocess.run(beeline_command(url, *statements), capture_output=True, text=True, check=False, timeout=120)
    assert 0 == done.returncode, done.stderr
    return done.stdout


@pytest.mark.full
def test_a_client_of_jdbc_gets_pruned_queries(thrift, stock):
    before = len(thrift.told())
    found = beeline(thrift.url, QUERY, f"EXPLAIN {QUERY}", "SET spark.pruning.auto=false", QUERY)
    rows = [(int(day), int(amount)) for day, amount in re.findall(r"(\d+)\t(\d+)$", found, re.MULTILINE)]
    assert 2 * ROWS == len(rows)
    assert stock == Rows(rows[:ROWS]) == Rows(rows[ROWS:])
    told = thrift.told()[before:]
    assert 1 == len(told)
    assert told[0].startswith(PRUNED)


class Beeline:
    """A client of JDBC that takes statements one after the other."""

    def __init__(self, url: str) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            beeline_command(url), stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True
        )
        self._asked = 0

    def run(self, statement: str) -> str:
        """The lines that the client prints for a statement."""
        self._asked += 1
        end, lines = f"end of {self._asked}", list[str]()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{statement};\nSELECT concat('end of ', {self._asked});\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.strip().endswith(end):
                return "".join(lines)
            lines.append(line)
        raise AssertionError("".join(lines))

    def close(self) -> None:
        """Ends the client as the end of its input does."""
        self._process.communicate("!quit\n", timeout=60)


@pytest.mark.full
def test_sessions_of_clients_of_jdbc_are_apart(thrift, stock):
    def rows(client: Beeline) -> Rows:
        found = re.findall(r"^(\d+)\t(\d+)$", client.run(QUERY), re.MULTILINE)
        return Rows([(int(day), int(amount)) for day, amount in found])

    one, other = Beeline(thrift.url), Beeline(thrift.url)
    try:
        before = len(thrift.told())
        one.run("SET spark.pruning.auto=false")
        one.run("CREATE TEMPORARY VIEW mine AS SELECT 'of one' AS whose")
        assert stock == rows(one)
        assert before == len(thrift.told())
        assert stock == rows(other)
        assert before + 1 == len(thrift.told())
        assert thrift.told()[-1].startswith(PRUNED)
        assert "TABLE_OR_VIEW_NOT_FOUND" in other.run("SELECT * FROM mine")
        assert "of one" in one.run("SELECT * FROM mine")
        assert stock == rows(one)
        assert before + 1 == len(thrift.told())
        one.run("SET spark.pruning.auto=true")
        one.run("SET spark.pruning.enabled=false")
        assert (stock, stock) == (rows(one), rows(other))
        switched_off, pruned = thrift.told()[-2:]
        assert "switched off" in switched_off
        assert pruned.startswith(PRUNED)
    finally:
        one.close()
        other.close()


@pytest.mark.full
@pytest.mark.parametrize("kind", ["connect", "thrift"])
def test_a_merge_of_a_client_is_pruned(spark, lake, request, tmp_path, kind):
    serving = request.getfixturevalue(kind)
    for name in ("stock", "pruned"):
        rows = spark.range(0, 320, 1, FILES).selectExpr("cast(id div 2 AS int) AS day", "id AS amount")
        rows.write.format("delta").save(str(tmp_path / name))
    source = f"SELECT day, -1L AS amount FROM parquet.`{lake / 'days'}` WHERE month = 2"
    merge = f"MERGE INTO delta.`{{}}` t USING ({source}) s ON t.day = s.day WHEN MATCHED THEN UPDATE SET *"
    spark.sql(merge.format(tmp_path / "stock"))
    before, statement = len(serving.told()), merge.format(tmp_path / "pruned")
    if kind == "connect":
        request.getfixturevalue("client")().sql(statement).collect()
    else:
        beeline(serving.url, statement)
    merged = {
        name: Rows(spark.read.format("delta").load(str(tmp_path / name)).collect()) for name in ("stock", "pruned")
    }
    assert merged["stock"] == merged["pruned"]
    told = [each.split(" (")[0] for each in serving.told()[before:] if each.startswith("reads ")]
    assert [f"reads 2 of {FILES} files"] == told


# A client of Connect that asks for rows and waits for them.
CLIENT = """
import sys
from pyspark.sql.connect.session import SparkSession
SparkSession(sys.argv[1]).sql(sys.argv[2]).collect()
"""
# Connect soon notices that nobody waits for an answer, and that a session is idle.
SOON = {
    "spark.connect.execute.manager.detachedTimeout": "2s",
    "spark.connect.execute.manager.maintenanceInterval": "1s",
    "spark.connect.session.manager.defaultSessionTimeout": "8s",
    "spark.connect.session.manager.maintenanceInterval": "1s",
}


@pytest.mark.full
@pytest.mark.parametrize("kind", ["connect", "thrift"])
def test_a_client_that_is_killed_during_a_build_leaves_nothing(lake, stock, tmp_path, kind):
    port = Endpoint.free(kind, "127.0.0.1", 0).port
    confs = {"always": "true", "limits.driver_scan_files": "0", "spark.sql.shuffle.partitions": "2"}
    confs |= {"spark.ui.enabled": "true", "spark.ui.port": str(port), **(SOON if kind == "connect" else {})}
    arguments = [part for name, value in confs.items() for part in ("--conf", f"{name}={value}")]
    arguments += [part for name in ("sales", "days") for part in ("--table", f"{name}={lake / name}")]
    page = f"http://127.0.0.1:{port}/{'connect' if kind == 'connect' else 'sqlserver'}/"

    def left() -> tuple[int, int, int]:
        """The sessions, the statements and the jobs of the server."""
        with urlopen(page, timeout=30) as answer:
            text = answer.read().decode()
        sessions, statements = re.findall(r"(\d+)\s+session\(s\)\s+are online,\s+running\s+(\d+)", text)[0]
        with urlopen(f"http://127.0.0.1:{port}/api/v1/applications", timeout=30) as answer:
            (application,) = json.load(answer)
        jobs = f"http://127.0.0.1:{port}/api/v1/applications/{application['id']}/jobs?status=running"
        with urlopen(jobs, timeout=30) as answer:
            return int(sessions), int(statements), len(json.load(answer))

    def within(seconds: float, wanted: tuple[int, int, int]) -> bool:
        until = time.monotonic() + seconds
        while left() != wanted and time.monotonic() < until:
            time.sleep(0.2)
        return left() == wanted

    with server(kind, tmp_path, "--log", *arguments) as running:
        # Longer than any timeout of a server.
        query = f"{QUERY} {ENDLESS}".replace("500", "1500")
        command = [sys.executable, "-c", CLIENT, running.url, query]
        client = subprocess.Popen(command if kind == "connect" else beeline_command(running.url, query))
        assert within(60, (1, 1, 1)), left()
        until = time.monotonic() + 60
        while "Collecting the keys" not in running.log.read_text("utf-8") and time.monotonic() < until:
            time.sleep(0.1)
        assert ((1, 1, 1), []) == (left(), running.told())
        client.kill()
        client.wait()
        assert within(60, (0, 0, 0)), left()
        assert not [each for each in running.told() if each.startswith("reads ")]
        if kind == "connect":
            other = RemoteSession(running.url)
            assert stock == Rows(other.sql(QUERY).collect())
            other.client.close()
        else:
            beeline(running.url, QUERY)
        assert running.told()[-1].startswith(PRUNED)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["connect", "thrift"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_of_a_server_that_ends(lake, tmp_path, kind, number):
    with server(kind, tmp_path, "--table", f"sales={lake / 'sales'}") as running:
        children = process_tree.below(running.process.pid)[1:]
        assert children
        running.process.send_signal(number)
        assert 128 + number == running.process.wait(60)
    assert gone(children)
    assert "scanprune: The server has ended" in running.log.read_text("utf-8")
    assert not [
        each.name for each in tmp_path.iterdir() if each.name not in {"cache", "spark-warehouse", f"{kind}.err"}
    ]


@pytest.mark.full
def test_a_server_ends_with_its_java_process(tmp_path):
    with server("connect", tmp_path) as running:
        for each in process_tree.below(running.process.pid)[1:]:
            os.kill(each, signal.SIGKILL)
        assert 1 == running.process.wait(60)
    assert "Spark's Java process has ended" in running.log.read_text("utf-8")
