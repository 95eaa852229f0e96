"""`Estimate`: arithmetic of three numbers that stay in order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.cost.estimate import ZERO, Estimate, short

NUMBERS = st.floats(-1e12, 1e12)
ESTIMATES = st.tuples(NUMBERS, NUMBERS, NUMBERS).map(sorted).map(lambda each: Estimate(*each))


def in_order(found: Estimate) -> bool:
    return found.low <= found.expected <= found.high


@pytest.mark.parametrize("three", [(2.0, 1.0, 3.0), (1.0, 3.0, 2.0), (0.0, float("nan"), 1.0)])
def test_numbers_out_of_order_are_refused(three):
    with pytest.raises(ValueError, match=r"Cannot estimate .*: expected a number from"):
        Estimate(*three)


def test_ends_give_way_to_the_expected_number():
    assert Estimate(2.0, 2.0, 5.0) == Estimate.around(3.0, 2.0, 5.0)
    assert Estimate(1.0, 7.0, 7.0) == Estimate.around(1.0, 7.0, 5.0)


def test_sum_and_difference_have_the_widest_ends():
    one, other = Estimate(1.0, 2.0, 4.0), Estimate(10.0, 20.0, 30.0)
    assert Estimate(11.0, 22.0, 34.0) == one + other
    assert Estimate(6.0, 18.0, 29.0) == other - one
    assert Estimate(2.0, 4.0, 8.0) == one * 2.0


@given(ESTIMATES, ESTIMATES, st.floats(0, 1e6))
def test_results_stay_in_order(one, other, factor):
    assert all(map(in_order, (one + other, one - other, one * factor, Estimate.around(*_three(one, other)))))


def _three(one: Estimate, other: Estimate) -> tuple[float, float, float]:
    return one.high, other.expected, one.low


@given(ESTIMATES)
def test_zero_changes_nothing(one):
    assert one == one + ZERO == one - ZERO


@pytest.mark.parametrize(
    ("value", "expected"), [(0.0, "0"), (0.123, "0.12"), (9.96, "10"), (12.3, "12"), (-12.7, "-13"), (1e-5, "1e-05")]
)
def test_two_digits_are_shown(value, expected):
    assert expected == short(value)


def test_ends_that_look_equal_are_not_shown():
    assert "0.12 s" == str(Estimate(0.121, 0.122, 0.123))
    assert "1.8 s (0.9 to 2.4)" == str(Estimate(0.9, 1.8, 2.4))
