"""`prune()`: the joins of a query filter its scans, and its rows stay the same."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from connectors.builds import materialized, query_builds
from connectors.pipeline import pruned_query, table_scan
from connectors.spark.plan_tree import UnreadablePlanError
from pruning import PruningOptions, explain, prune, pruned_read, report
from pruning.errors import NotPrunedReadError
from pruning.reasons import ReasonCode
from sample_data.rows import Rows, ordered
from tests.costs import FREE_BUILDS
from tests.queries.star import BY_JOB, FILES, OPTIONS, files
from tests.unchanged import is_unchanged

pytestmark = pytest.mark.spark


def test_dimension_filters_the_files_of_a_fact(pruned):
    _, result = pruned("SELECT s.* FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 2")
    assert {"sales": (2, 2, FILES)} == files(result)


def test_report_does_not_count_the_unpruned_query(pruned):
    df, result = pruned("SELECT sum(amount) FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 0")
    assert {"sales": (2, 2, FILES)} == files(result)
    df.collect()
    assert {"sales": (2, 2, FILES)} == files(result)


def test_two_dimensions_filter_one_fact(pruned):
    query = """
        SELECT name, sum(amount) FROM {sales} s JOIN {days} d ON s.day = d.day JOIN {items} i ON s.item = i.item
        WHERE month = 5 AND name LIKE 'n1%' GROUP BY name"""
    _, result = pruned(query)
    (table,) = explain(result).tables
    assert [("day",), ("item",)] == sorted(each.columns for each in table.filters)
    assert {"sales": (1, 1, FILES)} == files(result)


def test_pruned_read_has_one_filter_node(spark, star):
    """Each further DataFrame operation would cost another analysis by Spark."""
    folder = spark.table(f"{star}sales").inputFiles()[0].rpartition("/")[0]
    df = pruned_read(spark, folder, keys={"day": [21, 41, 44], "item": [7, 9, 30]})
    assert 1 == df._jdf.queryExecution().analyzed().toString().count("Filter ")
    assert 9 >= df.count() > 0


@pytest.mark.parametrize("star", ["delta"], indirect=True)
def test_prune_makes_few_py4j_calls(spark, star, bridge_calls):
    """A call takes some tenths of a millisecond, which is most of the time of prune() besides its builds."""
    query = f"SELECT s.* FROM {star}sales s JOIN {star}days d ON s.day = d.day WHERE month = "
    prune(spark.sql(f"{query} 1"), options=OPTIONS)
    df = spark.sql(f"{query} 2")
    assert 240 >= bridge_calls(lambda: prune(df, options=OPTIONS))
    assert 20 >= bridge_calls(lambda: prune(df))


def test_scans_of_a_subquery_are_pruned(pruned):
    query = """
        SELECT count(*) FROM {items} WHERE item < (
            SELECT max(item) FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 1)"""
    _, result = pruned(query)
    assert {"sales": (2, 2, FILES)} == files(result)


def test_branches_of_a_union_are_filtered_separately(pruned):
    query = """
        SELECT s.amount FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 1
        UNION ALL SELECT amount FROM {sales}"""
    _, result = pruned(query)
    assert {"sales#1": (2, 2, FILES)} == files(result)


def test_limit_below_the_join_stops_the_filter(pruned):
    query = """
        SELECT count(*) FROM (SELECT * FROM {sales} ORDER BY amount LIMIT 100) s
        JOIN {days} d ON s.day = d.day WHERE month = 2"""
    _, result = pruned(query, replace(OPTIONS, top_k=False))
    # The limited rows may filter the days, but not the other way.
    assert "sales" not in files(result)
    assert "a limit chooses among all rows below it" in str(explain(result).edges)


def test_preserved_side_of_an_outer_join_is_not_filtered(pruned):
    df, result = pruned(
        """SELECT count(*), count(d.day)
        FROM {sales} s LEFT JOIN (SELECT * FROM {days} WHERE month = 2) d ON s.day = d.day"""
    )
    assert is_unchanged(df, result)
    _, result = pruned(
        """SELECT count(*), count(s.day)
        FROM (SELECT * FROM {days} WHERE month = 2) d LEFT JOIN {sales} s ON s.day = d.day"""
    )
    assert {"sales": (2, 2, FILES)} == files(result)


def test_keys_follow_equality_to_other_scans(pruned):
    query = """
        SELECT count(*) FROM {days} d JOIN {sales} a ON d.day = a.day JOIN {sales} b ON a.day = b.day
        WHERE d.month = 4 AND a.item = 3 AND b.item = 7"""
    _, result = pruned(query, replace(OPTIONS, broadcast_strategy="NONE"))
    assert [("sales#1", 2), ("sales#2", 2)] == [(each.table, each.files_kept) for each in explain(result).tables]


@pytest.mark.parametrize("limit", ["", "LIMIT 30"])
def test_rows_are_in_the_order_of_the_query(pruned, limit):
    """Other tests compare rows without their order and would not find a lost sort."""
    query = (
        "SELECT s.* FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 2 ORDER BY item % 7 DESC, amount DESC"
    )
    df, result = pruned(f"{query} {limit}")
    assert {"sales": (2, 2, FILES)} == files(result)
    assert ordered(df.collect()) == ordered(result.collect())


def test_empty_build_reads_no_file_of_the_fact(pruned):
    _, result = pruned("SELECT * FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 77")
    assert {"sales": (0, 0, FILES)} == files(result)


def test_query_without_joins_is_unchanged(spark, star, pruned_frame):
    df = spark.table(f"{star}sales")
    result = pruned_frame(df, options=OPTIONS)
    assert Rows(df.collect()) == Rows(result.collect())
    assert is_unchanged(df, result)
    assert () == report(result).tables
    assert ((), ()) == (explain(df).tables, explain(df).filters)


def test_keys_reach_the_scan_through_a_widened_group_key(pruned):
    groups = "SELECT CAST(day AS bigint) AS k, count(*) AS sold FROM {sales} GROUP BY day"
    _, result = pruned(f"SELECT g.* FROM ({groups}) g JOIN {{days}} d ON g.k = d.day WHERE month = 2")
    assert {"sales": (2, 2, FILES)} == files(result)


def test_small_scans_are_not_filtered(pruned):
    df, result = pruned("SELECT s.* FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 2", PruningOptions())
    assert is_unchanged(df, result)


def test_disabled_pruning_leaves_the_query_unchanged(pruned):
    options = replace(FREE_BUILDS, enabled=False)
    df, result = pruned("SELECT s.* FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 2", options)
    assert is_unchanged(df, result)


def test_failed_pruning_leaves_the_query_with_a_warning(pruned, monkeypatch, caplog):
    def fails(*_: object) -> None:
        raise UnreadablePlanError

    monkeypatch.setattr(pruned_query.SparkPlan, "read", fails)
    df, result = pruned("SELECT s.* FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 2")
    assert is_unchanged(df, result)
    assert "Reading without pruning: the query: pruning failed (UnreadablePlanError)" in caplog.text


def test_timed_out_build_gives_no_filter(pruned, monkeypatch, caplog):
    monkeypatch.setattr(query_builds, "local_rows", lambda *_: time.sleep(1))
    query = "SELECT s.* FROM {sales} s JOIN (SELECT * FROM {days} WHERE month < 1) d ON s.day = d.day"
    df, result = pruned(query, replace(BY_JOB, build_timeout_seconds=0.1))
    assert is_unchanged(df, result)
    assert "longer than the limit" in caplog.text


def test_report_of_an_unpruned_dataframe_is_refused(spark):
    with pytest.raises(NotPrunedReadError, match="prune"):
        report(spark.range(3))


def test_rows_of_a_build_are_joined_as_a_local_relation(pruned):
    _, result = pruned("SELECT s.* FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 2")
    leaves = str(result._jdf.queryExecution().optimizedPlan().collectLeaves().mkString("\n"))
    assert ["LocalRelation", "Relation"] == sorted(line.split(" ")[0] for line in leaves.splitlines() if line)


@pytest.mark.parametrize("name", ["catalog", "directory"])
def test_files_written_after_pruning_change_no_row(spark, name, tmp_path, pruned_before):
    """The query reads the build side again as a LEFT JOIN of many rows, so keys and rows must be of one snapshot."""
    folder = str(tmp_path / "facts")
    spark.range(0, 400_000, 1, 8).selectExpr("cast(id div 2 AS int) AS day", "id AS amount").write.parquet(folder)
    days = str(tmp_path / "days")
    numbers = spark.range(0, 200_000, 1, 4).selectExpr("cast(id AS int) AS day", "cast(id div 1000 AS int) AS month")
    numbers.write.parquet(days)
    if name == "catalog":
        spark.sql(f"CREATE TABLE pinned_days USING parquet LOCATION '{days}'")
    table = "pinned_days" if name == "catalog" else f"parquet.`{days}`"
    try:
        query = f"""
            SELECT month = 999 AS late, count(*), count(f.day) FROM {table} d LEFT JOIN parquet.`{folder}` f
            ON f.day = d.day WHERE month < 110 OR month = 999 GROUP BY 1"""
        before = Rows(spark.sql(query).collect())

        def written() -> None:
            late = spark.createDataFrame([(150_000, 999), (190_000, 999)], "day int, month int")
            if name == "catalog":
                late.write.insertInto("pinned_days")
            else:
                late.write.mode("append").parquet(days)

        result = pruned_before(written, spark.sql(query), options=OPTIONS)
        assert before == Rows(result.collect())
        assert [("facts", 5, 8)] == [(it.table, it.files_kept, it.files_total) for it in explain(result).tables]
        assert before != Rows(spark.sql(query).collect())
    finally:
        spark.sql("DROP TABLE IF EXISTS pinned_days")


def test_column_references_resolve_on_the_pruned_query(spark, star, pruned_frame):
    sales, days = spark.table(f"{star}sales"), spark.table(f"{star}days").where("month < 3")
    joined = sales.join(days, sales.day == days.day)
    result = pruned_frame(joined, options=OPTIONS)
    assert joined is not result
    assert 90 * 25 == len(result.collect())
    assert {"sales": 5} == {each.table: each.files_kept for each in explain(result).tables}
    found = [Rows(each.where(days.month == 2).groupBy(sales.day).count().collect()) for each in (joined, result)]
    assert found[0] == found[1] == [(day, 25) for day in range(60, 90)]


def test_file_metadata_columns_are_kept(spark, star, pruned_frame):
    folder = spark.table(f"{star}sales").inputFiles()[0].rpartition("/")[0]
    df = spark.sql(f"""
        SELECT s.day, s._metadata.file_size AS size FROM {star.rstrip("_")}.`{folder}` s
        JOIN {star}days d ON s.day = d.day WHERE month = 2""")
    result = pruned_frame(df, options=OPTIONS)
    assert Rows(df.collect()) == Rows(result.collect())
    assert not is_unchanged(df, result)
    assert {"sales": (2, 2, FILES)} == files(result)


@pytest.mark.parametrize("key", ["i.item", "i.item + 0"], ids=["a column", "computed"])
def test_failed_keys_do_not_affect_other_builds(spark, star, pruned_frame, monkeypatch, key):
    frame_of, key_types = query_builds.frame_of, materialized.key_types

    def fails(is_item, go_on):
        if is_item:
            msg = "secret"
            raise ValueError(msg)
        return go_on()

    monkeypatch.setattr(
        query_builds, "frame_of", lambda *given: fails("item#" in given[1].toString(), lambda: frame_of(*given))
    )
    monkeypatch.setattr(materialized, "key_types", lambda *given: fails("item" in given[1], lambda: key_types(*given)))
    df = spark.sql(f"""
        SELECT s.amount FROM {star}sales s JOIN {star}days d ON s.day = d.day JOIN {star}items i ON s.item = {key}
        WHERE month = 2 AND name < 'n2'""")
    result = pruned_frame(df, options=OPTIONS)
    assert Rows(df.collect()) == Rows(result.collect())
    assert {"sales": (2, 2, FILES)} == files(result)
    (reason,) = (each for each in explain(result).reasons if each.code is ReasonCode.BUILD_FAILED)
    assert "ValueError" in str(reason)
    assert "secret" not in str(reason)


def test_failed_scan_does_not_affect_other_scans(spark, star, pruned_frame, monkeypatch, caplog):
    pruned_scan = table_scan.pruned_scan

    def fails(spark, table, *arguments, **named):
        if table.name.endswith("items"):
            msg = "secret"
            raise KeyError(msg)
        return pruned_scan(spark, table, *arguments, **named)

    monkeypatch.setattr(table_scan, "pruned_scan", fails)
    df = spark.sql(f"""
        SELECT s.amount FROM {star}sales s JOIN {star}days d ON s.day = d.day WHERE month = 2 UNION ALL
        SELECT i.item FROM {star}items i JOIN (VALUES (3), (4)) v(k) ON i.item = k""")
    result = pruned_frame(df, options=OPTIONS)
    assert Rows(df.collect()) == Rows(result.collect())
    assert {"sales": 2} == {each.table: each.files_kept for each in explain(result).tables}
    assert "STATISTICS_FAILED" in {each.code.name for each in explain(result).reasons}
    assert "(KeyError)" in caplog.text
    assert "secret" not in caplog.text
