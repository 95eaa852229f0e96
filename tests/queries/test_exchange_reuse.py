"""Exchange reuse: Spark runs a shared part of a query once; a filter for one of its consumers would end that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pruning import explain, report
from pruning.reasons import ReasonCode
from sample_data.confs import conf
from tests.costs import FREE_BUILDS, NO_FIXED_COSTS
from tests.queries.star import FILES, files
from tests.unchanged import is_unchanged

pytestmark = pytest.mark.spark

SUMS = "SELECT day, sum(amount) AS total FROM {sales} GROUP BY day"
JOINED = "SELECT s.*, month FROM (" + SUMS + ") s JOIN {days} d ON s.day = d.day"
SLOW_READS = FREE_BUILDS.with_limits(costs=replace(NO_FIXED_COSTS, byte=1000.0))
SOME, OTHERS = f"{JOINED} WHERE month = 2", f"{JOINED} WHERE month = 4"


def codes(df) -> set[ReasonCode]:
    return {each.code for each in explain(df).reasons}


def scans_of_sales(df) -> int:
    """The number of scans of sales that a run of the query made."""
    df.collect()
    final, _, _ = str(df._jdf.queryExecution().executedPlan()).partition("== Initial Plan ==")
    return sum("FileScan" in line and "amount#" in line for line in final.splitlines())


def test_reused_aggregate_is_not_filtered_for_one_consumer(pruned):
    df, result = pruned(f"{SOME} UNION ALL {JOINED}")
    assert is_unchanged(df, result)
    assert ReasonCode.RUN_ONCE in codes(result)
    assert 1 == scans_of_sales(df)


def test_reused_aggregate_is_filtered_if_each_consumer_has_keys(pruned):
    _, result = pruned(f"{SOME} UNION ALL {OTHERS}")
    assert {"sales#1": (2, 2, FILES), "sales#2": (2, 2, FILES)} == files(result)
    assert 2 == scans_of_sales(result)
    assert ReasonCode.RUN_ONCE not in codes(result)


def test_unclustered_keys_end_exchange_reuse_only_where_rows_cost_more_than_reading(pruned):
    # Every file has all items, so each consumer would read all files, which one reused run reads once.
    sums = "SELECT item, sum(amount) AS total FROM {sales} GROUP BY item"
    parts = (f"SELECT s.* FROM ({sums}) s JOIN {{items}} i ON s.item = i.item WHERE name = 'n{at}'" for at in (1, 2))
    query = " UNION ALL ".join(parts)
    df, result = pruned(query, SLOW_READS)
    assert is_unchanged(df, result)
    assert ReasonCode.RUN_ONCE in codes(result)
    assert 1 == scans_of_sales(df)
    _, result = pruned(query, FREE_BUILDS)
    assert {"sales#1": (FILES, FILES, FILES), "sales#2": (FILES, FILES, FILES)} == files(result)
    assert ReasonCode.RUN_ONCE not in codes(result)
    assert 2 == scans_of_sales(result)


def test_aggregate_without_reuse_is_filtered_for_one_consumer(spark, pruned):
    with conf(spark, {"spark.sql.exchange.reuse": "false"}):
        _, result = pruned(f"{SOME} UNION ALL {JOINED}")
        assert ReasonCode.RUN_ONCE not in codes(result)
    assert (2, 2, FILES) == files(result)["sales#1"]


def test_keys_inside_a_reused_part_filter_each_place(pruned):
    inner = JOINED.replace("GROUP BY", "JOIN {days} e USING (day) WHERE e.month = 2 GROUP BY")
    df, result = pruned(f"{inner} UNION ALL {inner}")
    planned = {each.planned.table: each.planned.files_kept for each in report(result).tables}
    # The keys of one scan of days are those of the other scan's days, too.
    assert {"sales#1": 2, "sales#2": 2} == {name: kept for name, kept in planned.items() if name.startswith("sales")}
    assert (1, 1) == (scans_of_sales(df), scans_of_sales(result))
