"""Several keys of one build: one job collects them, and each is a filter of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connectors.builds import query_builds
from pruning import explain
from tests.queries.star import FILES, OPTIONS, files

pytestmark = pytest.mark.spark

# Spark reads the build side again, as it does for a build that is too large to be materialized.
WIDE = replace(OPTIONS, broadcast_strategy="NONE").with_limits(joined_rows=2)


@pytest.fixture(autouse=True)
def _wanted(spark, ways, tmp_path):
    """A table with days 41 to 43 and items 3 to 5."""
    rows = [(41, 3), (42, 4), (43, 5), (41, 3)]
    ways.stored("wanted", spark.createDataFrame(rows, "a int, b int"), str(tmp_path / "wanted"), "parquet")


@pytest.fixture(params=["few rows", "in workers"])
def options(request):
    """The rows are too many to be materialized; keys are collected on the driver, or summarized in workers."""
    return WIDE if request.param == "few rows" else WIDE.with_limits(driver_rows=0)


@pytest.fixture
def jobs(monkeypatch):
    """The names of the keys of each job."""
    found = []
    done = query_builds.spark_keys.collected

    def collected(frames, *others):
        found.extend(tuple(each.name for each in frame.keys) for frame in frames)
        return done(frames, *others)

    monkeypatch.setattr(query_builds.spark_keys, "collected", collected)
    return found


def test_keys_of_a_join_are_collected_by_one_job(pruned, options, jobs):
    _, result = pruned("SELECT s.* FROM {sales} s JOIN wanted ON s.day = a AND s.item = b", options)
    assert {"sales": (1, 1, FILES)} == files(result)
    # Once by `prune()`, and once by a session that prunes.
    assert [("a", "b")] * 2 == jobs
    (table,) = (each for each in explain(result).tables if each.table == "sales")
    assert {("day", 3), ("item", 3)} == {(each.columns[0], each.keys) for each in table.filters}


def test_keys_of_two_joins_with_one_build_side_share_a_job(pruned, options, jobs):
    whole = "(SELECT * FROM wanted WHERE a IS NOT NULL AND b IS NOT NULL)"
    joins = (f"SELECT amount, a, b FROM {{sales}} s JOIN {whole} ON s.{column}" for column in ("day = a", "item = b"))
    _, result = pruned(" UNION ALL ".join(joins), options)
    # Once by `prune()`, and once by a session that prunes.
    assert [("a", "b")] * 2 == jobs
    assert {("day",), ("item",)} == {it.columns for each in explain(result).tables for it in each.filters}
