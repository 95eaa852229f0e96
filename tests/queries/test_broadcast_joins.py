"""Builds that have run are joined as materialized rows, by their real size."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pruning import explain
from sample_data.rows import Rows
from tests.costs import ALWAYS
from tests.queries.star import BY_JOB, FILES, OPTIONS, files

pytestmark = pytest.mark.spark

QUERY = "SELECT s.*, month FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 2"
PLANNED = replace(BY_JOB, broadcast_strategy="NONE")


@pytest.fixture
def pruned(spark, ways, star, pruned_frame):
    """The unpruned and the pruned DataFrame of a query over the star, after both gave equal rows."""

    def run(query: str, options=OPTIONS):
        text = query.format(sales=f"{star}sales", days=f"{star}days", items=f"{star}items")
        if not pruned_frame.is_session:
            return ways.agreed(text, options)
        df = spark.sql(text)
        result = pruned_frame(df, options=options)
        assert Rows(df.collect()) == Rows(result.collect())
        return df, result

    return run


def nodes(df) -> list[str]:
    """The operators of the first physical plan."""
    plan = df._jdf.queryExecution().sparkPlan()
    return [line.split("(")[0].strip(" :+-") for line in plan.treeString().splitlines()]


def leaves(df) -> list[str]:
    text = df._jdf.queryExecution().optimizedPlan().collectLeaves().mkString("\n")
    return [line.split(" ")[0] for line in text.splitlines()]


def joins(df) -> list[str]:
    return [name.split(" ")[0] for name in nodes(df) if "Join" in name]


def hints(df) -> list[str]:
    """The join hints of the optimized plan."""
    return re.findall(r"\w+Hint=\(strategy=\w+\)", df._jdf.queryExecution().optimizedPlan().toString())


def executions(spark) -> list:
    """The executions that the status store holds; it evicts old ones."""
    found = spark._jsparkSession.sharedState().statusStore().executionsList()
    return [found.apply(at) for at in range(found.size())]


def executions_that_scan(spark, column: str, run) -> int:
    """The number of executions that `run` starts and that scan files for a column, by the status store."""
    bus = spark.sparkContext._jsc.sc().listenerBus()
    bus.waitUntilEmpty()
    before = {each.executionId() for each in executions(spark)}
    run()
    bus.waitUntilEmpty()
    plans = [each.physicalPlanDescription() for each in executions(spark) if each.executionId() not in before]
    return sum(bool(re.search(rf"ReadSchema: struct<[^>]*\b{column}:", each)) for each in plans)


def test_build_runs_once(spark, pruned, pruned_frame):
    df, result = pruned(QUERY)
    assert {"sales": (2, 2, FILES)} == files(result)
    assert 1 == executions_that_scan(spark, "month", lambda: pruned_frame(df, options=BY_JOB).collect())
    assert 0 == executions_that_scan(spark, "month", lambda: pruned_frame(df, options=OPTIONS).collect())
    assert 2 == executions_that_scan(spark, "month", lambda: pruned_frame(df, options=PLANNED).collect())


def test_equal_builds_of_a_query_run_once(spark, pruned, pruned_frame):
    """Each branch selects the days of one month, under its own names and column ids."""
    branch = "SELECT s.{} FROM {{sales}} s JOIN {{days}} {} ON s.day = {}.day WHERE month = 2"
    query = " UNION ALL ".join(
        branch.format(*names) for names in (("amount", "d", "d"), ("item", "e", "e"), ("day", "f", "f"))
    )
    df, result = pruned(query)
    assert {f"sales#{at}": (2, 2, FILES) for at in (1, 2, 3)} == files(result)
    # The query itself scans the sales, and the days once more if their rows are not joined as they are.
    assert 2 == executions_that_scan(spark, "day", lambda: pruned_frame(df, options=BY_JOB).collect())
    assert 2 == executions_that_scan(spark, "month", lambda: pruned_frame(df, options=PLANNED).collect())


def test_materialized_build_is_broadcast_despite_the_estimate(pruned, conf):
    conf("spark.sql.autoBroadcastJoinThreshold", "750")
    df, result = pruned(QUERY)
    assert ["SortMergeJoin"] == joins(df)
    assert ["BroadcastHashJoin"] == joins(result)
    assert ["rightHint=(strategy=broadcast)"] == hints(result)
    assert {"sales": (2, 2, FILES)} == files(result)


def test_materialized_build_over_the_threshold_is_not_broadcast(pruned, conf):
    conf("spark.sql.autoBroadcastJoinThreshold", "700")
    df, result = pruned(QUERY)
    assert ["SortMergeJoin"] == joins(df) == joins(result)
    assert [] == hints(result)
    assert {"sales": (2, 2, FILES)} == files(result)


def test_disabled_broadcast_joins_rows_by_sort_merge(pruned, conf):
    conf("spark.sql.autoBroadcastJoinThreshold", "-1")
    df, result = pruned(QUERY)
    assert ["SortMergeJoin"] == joins(df) == joins(result)
    assert 1 == leaves(result).count("LocalRelation")
    assert {"sales": (2, 2, FILES)} == files(result)


def test_hint_of_the_query_is_kept(pruned):
    _, result = pruned(QUERY.replace("SELECT", "SELECT /*+ MERGE(d) */"))
    assert ["SortMergeJoin"] == joins(result)
    assert ["rightHint=(strategy=merge)"] == hints(result)
    assert {"sales": (2, 2, FILES)} == files(result)


def test_preserved_side_of_an_outer_join_is_not_broadcast(pruned):
    query = "SELECT d.day, count(amount) FROM {days} d LEFT JOIN {sales} s ON s.day = d.day WHERE month = 2 GROUP BY 1"
    _, result = pruned(query)
    assert [] == hints(result)
    assert "LocalRelation" in leaves(result)
    assert {"sales": (2, 2, FILES)} == files(result)


def test_runtime_only_prevents_broadcasts_by_estimate(pruned):
    query = """
        SELECT name, month, amount FROM {sales} s JOIN {days} d ON s.day = d.day JOIN {items} i ON s.item = i.item
        WHERE month = 2"""
    _, result = pruned(query)
    assert ["BroadcastHashJoin", "BroadcastHashJoin"] == joins(result)
    _, result = pruned(query, replace(OPTIONS, broadcast_strategy="RUNTIME_ONLY"))
    assert ["BroadcastHashJoin", "SortMergeJoin"] == sorted(joins(result))
    assert {"sales": (2, 2, FILES)} == files(result)


def test_strategy_none_keeps_joins_and_filters(pruned):
    df, result = pruned(QUERY, PLANNED)
    assert joins(df) == joins(result)
    assert [] == hints(result)
    assert "LocalRelation" not in leaves(result)
    assert {"sales": (2, 2, FILES)} == files(result)


def test_unselective_build_is_still_materialized(spark, pruned, pruned_frame):
    """The keys lie in every file, so the scan reads all of them."""
    query = "SELECT s.*, name FROM {sales} s JOIN {items} i ON s.item = i.item WHERE name <> 'n7'"
    df, result = pruned(query, ALWAYS)
    assert ({"sales": (FILES, FILES, FILES)}, 1) == (files(result), leaves(result).count("LocalRelation"))
    assert "UNCLUSTERED" in {each.code.name for each in explain(result).tables[0].reasons}
    assert 1 == executions_that_scan(
        spark, "name", lambda: pruned_frame(df, options=ALWAYS.with_limits(driver_scan_files=0)).collect()
    )
