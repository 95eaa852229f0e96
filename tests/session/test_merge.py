"""MERGE, UPDATE and DELETE in a session that prunes: tables and history are those of Delta without pruning."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from connectors.session import session_pruning
from pruning import PruningOptions, history
from pruning.results.prune_report import TableReport
from sample_data.rows import Rows
from tests.queries.star import DAYS_PER_FILE, FILES, ITEMS, OPTIONS, ROWS_PER_DAY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.parametrize("star", ["delta"], indirect=True)]

# Sales of the days 60 to 89, which lie in two of the eight files of a target. Of the target's rows a third is missing.
ARRIVED = "SELECT day, item, amount FROM {sales} WHERE day BETWEEN 60 AND 89"
BY_AMOUNT = "MERGE INTO delta.`{target}` t USING ({source}) s ON t.amount = s.amount"
UPSERT = BY_AMOUNT + " WHEN MATCHED THEN UPDATE SET item = -s.item WHEN NOT MATCHED THEN INSERT *"
INSERT = BY_AMOUNT + " WHEN NOT MATCHED THEN INSERT *"
# Each command with the files of the target that it looks for matches in; None where it reads them all.
COMMANDS = {
    "update and insert": (UPSERT, 2),
    "update": (BY_AMOUNT + " WHEN MATCHED AND s.item > 3 THEN UPDATE SET item = -s.item", 2),
    "delete": (BY_AMOUNT + " WHEN MATCHED THEN DELETE", 2),
    "insert": (INSERT, 2),
    "by two columns": (BY_AMOUNT + " AND t.day = s.day WHEN MATCHED THEN DELETE", 2),
    "beside a condition": (BY_AMOUNT + " AND t.day >= 65 WHEN MATCHED THEN DELETE", 2),
    "beside an open condition": (BY_AMOUNT + " AND t.item % 7 = 1 WHEN MATCHED THEN DELETE", 2),
    "beside a condition without rows": (BY_AMOUNT + " AND t.item % 7 = 8 WHEN MATCHED THEN DELETE", None),
    "several": (
        BY_AMOUNT
        + " WHEN MATCHED AND s.item > 20 THEN UPDATE SET item = -s.item WHEN MATCHED AND t.day > 70 THEN DELETE"
        " WHEN NOT MATCHED AND s.item = 7 THEN INSERT (day, amount) VALUES (s.day, s.amount)"
        " WHEN NOT MATCHED AND s.item < 30 THEN INSERT *",
        2,
    ),
    "of itself": (
        (
            "MERGE INTO delta.`{target}` t USING (SELECT * FROM delta.`{target}` WHERE day BETWEEN 65 AND 66) s"
            " ON t.amount = s.amount WHEN MATCHED THEN UPDATE SET item = -s.item"
        ),
        # Its keys cost as much as they save.
        None,
    ),
    "elsewhere": (
        (
            "MERGE INTO delta.`{target}` t USING (SELECT day, item, amount + 100000 AS amount FROM ({source})) s"
            " ON t.amount = s.amount WHEN NOT MATCHED THEN INSERT *"
        ),
        0,
    ),
    "insert beside an open condition": (BY_AMOUNT + " AND t.item % 7 = 1 WHEN NOT MATCHED THEN INSERT *", 2),
    "nothing matches": (BY_AMOUNT + " AND t.day < 0 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *", None),
    "a range": (
        (
            "MERGE INTO delta.`{target}` t USING ({source}) s ON t.amount < s.amount - 2240 AND t.item = s.item"
            " WHEN NOT MATCHED THEN INSERT *"
        ),
        1,
    ),
    "by source": (BY_AMOUNT + " WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE AND t.day < 3 THEN DELETE", None),
    "not equal": (
        (
            "MERGE INTO delta.`{target}` t USING ({source}) s ON t.amount <=> s.amount"
            " WHEN MATCHED THEN UPDATE SET item = -s.item WHEN NOT MATCHED THEN INSERT *"
        ),
        2,
    ),
    "update without a source": ("UPDATE delta.`{target}` SET item = 0 WHERE day BETWEEN 30 AND 70", None),
    "delete without a source": ("DELETE FROM delta.`{target}` WHERE day BETWEEN 30 AND 70", None),
}
# Properties of the target; the columns of a table with others are declared.
TABLES = {
    "plain": "",
    "vectors": "TBLPROPERTIES (delta.enableDeletionVectors = true)",
    "change feed": "TBLPROPERTIES (delta.enableChangeDataFeed = true)",
    "column mapping": "TBLPROPERTIES (delta.columnMapping.mode = 'name')",
    "row tracking": "TBLPROPERTIES (delta.enableRowTracking = true)",
    "partitions": "PARTITIONED BY (day)",
    "no statistics": "TBLPROPERTIES (delta.dataSkippingNumIndexedCols = 0)",
}
_TIMES = ("Ms", "Bytes")


def counted(spark: SparkSession, target: str) -> dict[str, str]:
    """The metrics of the latest commit that do not depend on time or on the layout of files."""
    metrics = spark.sql(f"DESCRIBE HISTORY delta.`{target}` LIMIT 1").first()["operationMetrics"]
    return {name: value for name, value in metrics.items() if not any(each in name for each in _TIMES)}


class Targets:
    """The reports of the target, of each plan that the session has recorded since now."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark, self.before = spark, [*session_pruning.records(spark)]

    def found(self, *, is_pruned: bool) -> list[TableReport]:
        """Those that tell of files left out, or those of plans that need all files that the command chose."""
        new = [each for each in session_pruning.records(self.spark) if not any(each is known for known in self.before)]
        reports = [report for each in new if bool((report := each.report()).nothing) is not is_pruned]
        return [table for each in reports for table in each.tables if table.planned.table == "target"]

    def kept(self) -> list[int]:
        """The files of the target that were kept by each plan that left out some."""
        return [each.planned.files_kept for each in self.found(is_pruned=True)]


