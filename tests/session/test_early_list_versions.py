"""File lists from memory: each version of a table has its own, and transactions list what they read."""

from __future__ import annotations

import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from connectors.spark.jvm import jvm_session
from pruning import prune
from sample_data import confs
from sample_data.rows import Rows
from tests.session.early_lists import (
    COMMITS,
    MERGE,
    OF_OWN,
    OPTIONS,
    PATIENCE,
    VECTORS,
    Planned,
    check_equal,
    ids,
    interpreted,
    lake,
    memory,
    numbered,
    on,
    own,
    scans,
    stock,
    warm,
)

__all__ = ["interpreted", "lake", "memory", "on", "own", "stock"]

pytestmark = pytest.mark.spark


def check_commit(stock, on, own, commit):
    text = own(OF_OWN)
    former = warm(stock, text)
    assert (1, 1, 0) == (former.jobs, Planned.of(on, text).jobs, Planned.of(on, text).jobs)
    before = on.sql(text)
    on.sql(own(COMMITS[commit]))
    expected = warm(stock, text)
    assert (former.rows() == expected.rows()) == (commit in {"optimize", "add-column"})
    assert scans(former.plan) != scans(expected.plan)
    found = [Planned.of(on, text) for _ in range(2)]
    assert (1, 1, 0) == (expected.jobs, *(each.jobs for each in found))
    check_equal(expected, *found)
    # It was made before the commit, and had not been planned.
    early = Planned.of(on, before)
    assert (0, expected.rows()) == (early.jobs, early.rows())


@pytest.mark.parametrize("commit", COMMITS)
def test_a_commit_between_two_queries_is_seen(stock, on, own, commit):
    check_commit(stock, on, own, commit)


@pytest.mark.parametrize("by", ["version", "timestamp"])
def test_versions_have_lists_of_their_own(stock, on, own, by):
    moments = {str(row.version): str(row.timestamp) for row in on.sql(own("DESCRIBE HISTORY {own}")).collect()}
    # The states of older versions are not kept.
    for version, count, stocks in (("0", 18, 2), ("1", 28, 1)):
        text = own(f"SELECT id FROM {{own}} VERSION AS OF {version} WHERE id >= 12")
        if by == "timestamp":
            text = text.replace(f"VERSION AS OF {version}", f"TIMESTAMP AS OF '{moments[version]}'")
        expected, found = warm(stock, text), [Planned.of(on, text) for _ in range(2)]
        assert (stocks, stocks, 0, count) == (expected.jobs, *(each.jobs for each in found), len(found[1].rows()))
        check_equal(expected, *found)
    # The newest version is listed as that version.
    assert 0 == Planned.of(on, own("SELECT id FROM {own} WHERE id >= 12")).jobs


def forget(spark: SparkSession, folder: Path) -> None:
    """Lets Delta read the log of a table anew."""
    java: Any = spark._jvm
    path = java.org.apache.hadoop.fs.Path(str(folder))
    java.org.apache.spark.sql.delta.DeltaLog.invalidateCache(jvm_session(spark), path)


@pytest.mark.parametrize("way", ["catalog", "files"])
def test_a_table_that_is_made_again_at_its_path_is_another_one(spark, stock, on, tmp_path, way):
    folder = tmp_path / "again"
    name = "made_again" if way == "catalog" else f"delta.`{folder}`"
    text = f"SELECT id FROM {name} WHERE id >= 1"

    def made(first: int) -> None:
        if way == "catalog":
            on.sql(f"CREATE TABLE {name} USING delta AS SELECT id FROM range({first}, {first} + 3)")
        else:
            on.range(first, first + 3, 1, 1).write.format("delta").save(str(folder))

    try:
        for first in (0, 10):
            made(first)
            expected, found = warm(stock, text), [Planned.of(on, text) for _ in range(2)]
            assert (1, 1, 0) == (expected.jobs, *(each.jobs for each in found))
            check_equal(expected, *found)
            assert ([at for at in range(first, first + 3) if at >= 1], "0") == (
                ids(found[1]),
                scans(found[1].plan)[0][1],
            )
            if way == "catalog":
                on.sql(f"DROP TABLE {name}")
            else:
                shutil.rmtree(folder)
                forget(spark, folder)
    finally:
        on.sql("DROP TABLE IF EXISTS made_again")


@pytest.mark.full
def test_a_version_that_is_written_again_after_a_backup_is_another_one(spark, stock, on, tmp_path):
    folder, backup = tmp_path / "own", tmp_path / "backup"
    text = f"SELECT id FROM delta.`{folder}` WHERE id > 0"
    on.range(0, 3, 1, 1).write.format("delta").save(str(folder))
    shutil.copytree(folder, backup)
    for added in (100, 200):
        on.sql(f"INSERT INTO delta.`{folder}` VALUES ({added})")
        expected, found = warm(stock, text), [Planned.of(on, text) for _ in range(2)]
        assert (1, 1, 0) == (expected.jobs, *(each.jobs for each in found))
        check_equal(expected, *found)
        assert ([1, 2, added], "1") == (ids(found[1]), scans(found[1].plan)[0][1])
        shutil.rmtree(folder)
        shutil.copytree(backup, folder)
        forget(spark, folder)


