"""A query run with pruning and without: rows, bytes, and a one-line verdict."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from pyspark.sql import Row

from connectors.cli.compare import Outcome, Way, run_query, same_rows
from pruning.results.prune_report import PruneReport
from sample_data.confs import conf

WAY = Way((Row(a=1, b=None),), 2048)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ([Row(1), Row(2)], [Row(2), Row(1)], True),
        ([Row(1), Row(1), Row(2)], [Row(1), Row(2), Row(2)], False),
        ([Row(1)], [Row(1), Row(1)], False),
        ([Row(math.nan)], [Row(math.nan)], True),
        ([Row(0.1 + 0.2)], [Row(0.3)], True),
        ([Row(0.3)], [Row(0.31)], False),
        ([Row(1e18 + 1e9)], [Row(1e18)], True),
        ([Row(10**18 + 1)], [Row(10**18)], False),
        ([Row(Row(1.0, None))], [Row(Row(1.0 + 1e-12, None))], True),
        ([Row(None)], [Row("None")], False),
        ([Row(1)], [Row(1.0)], False),
        ([Row(-0.0)], [Row(0.0)], True),
    ],
)  # fmt: skip
def test_rows_are_compared_unordered_and_floats_approximately(first, second, same):
    assert same is same_rows(first, second)
    assert same is same_rows(second, first)


def test_verdict_is_one_line():
    outcome = Outcome(("a", "b"), WAY, PruneReport(()), None)
    assert "1 row; read 2.0 KiB, small sides included" == str(outcome.verdict())
    both = replace(outcome, stock=Way(WAY.rows, 1 << 20))
    expected = "Rows equal: 1 row; read 1.0 MiB unpruned, 2.0 KiB pruned, small sides included"
    assert expected == str(both.verdict())
    timed = replace(
        outcome, stock=Way(WAY.rows, 1 << 20, (1.0, 1.5, 9.0)), pruned=replace(WAY, seconds=(0.5, 0.25, 1.0))
    )
    expected = "Rows equal: 1 row; read 1.0 MiB in 1.50 s unpruned, 2.0 KiB in 0.50 s pruned, small sides included"
    assert f"{expected} (median of 3 runs after a first one)" == str(timed.verdict())
    other = replace(outcome, stock=Way((), None))
    assert not other.rows_equal
    assert "Rows differ: 1 row with pruning, 0 without pruning" in str(other.verdict())


@pytest.mark.full
@pytest.mark.spark
def test_both_runs_are_measured(spark, tmp_path):
    facts, days = str(tmp_path / "facts"), str(tmp_path / "days")
    spark.range(0, 400_000, 1, 8).selectExpr("id div 1000 AS day", "id AS amount").write.format("delta").save(facts)
    spark.range(0, 400).selectExpr("id AS day", "id div 100 AS month").write.format("delta").save(days)
    query = f"SELECT sum(amount) FROM delta.`{facts}` f JOIN delta.`{days}` d ON f.day = d.day WHERE month = 1"
    with conf(spark, {"spark.pruning.always": "true"}):
        outcome = run_query(spark.sql(query), compare=True, runs=1)
    assert outcome.rows_equal
    assert [(2, 2, 8)] == [
        (it.measured.files_read, it.planned.files_kept, it.planned.files_total) for it in outcome.report.tables
    ]
    assert ["run"] == [it.measured.action for it in outcome.report.tables]
    assert 0 < outcome.pruned.bytes < outcome.stock.bytes / 2
    assert [1, 1] == [len(way.seconds) for way in (outcome.pruned, outcome.stock)]
    assert "sum(amount)" in [column.header.plain for column in outcome.shown(5).columns]
