"""`RateCorrections`: bounds, weights and how many observations a factor needs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.cost.corrections import CorrectionLimits, Observed, RateCorrections
from pruning.cost.rates import CostRates

LIMITS = CorrectionLimits(most=4.0, least_count=3, weight=0.25)
LAKE = "s3a-lake"
SECONDS = st.floats(1e-300, 1e300)


def after(*ratios: float) -> RateCorrections:
    found = RateCorrections()
    for ratio in ratios:
        found = found.observed(LAKE, planned=1.0, actual=ratio, limits=LIMITS)
    return found


def test_few_observations_correct_nothing():
    assert [1.0, 1.0, 1.0] == [after(*[2.0] * count).factor(LAKE, LIMITS) for count in range(3)]
    assert 2.0 == pytest.approx(after(2.0, 2.0, 2.0).factor(LAKE, LIMITS))
    assert CostRates() == after(2.0, 2.0).corrected(CostRates(), LAKE, LIMITS)


@given(st.lists(st.tuples(SECONDS, SECONDS), max_size=20), st.floats(1.0, 1000.0), st.floats(0.0, 1.0))
def test_factor_is_bounded(seconds, most, weight):
    limits, found = CorrectionLimits(most, 1, weight), RateCorrections()
    for planned, actual in seconds:
        applied = found.factor(LAKE, limits)
        found = found.observed(LAKE, planned=planned, actual=actual, limits=limits, applied=applied)
    assert 1 / most * 0.999999 <= found.factor(LAKE, limits) <= most * 1.000001


@given(st.lists(st.floats(0.001, 1000.0), min_size=3, max_size=12))
def test_inverse_ratios_give_the_inverse_factor(ratios):
    slower, faster = (after(*each).factor(LAKE, LIMITS) for each in (ratios, [1 / it for it in ratios]))
    assert 1.0 == pytest.approx(slower * faster)


@given(st.permutations([0.5, 1.0, 2.0, 3.0]))
def test_order_of_the_first_observations_does_not_matter(ratios):
    """So long as the share of each is not below the weight of the latest."""
    assert after(0.5, 1.0, 2.0, 3.0).factor(LAKE, LIMITS) == pytest.approx(after(*ratios).factor(LAKE, LIMITS))


def test_later_observations_weigh_more():
    slowed, mended = after(*[1.0] * 10, *[4.0] * 5), after(*[4.0] * 5, *[1.0] * 10)
    assert slowed.factor(LAKE, LIMITS) > 2.0
    assert mended.factor(LAKE, LIMITS) < 1.2


def test_one_observation_counts_for_no_more_than_the_greatest_factor():
    assert after(1.0, 1.0, 1000.0) == after(1.0, 1.0, 4.0)


@pytest.mark.parametrize("true", [0.5, 1.0, 3.0])
def test_factor_stays_where_plans_have_it(true):
    """Seconds planned with the factor are right; the factor must not go back to 1 for that."""
    found = RateCorrections()
    for _ in range(50):
        factor = found.factor(LAKE, LIMITS)
        found = found.observed(LAKE, planned=0.1 * factor, actual=0.1 * true, limits=LIMITS, applied=factor)
    assert true == pytest.approx(found.factor(LAKE, LIMITS))


@pytest.mark.parametrize(
    ("planned", "actual"),
    [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (1.0, float("inf")), (float("nan"), 1.0), (float("inf"), float("inf"))],
)
def test_seconds_that_say_nothing_are_left_out(planned, actual):
    assert RateCorrections() == RateCorrections().observed(LAKE, planned=planned, actual=actual, limits=LIMITS)


def test_only_rates_of_the_store_are_corrected():
    found, rates = after(2.0, 2.0, 2.0), CostRates()
    corrected = replace(rates, remote_byte=2.0 * rates.remote_byte, remote_request=2.0 * rates.remote_request)
    assert corrected == found.corrected(rates, LAKE, LIMITS)
    assert rates == found.corrected(rates, "s3a-other", LIMITS)
    assert rates == found.without(LAKE).corrected(rates, LAKE, LIMITS)


def test_limits_turn_corrections_off():
    found = after(2.0, 2.0, 2.0, 2.0)
    for off in (replace(LIMITS, most=1.0), replace(LIMITS, least_count=1 << 62)):
        assert 1.0 == found.factor(LAKE, off)
    # Without a weight of the latest, the mean of all.
    assert Observed(100, 0.0).with_logarithm(1.01, replace(LIMITS, weight=0.0)).mean == pytest.approx(0.01)
