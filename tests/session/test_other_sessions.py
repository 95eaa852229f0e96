"""`OtherSessions`: few sessions are kept, and none for long without a query."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from connectors.session import other_sessions
from connectors.session.other_sessions import OtherSessions
from pruning.limits import Limits

LIMITS = Limits(other_sessions=2, other_session_seconds=10.0)


@dataclass
class JavaSession:
    id: str

    def sessionUUID(self) -> str:  # noqa: N802 - Spark's name
        return self.id


@pytest.fixture
def made(monkeypatch) -> list[str]:
    found: list[str] = []

    def over(_spark: object, session: JavaSession) -> object:
        found.append(session.id)
        return object()

    monkeypatch.setattr(other_sessions, "session_over", over)
    return found


def test_a_session_has_one_object(made):
    sessions = OtherSessions(lambda: 0.0)
    first = sessions.get(None, JavaSession("a"), LIMITS)
    assert first is sessions.get(None, JavaSession("a"), LIMITS)
    assert first is not sessions.get(None, JavaSession("b"), LIMITS)
    assert ["a", "b"] == made


def test_the_session_that_was_used_last_longest_ago_is_dropped(made):
    sessions = OtherSessions(lambda: 0.0)
    for each in "abaca":
        sessions.get(None, JavaSession(each), LIMITS)
    assert ["a", "b", "c"] == made
    sessions.get(None, JavaSession("b"), LIMITS)
    assert ["a", "b", "c", "b"] == made


def test_idle_sessions_are_dropped_by_the_next_query_of_any(made):
    now = [0.0]
    sessions = OtherSessions(lambda: now[0])
    sessions.get(None, JavaSession("a"), LIMITS)
    now[0] = 10.0
    sessions.get(None, JavaSession("a"), LIMITS)
    assert ["a"] == made
    now[0] = 20.5
    sessions.get(None, JavaSession("b"), LIMITS)
    sessions.get(None, JavaSession("a"), LIMITS)
    assert ["a", "b", "a"] == made
