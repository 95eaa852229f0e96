from __future__ import annotations

import io
import logging

import pytest

from connectors.jobs.progress import Display, Progress
from connectors.spark.jvm import error_kind
from pruning.keys.builder import IncompleteBuildError

TRACEBACK = """An exception was thrown from the Python worker: Traceback (most recent call last):
  File "worker.py", line 1, in main
    secret
{error}
"""


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_log_gets_occasional_progress_lines(caplog):
    display = Display()
    with caplog.at_level(logging.INFO, "scanprune"):
        for seconds in (0.5, 1.9, 2.1, 3.0, 11.9, 12.1):
            display.show([Progress("k", seconds, 1, 4)])
    display.close()
    assert [f"Collecting the keys of k: 1 of 4 tasks after {n} s" for n in (2, 12)] == caplog.messages


def test_terminal_gets_a_transient_progress_bar(monkeypatch, caplog):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    display = Display()
    display.show([Progress("quick", 1.0, 0, None)])
    assert "" == terminal.getvalue()
    display.show([Progress("[red]k[/red]", 2.5, 1, 4), Progress("other", 2.5, 0, None)])
    display.show([Progress("[red]k[/red]", 2.9, 2, 4)])
    display.close()
    shown = terminal.getvalue()
    assert "keys of [red]k[/red]" in shown
    assert "2 of 4 tasks" in shown
    assert [] == caplog.messages


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("secret"), "ValueError"),
        (IncompleteBuildError("Cannot finish"), "Cannot finish"),
        (RuntimeError(TRACEBACK.format(error="KeyError: 'secret'")), "KeyError in a Python worker"),
        (RuntimeError(TRACEBACK.format(error="my.module.OddError")), "OddError in a Python worker"),
        (RuntimeError(TRACEBACK.format(error="no error at all")), "RuntimeError"),
    ],
    ids=["python", "own", "worker", "worker without message", "unreadable"],
)
def test_errors_are_shown_without_values(error, expected):
    assert expected == error_kind(error)


def test_missing_package_error_has_a_remedy():
    error = RuntimeError(TRACEBACK.format(error="ModuleNotFoundError: No module named 'connectors'"))
    assert error_kind(error).startswith("the Python workers cannot import 'connectors': install")
