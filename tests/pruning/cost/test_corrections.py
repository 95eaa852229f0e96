"""`RateCorrections`: bounds, weights and how many observations a factor needs."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.cost.corrections import (
    BUILDS,
    LOCAL_READS,
    REMOTE_READS,
    CorrectionLimits,
    Observed,
    RateCorrections,
)
from pruning.cost.rates import CostRates

LIMITS = CorrectionLimits(most=4.0, least_count=3, weight=0.25)
KINDS = (BUILDS, LOCAL_READS, REMOTE_READS)
SECONDS = st.floats(1e-300, 1e300)


def after(*ratios: float, kind: str = BUILDS, limits: CorrectionLimits = LIMITS, store: str = "") -> RateCorrections:
    found = RateCorrections()
    for ratio in ratios:
        found = found.observed(kind, planned=1.0, actual=ratio, limits=limits, store=store)
    return found


def test_few_observations_correct_nothing():
    assert [1.0, 1.0, 1.0] == [after(*[2.0] * count).factor(BUILDS, LIMITS) for count in range(3)]
    assert 2.0 == pytest.approx(after(2.0, 2.0, 2.0).factor(BUILDS, LIMITS))
    assert CostRates() == after(2.0, 2.0).corrected(CostRates(), LIMITS)


@given(st.lists(st.tuples(SECONDS, SECONDS), max_size=20), st.floats(1.0, 1000.0), st.floats(0.0, 1.0))
def test_factor_is_bounded(seconds, most, weight):
    limits, found = CorrectionLimits(most, 1, weight), RateCorrections()
    for planned, actual in seconds:
        applied = found.factor(BUILDS, limits)
        found = found.observed(BUILDS, planned=planned, actual=actual, limits=limits, applied=applied)
    assert 1 / most * 0.999999 <= found.factor(BUILDS, limits) <= most * 1.000001


@given(st.lists(st.floats(0.001, 1000.0), min_size=3, max_size=12))
def test_inverse_ratios_give_the_inverse_factor(ratios):
    slower, faster = (after(*each).factor(BUILDS, LIMITS) for each in (ratios, [1 / it for it in ratios]))
    assert 1.0 == pytest.approx(slower * faster)


@given(st.permutations([0.5, 1.0, 2.0, 3.0]))
def test_order_of_the_first_observations_does_not_matter(ratios):
    """So long as the share of each is not below the weight of the latest."""
    assert after(0.5, 1.0, 2.0, 3.0).factor(BUILDS, LIMITS) == pytest.approx(after(*ratios).factor(BUILDS, LIMITS))


def test_later_observations_weigh_more():
    slowed, mended = after(*[1.0] * 10, *[4.0] * 5), after(*[4.0] * 5, *[1.0] * 10)
    assert slowed.factor(BUILDS, LIMITS) > 2.0
    assert mended.factor(BUILDS, LIMITS) < 1.2


def test_one_observation_counts_for_no_more_than_the_greatest_factor():
    assert after(1.0, 1.0, 1000.0) == after(1.0, 1.0, 4.0)


@pytest.mark.parametrize("true", [0.5, 1.0, 3.0])
def test_factor_stays_where_plans_have_it(true):
    """Seconds planned with the factor are right; the factor must not go back to 1 for that."""
    found = RateCorrections()
    for _ in range(50):
        factor = found.factor(BUILDS, LIMITS)
        found = found.observed(BUILDS, planned=0.1 * factor, actual=0.1 * true, limits=LIMITS, applied=factor)
    assert true == pytest.approx(found.factor(BUILDS, LIMITS))


@pytest.mark.parametrize(
    ("planned", "actual"),
    [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (1.0, float("inf")), (float("nan"), 1.0), (float("inf"), float("inf"))],
)
def test_seconds_that_say_nothing_are_left_out(planned, actual):
    assert RateCorrections() == RateCorrections().observed(BUILDS, planned=planned, actual=actual, limits=LIMITS)


def test_unknown_kind_is_left_out():
    assert RateCorrections() == after(2.0, kind="rows")


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (BUILDS, {"build_job", "kept_row"}),
        (LOCAL_READS, {"byte", "decoded_byte"}),
        (REMOTE_READS, {"remote_byte", "remote_request"}),
    ],
)
def test_each_kind_corrects_its_own_rates(kind, names):
    rates = CostRates()
    found = after(2.0, 2.0, 2.0, kind=kind).corrected(rates, LIMITS)
    ratios = {name: value / getattr(rates, name) for name, value in asdict(found).items()}
    assert dict.fromkeys(names, 2.0) == pytest.approx({name: ratio for name, ratio in ratios.items() if ratio != 1})


def test_stores_are_corrected_apart():
    found = after(2.0, 2.0, 2.0, kind=REMOTE_READS, store="s3a-lake")
    rates = CostRates()
    assert replace(rates, remote_byte=20.0, remote_request=60e6) == found.corrected(rates, LIMITS, "s3a-lake")
    assert rates == found.corrected(rates, LIMITS, "s3a-other") == found.corrected(rates, LIMITS)


def test_limits_turn_corrections_off():
    found = after(2.0, 2.0, 2.0, 2.0)
    for off in (replace(LIMITS, most=1.0), replace(LIMITS, least_count=1 << 62)):
        assert 1.0 == found.factor(BUILDS, off)
    # Without a weight of the latest, the mean of all.
    assert Observed(100, 0.0).with_logarithm(1.01, replace(LIMITS, weight=0.0)).mean == pytest.approx(0.01)
