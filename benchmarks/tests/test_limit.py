"""Tests of the row-group limit of a query: bytes of used columns in row groups with a row that passes every filter."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.contest.limit import limit_bytes
from tests.connectors.parquet_tables import in_files

SKIPPABLE_BY_NOTHING = [1, 99] * 5


@pytest.fixture
def star(spark, tmp_path):
    """A fact of two files with two row groups each and keys 0 to 39 in order, and a dimension with few wanted keys."""
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
    """Bytes of columns in the row groups at `places`, pairs of a file and a number."""
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
        # The keys are 4, 15 and 26, each in a row group of its own. The row of key 15 has w = 99.
        ("SELECT sum(v) FROM fact JOIN dim ON k = d WHERE wanted", [(0, 0), (0, 1), (1, 0)]),
        ("SELECT sum(v) FROM fact JOIN dim ON k = d WHERE wanted AND w < 10", [(0, 0), (1, 0)]),
        ("SELECT sum(v) FROM fact JOIN dim ON k = d WHERE wanted AND w < 0", []),
        # Rows without a match are in the result, so all row groups are needed.
        ("SELECT sum(v) FROM fact LEFT JOIN dim ON k = d AND wanted", [(0, 0), (0, 1), (1, 0), (1, 1)]),
    ],
)
def test_a_row_group_counts_if_one_of_its_rows_passes_all_filters(spark, star, query, fact):
    columns = {"k", "v", "w"} if "w <" in query else {"k", "v"}
    # Without remaining rows of the fact no row of the dimension is needed, else its one row group is read.
    expected = chunks(star / "fact", columns, *fact) + (chunks(star / "dim", DIM, (0, 0)) if fact else 0)
    assert expected == limit_bytes(spark.sql(query))


@pytest.mark.full
def test_row_groups_that_several_scans_read_count_once(spark, star):
    one = "SELECT sum(v) s FROM fact JOIN dim ON k = d WHERE wanted AND k < 10"
    dim = chunks(star / "dim", DIM, (0, 0))
    expected = chunks(star / "fact", {"k", "v"}, (0, 0)) + dim
    assert expected == limit_bytes(spark.sql(f"{one} UNION ALL {one}"))
    other = chunks(star / "fact", {"k", "v"}, (1, 0))
    assert expected + other == limit_bytes(spark.sql(f"{one} UNION ALL {one.replace('k < 10', 'k > 20')}"))


@pytest.mark.full
def test_partitioned_delta_tables_have_a_limit(spark, star, tmp_path):
    fact = spark.read.parquet(str(star / "fact")).selectExpr("*", "k DIV 20 AS p").repartition(1)
    fact.sortWithinPartitions("k").write.format("delta").partitionBy("p").save(str(tmp_path / "lake"))
    files = sorted((tmp_path / "lake").glob("p=*/*.parquet"))
    spark.read.format("delta").load(str(tmp_path / "lake")).createOrReplaceTempView("fact")
    found = limit_bytes(spark.sql("SELECT sum(v), max(p) FROM fact JOIN dim ON k = d WHERE wanted AND d < 20"))
    expected = chunks(files[0].parent, {"k", "v"}, (files[0].stem, 0)) + chunks(star / "dim", DIM, (0, 0))
    assert expected == found
