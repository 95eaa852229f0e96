"""Builds that are not run, or not completed, filter by the statistics of their files."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from connectors.builds import query_builds
from pruning import explain, prune
from sample_data.rows import Rows
from tests.costs import COSTLY_BUILDS
from tests.queries.star import BY_JOB, FILES, OPTIONS, files
from tests.unchanged import is_unchanged

pytestmark = pytest.mark.spark


def codes(df) -> set[str]:
    return {each.code.name for each in explain(df).reasons}


def test_build_that_does_not_pay_filters_by_its_statistics(pruned, star):
    # Spark itself pushes a condition on a join key to both sides; this condition is on another column.
    query = """
        SELECT s.amount, r.amount FROM {sales} s JOIN {sales} r ON s.day = r.day
        WHERE r.amount BETWEEN 1200 AND 1700 AND r.item = 3"""
    _, result = pruned(query, COSTLY_BUILDS)
    # Days 40 to 79 lie in the files of the amounts 1000 to 1999, and the pruned scan of one side filters the other.
    # Delta prunes the build side by its own condition, so the build side has no saving.
    own = 2 if star == "delta_" else FILES
    assert {"sales#1": (2, 2, FILES), "sales#2": (2, 2, own)} == files(result)
    assert "NOT_WORTH" in codes(result)
    assert "by the statistics of its files" in str(explain(result))


def test_limit_filters_by_its_statistics(pruned):
    """Failure catalogue 46: a limit may return other rows when the query runs, but they lie in the same files."""
    query = """
        SELECT count(*) FROM {sales} s JOIN (
            SELECT day FROM {sales} WHERE amount >= 3900 ORDER BY amount LIMIT 5
        ) r ON s.day = r.day"""
    _, result = pruned(query, replace(OPTIONS, broadcast_strategy="NONE"))
    assert {"sales#1": (1, 1, FILES)} == files(result)
    assert "UNREPEATABLE_KEYS" in codes(result)


def test_timed_out_build_filters_by_its_statistics(pruned, monkeypatch, caplog):
    monkeypatch.setattr(query_builds, "local_rows", lambda *_: time.sleep(2))
    query = "SELECT s.amount FROM {sales} s JOIN {sales} r ON s.day = r.day WHERE r.amount BETWEEN 1200 AND 1700"
    _, result = pruned(query, replace(BY_JOB, build_timeout_seconds=0.2))
    assert (2, 2, FILES) in files(result).values()
    assert "BUILD_TIMED_OUT" in codes(result)
    assert "longer than the limit" in caplog.text


def test_build_without_a_condition_has_no_metadata_filter(pruned):
    query = "SELECT count(*) FROM {sales} s JOIN {sales} r ON s.day = r.day AND s.amount = r.amount"
    df, result = pruned(query, COSTLY_BUILDS)
    assert is_unchanged(df, result)
    assert {"UNSELECTIVE_BUILD"} == codes(result)


def test_null_safe_join_has_no_metadata_filter_by_an_outer_join(pruned):
    query = """
        SELECT count(*) FROM {sales} s JOIN (
            SELECT r.day FROM {days} d LEFT JOIN (SELECT * FROM {sales} WHERE amount BETWEEN 1200 AND 1700) r
            ON r.day = d.day
        ) o ON s.day IS NOT DISTINCT FROM o.day"""
    _, result = pruned(query, COSTLY_BUILDS)
    assert "sales#1" not in files(result)


# Failure catalogue 80: files of upper-case strings hold values that equal lower-case ones.
def test_collated_conditions_bound_no_keys(spark, ways, tmp_path):
    letters = "CASE WHEN id < 2000 THEN 'a' ELSE 'A' END"
    lettered = spark.range(0, 4000, 1, FILES).selectExpr(
        "cast(id div 25 AS int) AS day",
        "id AS amount",
        f"{letters} AS word",
        f"{letters} COLLATE UTF8_LCASE AS any_case",
    )
    ways.stored("lettered", lettered, str(tmp_path / "lettered"), "parquet")
    query = "SELECT s.amount FROM lettered s JOIN lettered r ON s.day = r.day WHERE r.amount % 25 = 3 AND r."
    df, result = ways.agreed(query + "any_case = 'A'", COSTLY_BUILDS, duck=query + "amount >= 0")
    assert is_unchanged(df, result)
    read_as = spark.read.schema("day int, amount long, word string collate UTF8_LCASE").parquet(f"{tmp_path}/lettered")
    read_as.createOrReplaceTempView("read_otherwise")
    other = query.replace("lettered r", "read_otherwise r")
    df, result = ways.agreed(other + "word = 'A'", COSTLY_BUILDS, duck=query + "amount >= 0")
    assert is_unchanged(df, result)
    _, result = ways.agreed(query + "word = 'A'", COSTLY_BUILDS)
    assert {"lettered#1": (4, 4, FILES)} == {name: each for name, each in files(result).items() if name.endswith("1")}


@pytest.mark.full
def test_metadata_filter_uses_the_version_of_the_query(spark, tmp_path):
    """Rows that are committed later lie outside the bounds of the filter."""
    folder = str(tmp_path / "sales")
    sales = spark.range(0, 4000, 1, FILES).selectExpr("cast(id div 25 AS int) AS day", "id AS amount")
    sales.write.format("delta").save(folder)
    query = f"""
        SELECT count(*) FROM delta.`{folder}` s JOIN delta.`{folder}` r ON s.day = r.day
        WHERE r.amount BETWEEN 1200 AND 1700"""
    df = spark.sql(query)
    before = Rows(df.collect())
    result = prune(spark.sql(query), options=COSTLY_BUILDS)
    spark.range(1300, 1310).selectExpr("cast(150 AS int) AS day", "id AS amount").write.format("delta").mode(
        "append"
    ).save(folder)
    assert before == Rows(result.collect())
    assert before != Rows(spark.sql(query).collect())
    assert (2, 2, FILES) in files(result).values()
