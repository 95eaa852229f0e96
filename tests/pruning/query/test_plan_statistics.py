"""`expected_rows`: the estimated number of rows of a plan."""

from __future__ import annotations

import pytest

from pruning.query.plan_statistics import Cardinality, expected_rows, only_scan
from tests.pruning.plans import Plans, at_least, equal


@pytest.fixture
def plans() -> Plans:
    return Plans()


def test_scan_has_the_rows_that_pass_its_filters(plans):
    scan = plans.table("k")
    assert 50.0 == expected_rows(scan, {scan.id: Cardinality(1000, 0.05)}, ())
    assert expected_rows(scan, {}, ()) is None


def test_filters_sorts_and_windows_keep_the_estimate(plans):
    scan = plans.table("k")
    kept = plans.window(plans.passing("Sort", plans.filter(scan, at_least(*scan.output, 1))), *scan.output)
    assert 50.0 == expected_rows(kept, {scan.id: Cardinality(100, 0.5)}, ())


@pytest.mark.parametrize("type_", ["LeftSemi", "LeftAnti", "ExistenceJoin"])
def test_semi_anti_and_existence_joins_have_left_rows(plans, type_):
    scan, other = plans.table("k"), plans.table("k")
    joined = plans.join(scan, other, equal(*scan.output, *other.output), type_=type_)
    assert 50.0 == expected_rows(joined, {scan.id: Cardinality(100, 0.5)}, ())


@pytest.mark.parametrize("is_left", [False, True])
def test_join_with_a_materialized_build_is_many_to_one(plans, is_left):
    scan, other = plans.table("k"), plans.table("k")
    sides = (other, scan) if is_left else (scan, other)
    joined = plans.join(*sides, equal(*scan.output, *other.output))
    known = {scan.id: Cardinality(100, 0.5), other.id: Cardinality(10, 1.0)}
    assert 50.0 == expected_rows(joined, known, {other.id})
    assert expected_rows(joined, known, ()) is None


@pytest.mark.parametrize("type_", ["LeftOuter", "RightOuter", "FullOuter", "Cross"])
def test_other_joins_have_no_estimate(plans, type_):
    scan, other = plans.table("k"), plans.table("k")
    joined = plans.join(scan, other, equal(*scan.output, *other.output), type_=type_)
    assert expected_rows(joined, {scan.id: Cardinality(100, 0.5)}, {other.id}) is None


def test_unknown_operator_has_no_estimate(plans):
    scan = plans.table("k")
    assert expected_rows(plans.other("Expand", scan), {scan.id: Cardinality(100, 0.5)}, ()) is None


def test_only_scan_ignores_materialized_scans(plans):
    scan, other = plans.table("k"), plans.table("k")
    joined = plans.join(scan, other, equal(*scan.output, *other.output))
    assert scan is only_scan(joined, {other.id})
    assert only_scan(joined, ()) is None
    assert only_scan(joined, {scan.id, other.id}) is None
