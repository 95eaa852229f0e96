"""`expected_sizes`: scans after filters whose builds have not run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.options import PruningOptions
from pruning.query.build_selection import BuildSelection
from pruning.query.expected_sizes import expected_sizes
from pruning.reasons import Reason, ReasonCode
from tests.costs import FREE_BUILDS
from tests.pruning.known import Star
from tests.pruning.plans import ready
from tests.pruning.query.test_filter_plan import TWICE, Sums


def after(star: Star, **changed):
    selection = star.selection(PruningOptions(), **changed)
    return expected_sizes(selection, [star.runtime_filter])


def test_tenth_of_the_keys_leaves_a_tenth_of_bytes_and_rows():
    star = Star.of(whole=0.0)
    found = after(star)
    assert (100_000, 100) == (found.scanned[star.fact.id], found.scanned[star.days.id])
    assert {star.fact.id} == found.pruned
    assert (100, pytest.approx(1.0)) == (found.expected[star.fact.id].rows, found.expected[star.fact.id].ratio)
    assert {star.fact.id: {star.fact.output[0]: pytest.approx(10.0)}} == found.applied


def test_further_keys_of_a_column_leave_no_more_values():
    star = Star.of()
    applied = {star.fact.id: {star.fact.output[0]: 2.0}}
    assert applied == after(star, applied=applied).applied


def test_rows_that_are_read_and_dropped_are_a_ratio():
    star = Star.of(whole=1.0)
    found = after(star)
    assert 1_000_000 == found.scanned[star.fact.id]
    assert (1000, pytest.approx(0.1)) == (found.expected[star.fact.id].rows, found.expected[star.fact.id].ratio)


def test_only_needed_columns_of_a_pruned_scan_count():
    star = Star.of(whole=1.0, needed={0: 0.25})
    assert 250_000 == after(star).scanned[star.fact.id]


def test_united_keys_leave_the_rows_of_each_of_them():
    plan = Sums(TWICE)
    plan.fact_bytes, plan.share = 64_000, 0.3
    sizes = plan.sizes(500, 500)
    filters, _ = ready(plan.graph, sizes, (), FREE_BUILDS)
    found = expected_sizes(BuildSelection.of(plan.graph, sizes, FREE_BUILDS), filters)
    assert [1, 1] == [len(each.united) for each in filters]
    for fact in plan.statistics:
        rows = found.expected[fact.id]
        assert pytest.approx(600, abs=1) == rows.rows * rows.ratio


@pytest.mark.parametrize("few", [10, 9])
def test_rows_that_fit_stand_in_the_place_of_their_build(few):
    star = Star.of(few=few)
    found = after(star)
    assert (({star.few.id, star.days.id}, {star.few.id: 10}) if few == 10 else (set(), {})) == (
        found.materialized,
        found.rows,
    )


def test_filter_from_metadata_counts_for_nothing():
    star = Star.of()
    selection = star.selection(PruningOptions())
    from_metadata = replace(star.runtime_filter, instead=Reason(ReasonCode.NOT_WORTH, "day"))
    found = expected_sizes(selection, [from_metadata])
    assert (selection.sizes.scanned, set()) == (found.scanned, found.pruned)


@given(st.floats(0, 1), st.floats(0, 1), st.sampled_from([0, 1, 10**18]))
def test_no_scan_grows(share, whole, rows):
    star = Star.of(whole=whole)
    star.known.matching = {star.days.output[1]: share}
    star.known.counts[star.fact.id] = rows
    found = after(star)
    assert 0 <= found.scanned[star.fact.id] <= star.scanned[star.fact.id]
    # Rows that are not counted are estimated by their bytes.
    assert 0 <= found.expected[star.fact.id].passing <= (rows or 1_000_000 / 64) * (1 + 1e-9)
