"""`Refusals`: a query with nothing to prune is known for a while, under the same options."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connectors.pipeline.pruned_query import PrunedQuery
from connectors.session.refusals import Refusals
from pruning import PruningOptions, Reason, ReasonCode

OPTIONS = PruningOptions().with_limits(refused_queries=2, refused_query_seconds=10.0)
RECORD = PrunedQuery.untouched(Reason(ReasonCode.NOT_WORTH, "the query"), OPTIONS)


def test_a_refusal_is_known_for_a_while_under_its_options():
    now = [0.0]
    refusals = Refusals(lambda: now[0])
    assert refusals.get(1, OPTIONS) is None
    refusals.add(1, OPTIONS, RECORD, OPTIONS.limits)
    assert RECORD is refusals.get(1, OPTIONS)
    assert refusals.get(1, replace(OPTIONS, always=True)) is None
    assert refusals.get(2, OPTIONS) is None
    now[0] = 9.9
    assert RECORD is refusals.get(1, OPTIONS)
    now[0] = 10.0
    assert refusals.get(1, OPTIONS) is None


@pytest.mark.parametrize(
    ("code", "expected"),
    [(ReasonCode.NOT_WORTH, True), (ReasonCode.BUILD_CANCELLED, False), (ReasonCode.BUILD_TIMED_OUT, False)],
)
def test_a_refusal_by_what_befell_one_run_does_not_last(code, expected):
    assert expected == PrunedQuery.untouched(Reason(code, "k"), PruningOptions()).is_lasting


def test_the_oldest_refusals_are_forgotten():
    refusals = Refusals(lambda: 0.0)
    for plan in (1, 2, 1, 3):
        refusals.add(plan, OPTIONS, RECORD, OPTIONS.limits)
    assert [True, False, True] == [refusals.get(plan, OPTIONS) is not None for plan in (1, 2, 3)]
