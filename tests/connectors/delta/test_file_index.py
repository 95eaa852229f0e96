"""A pruned Delta scan reads exactly its kept files, without listing them again."""

from __future__ import annotations

import re
from dataclasses import replace

import pyarrow as pa
import pytest

from connectors.delta import table as delta
from connectors.delta.file_index import PREPARED_INDEX, PRUNED_INDEX, over_files
from connectors.registry import optimized
from connectors.spark.jvm import frame_of
from pruning import explain, prune, report
from sample_data.rows import Rows
from tests.costs import FREE_BUILDS
from tests.unchanged import is_unchanged

pytestmark = pytest.mark.spark

FILES, DAYS_PER_FILE = 6, 10
OPTIONS = FREE_BUILDS
PREPARED = PREPARED_INDEX.rpartition(".")[2]
PLANNED = replace(OPTIONS, broadcast_strategy="NONE")
# Older readers cannot read tables with column mapping or deletion vectors.
MAPPED = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
VECTORS = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    """A function that creates a table of sales on demand, one file per ten days, and returns its name; and the
    folder.
    """
    folder = tmp_path_factory.mktemp("kept")
    days = spark.range(0, FILES * DAYS_PER_FILE, 1, 1).selectExpr(
        "cast(id AS int) AS day", "cast(id div 10 AS int) AS month"
    )
    days.write.format("delta").save(f"{folder}/days")
    rows = spark.range(0, FILES * DAYS_PER_FILE * 2, 1, FILES)
    sales = rows.selectExpr("id", "cast(id div 2 AS int) AS day", "nullif(concat('p ', id % 3), 'p 2') AS part")
    sales.createOrReplaceTempView("kept_sales")

    def table(kind: str) -> str:
        name = f"delta.`{folder}/{kind}`"
        make = {
            "plain": f"CREATE TABLE {name} USING delta AS SELECT * FROM kept_sales",
            "vectors": f"CREATE TABLE {name} USING delta {VECTORS} AS SELECT * FROM kept_sales",
            "mapped": f"CREATE TABLE {name} USING delta {MAPPED} AS SELECT id, day AS date, part FROM kept_sales",
            "parts": f"CREATE TABLE {name} USING delta PARTITIONED BY (part) AS SELECT * FROM kept_sales",
            "clone": f"CREATE TABLE {name} SHALLOW CLONE delta.`{folder}/vectors`",
        }[kind]
        if not (folder / kind).exists():
            if kind == "clone":
                table("vectors")
            spark.sql(make)
            if kind == "vectors":
                # A row of the kept file and a row of another file.
                spark.sql(f"DELETE FROM {name} WHERE id IN (41, 3)")
            if kind == "mapped":
                spark.sql(f"ALTER TABLE {name} RENAME COLUMN date TO day")
        return name

    yield table, folder
    spark.catalog.dropTempView("kept_sales")


def query_of(lake, kind: str, more: str = "") -> str:
    table, folder = lake
    sales, days = table(kind), f"delta.`{folder}/days`"
    return f"SELECT s.id, s.day, s.part FROM {sales} s JOIN {days} d ON s.day = d.day WHERE d.month = 2 {more}"


def rows_of(df) -> Rows:
    return Rows(df.collect())


