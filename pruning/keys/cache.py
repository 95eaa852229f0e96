"""`PruningCache`: results of builds, which the caller passes from one `prune()` to the next."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass

from pruning.errors import InvalidOptionError
from pruning.settings import parsed_size


@dataclass(frozen=True, slots=True)
class _Entry:
    value: object
    nbytes: int


class PruningCache:
    """A cache of build results, keys and few rows: pass the same cache to each `prune()`, so that a build runs once.

    A build is found by its plan, the versions or files of the tables that it reads, the session's confs and the limits
    of its result. All of these are immutable, so no entry is ever out of date. Entries belong to one Spark application
    and are removed when another one uses the cache. Thread-safe; two threads that need a build at the same time may
    both run it.

    - `max_bytes`, `max_entries`: the limits of the cache; the least recently used entries are removed first, and an
      entry above `max_bytes` is not cached. Bytes are a number, or a text such as "64MB". Rows of builds lie on the
      heap of Spark's driver, everything else in Python
    - `hits`: builds that were not run since the cache had their result; `misses`: builds that were run

    `InvalidOptionError` for limits that are no whole numbers from 1, and no sizes.

    >>> PruningCache(max_bytes=1 << 20)
    PruningCache(0 builds, 0 of 1,048,576 bytes, 0 hits, 0 misses)
    """

    def __init__(self, *, max_bytes: int | str = 128 << 20, max_entries: int = 1000) -> None:
        self.max_bytes = _limit("max_bytes", max_bytes, "a whole number from 1 or a size such as 8MiB")
        self.max_entries = _limit("max_entries", max_entries, "a whole number from 1")
        self.hits = 0
        self.misses = 0
        self._nbytes = 0
        self._entries: OrderedDict[tuple[Hashable, Hashable], _Entry] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """The number of builds in the cache."""
        return len(self._entries)

    def __bool__(self) -> bool:
        """True, also for an empty cache."""
        return True

    @property
    def nbytes(self) -> int:
        """The bytes of arrays, rows and keys of all entries."""
        return self._nbytes

    def clear(self) -> None:
        """Removes all entries; the counters stay."""
        with self._lock:
            self._entries.clear()
            self._nbytes = 0

    def __repr__(self) -> str:
        held = f"{len(self):,} builds, {self.nbytes:,} of {self.max_bytes:,} bytes"
        return f"PruningCache({held}, {self.hits:,} hits, {self.misses:,} misses)"

    def find(self, owner: Hashable, key: Hashable) -> object | None:
        """The entry of `owner` under `key`, None if there is none; counted as a hit or a miss.

        Entries of other owners are removed, since their rows may have ended with the owner.
        """
        with self._lock:
            for other in [each for each in self._entries if each[0] != owner]:
                self._drop(other)
            found = self._entries.get((owner, key))
            if found is None:
                self.misses += 1
                return None
            self.hits += 1
            self._entries.move_to_end((owner, key))
            return found.value

    def missed(self) -> None:
        """Counts a build whose result cannot be cached."""
        with self._lock:
            self.misses += 1

    def keep(self, owner: Hashable, key: Hashable, value: object, nbytes: int) -> bool:
        """Caches `value` of `nbytes` bytes, its key included; False where it is too large."""
        with self._lock:
            self._drop((owner, key))
            if nbytes > self.max_bytes:
                return False
            self._entries[owner, key] = _Entry(value, nbytes)
            self._nbytes += nbytes
            while self._nbytes > self.max_bytes or len(self._entries) > self.max_entries:
                self._drop(next(iter(self._entries)))
            return True

    def _drop(self, key: tuple[Hashable, Hashable]) -> None:
        found = self._entries.pop(key, None)
        self._nbytes -= 0 if found is None else found.nbytes


def _limit(name: str, given: object, expected: str) -> int:
    value = given
    if isinstance(given, str) and name == "max_bytes":
        with suppress(ValueError):
            value = parsed_size(given)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidOptionError(f"Cannot set {name!r} of a PruningCache to {given!r}: expected {expected}")
    return value
