"""An action that is not waited for beyond a deadline."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

T = TypeVar("T")


class DeadlineError(Exception):
    """The action has come to no end; its thread ends with it, and keeps no process from ending."""


def within(seconds: float, action: Callable[[], T], name: str) -> T:
    """What `action` returns or raises, in a thread of this name; `DeadlineError` where it takes longer."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            found = action()
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            future.set_exception(error)
        else:
            future.set_result(found)

    threading.Thread(target=run, name=name, daemon=True).start()
    if not wait([future], seconds).done:
        raise DeadlineError(name)
    return future.result()
