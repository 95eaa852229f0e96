from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pruning.options import PruningOptions
from pruning.reasons import Reason, ReasonCode
from pruning.scan.key_scan import OwnConditions, plan_key_scan
from pruning.scan.scan_plan import RowFilter, plan_scan
from pruning.scan.statistics import Containers
from tests.pruning.scan.test_scan_plan import DELTA, files, keys

# Two row groups per file: file n has the values 100 n to 100 n + 99.
BOUNDS = [(n * 100, n * 100 + 99) for n in range(4)]
HALVES = [(n * 50, n * 50 + 49) for n in range(8)]


def halves(bounds=HALVES) -> Containers:
    return replace(files(bounds), parents=np.arange(len(bounds)) // 2)


def planned(*filters, groups=None, options=PruningOptions()):  # noqa: B008
    groups = halves() if groups is None else groups
    return plan_key_scan(files(BOUNDS), groups, plan_scan(files(BOUNDS), groups, filters, DELTA, options))


def test_key_scan_skips_gaps_that_ranges_bridge():
    """Failure catalogue 95: a gap that is bridged in the predicate is still a gap of the keys."""
    options = PruningOptions().with_limits(max_ranges=1)
    by_ranges = plan_scan(files(BOUNDS), halves(), [keys(5, 350)], DELTA, options)
    plan = planned(keys(5, 350), options=options)
    assert [0, 1, 2, 3] == np.flatnonzero(by_ranges.files.kept).tolist()
    assert ([0, 3], [0, 7]) == (np.flatnonzero(plan.files.kept).tolist(), np.flatnonzero(plan.row_groups.kept).tolist())
    assert () == plan.predicates


def test_file_is_kept_iff_a_row_group_is_kept():
    """A key between the row groups of a file lies within the bounds of the file."""
    groups = halves([(0, 10), (90, 99), *HALVES[2:]])
    plan = planned(keys(50, 120), groups=groups)
    assert ([1], [2]) == (np.flatnonzero(plan.files.kept).tolist(), np.flatnonzero(plan.row_groups.kept).tolist())
    assert {"statistics": 3} == plan.files.skipped_by()
    assert {"statistics": 7} == plan.row_groups.skipped_by()


def test_row_groups_of_skipped_files_are_skipped():
    """A Delta log may have statistics that the footers lack."""
    unknown = replace(halves(), columns={})
    plan = planned(keys(50), groups=unknown)
    assert ([0], [0, 1]) == (np.flatnonzero(plan.files.kept).tolist(), np.flatnonzero(plan.row_groups.kept).tolist())


def test_statically_pruned_containers_are_not_read():
    filters = [keys(5, 120, 350)]
    by_ranges = plan_scan(files(BOUNDS), halves(), filters, DELTA, PruningOptions())
    own = OwnConditions(
        np.array([True, True, True, False]), np.array([True, True, False, True, True, True, True, True])
    )
    plan = plan_key_scan(files(BOUNDS), halves(), by_ranges, own)
    assert ([0], [0]) == (np.flatnonzero(plan.files.kept).tolist(), np.flatnonzero(plan.row_groups.kept).tolist())
    assert {"statistics": 3} == plan.files.skipped_by()
    assert {"statistics": 7} == plan.row_groups.skipped_by()


def test_every_filter_with_keys_tests_rows():
    plan = planned(keys(5, 6), keys(*range(400), name="other"))
    assert [RowFilter.KEYS, RowFilter.KEYS] == [each.test for each in plan.decisions]
    unknown = replace(keys(1), domains={})
    assert [RowFilter.KEYS, RowFilter.NONE] == [each.test for each in planned(keys(5), unknown).decisions]


def test_filter_that_skips_nothing_has_a_reason():
    plan = planned(keys(*range(0, 400, 10)), keys(3, name="unknown"))
    assert {("k", ReasonCode.UNCLUSTERED), ("unknown", ReasonCode.NO_STATISTICS)} == {
        (each.subject, each.code) for each in plan.reasons
    }
    assert () == planned(keys(5)).reasons


def test_only_reasons_that_hold_for_key_scans_are_kept():
    by_ranges = plan_scan(files(BOUNDS), halves(), [keys(5)], DELTA, PruningOptions())
    reasons = [Reason(each, "k") for each in (ReasonCode.SKIPPING_DISABLED, ReasonCode.NOT_VECTORISED)]
    plan = plan_key_scan(files(BOUNDS), halves(), replace(by_ranges, reasons=tuple(reasons)))
    assert (reasons[0],) == plan.reasons


def test_row_groups_without_parents_are_refused():
    with pytest.raises(ValueError, match="no known files"):
        planned(keys(5), groups=files(HALVES))
