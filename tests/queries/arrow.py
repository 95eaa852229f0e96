"""Helpers for tests of scans by pyarrow in pruned queries."""

from __future__ import annotations

from dataclasses import replace

from pruning import explain, report
from pruning.reasons import ReasonCode
from tests.queries.star import OPTIONS

ARROW = replace(OPTIONS, scan="ARROW")
IN_THE_SCAN = "keys, in the scan"


def refusals(df) -> list[str]:
    """The reasons for which Spark's own reader makes a scan."""
    codes = {
        ReasonCode.NOT_READ_BY_ARROW,
        ReasonCode.OTHER_VALUES_BY_ARROW,
        ReasonCode.DELETION_VECTORS,
        ReasonCode.CHAR_PADDED,
        ReasonCode.SKIPPING_DISABLED,
    }
    return [str(each) for table in explain(df).tables for each in table.reasons if each.code in codes]


def is_by_arrow(df) -> bool:
    """True if each scan is by pyarrow, False if none is."""
    found = {each.row_test == IN_THE_SCAN for table in explain(df).tables for each in table.filters}
    assert len(found) == 1, explain(df)
    assert found == {True} or refusals(df), "no reason is given"
    return found.pop()


def counts(df) -> dict[str, tuple[int, int, int]]:
    """The files, row groups and rows that each scan read, after a check that they are the planned ones."""
    found = {}
    for each in report(df).tables:
        planned, measured = each.planned, each.measured
        read = (measured.files_read, measured.row_groups_read, measured.rows_scanned)
        assert (planned.files_kept, planned.row_groups_kept, planned.rows_kept) == read
        found[planned.table] = read
    return found


def side_bytes(df) -> int:
    """Spark's estimated size of the right side of a query's only join."""
    plan = df._jdf.queryExecution().optimizedPlan()
    while plan.nodeName() != "Join":
        plan = plan.children().head()
    return int(str(plan.right().stats().sizeInBytes()))
