"""`OtherSessions`: the Python objects of sessions that plan queries by the rule of an enabled one."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from connectors.spark.jvm import session_over
from pruning.limits import Limits


@dataclass(slots=True)
class OtherSessions:
    """A bounded number of sessions by their ids, those without a query for a while excepted; thread-safe.

    One object for all queries of a session keeps what was read about its tables. Spark does not tell when a session
    ends with its stream or client, and what is kept here stays in the JVM, too.
    """

    clock: Callable[[], float] = time.monotonic
    _known: OrderedDict[str, tuple[float, SparkSession]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, enabled: SparkSession, session: Any, limits: Limits) -> SparkSession:
        """The Python object of a session of the same JVM as the enabled one."""
        key, now = str(session.sessionUUID()), self.clock()
        with self._lock:
            _, found = self._known.pop(key, (now, None))
            spark = session_over(enabled, session) if found is None else found
            self._known[key] = now, spark
            # The least recently used comes first.
            while len(self._known) > limits.other_sessions or self._is_idle(now - limits.other_session_seconds):
                self._known.popitem(last=False)
            return spark

    def _is_idle(self, before: float) -> bool:
        return next(iter(self._known.values()))[0] < before
