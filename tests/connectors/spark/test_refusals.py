"""`Refusals`: how long a refusal is remembered."""

from __future__ import annotations

from connectors.spark.session_state import Refusals
from pruning.reasons import Reason, ReasonCode


def test_refusal_is_remembered_for_ten_minutes():
    now = [0.0]
    refusals, reason = Refusals(lambda: now[0]), Reason(ReasonCode.NOT_READ_BY_ARROW, "it", "why")
    assert refusals.of("a") is None
    assert reason is refusals.add("a", reason)
    found = {}
    for now[0] in (0.0, 599.0, 600.0):
        found[now[0]] = refusals.of("a"), refusals.of("b")
    assert {0.0: (reason, None), 599.0: (reason, None), 600.0: (None, None)} == found
