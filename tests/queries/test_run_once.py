"""What Spark runs once for several parts of a query stays that: keys of one part alone would have it run again."""

from __future__ import annotations

import pytest

from pruning import PruningOptions, explain, report
from pruning.reasons import ReasonCode
from sample_data.confs import conf
from tests.queries.star import FILES, files

pytestmark = pytest.mark.spark

SUMS = "SELECT day, sum(amount) AS total FROM {sales} GROUP BY day"
JOINED = "SELECT s.*, month FROM (" + SUMS + ") s JOIN {days} d ON s.day = d.day"
SOME, OTHERS = f"{JOINED} WHERE month = 2", f"{JOINED} WHERE month = 4"


def codes(df) -> set[ReasonCode]:
    return {each.code for each in explain(df).reasons}


def scans_of_sales(df) -> int:
    """How many of them a run of the query has made."""
    df.collect()
    final, _, _ = str(df._jdf.queryExecution().executedPlan()).partition("== Initial Plan ==")
    return sum("FileScan" in line and "amount#" in line for line in final.splitlines())


def test_sums_that_two_parts_use_are_not_filtered_for_one_of_them(pruned):
    df, result = pruned(f"{SOME} UNION ALL {JOINED}")
    assert df._jdf is result._jdf
    assert ReasonCode.RUN_ONCE in codes(result)
    assert 1 == scans_of_sales(df)


def test_sums_are_filtered_for_every_part_where_each_has_keys(pruned):
    _, result = pruned(f"{SOME} UNION ALL {OTHERS}")
    assert {"sales#1": (2, 2, FILES), "sales#2": (2, 2, FILES)} == files(result)
    assert 2 == scans_of_sales(result)
    assert ReasonCode.RUN_ONCE not in codes(result)


def test_sums_are_not_run_for_each_part_for_keys_that_skip_nothing(pruned):
    # Every file holds all items, so each part would read all of them, which one run does for both.
    sums = "SELECT item, sum(amount) AS total FROM {sales} GROUP BY item"
    parts = (f"SELECT s.* FROM ({sums}) s JOIN {{items}} i ON s.item = i.item WHERE name = 'n{at}'" for at in (1, 2))
    df, result = pruned(" UNION ALL ".join(parts), PruningOptions(min_probe_bytes=0))
    assert df._jdf is result._jdf
    assert ReasonCode.RUN_ONCE in codes(result)
    assert 1 == scans_of_sales(df)


def test_sums_that_are_made_for_each_part_are_filtered_for_one(spark, pruned):
    with conf(spark, {"spark.sql.exchange.reuse": "false"}):
        _, result = pruned(f"{SOME} UNION ALL {JOINED}")
        assert ReasonCode.RUN_ONCE not in codes(result)
    assert (2, 2, FILES) == files(result)["sales#1"]


def test_keys_inside_of_what_is_run_once_filter_each_place_of_it(pruned):
    inner = JOINED.replace("GROUP BY", "JOIN {days} e USING (day) WHERE e.month = 2 GROUP BY")
    df, result = pruned(f"{inner} UNION ALL {inner}")
    planned = [each.planned for each in report(result).tables]
    assert [("sales#1", 2), ("sales#2", 2)] == sorted((each.table, each.files_kept) for each in planned)
    assert ReasonCode.RUN_ONCE not in codes(result)
    assert (1, 1) == (scans_of_sales(df), scans_of_sales(result))
