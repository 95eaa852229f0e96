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
SOME, OTHERS = f"{JOINED} WHERE month = 2", f"{JOINED} WHERE month = 4"


def codes(df) -> set[ReasonCode]:
    return {each.code for each in explain(df).reasons}


def scans_of_sales(df) -> int:
    """The number of scans of sales that a run of the query made."""
    df.collect()
    final, _, _ = str(df._jdf.queryExecution().executedPlan()).partition("== Initial Plan ==")
    return sum("FileScan" in line and "amount#" in line for line in final.splitlines())


def planned(df) -> dict[str, int]:
    """The files that each scan of sales was to read; one of them alone has run."""
    kept = {each.planned.table: each.planned.files_kept for each in report(df).tables}
    return {name: count for name, count in kept.items() if name.startswith("sales")}


def test_reused_aggregate_is_not_filtered_for_one_consumer(pruned):
    df, result = pruned(f"{SOME} UNION ALL {JOINED}")
    assert is_unchanged(df, result)
    assert ReasonCode.RUN_ONCE in codes(result)
    assert 1 == scans_of_sales(df)


def test_reused_aggregate_is_filtered_by_the_keys_of_all_consumers(pruned):
    df, result = pruned(f"{SOME} UNION ALL {OTHERS}")
    # Each consumer has days in two files.
    assert {"sales#1": 4, "sales#2": 4} == planned(result)
    assert (1, 1) == (scans_of_sales(df), scans_of_sales(result))
    assert ReasonCode.RUN_ONCE not in codes(result)
    assert "and the keys for 1 equal scan" in str(explain(result))


@pytest.mark.parametrize(
    ("others", "kept"),
    [("month = 99", 2), ("month IS NULL", 2), ("month IN (0, 2, 4)", 6), ("month = 2", 2)],
    ids=["no keys", "NULL", "more keys", "the same keys"],
)
def test_consumers_of_a_reused_aggregate_may_have_any_keys(pruned, others, kept):
    df, result = pruned(f"{SOME} UNION ALL {JOINED} WHERE {others}")
    first, second = planned(result).values()
    assert first == second == kept
    assert scans_of_sales(df) == scans_of_sales(result) == 1


def test_rows_of_a_reused_aggregate_are_dropped_where_keys_skip_no_file(pruned):
    # Every file has all items.
    sums = "SELECT item, sum(amount) AS total FROM {sales} GROUP BY item"
    parts = (f"SELECT s.* FROM ({sums}) s JOIN {{items}} i ON s.item = i.item WHERE name = 'n{at}'" for at in (1, 2))
    df, result = pruned(" UNION ALL ".join(parts), FREE_BUILDS)
    assert {"sales#1": FILES, "sales#2": FILES} == planned(result)
    assert ReasonCode.RUN_ONCE not in codes(result)
    assert (1, 1) == (scans_of_sales(df), scans_of_sales(result))


def test_aggregate_without_reuse_is_filtered_for_one_consumer(spark, pruned):
    with conf(spark, {"spark.sql.exchange.reuse": "false"}):
        _, result = pruned(f"{SOME} UNION ALL {JOINED}")
        assert ReasonCode.RUN_ONCE not in codes(result)
    assert (2, 2, FILES) == files(result)["sales#1"]


def test_keys_inside_a_reused_part_filter_each_place(pruned):
    inner = JOINED.replace("GROUP BY", "JOIN {days} e USING (day) WHERE e.month = 2 GROUP BY")
    # Sales would give keys for the other days if their build cost nothing.
    options = FREE_BUILDS.with_limits(costs=replace(NO_FIXED_COSTS, build_job=1e6, driver_build=1e4))
    df, result = pruned(f"{inner} UNION ALL {inner}", options)
    # The keys of one scan of days are those of the other scan's days, too.
    assert {"sales#1": 2, "sales#2": 2} == planned(result)
    assert (1, 1) == (scans_of_sales(df), scans_of_sales(result))
