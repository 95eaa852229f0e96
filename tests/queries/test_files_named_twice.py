"""Files that a reader names more than once: Spark reads them once for each naming, and so does a pruned query."""

from __future__ import annotations

from pathlib import Path

import pytest

from pruning import pruned_read, report
from sample_data.rows import Rows
from tests.queries.star import OPTIONS

pytestmark = pytest.mark.spark

# Ids 0 to 79 in eight files of ten ids, and one row for each ten of them.
QUERY = "SELECT f.id, d.month FROM {facts} f JOIN {days} d ON f.day = d.day WHERE d.month = 3"


@pytest.fixture(scope="module")
def folder(spark, tmp_path_factory) -> Path:
    """Tables `t` and `days`, and the files of `t` in partitions in `parts`."""
    folder = tmp_path_factory.mktemp("twice")
    rows = spark.range(0, 80, 1, 8).selectExpr("id", "id DIV 10 AS day", "id DIV 40 AS half")
    rows.drop("half").write.parquet(str(folder / "t"))
    rows.write.partitionBy("half").parquet(str(folder / "parts"))
    spark.range(0, 8, 1, 1).selectExpr("id AS day", "id AS month").write.parquet(str(folder / "days"))
    return folder


@pytest.fixture
def views(spark, folder):
    """Views by name over the same paths, as they are given."""
    made: list[str] = []

    def view(name: str, paths: list[str]) -> str:
        spark.read.parquet(*(path.format(folder=folder) for path in paths)).createOrReplaceTempView(name)
        made.append(name)
        return name

    yield view
    for name in made:
        spark.catalog.dropTempView(name)


NAMINGS = {
    "folder twice": (["{folder}/t", "{folder}/t"], 2, 16),
    "with a slash": (["{folder}/t", "{folder}/t/"], 2, 16),
    "folder and a file of it": (["{folder}/t", "{folder}/t/part-00003-*"], 2, 9),
    "a file twice": (["{folder}/t/part-00003-*", "{folder}/t/part-00003-*", "{folder}/t/part-00004-*"], 2, 3),
    # Spark reads each file of a table with partitions once.
    "partitions twice": (["{folder}/parts", "{folder}/parts"], 1, 8),
}


@pytest.mark.parametrize(("paths", "kept", "total"), NAMINGS.values(), ids=NAMINGS)
def test_a_fact_named_twice(spark, views, pruned_frame, paths, kept, total):
    df = spark.sql(QUERY.format(facts=views("facts", paths), days=views("days", ["{folder}/days"])))
    expected = Rows(df.collect())
    assert len(df.collect()) == 10 * kept
    result = pruned_frame(df, options=OPTIONS)
    assert expected == Rows(result.collect())
    planned = {each.planned.table: each.planned for each in report(result).tables}
    (fact,) = (each for name, each in planned.items() if "days" not in name)
    assert (kept, total) == (fact.files_kept, fact.files_total)


def test_a_small_side_named_twice(spark, views, pruned_frame):
    twice = views("days", ["{folder}/days", "{folder}/days"])
    df = spark.sql(QUERY.format(facts=views("facts", ["{folder}/t"]), days=twice))
    result = pruned_frame(df, options=OPTIONS)
    assert 20 == len(result.collect())
    assert Rows(df.collect()) == Rows(result.collect())
    assert (1, 8) in {(each.planned.files_kept, each.planned.files_total) for each in report(result).tables}


def test_the_first_rows_of_a_table_named_twice(spark, views, pruned_frame):
    df = spark.sql(f"SELECT id FROM {views('facts', ['{folder}/t', '{folder}/t'])} ORDER BY id DESC LIMIT 3")
    result = pruned_frame(df, options=OPTIONS)
    assert [79, 79, 78] == [row.id for row in result.collect()] == [row.id for row in df.collect()]
    assert {(2, 16)} == {(each.planned.files_kept, each.planned.files_total) for each in report(result).tables}


def test_a_pruned_read_of_a_view_that_names_files_twice(spark, views):
    read = pruned_read(spark, views("facts", ["{folder}/t", "{folder}/t"]), keys={"day": [3]}, exact=True)
    assert sorted([*range(30, 40), *range(30, 40)]) == sorted(row.id for row in read.collect())
    (found,) = report(read).tables
    assert (2, 16) == (found.planned.files_kept, found.planned.files_total)
