"""The verdict in the line of a pruned scan: in Spark's `explain()`, and in the SQL tab of its UI."""

from __future__ import annotations

import re

import pytest

from connectors.measure.status_store import finished_executions, last_execution, sql_store
from connectors.spark.jvm import analyzed_plan, optimized_plan, physical_plan
from connectors.spark.scan_text import with_scan_text
from pruning import PruningOptions, disable, enable, history, prune, pruned_read, report
from sample_data.rows import Rows
from tests.queries.star import FILES, OPTIONS, files

pytestmark = pytest.mark.spark

QUERY = "SELECT s.* FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 2"


def shown(spark, action) -> list[str]:
    """The verdicts in the names of the scans of an action, as the SQL tab has them."""
    before = last_execution(spark)
    action()
    found = []
    for execution in finished_executions(spark, before):
        nodes = sql_store(spark).planGraph(execution.executionId()).allNodes()
        for node in map(nodes.apply, range(nodes.size())):
            verdict = re.match(r"Scan \w+ \(scanprune: (.*)\)", str(node.name()))
            if verdict is not None:
                assert f"(scanprune: {verdict[1]})" in str(node.desc())
                found.append(verdict[1])
    return found


def explained(df, capsys) -> list[str]:
    """The verdicts in `explain()` of a DataFrame."""
    df.explain()
    # After an action, adaptive execution shows the last plan and the first one.
    return list(dict.fromkeys(re.findall(r"\(scanprune: (.*?)\) *\S*\[", capsys.readouterr().out)))


def without_bytes(text: str) -> str:
    return re.sub(r" \([\d.]+ \w+ of [\d.]+ \w+\)", "", text)


def test_a_pruned_scan_of_a_query_shows_its_verdict(spark, pruned, capsys):
    _, result = pruned(QUERY)
    assert {"sales": (2, 2, FILES)} == files(result)
    (line,) = explained(result, capsys)
    assert re.fullmatch(rf"reads 2 of {FILES} files: day by \w*days\.day", without_bytes(line))
    assert [line] == shown(spark, result.collect)


def test_numbers_are_bounds_where_the_query_skips_files_itself(spark, star, pruned_frame, capsys):
    df = spark.sql(QUERY.format(sales=f"{star}sales", days=f"{star}days") + " AND s.day < 70")
    result = pruned_frame(df, options=OPTIONS)
    assert Rows(df.collect()) == Rows(result.collect())
    ((read, kept, _),) = files(result).values()
    assert (1, 1) == (read, kept)
    (line,) = explained(result, capsys)
    assert without_bytes(line).startswith(f"reads at most 1 of {FILES} files: day by ")


def test_a_pruned_read_shows_its_verdict(spark, star, capsys):
    whole = spark.table(f"{star}sales")
    folder = whole.inputFiles()[0].rpartition("/")[0]
    read = pruned_read(spark, folder, keys={"day": [25, 30, 65]}, exact=True)
    assert Rows(whole.where("day IN (25, 30, 65)").collect()) == Rows(read.collect())
    assert 2 == report(read).measured.files_read
    (line,) = explained(read, capsys)
    assert without_bytes(line).startswith(f"reads 2 of {FILES} files: day by ")
    assert "65" not in line.partition(": ")[2]
    assert [line] == shown(spark, read.collect)


def test_a_scan_of_a_session_shows_its_verdict(spark, star):
    query = QUERY.format(sales=f"{star}sales", days=f"{star}days")
    expected = Rows(spark.sql(query).collect())
    enable(spark, options=OPTIONS)
    try:
        rows = []
        (line,) = shown(spark, lambda: rows.extend(spark.sql(query).collect()))
        assert expected == Rows(rows)
        assert [2] == [each.measured.files_read for each in history(spark)[0].tables]
    finally:
        disable(spark)
    assert re.fullmatch(rf"reads 2 of {FILES} files: day by \w*days\.day", without_bytes(line))


def test_the_search_of_a_merge_shows_its_verdict(spark, tmp_path):
    target = f"delta.`{tmp_path / 'target'}`"
    spark.range(0, 80, 1, 8).selectExpr("id", "0 AS hits").write.format("delta").save(str(tmp_path / "target"))
    merge = f"""MERGE INTO {target} t USING (SELECT explode(array(7L, 31L)) AS id) s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET hits = hits + 1"""
    enable(spark, options=OPTIONS)
    try:
        (line,) = shown(spark, lambda: spark.sql(merge))
    finally:
        disable(spark)
    assert without_bytes(line).startswith("reads 2 of 8 files: id by ")
    assert [7, 31] == sorted(row.id for row in spark.sql(f"SELECT id FROM {target} WHERE hits = 1").collect())


def test_described_scans_equal_plain_ones(spark, star):
    plain = spark.table(f"{star}sales")
    one, other = (with_scan_text(plain, text) for text in ("one", "other [#1]"))
    assert Rows(plain.collect()) == Rows(one.collect())
    assert plain.schema == one.schema
    assert str(physical_plan(one)) != str(physical_plan(other)) != str(physical_plan(plain))
    for plan in (analyzed_plan, optimized_plan, physical_plan):
        assert plan(one).canonicalized().equals(plan(other).canonicalized())
        assert plan(one).canonicalized().equals(plan(plain).canonicalized())
        assert plan(plain).canonicalized().equals(plan(one).canonicalized())
        assert plan(one).canonicalized().hashCode() == plan(plain).canonicalized().hashCode()
    assert plain.semanticHash() == one.semanticHash() == other.semanticHash()
    again = with_scan_text(one, "again")
    assert "(again)" in str(physical_plan(again))
    assert "(one)" not in str(physical_plan(again))


def test_equal_scans_with_other_texts_share_an_exchange(spark, star):
    plain = spark.table(f"{star}sales")
    one, other = (with_scan_text(plain, text).groupBy("item").count() for text in ("one", "other"))
    both = one.union(other)
    assert Rows(plain.groupBy("item").count().collect() * 2) == Rows(both.collect())
    assert 1 == str(physical_plan(both)).partition("Initial Plan")[0].count("ReusedExchange")


def test_scans_over_deletion_vectors_show_their_verdict(spark, tmp_path, capsys):
    path, keys = str(tmp_path / "t"), {"id": [7, 30]}
    spark.range(0, 100, 1, 4).write.format("delta").option("delta.enableDeletionVectors", "true").save(path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 7")
    read = pruned_read(spark, path, keys=keys, exact=True)
    assert [30] == [row.id for row in read.collect()]
    assert 2 == report(read).measured.files_read
    (line,) = explained(read, capsys)
    assert without_bytes(line).startswith("reads 2 of 4 files: id by ")


def test_a_pruned_read_is_pruned_again(spark, star):
    folder = spark.table(f"{star}sales").inputFiles()[0].rpartition("/")[0]
    read = pruned_read(spark, folder, keys={"day": range(100)}, options=OPTIONS)
    days = spark.table(f"{star}days").where("month = 2")
    result = prune(read.join(days, "day"), options=OPTIONS)
    assert Rows(spark.table(f"{star}sales").join(days, "day").collect()) == Rows(result.collect())
    ((read_files, _, _),) = files(result).values()
    assert 2 == read_files


def test_a_scan_that_is_read_as_it_is_shows_nothing(spark, star, capsys):
    folder = spark.table(f"{star}sales").inputFiles()[0].rpartition("/")[0]
    read = pruned_read(spark, folder, keys={"amount": [-1, 10**9]}, options=PruningOptions(enabled=False))
    assert [] == explained(read, capsys)
    assert FILES * 500 == read.count()
