"""A pruned scan of Delta reads exactly its kept files, and nobody lists them again."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from connectors import delta
from connectors.kept_files import KEPT_INDEX, over_files
from connectors.spark_files import frame_of
from pruning import PruningOptions, explain, prune, report

pytestmark = pytest.mark.spark

FILES, DAYS_PER_FILE = 6, 10
OPTIONS = PruningOptions(min_probe_bytes=0)
PLANNED = replace(OPTIONS, broadcast_strategy="NONE")
# Column mapping and vectors write what older readers cannot read.
MAPPED = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
VECTORS = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    """Makes tables of sales, one file for each ten days, as they are asked for; gives how to name a table."""
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
                # A row of the file that is kept, and one of another.
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


def rows_of(df) -> list[tuple]:
    return sorted(map(tuple, df.collect()), key=repr)


def jobs(spark) -> int:
    """How many jobs the session's application has begun."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def files(df) -> dict[str, tuple[int, int]]:
    """For each pruned scan the files that it read, and those that it was planned to read."""
    return {it.planned.table: (it.measured.files_read, it.planned.files_kept) for it in report(df).tables}


def indexes(df) -> list[str]:
    """The kinds of file indexes of a plan."""
    leaves = df._jdf.queryExecution().optimizedPlan().collectLeaves()
    found = [leaves.apply(at) for at in range(leaves.size())]
    return [
        str(leaf.relation().location().getClass().getSimpleName())
        for leaf in found
        if leaf.getClass().getSimpleName() == "LogicalRelation"
    ]


def location(df):
    """The index of the one file relation of a plan."""
    return df._jdf.queryExecution().optimizedPlan().collectLeaves().head().relation().location()


def paths_of(index) -> list[str]:
    """The paths in the log of the files of a prepared index."""
    files = index.preparedScan().files()
    return [str(files.apply(at).path()) for at in range(files.size())]


def unlisted(spark, result) -> list[tuple]:
    """The rows, from two jobs: the broadcast of what the build gave, and the scan itself."""
    before = jobs(spark)
    found = rows_of(result)
    assert 2 == jobs(spark) - before
    return found


# 57, 58, 60: files of the log by absolute and relative paths, physical names, and rows that are marked as gone.
@pytest.mark.parametrize("kind", ["plain", "vectors", "mapped", "clone"])
def test_kept_files_are_not_listed_again(spark, lake, kind):
    query = query_of(lake, kind)
    expected = rows_of(spark.sql(query))
    result = prune(spark.sql(query), options=OPTIONS)
    assert expected == unlisted(spark, result)
    assert 20 - (kind in {"vectors", "clone"}) == len(expected)
    assert [KEPT_INDEX] == indexes(result)
    assert {kind: (1, 1)} == files(result)
    assert 1 == len(result.inputFiles())


# 64: Spark takes conditions on partitions out of the tests of rows, so each file must hold them.
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
def test_conditions_on_partitions_hold_for_kept_files(spark, lake, condition, kept):
    query = query_of(lake, "parts", condition)
    expected = rows_of(spark.sql(query))
    result = prune(spark.sql(query), options=OPTIONS)
    assert expected == rows_of(result)
    assert kept == len(result.inputFiles()) or not report(result).tables
    assert all(read == kept for read, _ in files(result).values())


# 64: conditions that come when files are chosen already.
@pytest.mark.parametrize("condition", ["part = 'p 1'", "part IS NULL", "coalesce(part, 'x') <> 'p 0'", "day = 24"])
def test_conditions_on_a_pruned_query(spark, lake, condition):
    query = query_of(lake, "parts")
    result = prune(spark.sql(query), options=OPTIONS)
    expected = rows_of(spark.sql(query).where(condition))
    assert expected
    assert expected == rows_of(result.where(condition))