def test_a_schema_that_changed_since_analysis_is_an_error_of_delta(stock, on, own, tmp_path):
    text = own(OF_OWN)
    warm(stock, text)
    assert (1, 0) == (Planned.of(on, text).jobs, Planned.of(on, text).jobs)
    frames = [stock.sql(text), on.sql(text), prune(on.sql(text), options=OPTIONS)]
    on.range(3).selectExpr("cast(id AS string) AS id", "id AS k").write.format("delta").mode("overwrite").option(
        "overwriteSchema", "true"
    ).save(str(tmp_path / "own"))
    for each in frames:
        with pytest.raises(Exception, match="DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"):
            each.collect()


COMMANDS = {
    "insert-from-itself": "INSERT INTO {own} SELECT id + 100, k FROM {own} WHERE id >= 12",
    "insert-from-another": "INSERT INTO {own} SELECT id + 100, k FROM {parts} WHERE part = 'p 1'",
    "overwrite": "INSERT OVERWRITE {own} SELECT id, k + 1 FROM {own} WHERE id >= 12",
    "replace-where": "INSERT INTO {own} REPLACE WHERE id >= 12 SELECT id, k + 1 AS k FROM {own} WHERE id >= 12",
    "update": "UPDATE {own} SET k = -5 WHERE id >= 12 AND k = 3",
    "delete": "DELETE FROM {own} WHERE id >= 12 AND k < 4",
    "merge": MERGE,
}


def history(session: SparkSession, table: str) -> list[tuple[Any, ...]]:
    """The entries of the history of a table, without times and sizes."""
    columns = ["version", "operation", "operationParameters", "readVersion", "isolationLevel", "isBlindAppend"]
    found = []
    for row in session.sql(f"DESCRIBE HISTORY {table}").collect():
        metrics = {name: text for name, text in row.operationMetrics.items() if not re.search("Ms|Bytes", name)}
        found.append((numbered(str([row[name] for name in columns])), metrics))
    return found


def check_write(lake, stock, on, tmp_path, command):
    told = []
    for session, name in ((stock, "of_stock"), (on, "of_pruning")):
        table = f"delta.`{tmp_path / name}`"
        stock.sql(lake(f"CREATE TABLE {table} USING delta {VECTORS} AS SELECT * FROM {{facts}}"))
        # The lists that the command could take are known.
        for text in ("SELECT * FROM {own} WHERE id >= 12", "SELECT * FROM {parts} WHERE part = 'p 1'"):
            Planned.of(session, lake(text.replace("{own}", table)))
        session.sql(lake(COMMANDS[command].replace("{own}", table)))
        rows = Rows(stock.sql(f"SELECT * FROM {table}").collect())
        told.append((rows, [(str(texts).replace(name, "own"), metrics) for texts, metrics in history(stock, table)]))
    assert told[0] == told[1]
    assert 2 == len(told[1][1])


@pytest.mark.parametrize("command", COMMANDS)
def test_writes_are_those_of_stock(lake, stock, on, tmp_path, command):
    check_write(lake, stock, on, tmp_path, command)


def check_conflict(session: SparkSession, beside: SparkSession, folder: Path) -> str:
    """The error of Delta for a write that reads a table, from which another session deletes rows meanwhile."""
    table, began, goes_on = f"delta.`{folder / 'own'}`", folder / "began", folder / "goes_on"
    beside.range(0, 20, 1, 1).selectExpr("id", "id % 5 AS k").write.format("delta").save(str(folder / "own"))
    texts = str(began), str(goes_on)

    def wait(value):
        first, second = map(Path, texts)
        first.touch()
        deadline = time.monotonic() + PATIENCE
        while not second.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        return value

    def delete() -> None:
        deadline = time.monotonic() + PATIENCE
        while not began.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        try:
            beside.sql(f"DELETE FROM {table} WHERE k = 1").collect()
        finally:
            goes_on.touch()

    read = session.sql(f"SELECT * FROM {table} WHERE id >= 3")
    Planned.of(session, read)
    source = session.table(table).where("id >= 3").select(F.udf(wait, "long")("id").alias("id"), "k")
    with ThreadPoolExecutor(1) as pool:
        deleted = pool.submit(delete)
        try:
            source.write.format("delta").mode("append").save(str(folder / "own"))
        except Exception as error:  # noqa: BLE001 - it is compared
            return f"{type(error).__name__} {getattr(error, 'getCondition', str)()}"
        else:
            return "no conflict"
        finally:
            deleted.result()


@pytest.mark.full
def test_conflicts_are_those_of_stock(stock, on, tmp_path):
    found = []
    for session, name in ((stock, "of_stock"), (on, "of_pruning")):
        (tmp_path / name).mkdir()
        found.append(check_conflict(session, confs.same_session(stock), tmp_path / name))
    assert found[0] == found[1] != "no conflict"
