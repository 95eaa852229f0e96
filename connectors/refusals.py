"""Refusals that cost time to find out, remembered for some minutes: what is broken for now may be mended."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from pruning.reasons import Reason

_SECONDS = 600.0


@dataclass(slots=True)
class Refusals:
    """Why somebody cannot do something, until ten minutes later; `clock` tells seconds."""

    clock: Callable[[], float] = time.monotonic
    _found: dict[Hashable, tuple[float, Reason]] = field(default_factory=dict)

    def of(self, who: Hashable) -> Reason | None:
        """What was refused lately."""
        until, reason = self._found.get(who, (0.0, None))
        return reason if self.clock() < until else None

    def add(self, who: Hashable, reason: Reason) -> Reason:
        """The reason, from this moment on."""
        self._found[who] = self.clock() + _SECONDS, reason
        return reason
