"""`within`: actions with a time limit."""

from __future__ import annotations

import threading

import pytest

from connectors.jobs.runner import DeadlineError, within


def test_result_within_the_limit_is_returned():
    assert 3 == within(60.0, lambda: 3, "three")
    with pytest.raises(ValueError, match="its own"):
        within(60.0, lambda: int("its own"), "no number")


def test_late_result_is_not_awaited():
    goes_on, is_over = threading.Event(), threading.Event()

    def slow() -> None:
        goes_on.wait()
        is_over.set()

    with pytest.raises(DeadlineError):
        within(0.01, slow, "a slow one")
    assert [True] == [each.daemon for each in threading.enumerate() if each.name == "a slow one"]
    goes_on.set()
    assert is_over.wait(60.0)
