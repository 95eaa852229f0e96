"""Metadata that the pruned reads of one session share, held by the session itself."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from connectors.arrow_room import Workers
from connectors.footers import FooterCache
from connectors.refusals import Refusals

_ATTRIBUTE = "_scanprune_cache"
_TABLES = 16

T = TypeVar("T")


class SessionCache:
    """Parquet footers, what was read of the most recently used table versions, and how many reads keep the same files.

    `workers` is what Python workers said of themselves, None while they have not; `refusals` are those of who gave no
    good answer, and end by themselves. `kept_files` is the JVM's own cache of files of Delta, None until there is one.
    Of the others nothing is invalidated: a key names one immutable thing, a file by its path, size and modification
    time, a table by its id and version.
    """

    def __init__(self) -> None:
        self.footers = FooterCache()
        self.listings: Counter[str] = Counter()
        self.workers: Workers | None = None
        self.refusals = Refusals()
        self.kept_files: Any = None
        self._versions: OrderedDict[Hashable, object] = OrderedDict()
        self._lock = threading.Lock()

    def version(self, key: Hashable, make: Callable[[], T]) -> T:
        """What was kept under `key`, else what `make` returns, which is then kept."""
        with self._lock:
            if key in self._versions:
                self._versions.move_to_end(key)
                return self._versions[key]  # type: ignore[return-value]
        made = make()
        with self._lock:
            kept = self._versions.setdefault(key, made)
            while len(self._versions) > _TABLES:
                self._versions.popitem(last=False)
        return kept  # type: ignore[return-value]


def cache_of(spark: SparkSession) -> SessionCache:
    """The cache that this session holds; made on first use."""
    found = getattr(spark, _ATTRIBUTE, None)
    if not isinstance(found, SessionCache):
        found = SessionCache()
        setattr(spark, _ATTRIBUTE, found)
    return found
