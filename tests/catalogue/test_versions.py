"""A query reads one version of each table. Other versions, copies and filters of a table are distinguished."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from pruning import explain, prune
from sample_data.rows import Rows
from tests.catalogue.facts import ALWAYS_BUILD, OPTIONS, fact_rows, files
from tests.costs import PLANNED_SCANS

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("tables")]

PLANNED = replace(OPTIONS, broadcast_strategy="NONE")
DIM = "(SELECT * FROM dims WHERE grp = 2)"
_MODES = ["rows-are-joined", "builds-run-again"]
MODES = pytest.mark.parametrize("options", [OPTIONS, PLANNED], ids=_MODES)
# A scan of a few keys is not planned by other keys.
OF_FACTS = pytest.mark.parametrize(
    "options", [PLANNED_SCANS, replace(PLANNED_SCANS, broadcast_strategy="NONE")], ids=_MODES
)


def rows_of(df) -> Rows:
    return Rows(df.collect())


@pytest.fixture(scope="module")
def versions(spark, stored, ways):
    """The folder of a table of keys: version 0 has 41 and 42, version 1 has 101; both are views."""
    first = spark.createDataFrame([(41, 1), (42, 2)], "k int, n int").coalesce(1)
    folder = stored("versioned", first)
    spark.createDataFrame([(101, 1)], "k int, n int").write.format("delta").mode("overwrite").save(folder)
    for version in (0, 1):
        ways.view(f"version_{version}", spark.read.option("versionAsOf", version).format("delta").load(folder))
    return folder


# Failure catalogue 47 - 49.
@OF_FACTS
@pytest.mark.usefixtures("versions")
def test_versions_of_one_table_in_one_query(agreed, options):
    of = "(SELECT k FROM version_{} WHERE n < 3)"
    query = f"""
        SELECT f.id, 0 AS v FROM facts f JOIN {of.format(0)} a ON f.k = a.k
        UNION ALL SELECT f.id, 1 FROM facts f JOIN {of.format(1)} a ON f.k = a.k"""
    _, result = agreed(query, options)
    assert {"facts#1": 1, "facts#2": 1} == files(result)
    # Keys of one version for the other version: 41 and 101 in one row.
    _, result = agreed(
        f"SELECT f.id, g.id FROM facts f JOIN {of.format(0)} a ON f.k = a.k JOIN facts g ON g.item = f.item"
        f" JOIN {of.format(1)} b ON g.k = b.k",
        options,
    )
    assert {"facts#1": 1, "facts#2": 1} == files(result)


# Failure catalogue 53: a copy of a table has the id, the version and the predicates of the original.
@MODES
def test_copy_of_a_table_is_another_table(spark, agreed, versions, ways, options, tmp_path):
    import shutil  # noqa: PLC0415

    copy = str(tmp_path / "versioned")
    shutil.copytree(versions, copy)
    spark.sql(f"INSERT INTO delta.`{copy}` VALUES (61, 1)")
    spark.sql(f"DELETE FROM delta.`{copy}` WHERE k = 101")
    ways.view("copied", spark.read.format("delta").load(copy))
    query = """
        SELECT f.id FROM facts f JOIN version_1 a ON f.k = a.k WHERE a.n = 1
        UNION ALL SELECT f.id FROM facts f JOIN copied a ON f.k = a.k WHERE a.n = 1
        UNION ALL SELECT f.id FROM facts f WHERE f.item = 3 AND f.k NOT IN (SELECT k FROM copied WHERE n = 1)"""
    _, result = agreed(query, options)
    assert {"facts#1": 1, "facts#2": 1} == files(result)


# Failure catalogue 47, 56: a commit after pruning does not change the pruned query; a query pruned later sees the
# commit.
@pytest.mark.full
@MODES
@pytest.mark.parametrize(
    ("change", "kept"),
    [
        pytest.param("INSERT INTO {0} VALUES (41, 77)", [(3, 9)], id="insert"),
        pytest.param("DELETE FROM {0} WHERE k >= 40", [(0, 2)], id="delete"),
        pytest.param("OPTIMIZE {0}", [(1, 1)], id="optimize"),
    ],
)
def test_commit_after_pruning_changes_no_row(spark, tmp_path, pruned_frame, pruned_before, options, change, kept):
    facts, keys = (f"delta.`{tmp_path}/{name}`" for name in ("facts", "keys"))
    fact_rows(spark).selectExpr("k", "id").write.format("delta").save(f"{tmp_path}/facts")
    spark.createDataFrame([(41, 1), (42, 2)], "k int, id long").write.format("delta").save(f"{tmp_path}/keys")
    query = f"SELECT f.k, f.id, x.id FROM {facts} f JOIN {keys} x ON f.k = x.k WHERE x.id < 100"
    before = rows_of(spark.sql(query))

    def changed() -> None:
        for table in (facts, keys):
            spark.sql(change.format(table))

    result = pruned_before(changed, spark.sql(query), options=options)
    assert before == rows_of(result)
    assert {"facts": 1} == files(result)
    spark.sql(f"INSERT INTO {keys} VALUES (101, 5)")
    later = pruned_frame(spark.sql(query), options=options)
    assert rows_of(spark.sql(query)) == rows_of(later)
    assert {101} & {row[0] for row in rows_of(later)} or "DELETE" in change
    assert kept == [(it.files_kept, it.files_total) for it in explain(later).tables if it.table == "facts"]


# Failure catalogue 49: Spark decides which version a DataFrame reads that was analyzed before a commit.
@pytest.mark.full
@OF_FACTS
@pytest.mark.parametrize("older", ["keys", "facts"])
def test_dataframes_from_before_and_after_a_commit(spark, tmp_path, pruned_frame, options, older):
    folders = {name: f"{tmp_path}/{name}" for name in ("keys", "facts")}

    def read(name):
        return spark.read.format("delta").load(folders[name])

    fact_rows(spark).selectExpr("k", "id").write.format("delta").save(folders["facts"])
    spark.createDataFrame([(41, 1), (42, 2)], "k int, n int").write.format("delta").save(folders["keys"])
    before = read(older)
    assert 2 == len(before.columns)
    spark.createDataFrame([(101, 1)], "k int, n int").write.format("delta").mode("append").save(folders["keys"])
    spark.sql("SELECT 41 AS k, 5L AS id").write.format("delta").mode("append").save(folders["facts"])
    if older == "keys":
        now = read("keys").withColumnRenamed("k", "l")
        joined = read("facts").join(before.where("n < 9"), "k").join(now, "n").select("k", "l", "id")
    else:
        keys = read("keys").where("k < 100")
        joined = before.join(keys, "k").join(read("facts").withColumnRenamed("id", "again"), "k")
    expected = rows_of(joined)
    result = pruned_frame(joined, options=options)
    assert expected == rows_of(result)
    # The row that was appended to the facts lies in a file of its own and is read.
    assert 5 in {row[-1] for row in expected}
    kept = {("facts", 3, 9)} if older == "keys" else {("facts#1", 2, 6), ("facts#2", 2, 6)}
    assert kept == {(each.table, each.files_kept, each.files_total) for each in explain(result).tables}


# Failure catalogue 50: a query that writes to the table that it reads.
def test_pruned_rows_appended_to_their_own_table(spark, tmp_path, pruned_frame):
    folder = f"{tmp_path}/own"
    fact_rows(spark).selectExpr("k", "id").write.format("delta").save(folder)
    query = f"SELECT f.k, f.id FROM delta.`{folder}` f JOIN {DIM} d ON f.k = d.k"
    result = pruned_frame(spark.sql(query), options=OPTIONS)
    result.write.format("delta").mode("append").save(folder)
    assert [("own", 1, 8)] == [(each.table, each.files_kept, each.files_total) for each in explain(result).tables]
    assert (360, 80) == (spark.read.format("delta").load(folder).count(), spark.sql(query).count())


# Failure catalogue 18: keys must not drop rows that MERGE needs without a match.
@pytest.mark.full
def test_pruned_rows_as_the_source_of_a_merge(spark, tmp_path):
    source = f"SELECT f.k, f.id FROM facts f JOIN {DIM} d ON f.k = d.k AND f.item < 5"
    found = []
    result = prune(spark.sql(source), options=OPTIONS)
    assert [("facts", 1, 8)] == [(each.table, each.files_kept, each.files_total) for each in explain(result).tables]
    for name, df in (("plain", spark.sql(source)), ("pruned", result)):
        target = f"{tmp_path}/{name}"
        spark.sql("SELECT k, id + 5 AS id FROM facts WHERE k BETWEEN 35 AND 70").write.format("delta").save(target)
        df.createOrReplaceTempView("source_rows")
        spark.sql(f"""
            MERGE INTO delta.`{target}` t USING source_rows s ON s.id = t.id - 5 AND t.k > 44
            WHEN MATCHED THEN UPDATE SET id = 0 WHEN NOT MATCHED THEN INSERT (k, id) VALUES (s.k, 1)
            WHEN NOT MATCHED BY SOURCE AND t.k < 50 THEN DELETE""")
        found.append(rows_of(spark.read.format("delta").load(target)))
    spark.catalog.dropTempView("source_rows")
    assert found[0] == found[1]
    assert {0, 1} <= {row[1] for row in found[0]}


# Failure catalogue 52: subplans that are equal except for their filters.
@pytest.mark.parametrize("adaptive", ["true", "false"])
@MODES
def test_exchanges_are_reused_only_with_equal_filters(agreed, conf, options, adaptive):
    conf("spark.sql.adaptive.enabled", adaptive)
    conf("spark.sql.autoBroadcastJoinThreshold", "-1")
    one = """(SELECT f.item, count(*) AS n, min(f.k) AS low FROM plain f
        JOIN (SELECT * FROM dims WHERE grp = {}) d ON f.k = d.k GROUP BY f.item)"""
    query = f"SELECT a.item, a.n, a.low, b.low FROM {one} a JOIN {one} b ON a.item = b.item"
    df, result = agreed(query.format(2, 5), options)
    # Rows that are joined are those of the first, which is a build of the second.
    is_joined = options.broadcast_strategy != "NONE"
    # Builds that run again are free here, so the facts filter their dimensions, too.
    again = {"plain#1": 1, "dims#1": 1, "dims#2": 1}
    assert {"plain#2": 1} | ({} if is_joined else again) == files(result)
    df, result = agreed(query.format(2, 2), options)
    assert {1} == set(files(result).values())
    plans = [each._jdf.queryExecution().executedPlan().toString() for each in (df, result)]
    reused = [each.count("ReusedExchange") for each in plans]
    # Rows that are joined come from one build, without an exchange.
    assert 0 < reused[0]
    assert is_joined or reused[0] <= reused[1]
    # A CTE that is read twice.
    _, result = agreed(
        f"WITH c AS {one.format(3)} SELECT a.item, b.n FROM c a JOIN c b ON a.item = b.item AND a.low < b.low + 2",
        options,
    )
    assert {1} == set(files(result).values())


# Failure catalogue 51: partition values of two scans of one table.
@pytest.mark.full
def test_self_join_of_a_partitioned_table(spark, agreed, stored):
    rows = fact_rows(spark).selectExpr("k div 20 AS part", "k", "id", "item")
    stored("parted", rows, "delta", "part")
    stored("parted_plain", rows, "parquet", "part")
    for name in ("parted", "parted_plain"):
        query = f"""
            SELECT a.part, b.part, a.id, b.id FROM {name} a JOIN {name} b ON a.item = b.item AND a.part = b.part - 3
            JOIN (SELECT DISTINCT grp FROM dims WHERE k BETWEEN 40 AND 59) d ON a.part = d.grp WHERE a.item = 1"""
        # If builds were materialized, a build for the larger side would read the smaller side.
        _, result = agreed(query, replace(ALWAYS_BUILD, broadcast_strategy="NONE"))
        assert 1 == files(result)[f"{name}#1"]
        # Failure catalogue 155: OR of a partition column and another column.
        query = f"""
            SELECT a.id FROM {name} a JOIN {DIM} d ON a.k = d.k
            WHERE (a.part = 2 AND a.item > 3) OR (a.part = 7 AND a.item < 5) OR a.k = 44"""
        _, result = agreed(query, ALWAYS_BUILD)
        assert {name: 1} == files(result)
        query = f"SELECT a.id FROM {name} a JOIN {DIM} d ON a.part = d.grp OR a.k = d.k"
        assert {} == files(agreed(query, ALWAYS_BUILD)[1])


# Failure catalogue 54, 55: concurrent actions on one result, and on several results of one DataFrame.
def test_threads_read_the_same_rows(spark, pruned_frame):
    df = spark.sql(f"SELECT f.id, p.item FROM facts f JOIN {DIM} d ON f.k = d.k JOIN plain p ON p.id = f.id")
    expected = rows_of(df)
    result = pruned_frame(df, options=PLANNED)
    with ThreadPoolExecutor(4) as pool:
        of_one = list(pool.map(lambda _: rows_of(result), range(4)))
        of_many = list(pool.map(lambda _: rows_of(pruned_frame(df, options=OPTIONS)), range(3)))
    assert [expected] * 7 == of_one + of_many
    # One of the concurrent actions gives the measurement.
    kept = {each.table: each.files_kept for each in explain(result).tables}
    assert (1, 1) == (kept["facts"], kept["plain"])


# Failure catalogue 58: a missing file is an error.
def test_file_deleted_after_pruning_fails_the_query(spark, tmp_path, pruned_before):
    fact_rows(spark).selectExpr("k", "id").write.parquet(f"{tmp_path}/gone")

    def deleted() -> None:
        for path in Path(f"{tmp_path}/gone").glob("*.parquet"):
            path.unlink()

    df = spark.sql(f"SELECT f.id FROM parquet.`{tmp_path}/gone` f JOIN {DIM} d ON f.k = d.k")
    result = pruned_before(deleted, df, options=OPTIONS)
    with pytest.raises(Exception, match=r"(?i)does not exist|FAILED_READ_FILE"):
        result.collect()
    assert [("gone", 1)] == [(each.table, each.files_kept) for each in explain(result).tables]


# Failure catalogue 59: the cached table is evicted, and its files have other rows.
def test_cache_evicted_after_pruning_changes_no_row(spark, tmp_path, pruned_before):
    folder = f"{tmp_path}/keys"
    spark.createDataFrame([(41,)], "k int").write.parquet(folder)
    kept = spark.read.parquet(folder).where("k < 100").cache()
    kept.createOrReplaceTempView("kept_keys")

    def evicted() -> None:
        kept.unpersist(blocking=True)
        spark.createDataFrame([(61,)], "k int").write.mode("append").parquet(folder)

    try:
        df = spark.sql("SELECT f.id FROM facts f JOIN kept_keys x ON f.k = x.k")
        result = pruned_before(evicted, df, options=OPTIONS)
        assert [(10082,), (10083,)] == rows_of(result)
        assert {"facts": 1} == files(result)
    finally:
        kept.unpersist(blocking=True)
        spark.catalog.dropTempView("kept_keys")
