"""State that the pruned reads of one Spark session share, owned by one object per session.

Nothing is set on the user's session: its state is found by a weak reference and goes when the session goes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, TypeVar, cast
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")


class SessionState:
    """Caches of one session; the first call that creates a cache sets its limits.

    Each package has an object of its own class in a slot. Table versions are cached by an immutable key, such as a
    table's id and version, so none is ever invalidated; at most `versions` are cached, the least recently used is
    dropped. The default holds the tables of more than one schema: the queries of TPC-DS read 24 in turn, and a cache of
    fewer would drop each before it is read again.
    """

    def __init__(self, versions: int = 64) -> None:
        self._most_versions = versions
        self._slots: dict[type, object] = {}
        self._versions: OrderedDict[Hashable, object] = OrderedDict()
        self._lock = threading.Lock()

    def slot(self, kind: type[T]) -> T:
        """The session's object of the class `kind`, which is made without arguments on first use."""
        with self._lock:
            if kind not in self._slots:
                self._slots[kind] = kind()
            return cast("T", self._slots[kind])

    def version(self, key: Hashable, make: Callable[[], T]) -> T:
        """The object cached under `key`; if there is none, the result of `make`, which is then cached."""
        with self._lock:
            if key in self._versions:
                self._versions.move_to_end(key)
                return cast("T", self._versions[key])
        made = make()
        with self._lock:
            kept = self._versions.setdefault(key, made)
            while len(self._versions) > self._most_versions:
                self._versions.popitem(last=False)
        return cast("T", kept)


_STATES: WeakKeyDictionary[SparkSession, SessionState] = WeakKeyDictionary()
_LOCK = threading.Lock()


def state_of(spark: SparkSession) -> SessionState:
    """The state of a session; made on first use."""
    with _LOCK:
        return _STATES.setdefault(spark, SessionState())