def jobs(spark) -> int:
    """The number of jobs that the session's application has started."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def files(df) -> dict[str, tuple[int, int]]:
    """The files that each pruned scan read, and those that it was planned to read."""
    return {it.planned.table: (it.measured.files_read, it.planned.files_kept) for it in report(df).tables}


def leaves_of(df) -> list:
    """The file relations of a plan."""
    leaves = df._jdf.queryExecution().optimizedPlan().collectLeaves()
    found = [leaves.apply(at) for at in range(leaves.size())]
    return [leaf for leaf in found if leaf.getClass().getSimpleName() == "LogicalRelation"]


def location_of(df, at: int = 0):
    """The file index of one file relation of a plan."""
    return leaves_of(df)[at].relation().location()


def indexes(df) -> list[str]:
    """The classes of the file indexes of a plan."""
    return [str(leaf.relation().location().getClass().getSimpleName()) for leaf in leaves_of(df)]


def paths_of(index) -> list[str]:
    """The paths in the log of the files of a prepared index."""
    files = index.preparedScan().files()
    return [str(files.apply(at).path()) for at in range(files.size())]


def rows_without_listing(spark, result) -> Rows:
    """The rows, from two jobs: the broadcast of what the build gave, and the scan itself."""
    before = jobs(spark)
    found = rows_of(result)
    assert 2 == jobs(spark) - before
    return found


# Failure catalogue 57, 58, 60: files by absolute and relative paths, physical names, and deleted rows.
@pytest.mark.full
@pytest.mark.parametrize("kind", ["plain", "vectors", "mapped", "clone"])
def test_kept_files_are_not_listed_again(spark, lake, kind):
    query = query_of(lake, kind)
    expected = rows_of(spark.sql(query))
    result = prune(spark.sql(query), options=OPTIONS)
    assert expected == rows_without_listing(spark, result)
    assert 20 - (kind in {"vectors", "clone"}) == len(expected)
    assert [PRUNED_INDEX] == indexes(result)
    assert {kind: (1, 1)} == files(result)
    assert 1 == len(result.inputFiles())


# Failure catalogue 64: Spark removes conditions on partition columns from the row filter, so each file must satisfy
# them.
@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        pytest.param("", 3, id="none"),
        pytest.param("AND s.part = 'p 1'", 1, id="equal"),
        pytest.param("AND s.part IS NULL", 1, id="null"),
        pytest.param("AND (s.part IS NULL OR upper(s.part) LIKE '%0')", 2, id="computed"),
        pytest.param("AND (s.part IS NULL OR s.id < 45)", 3, id="rows-and-partitions"),
        pytest.param("AND s.part > 'p 9'", 0, id="none-left"),
    ],
)
def test_kept_files_satisfy_partition_conditions(spark, lake, pruned_frame, condition, kept):
    query = query_of(lake, "parts", condition)
    expected = rows_of(spark.sql(query))
    result = pruned_frame(spark.sql(query), options=OPTIONS)
    assert expected == rows_of(result)
    assert kept == len(result.inputFiles()) or not report(result).tables
    assert all(read == kept for read, _ in files(result).values())


# Failure catalogue 64: conditions that are added after the files were chosen.
@pytest.mark.parametrize("condition", ["part = 'p 1'", "part IS NULL", "coalesce(part, 'x') <> 'p 0'", "day = 24"])
def test_conditions_above_a_pruned_query(spark, lake, pruned_frame, condition):
    query = query_of(lake, "parts")
    result = pruned_frame(spark.sql(query), options=OPTIONS)
    assert 20 == len(result.collect())
    expected = rows_of(spark.sql(query).where(condition))
    assert expected
    assert expected == rows_of(result.where(condition))


def test_conditions_above_a_pruned_query_skip_files(spark, lake):
    table, folder = lake
    query = f"""
        SELECT s.id, s.day FROM {table("plain")} s JOIN delta.`{folder}/days` d ON s.day = d.day
        WHERE d.month IN (1, 2, 4)"""
    result = prune(spark.sql(query), options=OPTIONS)
    fewer = result.where("id BETWEEN 42 AND 50 AND id <> 44")
    assert rows_of(spark.sql(query).where("id BETWEEN 42 AND 50 AND id <> 44")) == rows_of(fewer)
    assert {"plain": (1, 3)} == files(result)
    assert 60 == len(rows_without_listing(spark, result))
    assert {"plain": (3, 3)} == files(result)


# Failure catalogue 47: a pruned query reads the version that was pruned.
@pytest.mark.parametrize("options", [OPTIONS, PLANNED], ids=["rows-are-joined", "builds-run-again"])
def test_commit_after_pruning_changes_no_row(spark, tmp_path, lake, pruned_before, options):
    table, _ = lake
    own = f"delta.`{tmp_path}/own`"
    spark.sql(f"CREATE TABLE {own} USING delta {VECTORS} AS SELECT * FROM kept_sales")
    query = query_of(lake, "plain").replace(table("plain"), own)
    expected = rows_of(spark.sql(query))

    def committed() -> None:
        spark.sql(f"DELETE FROM {own} WHERE id = 41")
        spark.sql(f"INSERT INTO {own} VALUES (900, 22, 'p 1')")

    result = pruned_before(committed, spark.sql(query), options=options)
    assert expected == rows_of(result)
    assert (1, 1) == files(result)["own"]
    if pruned_before.frames.is_session:
        # Its plan is made anew inside of a command, at the version of then.
        return
    spark.sql(f"INSERT OVERWRITE {own} SELECT id, day, part FROM {{df}} WHERE id > 43", df=result)
    assert [row for row in expected if row[0] > 43] == rows_of(spark.table(own))


# Failure catalogue 53: scans of different files are different, even for one table and version.
def test_scans_of_different_files_are_distinguished(spark, lake, pruned_frame):
    first, second = query_of(lake, "plain"), query_of(lake, "plain").replace("month = 2", "month = 3")
    query = f"{first} UNION ALL {second} UNION ALL {first}"
    expected = rows_of(spark.sql(query))
    result = pruned_frame(spark.sql(query), options=OPTIONS)
    assert expected == rows_of(result)
    assert [PRUNED_INDEX] * 3 == indexes(result)
    assert [(1, 1)] * 3 == list(files(result).values())


# Failure catalogue 53: Spark reuses scans whose file indexes are equal.
def test_indexes_are_equal_iff_their_files_are(spark, lake):
    table, _ = lake
    base = location_of(spark.read.format("delta").load(table("plain")[7:-1]))
    df = frame_of(spark, spark.table(table("plain"))._jdf.queryExecution().optimizedPlan())
    paths = pa.array(sorted(paths_of(base)))
    one, same, other = (location_of(over_files(df, base, paths.slice(at, 2))) for at in (0, 0, 1))
    assert one.equals(same)
    assert one.hashCode() == same.hashCode()
    assert not one.equals(other)
    assert not one.equals(base)
    assert (2, 1) == (one.files().size(), location_of(over_files(df, one, paths.slice(1, 3))).files().size())


def test_pruned_query_can_be_pruned_again(spark, lake):
    _, folder = lake
    once = prune(spark.sql(query_of(lake, "plain").replace("month = 2", "month IN (1, 2)")), options=OPTIONS)
    days = spark.sql(f"SELECT day AS other FROM delta.`{folder}/days` WHERE day IN (12, 13)")
    both = once.join(days, once.day == days.other)
    expected = rows_of(both)
    result = prune(both, options=OPTIONS)
    assert expected == rows_of(result)
    assert 4 == len(expected)
    assert {"plain": (1, 1)} == files(result)
    assert 1 == len(result.inputFiles())


# More files than fit in the driver, or an error in naming them: Delta finds the same files by the predicate.
@pytest.mark.parametrize("cause", ["too-many", "trouble"])
def test_delta_lists_files_if_no_file_list_is_possible(spark, lake, pruned_frame, monkeypatch, cause):
    options = OPTIONS.with_limits(max_listed_files=0) if cause == "too-many" else OPTIONS
    if cause == "trouble":

        def fails(*_: object) -> None:
            raise ValueError(cause)

        monkeypatch.setattr(delta, "over_files", fails)
    query = query_of(lake, "vectors")
    result = pruned_frame(spark.sql(query), options=options)
    assert rows_of(spark.sql(query)) == rows_of(result)
    assert [PREPARED] == indexes(result)
    assert {"vectors": (1, 1)} == files(result)
    assert not [each for each in explain(result).reasons if "trouble" in str(each)]


# The state of the version is known from the first query, and the build is run on the driver.
def test_second_query_is_optimized_without_listing(spark, lake):
    query = query_of(lake, "plain")
    prune(spark.sql(query), options=OPTIONS)
    before = jobs(spark)
    result = prune(spark.sql(query), options=OPTIONS)
    assert 0 == jobs(spark) - before
    assert rows_of(spark.sql(query)) == rows_of(result)
    assert {"plain": (1, 1)} == files(result)


# Stock reads no file in which a key of the join is always NULL, and neither does a query with other filters or none.
@pytest.mark.parametrize(
    ("column", "whole", "filtered"),
    [
        pytest.param("`sold.on`", [0, 1, 2, 3, 4], [1, 2], id="column"),
        pytest.param("part.on", [1, 2, 3, 4, 5], [1, 2, 5], id="field"),
        pytest.param("id", [0, 1, 2, 3, 4, 5], [1, 2, 5], id="never-null"),
    ],
)
def test_files_with_only_null_are_not_read(spark, lake, tmp_path, pruned_frame, column, whole, filtered):
    own, days = f"delta.`{tmp_path}/own`", f"delta.`{lake[1]}/days`"
    lake[0]("plain")
    spark.sql(f"""CREATE TABLE {own} USING delta {MAPPED} AS
        SELECT id, day, IF(id < 100, day, NULL) AS `sold.on`, named_struct('on', IF(id >= 20, day, NULL)) AS part
        FROM kept_sales""")
    first = spark.sql(f"SELECT min(id), _metadata.file_name FROM {own} GROUP BY _metadata.file_name").collect()
    numbers = {name: id_ // 20 for id_, name in first}
    join = f"SELECT s.id FROM {own} s JOIN {days} d ON s.{column} % 1000 = d.day AND s.{column} IS NOT NULL"
    more = f"{join} JOIN {days} e ON s.day = e.day WHERE e.month IN (1, 2, 5)"
    for query, kept in ((join, whole), (more, filtered)):
        for is_known in (False, True):
            before = jobs(spark)
            result = pruned_frame(spark.sql(query), options=OPTIONS)
            planned = jobs(spark) - before
            assert rows_of(spark.sql(query)) == rows_of(result)
            read = [path.rpartition("/")[2] for path in result.inputFiles()]
            assert kept == sorted(numbers[name] for name in read if name in numbers)
            assert not is_known or planned == 0
    assert {"own": (len(filtered), len(filtered))} == files(result)


# Failure catalogue 49: Delta lists where the query's own conditions skip files, separately for each scan of a table.
def test_query_conditions_skip_files_of_their_own_scan(spark, lake):
    table, folder = lake
    query = f"""
        WITH sold AS (SELECT id, day, part FROM {table("parts")})
        SELECT s.id FROM sold s JOIN delta.`{folder}/days` d ON s.day = d.day
        WHERE d.month < 5 AND s.part = 'p 0' AND s.id < 70
        UNION ALL SELECT s.id + 1000 FROM sold s WHERE s.id >= 70
        UNION ALL SELECT s.id + 2000 FROM sold s"""
    result = prune(spark.sql(query), options=OPTIONS)
    assert rows_of(spark.sql(query)) == rows_of(result)
    assert [PRUNED_INDEX, PREPARED, PREPARED] == indexes(result)
    listed = spark.sql(f"SELECT id FROM {table('parts')} WHERE part = 'p 0' AND id < 70 AND day < 50").inputFiles()
    assert set(listed) <= set(result.inputFiles())
    first = location_of(result).files().size()
    assert (len(listed), 9, 18) == (
        first,
        len(paths_of(location_of(result, 1))),
        len(paths_of(location_of(result, 2))),
    )


def test_one_relation_under_two_conditions(spark, lake, pruned_frame):
    table, folder = lake
    sales = spark.read.format("delta").load(table("parts")[7:-1])
    days = spark.sql(f"SELECT day AS on FROM delta.`{folder}/days` WHERE month < 5")
    both = sales.where("id < 70 AND part = 'p 0'").unionAll(sales.where("id >= 70 AND part IS NULL"))
    query = both.join(days, both.day == days.on)
    expected = rows_of(query.select("*"))
    result = pruned_frame(query.select("*"), options=OPTIONS)
    assert expected == rows_of(result)
    assert {(False, "p 0"), (True, None)} == {(row[0] >= 70, row[2]) for row in expected}
    assert [4, 2] == [location_of(result, at).files().size() for at in (0, 1)]


# Cached rows, and rows that the log answers, are not read from files.
def test_cached_tables_and_metadata_queries_are_kept(spark, lake, pruned_frame):
    table, folder = lake
    days = spark.sql(f"SELECT day FROM delta.`{folder}/days` WHERE month = 2").cache()
    try:
        query = f"""
            SELECT s.id, (SELECT count(*) FROM {table("mapped")}) AS n FROM {table("plain")} s
            JOIN (SELECT day FROM delta.`{folder}/days` WHERE month = 2) d ON s.day = d.day
            UNION ALL SELECT day, 0 FROM (SELECT day FROM delta.`{folder}/days` WHERE month = 2)"""
        expected = rows_of(spark.sql(query))
        result = pruned_frame(spark.sql(query), options=OPTIONS)
        assert expected == rows_of(result)
        plan = result._jdf.queryExecution().optimizedPlan().toString()
        assert "InMemoryRelation" in plan
        # The counted table is no relation, so the only relation is the fact.
        assert 1 == len(re.findall(r"\bRelation ", plan))
        assert [PRUNED_INDEX] == indexes(result)
        assert {"plain": (1, 1)} == files(result)
    finally:
        days.unpersist(blocking=True)


# Partitions computed from a column: Delta adds conditions on them while it lists.
@pytest.mark.full
def test_tables_with_generated_columns_are_listed_by_delta(spark, tmp_path, lake, pruned_frame):
    _, folder = lake
    own = f"delta.`{tmp_path}/generated`"
    spark.sql(f"""CREATE TABLE {own} (id BIGINT, at TIMESTAMP, on DATE GENERATED ALWAYS AS (CAST(at AS DATE)))
        USING delta PARTITIONED BY (on)""")
    spark.sql(f"INSERT INTO {own} (id, at) SELECT id, timestamp_seconds(id * 86400) FROM range(0, 6, 1, 1)")
    query = f"""
        SELECT s.id FROM {own} s JOIN delta.`{folder}/days` d ON s.id = d.day
        WHERE d.month = 0 AND s.at < timestamp_seconds(3 * 86400)"""
    result = pruned_frame(spark.sql(query), options=OPTIONS)
    assert [(0,), (1,), (2,)] == rows_of(result) == rows_of(spark.sql(query))
    assert 4 > len(result.inputFiles())


# Failure catalogue 49: two reads of one table see one version, even with a commit between their analyses.
@pytest.mark.full
def test_all_scans_of_a_table_read_one_version(spark, tmp_path, lake, pruned_before):
    _, folder = lake
    path = f"{tmp_path}/own"
    spark.sql(f"CREATE TABLE delta.`{path}` USING delta AS SELECT id, day FROM kept_sales")
    before = spark.read.format("delta").load(path)
    assert 2 == len(before.columns)
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (900, 22)")
    days = spark.sql(f"SELECT day AS on FROM delta.`{folder}/days` WHERE month = 2")
    after = spark.read.format("delta").load(path)
    both = (
        before.join(days, before.day == days.on)
        .select("id", "day")
        .unionAll(after.join(days, after.day == days.on).select("id", "day"))
    )
    result = pruned_before(lambda: spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 41"), both, options=OPTIONS)
    found = rows_of(result)
    assert 2 == found.count((900, 22)) == found.count((41, 20))
    assert 42 == len(found)
    assert [(2, 2)] * 2 == list(files(result).values())


# Delta takes a condition without columns for a partition condition, and evaluates it once per file.
def test_nondeterministic_conditions_skip_no_file(spark, lake):
    table, folder = lake
    query = f"""
        SELECT s.id FROM (SELECT * FROM {table("parts")} s WHERE monotonically_increasing_id() >= 3) s
        JOIN delta.`{folder}/days` d ON s.day = d.day"""
    plan = optimized(spark.sql(query))
    leaves = [plan.collectLeaves().apply(at) for at in range(plan.collectLeaves().size())]
    assert {"id": FILES * 3, "day": 1} == {
        str(each.output().head().name()): len(paths_of(each.relation().location())) for each in leaves
    }


# A string literal may look like the id of a column.
def test_conditions_that_differ_by_a_literal_are_distinguished(spark, lake, tmp_path, pruned_frame):
    _, folder = lake
    own = f"delta.`{tmp_path}/brands`"
    spark.sql(f"""CREATE TABLE {own} USING delta PARTITIONED BY (brand) AS
        SELECT cast(id AS int) AS id, concat('Brand#', id div 10) AS brand FROM range(0, 60, 1, 1)""")
    query = " UNION ALL ".join(
        f"""SELECT s.id FROM {own} s JOIN delta.`{folder}/days` d ON s.id = d.day
        WHERE brand = 'Brand#{number}' AND s.id % 2 = 0 AND d.month < 5"""
        for number in (1, 3)
    )
    result = pruned_frame(spark.sql(query), options=OPTIONS)
    assert [10, 12, 14, 16, 18, 30, 32, 34, 36, 38] == sorted(row.id for row in result.collect())
    assert [PRUNED_INDEX] * 2 == indexes(result)
    assert [1, 1] == [location_of(result, at).files().size() for at in (0, 1)]


# Failure catalogue 49: Delta checks for each read that the table still has its columns, and reports what it refuses.
def test_read_from_before_a_dropped_column_is_not_pruned(spark, lake, tmp_path, pruned_frame):
    _, folder = lake
    own = f"delta.`{tmp_path}/mapped`"
    spark.sql(f"CREATE TABLE {own} USING delta {MAPPED} AS SELECT id, day, part FROM kept_sales")
    before = spark.table(own).select("id", "day")
    spark.sql(f"ALTER TABLE {own} DROP COLUMN part")
    after = spark.table(own).select("id", "day")
    days = spark.sql(f"SELECT day AS on FROM delta.`{folder}/days` WHERE month = 2")
    rows = before.unionAll(after)
    both = rows.join(days, rows.day == days.on)
    assert is_unchanged(both, prune(both, options=OPTIONS))
    for each in (both, pruned_frame(both, options=OPTIONS)):
        with pytest.raises(Exception, match="DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"):
            each.collect()
    alone = after.join(days, after.day == days.on)
    result = pruned_frame(alone, options=OPTIONS)
    assert rows_of(alone) == rows_of(result)
    assert {"mapped": (1, 1)} == files(result)