@pytest.fixture
def targets(spark) -> Targets:
    return Targets(spark)


class Both:
    """Commands that run without pruning and then with it, each time on a table of its own."""

    def __init__(self, spark: SparkSession, star: str, enabled: Callable[..., object], folder: Any) -> None:
        self.spark, self.star, self.enabled, self.folder = spark, star, enabled, folder
        self.made: Callable[[str], None] = self.plain

    @property
    def stored(self) -> Any:
        """Two thirds of the sales, in as many files with as many days each."""
        rows = self.spark.range(0, FILES * DAYS_PER_FILE * ROWS_PER_DAY, 1, FILES).where("id % 3 > 0")
        day = f"cast(id div {ROWS_PER_DAY} AS int) AS day"
        return rows.selectExpr(day, f"cast(id % {ITEMS} AS int) AS item", "id AS amount")

    def plain(self, target: str) -> None:
        """A table without properties."""
        self.stored.write.format("delta").save(target)

    def declared(self, columns: str, properties: str) -> None:
        """A table with other columns and properties is made with these rows."""

        def made(target: str) -> None:
            self.spark.sql(f"CREATE TABLE delta.`{target}` ({columns}) USING delta {properties}")
            self.stored.write.format("delta").mode("append").save(target)

        self.made = made

    def copy(self, name: str) -> str:
        """The path of a table with the same files for each name."""
        made, target = self.folder / "made", self.folder / name / "target"
        if not made.exists():
            self.made(str(made))
        shutil.copytree(made, target)
        return str(target)

    def run(self, command: Callable[[str], object], options: PruningOptions = OPTIONS, *hidden: str) -> list[Any]:
        """The rows, without some columns, the metrics and the error of a command that gets the path of the target."""
        found = []
        for name in ("stock", "enabled"):
            target = self.copy(name)
            if name == "enabled":
                self.enabled(options)
            error = None
            try:
                command(target)
            except Exception as failed:  # noqa: BLE001 - both have to fail alike
                error = type(failed), str(failed).split(" ")[0]
            df = self.spark.read.format("delta").load(target).drop(*hidden)
            found.append({"rows": Rows(df.collect()), "counted": counted(self.spark, target), "error": error})
        return found


