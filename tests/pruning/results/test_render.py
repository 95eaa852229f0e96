"""Text and HTML of an explanation: causes add up, and unknown numbers are called unknown."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pruning.cost.estimate import Estimate
from pruning.query.benefit import Benefit
from pruning.reasons import Reason, ReasonCode
from pruning.results.explanation import Explanation
from pruning.results.prune_report import Measured, PruneReport, TableReport
from pruning.results.query_lines import BuildLine
from pruning.results.table_explanation import CHUNKS, FilterExplanation, TableExplanation

FILTER = FilterExplanation(
    columns=("k",),
    source="list",
    kind="exact set",
    rows=3,
    keys=3,
    ranges={"k": 1},
    files_kept=1,
    files_skipped_by={"statistics": 23},
    row_groups_kept=1,
    bytes_kept=2048,
    row_test="none",
    pass_ratio=0.75,
    reasons=(),
)
TABLE = TableExplanation(
    table="/lake/" + "long/" * 40 + "sales",
    format="delta",
    version=0,
    files_total=24,
    files_kept=2,
    row_groups_total=96,
    row_groups_kept=4,
    rows_total=1000,
    rows_kept=40,
    bytes_total=4096,
    bytes_kept=2048,
    bytes_basis=CHUNKS,
    files_skipped_by={"statistics": 22},
    row_groups_skipped_by={"statistics": 4},
    filters=(FILTER,),
    reasons=(),
)
UNKNOWN = replace(
    TABLE, files_total=None, files_kept=None, row_groups_total=None, row_groups_kept=None, rows_total=None,
    rows_kept=None, bytes_total=None, bytes_kept=None, files_skipped_by={}, row_groups_skipped_by={},
)  # fmt: skip
SWITCHED_OFF = (Reason(ReasonCode.SWITCHED_OFF, "k"),)
ALWAYS_TRUE = replace(
    FILTER, kind="always true", rows=0, keys=None, ranges={}, files_kept=None, row_groups_kept=None, bytes_kept=None,
    pass_ratio=1.0,
)  # fmt: skip


def shown(table):
    """The words of the HTML form, because the text form wraps its cells."""
    return re.sub(r"(<[^>]+>|\s)+", " ", Explanation.of_read(table)._repr_html_())


def with_filter(table, filter_):
    return shown(replace(table, filters=(filter_,)))


def test_causes_of_skipped_row_groups_add_up():
    assert "row groups 96 4 with their files: 88, statistics: 4" in shown(TABLE)


def test_row_groups_are_skipped_with_their_files():
    none = replace(TABLE, files_kept=0, row_groups_kept=0, row_groups_skipped_by={})
    assert "row groups 96 0 with their files: 96" in shown(none)


def test_complete_causes_need_no_remainder():
    assert "row groups 8 4 statistics: 4" in shown(replace(TABLE, row_groups_total=8))


def test_shares_of_rows_and_bytes_are_skipped_shares():
    text = shown(TABLE)
    assert "total kept skipped" in text
    assert "rows 1,000 40 96.0%" in text
    assert "bytes 4.0 KiB 2.0 KiB 50.0%" in text


def test_singular_and_plural():
    assert "1 file, 1 row group, 2.0 KiB" in shown(TABLE)
    assert "2 files, 0 row groups" in with_filter(TABLE, replace(FILTER, files_kept=2, row_groups_kept=0))


def test_filter_without_keys_expects_no_row():
    text = with_filter(TABLE, replace(FILTER, kind="no keys", rows=0, keys=0, pass_ratio=1.0))
    assert "0 (no keys) from list" in text
    assert "none, no row can match" in text
    assert "expected to pass" not in text


def test_switched_off_pruning_shows_no_counts():
    text = with_filter(UNKNOWN, replace(ALWAYS_TRUE, reasons=SWITCHED_OFF))
    assert "no statistics were read: pruning is switched off" in text
    assert "not collected: switched off" in text
    assert "total kept" not in text
    assert "too many" not in text


def test_failed_build_is_not_too_many_keys():
    assert "not collected (always true) from list" in with_filter(TABLE, ALWAYS_TRUE)
    many = replace(ALWAYS_TRUE, kind="ranges", rows=10**9)
    assert "too many to count (ranges) from list" in with_filter(TABLE, many)


def test_unknown_files_are_called_unknown():
    assert "files unknown unknown" in shown(UNKNOWN)


def test_long_paths_are_not_wrapped():
    noted = replace(TABLE, reasons=(Reason(ReasonCode.STATISTICS_FAILED, TABLE.table),))
    lines = str(Explanation.of_read(noted)).splitlines()
    assert f"Planned: {TABLE.table} (delta, version 0)" == lines[1]
    assert 2 == sum(TABLE.table in line for line in lines)


def test_report_has_measured_planned_and_unfiltered_columns():
    measured = Measured("collectToPython", 3, 41, 3072, "", vectorised=True, seconds=1.5, scan_seconds=0.25)
    report = PruneReport((TableReport(TABLE, measured, 1, (0.125, None)),))
    text = re.sub(r"(<[^>]+>|\s)+", " ", report._repr_html_())
    assert "measured planned planned without filters" in text
    for row in (
        "files 3 2 24",
        "rows 41 40 1,000",
        "bytes 3.0 KiB 2.0 KiB 4.0 KiB",
        "seconds of reading, all tasks 0.25 0.12 unknown",
        "seconds of the query 1.50",
    ):
        assert f" {row} " in text
    (table,) = report.to_dict()["tables"]
    assert (2048, 4096, 3072) == (
        table["planned"]["bytes_kept"], table["planned"]["bytes_total"], table["measured"]["bytes_scanned"]
    )  # fmt: skip


@pytest.mark.parametrize("benefit", [None, Benefit(Estimate.exact(0.1), Estimate(0.2, 0.25, 0.3), 0.1)])
def test_seconds_that_a_build_saves_are_told_to_be_those_of_the_query(benefit):
    build = BuildLine("1", 1, "days.day", ("days",), 9, benefit=benefit, seconds=0.02)
    text = " ".join(str(PruneReport((), builds=(build,))).split())
    assert "saves the query" in text
    assert (benefit is not None) == ("0.25 s (0.2 to 0.3)" in text)
    assert (benefit is not None) == ("seconds that a build saves are those of the whole query on all its cores" in text)


@pytest.mark.parametrize(
    ("action", "expected"),
    [("showString", "show"), ("collectToPython", "collect"), ("save at x.py:7", "save at x.py:7")],
)
def test_actions_have_their_public_names(action, expected):
    report = PruneReport((TableReport(TABLE, Measured(action, 2, 40, None, "", vectorised=True, seconds=1.0), 1),))
    assert f"Measured: {expected}\n" in str(report)
