"""`Refusals`: a query with nothing to prune is known for a while, under the same options."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connectors.pipeline.pruned_query import PrunedQuery
from connectors.session.refusals import Refusals
from pruning import PruningOptions, Reason, ReasonCode
from pruning.cost.rates import CostRates

OPTIONS = PruningOptions().with_limits(refused_queries=2, refused_query_seconds=10.0)
RATES = CostRates()
RECORD = PrunedQuery.untouched(Reason(ReasonCode.NOT_WORTH, "the query"), OPTIONS)


def test_a_refusal_is_known_for_a_while_under_its_options():
    now = [0.0]
    refusals = Refusals(lambda: now[0])
    assert refusals.get(1, OPTIONS, RATES) is None
    refusals.add(1, OPTIONS, RATES, RECORD)
    assert RECORD is refusals.get(1, OPTIONS, RATES)
    assert refusals.get(1, replace(OPTIONS, always=True), RATES) is None
    assert refusals.get(2, OPTIONS, RATES) is None
    now[0] = 9.9
    assert RECORD is refusals.get(1, OPTIONS, RATES)
    now[0] = 10.0
    assert refusals.get(1, OPTIONS, RATES) is None


# By `cost_error`, a rate may be wrong by a half.
@pytest.mark.parametrize(("factor", "is_known"), [(1.4, True), (0.7, True), (1.6, False), (0.6, False)])
def test_a_refusal_is_not_known_after_a_rate_was_corrected(factor, is_known):
    refusals = Refusals(lambda: 0.0)
    refusals.add(1, OPTIONS, RATES, RECORD)
    corrected = replace(RATES, decoded_byte=factor * RATES.decoded_byte)
    assert is_known == (refusals.get(1, OPTIONS, corrected) is not None)


@pytest.mark.parametrize(
    ("code", "expected"),
    [(ReasonCode.NOT_WORTH, True), (ReasonCode.BUILD_CANCELLED, False), (ReasonCode.BUILD_TIMED_OUT, False)],
)
def test_a_refusal_by_what_befell_one_run_does_not_last(code, expected):
    assert expected == PrunedQuery.untouched(Reason(code, "k"), PruningOptions()).is_lasting


def test_the_oldest_refusals_are_forgotten():
    refusals = Refusals(lambda: 0.0)
    for plan in (1, 2, 1, 3):
        refusals.add(plan, OPTIONS, RATES, RECORD)
    assert [True, False, True] == [refusals.get(plan, OPTIONS, RATES) is not None for plan in (1, 2, 3)]