@pytest.fixture
def both(spark, star, enabled, tmp_path) -> Both:
    return Both(spark, star, enabled, tmp_path)


@pytest.fixture
def arrived(spark, star, tmp_path) -> str:
    """The source as a stored table, which Delta does not store once more."""
    spark.sql(ARRIVED.format(sales=f"{star}sales")).coalesce(1).write.format("delta").save(str(tmp_path / "arrived"))
    return f"SELECT * FROM delta.`{tmp_path / 'arrived'}`"


@pytest.mark.parametrize(("command", "kept"), COMMANDS.values(), ids=COMMANDS)
def test_commands_of_delta_do_what_they_do_without_pruning(spark, arrived, both, command, kept, targets):
    stock, enabled = both.run(lambda target: spark.sql(command.format(target=target, source=arrived)))
    assert stock == enabled
    assert any(value != "0" for value in enabled["counted"].values())
    assert ([] if kept is None else [kept]) == targets.kept()


@pytest.mark.parametrize("command", [UPSERT, INSERT], ids=["upsert", "insert"])
def test_a_target_with_deleted_rows_and_row_ids(spark, arrived, both, command, targets):
    """Rows that a deletion vector deletes lie in the files that are searched and in those that are not."""
    both.declared(
        "day INT, item INT, amount LONG",
        "TBLPROPERTIES (delta.enableDeletionVectors = true, delta.enableRowTracking = true)",
    )
    made = both.made

    def thinned(target: str) -> None:
        made(target)
        spark.sql(f"DELETE FROM delta.`{target}` WHERE amount % 7 = 0")

    both.made = thinned
    stock, enabled = both.run(lambda target: spark.sql(command.format(target=target, source=arrived)))
    assert stock == enabled
    assert [2] == targets.kept()
    before = "VERSION AS OF 2"
    ids = [
        Rows(
            spark.sql(
                f"""SELECT amount, _metadata.row_id FROM delta.`{target}`
                WHERE amount IN (SELECT amount FROM delta.`{target}` {before})"""
            ).collect()
        )
        for target in (both.folder / "stock" / "target", both.folder / "enabled" / "target")
    ]
    assert ids[0] == ids[1]
    assert len(ids[0]) > ROWS_PER_DAY


def test_history_has_both_phases_of_a_merge(spark, arrived, both, enabled, targets):
    target = both.copy("shown")
    enabled()
    spark.sql(UPSERT.format(target=target, source=arrived))
    written, searched = history(spark)[:2]
    assert "read 2 of 8 files" in searched.verdict
    assert "2 files" in written.verdict
    (search,), (write,) = targets.found(is_pruned=True), targets.found(is_pruned=False)
    for each, total in ((search, FILES), (write, 2)):
        assert (each.planned.files_kept, each.planned.files_total) == (2, total)
        assert (each.planned.row_groups_kept, each.planned.row_groups_total) == (2, total)
        assert each.planned.bytes_kept
        assert each.measured is not None
        assert each.measured.files_read == 2
        assert each.measured.rows_scanned == each.planned.rows_kept
        assert each.measured.bytes_scanned
    assert search.planned.bytes_kept < write.planned.bytes_kept


def test_history_of_a_merge_whose_files_are_removed(spark, arrived, both, enabled):
    target = both.copy("vacuumed")
    enabled()
    spark.sql(UPSERT.format(target=target, source=arrived))
    removed = set(spark.read.format("delta").option("versionAsOf", 0).load(target).inputFiles())
    for path in removed - set(spark.read.format("delta").load(target).inputFiles()):
        Path(urlsplit(path).path).unlink()
    written, searched = history(spark)[:2]
    assert "read 2 of 8 files" in searched.verdict
    assert "2 files" in written.verdict


