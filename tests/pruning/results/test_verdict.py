"""The first line of explanations and reports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pruning.options import PruningOptions
from pruning.reasons import Reason, ReasonCode
from pruning.results.explanation import Explanation
from pruning.results.prune_report import Measured, PruneReport, TableReport
from pruning.results.table_explanation import FilterExplanation, TableExplanation
from pruning.results.verdict import verdict_of_scan
from pruning.scan.pushdown import PushdownCapabilities
from pruning.scan.scan_plan import RowFilter, plan_scan
from pruning.scan.skipping import PruningResult
from tests.pruning.results.test_filter_kinds import files, keys, row_groups

FILTER = FilterExplanation(("day",), "rows of d.day", "exact set", 3, 3, {}, 2, {}, None, None, "none", 0.08, ())
TABLE = TableExplanation(
    "/lake/sales", "delta", 0, 40, 2, None, None, 100, 5, 40 << 20, 3 << 19, "", {}, {}, (FILTER,), ()
)
ALL = replace(TABLE, files_kept=40, rows_kept=100, bytes_kept=40 << 20)
MEASURED = Measured("collect", 2, 5, None, "", vectorised=True, seconds=1.0)


def verdict(*tables: TableExplanation, measured: Measured | None = None) -> str:
    return PruneReport(tuple(TableReport(each, measured, 1) for each in tables)).verdict


def test_files_bytes_and_keys_are_named():
    line = "2 of 40 files (1.5 MiB of 40.0 MiB): sales.day by d.day"
    assert f"reads {line}" == verdict(TABLE) == Explanation.of_read(TABLE).verdict
    assert f"read {line}" == verdict(TABLE, measured=MEASURED)


def test_several_tables_are_summed():
    assert "reads 4 of 80 files (3.0 MiB of 80.0 MiB): sales.day by d.day; returns.day by d.day" == verdict(
        TABLE, replace(TABLE, table="returns")
    )
    others = [replace(TABLE, table=name) for name in "abcde"]
    assert verdict(*others).endswith(": a.day by d.day; b.day by d.day; c.day by d.day; 2 more")


@pytest.mark.parametrize(
    ("test", "share", "ending"),
    [
        ("none", 0.08, "; sales clustered by day would let it skip about 92%"),
        (
            "bloom",
            0.25,
            ", but rows without a key are dropped early; sales clustered by day would let it skip about 75%",
        ),
        ("none", 0.9, ""),
    ],
)
def test_nothing_skipped_names_what_would_help(test, share, ending):
    table = replace(ALL, filters=(replace(FILTER, row_test=test, pass_ratio=share),))
    assert f"nothing skipped: every file may hold a key of day{ending}" == verdict(table)


@pytest.mark.parametrize("code", [ReasonCode.INT96, ReasonCode.NO_STATISTICS])
def test_columns_without_bounds_are_told_of_with_the_remedy(code):
    reason = Reason(code, "day")
    blind = replace(ALL, reasons=(reason,))
    assert f"nothing skipped: {reason}; try: {reason.remedy}" == verdict(blind)
    tested = replace(blind, filters=(replace(FILTER, row_test="IN list"),))
    assert verdict(tested).startswith("nothing skipped, but rows without a key are dropped early: day: ")
    # Writing the table in another order would help here.
    assert "every file may hold a key of day" in verdict(blind, ALL)
    assert "every file may hold a key" in verdict(replace(ALL, reasons=(Reason(code, "price"),)))


def test_files_that_are_not_known_are_not_counted():
    unknown = replace(TABLE, files_total=None, files_kept=None, bytes_kept=None)
    assert "the files of sales are not known" == verdict(unknown)
    assert verdict(TABLE) == verdict(TABLE, unknown).replace("; 1 more", "")


def test_a_report_is_never_empty():
    assert "nothing was pruned" in PruneReport((), "nothing was pruned, since k: it ends").verdict
    assert "the query joins the rows of 0 builds" in str(PruneReport(()))
    nothing = Explanation.nothing(Reason(ReasonCode.STREAMING, "the query"), ran_builds=False)
    assert str(nothing).splitlines()[0] == nothing.verdict
    assert "enable(spark) before the stream starts" in nothing.verdict
    assert nothing.verdict == nothing.to_dict()["verdict"]


LISTED = PushdownCapabilities(
    accepts_file_list=True, push_refusal=None, tests_keys=True, must_be_exact=False, widen=lambda _, ranges: ranges
)


def scan(*values: int, groups: bool = False):
    """The plan of a scan of ten files by some keys, its files, and its row groups."""
    found = row_groups() if groups else None
    return plan_scan(files(), found, [keys(*values)], LISTED, PruningOptions()), files(), found


def test_a_scan_names_its_files_row_groups_and_keys():
    assert "reads 2 of 10 files (200 B of 1000 B): k by list" == verdict_of_scan(*scan(12, 91), has_conditions=False)
    assert "reads at most 2 of 10 files (200 B of 1000 B): k by list" == verdict_of_scan(
        *scan(12, 91), has_conditions=True
    )
    # Row groups of files that are skipped do not count.
    assert "reads 2 of 10 files (200 B of 1000 B), of these 2 of 4 row groups: k by list" == verdict_of_scan(
        *scan(12, 91, groups=True), has_conditions=False
    )


def test_a_scan_of_all_files_tells_of_row_groups_or_rows():
    every = range(0, 100, 10)
    line = verdict_of_scan(*scan(*every, groups=True), has_conditions=False)
    assert "reads 10 of 10 files (1000 B of 1000 B), of these 10 of 20 row groups: k by list" == line
    plan, *found = scan(*every)
    tested = replace(plan, decisions=tuple(replace(each, test=RowFilter.BITMAP) for each in plan.decisions))
    line = verdict_of_scan(tested, *found, has_conditions=False)
    assert "skips no file, but drops rows without a key early: k by list" == line


def test_a_scan_of_which_nothing_is_known_or_changed_has_no_line():
    plan, known, groups = scan(12, 91)
    assert "" == verdict_of_scan(plan, replace(known, is_listed=False), groups, has_conditions=False)
    nothing = replace(plan, files=PruningResult(np.zeros(10, bool), plan.files.causes))
    assert "" == verdict_of_scan(nothing, known, groups, has_conditions=False)
    plain = replace(plan, files=PruningResult(np.ones(10, bool), plan.files.causes), predicates=(), decisions=())
    assert "" == verdict_of_scan(plain, known, groups, has_conditions=False)


def test_tables_without_a_file_are_named():
    none = replace(TABLE, files_total=0, files_kept=0, bytes_total=0, bytes_kept=0)
    assert "nothing to read: no file of sales meets the conditions of the query" == verdict(none)
    assert verdict(none, replace(none, table="returns")).startswith("nothing to read: no file of sales; returns meets")
    assert verdict(none, TABLE).startswith("reads 2 of 40 files")
