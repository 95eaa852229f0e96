"""`CostRates`: rates as text, and the bytes that no filter is worth."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.cost.rates import CostRates
from tests.pruning.known import NO_COSTS

NAMES = [each.name for each in fields(CostRates)]


@given(st.dictionaries(st.sampled_from(NAMES), st.sampled_from([0.0, 0.5, 3.0, 1e8])))
def test_rates_round_trip_as_text(named):
    rates = replace(CostRates(), **named)
    assert rates == CostRates.parse(str(rates))


def test_rates_that_are_not_named_are_the_defaults():
    assert replace(CostRates(), byte=2.0) == CostRates.parse(" byte = 2 ,")
    assert CostRates() == CostRates.parse("")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bytes=1", "found 'bytes', expected some of build_job, "),
        ("byte", "found 'byte', expected name=nanoseconds"),
        ("byte=x", "found 'byte=x', expected name=nanoseconds"),
        ("byte=-1", "found byte=-1.0, expected nanoseconds, 0 or more"),
        ("byte=nan", "found byte=nan, expected nanoseconds"),
        ("byte=inf", "found byte=inf, expected nanoseconds"),
    ],
)
def test_wrong_rates_are_refused(text, expected):
    with pytest.raises(ValueError, match=expected):
        CostRates.parse(text)


def test_least_bytes_take_as_long_as_the_cheapest_build():
    rates = replace(NO_COSTS, byte=1.0, decoded_byte=1.0, decoded_value=2.0, driver_build=8e6, planned_scan=2e6)
    # Two cores spend 16 million nanoseconds in 8 milliseconds, which read 4 million bytes of which each is a value.
    assert (2_000_000, 4_000_000) == (rates.least_bytes(1), rates.least_bytes(2))
    assert (500_000, 1_000_000) == (rates.planned_bytes(1), rates.planned_bytes(2))
    # Each byte may be a row that goes through a shuffle, a sort and a join.
    rows = replace(rates, exchanged_row=3.0, sorted_row=2.0, joined_row=1.0)
    assert (800_000, 500_000) == (rows.least_bytes(1), rows.planned_bytes(1))
    nothing = replace(rates, byte=0.0, decoded_byte=0.0, decoded_value=0.0)
    assert (0, 0) == (nothing.least_bytes(2), nothing.planned_bytes(2))