@pytest.mark.parametrize("properties", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("command", [UPSERT, INSERT, BY_AMOUNT + " WHEN MATCHED THEN DELETE"], ids=["up", "in", "del"])
def test_tables_with_features_of_delta(spark, arrived, both, properties, command, targets):
    both.declared("day INT, item INT, amount LONG", properties)
    stock, enabled = both.run(lambda target: spark.sql(command.format(target=target, source=arrived)))
    assert stock == enabled
    kept = [30] if "PARTITIONED" in properties else [2]
    assert ([] if "NumIndexed" in properties else kept) == targets.kept()
    if "ChangeData" in properties:
        changes = [
            Rows(
                spark.read.format("delta")
                .option("readChangeFeed", "true")
                .option("startingVersion", 2)
                .load(str(both.folder / name / "target"))
                .drop("_commit_timestamp")
                .collect()
            )
            for name in ("stock", "enabled")
        ]
        assert changes[0] == changes[1]


@pytest.mark.full
@pytest.mark.parametrize(
    "column", ["half LONG GENERATED ALWAYS AS (amount DIV 2)", "number LONG GENERATED BY DEFAULT AS IDENTITY"]
)
def test_tables_with_columns_that_delta_computes(spark, arrived, both, column, targets):
    both.declared(f"day INT, item INT, amount LONG, {column}", "")
    upsert = UPSERT.replace("INSERT *", "INSERT (day, item, amount) VALUES (s.day, s.item, s.amount)")
    # Numbers of an identity follow the order in which tasks write.
    hidden = column.split()[0] if "IDENTITY" in column else ""
    stock, enabled = both.run(lambda target: spark.sql(upsert.format(target=target, source=arrived)), OPTIONS, hidden)
    assert (stock, [2]) == (enabled, targets.kept())


def rows_of(spark: SparkSession, kind: str) -> Any:
    days = [(65, 7, 1625), (65, 7, 1628), (66, 7, 1650), (None, 7, None), (900, 7, 99_000)]
    rows = {"twice": [*days, *days], "none": [], "elsewhere": [(900, 7, 99_000)], "null": [(None, None, None)]}
    return spark.createDataFrame(rows.get(kind, days), "day int, item int, amount long")


@pytest.mark.parametrize("command", [UPSERT, INSERT], ids=["upsert", "insert"])
@pytest.mark.parametrize("kind", ["rows", "twice", "none", "elsewhere", "null", "checkpoint", "cached"])
def test_sources_in_memory(spark, both, command, kind, targets):
    """Delta stores rows that may differ when they are read again, and counts those of a source without a match."""
    source = rows_of(spark, kind)
    source = source.localCheckpoint() if kind == "checkpoint" else source.cache() if kind == "cached" else source
    source.createOrReplaceTempView("arrived")
    try:
        stock, enabled = both.run(
            lambda target: spark.sql(command.format(target=target, source="SELECT * FROM arrived"))
        )
    finally:
        source.unpersist()
        spark.catalog.dropTempView("arrived")
    assert stock == enabled
    assert (kind == "twice" and command == UPSERT) == (stock["error"] is not None)
    # Delta does not store the source of an insert, so its rows may differ when it runs; those of a checkpoint do not.
    assert (kind == "checkpoint" or command == UPSERT) == bool(targets.kept())
    assert all(each == 1 for each in targets.kept())


@pytest.mark.full
def test_a_random_source_that_delta_does_not_store(spark, both, targets):
    """Failure catalogue 41: an insert by keys of one run, beside rows of another, would insert rows twice."""
    source = "SELECT day, item, CAST(amount + floor(rand() * 1) AS LONG) AS amount FROM arrived"
    rows_of(spark, "rows").createOrReplaceTempView("arrived")
    stock, enabled = both.run(lambda target: spark.sql(INSERT.format(target=target, source=source)))
    assert stock == enabled
    assert [] == targets.kept()


@pytest.mark.full
def test_merge_by_the_builder_of_python(spark, arrived, both, targets):
    from delta.tables import DeltaTable  # noqa: PLC0415 - not every test session has it

    def merge(target: str) -> None:
        source = spark.sql(arrived)
        merged = DeltaTable.forPath(spark, target).alias("t").merge(source.alias("s"), "t.amount = s.amount")
        merged.whenMatchedUpdate(set={"item": "-s.item"}).whenNotMatchedInsertAll().execute()

    stock, enabled = both.run(merge)
    assert (stock, [2]) == (enabled, targets.kept())


@pytest.mark.full
def test_merge_with_a_schema_that_evolves(spark, arrived, both, targets):
    keys = arrived.replace("*", "*, day + 1 AS later")
    upsert = UPSERT.replace("MERGE INTO", "MERGE WITH SCHEMA EVOLUTION INTO")
    stock, enabled = both.run(lambda target: spark.sql(upsert.format(target=target, source=keys)))
    assert (stock, [2]) == (enabled, targets.kept())


@pytest.mark.usefixtures("arrived")
def test_merge_of_a_micro_batch(spark, both, tmp_path, targets):
    def merge(target: str) -> None:
        def batch(df: Any, _: int) -> None:
            df.createOrReplaceTempView("batch")
            df.sparkSession.sql(UPSERT.format(target=target, source="SELECT * FROM batch"))

        stream = spark.readStream.format("delta").load(str(tmp_path / "arrived")).writeStream.foreachBatch(batch)
        folder = str(tmp_path / "checkpoints" / target.split("/")[-2])
        stream.option("checkpointLocation", folder).trigger(availableNow=True).start().awaitTermination()

    stock, enabled = both.run(merge)
    assert (stock, [2]) == (enabled, targets.kept())


BESIDE = {
    "append": "INSERT INTO delta.`{target}` VALUES (1, 1, 1)",
    "delete in a file that is skipped": "DELETE FROM delta.`{target}` WHERE amount = 4",
    "delete in a file that is read": "DELETE FROM delta.`{target}` WHERE amount = 1625",
    "optimize": "OPTIMIZE delta.`{target}`",
    "merge": UPSERT,
}


@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
@pytest.mark.parametrize("command", [UPSERT, INSERT], ids=["upsert", "insert"])
def test_conflicts_are_those_of_delta(spark, arrived, both, enabled, monkeypatch, command, beside, targets):
    """Another writer commits while the target of a MERGE is looked through."""
    found = []
    for name, options in (("stock", PruningOptions(enabled=False)), ("pruned", OPTIONS)):
        target, inner, left = both.copy(name), session_pruning.prune_command, [1]

        def commit_first(*arguments: Any, target: str = target, inner: Any = inner, left: Any = left) -> Any:
            result = inner(*arguments)
            if left[0]:
                left[0] = 0
                # A session of its own: that of the MERGE has a transaction in this thread.
                worker = Thread(
                    target=lambda: spark.newSession().sql(beside.format(target=target, source=arrived)).collect()
                )
                worker.start()
                worker.join()
            return result

        enabled(options)
        with monkeypatch.context() as patched:
            patched.setattr(session_pruning, "prune_command", commit_first)
            try:
                spark.sql(command.format(target=target, source=arrived))
                error = ""
            except Exception as failed:  # noqa: BLE001 - both have to fail alike
                error = f"{type(failed).__name__} {str(failed).split(' ')[0]}"
        assert 0 == left[0]
        found.append((error, Rows(spark.read.format("delta").load(target).collect())))
    assert found[0] == found[1]
    assert targets.kept()
