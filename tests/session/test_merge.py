"""MERGE, UPDATE and DELETE in a session that prunes: tables and history are those of Delta without pruning."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from pruning import history
from sample_data.rows import Rows
from tests.queries.star import FILES, OPTIONS, ROWS_PER_DAY
from tests.session.merging import BY_AMOUNT, INSERT, UPSERT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.parametrize("star", ["delta"], indirect=True)]

_RETENTION = "spark.databricks.delta.retentionDurationCheck.enabled"
_NO_ROW = "no row of the files that hold keys passes its filters"
_ALL = "the command needs every row of its target (8 files (21.7 KiB) chosen by Delta; it is below a RightOuter join)"
# Each command, with others beside it, and the files of the target that it looks for matches in; the reason where these
# are all, and None where the session has nothing to tell of the command.
COMMANDS = {
    "update and insert": (UPSERT, 2),
    "update": (BY_AMOUNT + " WHEN MATCHED AND s.item > 3 THEN UPDATE SET item = -s.item", 2),
    "delete": (BY_AMOUNT + " WHEN MATCHED THEN DELETE", 2),
    "insert": (INSERT, 2),
    "by two columns": (BY_AMOUNT + " AND t.day = s.day WHEN MATCHED THEN DELETE", 2),
    "beside a condition": (BY_AMOUNT + " AND t.day >= 65 WHEN MATCHED THEN DELETE", 2),
    "beside an open condition": (BY_AMOUNT + " AND t.item % 7 = 1 WHEN MATCHED THEN DELETE", 2),
    "beside a condition without rows": (BY_AMOUNT + " AND t.item % 7 = 8 WHEN MATCHED THEN DELETE", _NO_ROW),
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
        1,
    ),
    "elsewhere": (
        (
            "MERGE INTO delta.`{target}` t USING (SELECT day, item, amount + 100000 AS amount FROM ({source})) s"
            " ON t.amount = s.amount WHEN NOT MATCHED THEN INSERT *"
        ),
        0,
    ),
    "insert beside an open condition": (BY_AMOUNT + " AND t.item % 7 = 1 WHEN NOT MATCHED THEN INSERT *", 2),
    "nothing matches": (
        BY_AMOUNT + " AND t.day < 0 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
        "a filter is expected to cost more than it saves",
    ),
    "a range": (
        (
            "MERGE INTO delta.`{target}` t USING ({source}) s ON t.amount < s.amount - 2240 AND t.item = s.item"
            " WHEN NOT MATCHED THEN INSERT *"
        ),
        1,
    ),
    "by source": (BY_AMOUNT + " WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE AND t.day < 3 THEN DELETE", _ALL),
    "not equal": (
        (
            "MERGE INTO delta.`{target}` t USING ({source}) s ON t.amount <=> s.amount"
            " WHEN MATCHED THEN UPDATE SET item = -s.item WHEN NOT MATCHED THEN INSERT *"
        ),
        2,
    ),
    "update without a source": ("UPDATE delta.`{target}` SET item = 0 WHERE day BETWEEN 30 AND 70", None),
    "delete without a source": ("DELETE FROM delta.`{target}` WHERE day BETWEEN 30 AND 70", None),
    "far apart": (BY_AMOUNT + " AND s.day IN (60, 89) WHEN MATCHED THEN DELETE", 2),
    "optimize": ("OPTIMIZE delta.`{target}`", None),
    "optimize by order": ("OPTIMIZE delta.`{target}` ZORDER BY (item)", None),
    "restore": (
        "DELETE FROM delta.`{target}` WHERE day < 30; RESTORE TABLE delta.`{target}` TO VERSION AS OF 0",
        None,
    ),
    "vacuum": (
        (
            "UPDATE delta.`{target}` SET item = 0 WHERE day = 5;"
            f"SET {_RETENTION} = false; VACUUM delta.`{{target}}` RETAIN 0 HOURS; RESET {_RETENTION}"
        ),
        None,
    ),
    "a clone": (
        (
            "CREATE TABLE delta.`{target}/../clone/target` SHALLOW CLONE delta.`{target}`;"
            + UPSERT.replace("{target}", "{target}/../clone/target")
            + "; INSERT OVERWRITE delta.`{target}` SELECT * FROM delta.`{target}/../clone/target`"
        ),
        2,
    ),
    "replace where": (
        (
            "INSERT INTO delta.`{target}` REPLACE WHERE day BETWEEN 60 AND 89"
            " SELECT day, -item AS item, amount FROM ({source}) s WHERE item > 3"
        ),
        None,
    ),
    "overwrite by rows of itself": (
        (
            "INSERT OVERWRITE delta.`{target}` SELECT t.* FROM delta.`{target}` t JOIN ({source}) s"
            " ON t.amount = s.amount"
        ),
        2,
    ),
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


@pytest.mark.parametrize(("command", "kept"), COMMANDS.values(), ids=COMMANDS)
def test_commands_of_delta_do_what_they_do_without_pruning(spark, arrived, both, command, kept, targets):
    def run(target: str) -> None:
        for each in command.split(";"):
            spark.sql(each.format(target=target, source=arrived))

    stock, enabled = both.run(run)
    assert stock == enabled
    assert enabled["error"] is None
    assert any(value != "0" for value in enabled["counted"].values())
    assert ([kept] if isinstance(kept, int) else []) == targets.kept()
    verdicts = targets.verdicts()
    assert any(kept in each for each in verdicts) if isinstance(kept, str) else (kept is None) == (not verdicts)


@pytest.mark.full
@pytest.mark.parametrize("command", [UPSERT, INSERT], ids=["upsert", "insert"])
def test_every_key_counts_however_many_ranges_they_are(spark, star, both, command, targets):
    """A command is given a list of files, so no predicate limits the stretches of its keys."""
    source = f"SELECT * FROM {star}sales WHERE day IN (5, 85, 155)"
    options = OPTIONS.with_limits(max_ranges=1)
    stock, enabled = both.run(lambda target: spark.sql(command.format(target=target, source=source)), options)
    assert (stock, [3]) == (enabled, targets.kept())


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
@pytest.mark.parametrize("command", [UPSERT, INSERT], ids=["upsert", "insert"])
@pytest.mark.parametrize("kind", ["parquet", "csv", "a view of parquet"])
def test_sources_in_files(spark, both, tmp_path, command, kind, targets):
    """Delta stores rows of files that it does not pin, but not those of an insert, which may change until it runs."""
    rows, files = rows_of(spark, "rows").coalesce(1), str(tmp_path / "files")
    rows.write.format(kind.split()[-1]).save(files)
    source = spark.read.schema(rows.schema).format(kind.split()[-1]).load(files)
    (source.where("day > 0 OR day IS NULL") if "view" in kind else source).createOrReplaceTempView("arrived")
    try:
        stock, enabled = both.run(
            lambda target: spark.sql(command.format(target=target, source="SELECT * FROM arrived"))
        )
    finally:
        spark.catalog.dropTempView("arrived")
    assert stock == enabled
    assert enabled["error"] is None
    assert ([1] if command == UPSERT else []) == targets.kept()
    if command == INSERT:
        (verdict,) = targets.verdicts()
        assert "amount: the keys come from a query that may give other rows when it runs again" in verdict


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
