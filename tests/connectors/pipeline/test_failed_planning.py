"""`PrunedQuery.failed`: a query whose pruning failed stays unchanged, and warns where something is wrong."""

from __future__ import annotations

import pytest

from connectors.pipeline.pruned_query import PrunedQuery
from pruning.options import PruningOptions
from pruning.reasons import ReasonCode


@pytest.mark.parametrize(
    ("message", "code", "warns"),
    [
        ("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012", ReasonCode.BUILD_RAISED, False),
        ("[INTERNAL_ERROR] A plan is broken. SQLSTATE: XX000", ReasonCode.PRUNING_FAILED, True),
    ],
)
def test_only_a_fault_of_planning_warns(caplog, message, code, warns):
    record = PrunedQuery.failed(ArithmeticError(message), PruningOptions())
    assert [code] == [each.code for each in record.reasons]
    assert warns == any("Reading without pruning" in each.getMessage() for each in caplog.records)
