"""The row-group limit of a query: row groups with a row that passes every filter, by the bytes of the used columns."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.contest.limit import limit_bytes
from tests.connectors.parquet_tables import in_files

SKIPPABLE_BY_NOTHING = [1, 99] * 5


@pytest.fixture
def star(spark, tmp_path):
    """A fact of two files of two row groups, keys 0 to 39 in order, and a dimension of keys of which few are wanted."""
    halves = [
        pa.table({"k": range(at, at + 20), "w": SKIPPABLE_BY_NOTHING * 2, "v": range(20), "unused": ["x" * 50] * 20})
        for at in (0, 20)
    ]
    in_files(tmp_path / "fact", *halves, row_group_size=10)
    in_files(tmp_path / "dim", pa.table({"d": range(40), "wanted": [each in {4, 15, 26} for each in range(40)]}))
    for name in ("fact", "dim"):
        spark.read.parquet(str(tmp_path / name)).createOrReplaceTempView(name)
    yield tmp_path
    for name in ("fact", "dim"):
        spark.catalog.dropTempView(name)


def chunks(folder, columns, *places):
    """Bytes of columns in row groups, by file and number."""
    found = 0
    for file, at in places:
        group = pq.read_metadata(folder / f"{file}.parquet").row_group(at)
        found += sum(
            group.column(each).total_compressed_size
            for each in range(group.num_columns)
            if group.column(each).path_in_schema in columns
        )
    return found


DIM = {"d", "wanted"}


@pytest.mark.parametrize(
    ("query", "fact"),
    [
        # The keys are 4, 15 and 26, each in a row group of its own; that of 15 has w = 99, in a row group with both.
        ("SELECT sum(v) FROM fact JOIN dim ON k = d WHERE wanted", [(0, 0), (0, 1), (1, 0)]),
        ("SELECT sum(v) FROM fact JOIN dim ON k = d WHERE wanted AND w < 10", [(0, 0), (1, 0)]),
        ("SELECT sum(v) FROM fact JOIN dim ON k = d WHERE wanted AND w < 0", []),
        # Rows without a match are in the result, so all of them are needed.
        ("SELECT sum(v) FROM fact LEFT JOIN dim ON k = d AND wanted", [(0, 0), (0, 1), (1, 0), (1, 1)]),
    ],
)
def test_a_row_group_counts_if_one_row_of_it_passes_all_filters(spark, star, query, fact):
    columns = {"k", "v", "w"} if "w <" in query else {"k", "v"}
    # A fact none of whose rows is left leaves nothing to look for; else one row of the dimension is wanted at least.
    expected = chunks(star / "fact", columns, *fact) + (chunks(star / "dim", DIM, (0, 0)) if fact else 0)
    assert expected == limit_bytes(spark.sql(query))


@pytest.mark.full
def test_scans_that_read_the_same_count_once_and_others_each(spark, star):
    one = "SELECT sum(v) s FROM fact JOIN dim ON k = d WHERE wanted AND k < 10"
    dim = chunks(star / "dim", DIM, (0, 0))
    expected = chunks(star / "fact", {"k", "v"}, (0, 0)) + dim
    assert expected == limit_bytes(spark.sql(f"{one} UNION ALL {one}"))
    other = chunks(star / "fact", {"k", "v"}, (1, 0))
    assert expected + other == limit_bytes(spark.sql(f"{one} UNION ALL {one.replace('k < 10', 'k > 20')}"))


@pytest.mark.full
def test_tables_of_delta_and_partitions_in_folders_are_read_as_they_lie(spark, star, tmp_path):
    fact = spark.read.parquet(str(star / "fact")).selectExpr("*", "k DIV 20 AS p").repartition(1)
    fact.sortWithinPartitions("k").write.format("delta").partitionBy("p").save(str(tmp_path / "lake"))
    files = sorted((tmp_path / "lake").glob("p=*/*.parquet"))
    spark.read.format("delta").load(str(tmp_path / "lake")).createOrReplaceTempView("fact")
    found = limit_bytes(spark.sql("SELECT sum(v), max(p) FROM fact JOIN dim ON k = d WHERE wanted AND d < 20"))
    expected = chunks(files[0].parent, {"k", "v"}, (files[0].stem, 0)) + chunks(star / "dim", DIM, (0, 0))
    assert expected == found