def test_conditions_on_a_pruned_query_still_skip_files(spark, lake):
    table, folder = lake
    query = f"""
        SELECT s.id, s.day FROM {table("plain")} s JOIN delta.`{folder}/days` d ON s.day = d.day
        WHERE d.month IN (1, 2, 4)"""
    result = prune(spark.sql(query), options=OPTIONS)
    fewer = result.where("id BETWEEN 42 AND 50 AND id <> 44")
    assert rows_of(spark.sql(query).where("id BETWEEN 42 AND 50 AND id <> 44")) == rows_of(fewer)
    assert {"plain": (1, 3)} == files(result)
    assert 60 == len(unlisted(spark, result))
    assert {"plain": (3, 3)} == files(result)


# 47: what was pruned reads the version that was pruned.
@pytest.mark.parametrize("options", [OPTIONS, PLANNED], ids=["rows-are-joined", "builds-run-again"])
def test_a_commit_after_pruning(spark, tmp_path, lake, options):
    table, _ = lake
    own = f"delta.`{tmp_path}/own`"
    spark.sql(f"CREATE TABLE {own} USING delta {VECTORS} AS SELECT * FROM kept_sales")
    query = query_of(lake, "plain").replace(table("plain"), own)
    expected = rows_of(spark.sql(query))
    result = prune(spark.sql(query), options=options)
    spark.sql(f"DELETE FROM {own} WHERE id = 41")
    spark.sql(f"INSERT INTO {own} VALUES (900, 22, 'p 1')")
    assert expected == rows_of(result)
    assert (1, 1) == files(result)["own"]
    spark.sql(f"INSERT OVERWRITE {own} SELECT id, day, part FROM {{df}} WHERE id > 43", df=result)
    assert [row for row in expected if row[0] > 43] == rows_of(spark.table(own))


# 53: scans of other files are other scans, also where they are of one table and version.
def test_reads_of_other_files_are_not_taken_for_each_other(spark, lake):
    first, second = query_of(lake, "plain"), query_of(lake, "plain").replace("month = 2", "month = 3")
    query = f"{first} UNION ALL {second} UNION ALL {first}"
    expected = rows_of(spark.sql(query))
    result = prune(spark.sql(query), options=OPTIONS)
    assert expected == rows_of(result)
    assert [KEPT_INDEX] * 3 == indexes(result)
    assert [(1, 1)] * 3 == list(files(result).values())


# 53: Spark takes scans of equal indexes for each other.
def test_indexes_are_equal_where_their_files_are(spark, lake):
    table, _ = lake
    base = location(spark.read.format("delta").load(table("plain")[7:-1]))
    df = frame_of(spark, spark.table(table("plain"))._jdf.queryExecution().optimizedPlan())
    paths = pa.array(sorted(paths_of(base)))
    one, same, other = (location(over_files(df, base, paths.slice(at, 2))) for at in (0, 0, 1))
    assert one.equals(same)
    assert one.hashCode() == same.hashCode()
    assert not one.equals(other)
    assert not one.equals(base)
    assert (2, 1) == (one.files().size(), location(over_files(df, one, paths.slice(1, 3))).files().size())


def test_a_pruned_query_is_pruned_again(spark, lake):
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


# More files than fit the driver, or trouble in naming them: Delta finds the same by the predicate.
@pytest.mark.parametrize("cause", ["too-many", "trouble"])
def test_delta_lists_where_files_cannot_be_named(spark, lake, monkeypatch, cause):
    if cause == "too-many":
        monkeypatch.setattr(delta, "MOST_FILES", 0)
    else:

        def fails(*_: object) -> None:
            raise ValueError(cause)

        monkeypatch.setattr(delta, "over_files", fails)
    query = query_of(lake, "vectors")
    result = prune(spark.sql(query), options=OPTIONS)
    assert rows_of(spark.sql(query)) == rows_of(result)
    assert ["PreparedDeltaFileIndex"] == indexes(result)
    assert {"vectors": (1, 1)} == files(result)
    assert not [each for each in explain(result).reasons if "trouble" in str(each)]
