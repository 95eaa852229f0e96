"""Laws of the algebra of `Domain` for every type, checked against sets written down in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.values import encoding as code
from pruning.values.byte_strings import ByteStrings
from pruning.values.domain import Domain
from pruning.values.ranges import RangeSet
from tests.pruning.samples import ALL_TYPES, NAN, Spec
from tests.pruning.strategies import LAW, of_one_type


def _members(domain: Domain, probes: tuple) -> list[bool]:
    inside = domain.ranges.contains(code.encode(domain.type, probes))
    return [*inside.tolist(), domain.null, domain.nan]


def _expected_members(specs: tuple[Spec, ...], combine: type = any) -> tuple[tuple, list[bool]]:
    probes = tuple(value for spec in specs for value in spec.probes())
    return probes, [combine(spec.holds(value) for spec in specs) for value in (*probes, None, NAN)]


def assert_normal_form(ranges: RangeSet) -> None:
    """Ranges are sorted and disjoint; ranges of int64 codes never touch."""
    if isinstance(ranges.lows, ByteStrings):
        lows, highs = ([ends[index] for index in range(len(ends))] for ends in (ranges.lows, ranges.highs))
        closed = list(zip(lows, highs, strict=True))[: len(lows) - ranges.unbounded]
        assert all(low <= high for low, high in closed)
        assert all(high < low for (_, high), low in zip(closed, lows[1:], strict=False))
        return
    assert not ranges.unbounded
    lows, highs = ([int(end) for end in ends] for ends in (ranges.lows, ranges.highs))
    assert all(low <= high for low, high in zip(lows, highs, strict=True))
    assert all(high + 1 < low for high, low in zip(highs[:-1], lows[1:], strict=True))


@LAW
@given(of_one_type(1))
def test_domain_has_the_members_of_its_spec(specs):
    probes, expected = _expected_members(specs)
    assert expected == _members(specs[0].domain(), probes)


@LAW
@given(of_one_type(2))
def test_union_has_members_of_either(specs):
    probes, expected = _expected_members(specs)
    assert expected == _members(specs[0].domain().union(specs[1].domain()), probes)


@LAW
@given(of_one_type(2))
def test_intersection_has_members_of_both(specs):
    probes, expected = _expected_members(specs, all)
    assert expected == _members(specs[0].domain().intersect(specs[1].domain()), probes)


@LAW
@given(of_one_type(2))
def test_results_are_in_normal_form(specs):
    first, second = (spec.domain() for spec in specs)
    for result in (first, first.union(second), first.intersect(second), first.span(), first.simplify(2)):
        assert_normal_form(result.ranges)


@LAW
@given(of_one_type(2))
def test_union_and_intersection_are_commutative(specs):
    first, second = (spec.domain() for spec in specs)
    assert first.union(second) == second.union(first)
    assert first.intersect(second) == second.intersect(first)


@LAW
@given(of_one_type(3))
def test_union_and_intersection_are_associative(specs):
    first, second, third = (spec.domain() for spec in specs)
    assert first.union(second).union(third) == first.union(second.union(third))
    assert first.intersect(second).intersect(third) == first.intersect(second.intersect(third))


@LAW
@given(of_one_type(3))
def test_union_and_intersection_are_distributive(specs):
    first, second, third = (spec.domain() for spec in specs)
    assert first.intersect(second.union(third)) == first.intersect(second).union(first.intersect(third))
    assert first.union(second.intersect(third)) == first.union(second).intersect(first.union(third))


@LAW
@given(of_one_type(2))
def test_union_and_intersection_absorb_and_are_idempotent(specs):
    first, second = (spec.domain() for spec in specs)
    assert first == first.union(first) == first.intersect(first)
    assert first == first.union(first.intersect(second)) == first.intersect(first.union(second))


@LAW
@given(of_one_type(1))
def test_none_and_all_are_identities(specs):
    domain = specs[0].domain()
    none, everything = Domain.none(domain.type), Domain.all(domain.type)
    assert (domain, none) == (domain.union(none), domain.intersect(none))
    assert (domain, everything) == (domain.intersect(everything), domain.union(everything))
    assert domain.overlaps(everything) is not domain.is_none
    assert not domain.overlaps(none)


@LAW
@given(of_one_type(2))
def test_overlap_is_a_nonempty_intersection(specs):
    first, second = (spec.domain() for spec in specs)
    assert first.overlaps(second) is not first.intersect(second).is_none
    assert first.overlaps(second) is second.overlaps(first)


@LAW
@given(of_one_type(2))
def test_contains_all_is_the_subset_relation(specs):
    first, second = (spec.domain() for spec in specs)
    assert first.contains_all(first.intersect(second))
    assert first.union(second).contains_all(first)
    assert first.contains_all(second) is (first.intersect(second) == second)


@LAW
@given(of_one_type(2))
def test_equal_domains_have_equal_hashes_and_members(specs):
    first, second = (spec.domain() for spec in specs)
    probes, _ = _expected_members(specs)
    rebuilt = Spec(specs[0].type, specs[0].pairs[::-1] * 2, specs[0].null, specs[0].nan).domain()
    assert (first, hash(first)) == (rebuilt, hash(rebuilt))
    if first == second:
        assert (hash(first), _members(first, probes)) == (hash(second), _members(second, probes))
    else:
        assert not (first.contains_all(second) and second.contains_all(first))


@LAW
@given(of_one_type(1), st.integers(1, 5))
def test_simplify_only_widens_and_respects_the_count(specs, most):
    domain = specs[0].domain()
    simple = domain.simplify(most)
    assert simple.contains_all(domain)
    assert domain.span().contains_all(simple)
    assert len(simple.ranges) <= max(most, 0 if domain.ranges.is_none else 1)
    assert (simple.null, simple.nan) == (domain.null, domain.nan)
    assert simple == domain or len(domain.ranges) > most


@LAW
@given(of_one_type(1))
def test_span_is_the_least_single_range(specs):
    domain = specs[0].domain()
    span = domain.span()
    assert span.contains_all(domain)
    assert len(span.ranges) == min(1, len(domain.ranges))
    assert domain.simplify(1) == span


@LAW
@given(of_one_type(1), st.sets(st.integers(1, 3)))
def test_bridged_closes_all_gaps_except_the_chosen(specs, gaps):
    ranges = specs[0].domain().ranges
    kept = np.array(sorted(gap for gap in gaps if gap < len(ranges)), np.int64)
    bridged = ranges.bridged(kept)
    assert bridged.contains_all(ranges)
    assert len(bridged) == min(len(ranges), len(kept) + 1)
    # A range that begins after a chosen gap still begins there.
    starts = [ranges.lows[index] for index in [0, *kept.tolist()] if index < len(ranges)]
    assert starts == [bridged.lows[index] for index in range(len(bridged))]


@LAW
@given(of_one_type(1))
def test_points_list_the_whole_set(specs):
    ranges = specs[0].domain().ranges
    count = ranges.point_count()
    if count is not None and count < 1000:
        points = ranges.points()
        assert count == len(points)
        assert ranges == RangeSet.of_codes(ranges.type, points, is_sorted=True)


@LAW
@given(of_one_type(1))
def test_without_null_removes_only_null(specs):
    domain = specs[0].domain()
    rest = domain.without_null()
    assert not rest.null
    assert domain == (rest.union(Domain.only_null(domain.type)) if domain.null else rest)


@LAW
@given(of_one_type(1))
def test_text_of_a_domain(specs):
    domain = specs[0].domain()
    assert (str(domain) == "all") is domain.is_all
    assert repr(domain)


@pytest.mark.parametrize("type_", ALL_TYPES, ids=str)
def test_all_contains_every_value_and_none_contains_no_value(type_):
    probes, _ = _expected_members((Spec(type_, ()),))
    assert {True} == set(_members(Domain.all(type_), probes)[: len(probes) + 1])
    assert {False} == set(_members(Domain.none(type_), probes))
    assert (True, False) == (Domain.all(type_).is_all, Domain.all(type_).is_none)
    assert (False, True) == (Domain.none(type_).is_all, Domain.none(type_).is_none)
