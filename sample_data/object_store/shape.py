"""How far away a store seems: what it adds to each request, and how many bytes pass in a second."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

# Bytes that may pass at once after a pause, as seconds of the rate: a timer that is late by less costs nothing.
_BURST_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Shape:
    """Seconds before each request is passed on, and a cap on the bytes of all responses together."""

    latency: float = 0.0
    bytes_per_second: float = math.inf

    def to_json(self) -> dict[str, Any]:
        """As `of_json()` reads it; JSON has no infinity."""
        return {name: value for name, value in asdict(self).items() if value != math.inf}

    @staticmethod
    def of_json(found: Mapping[str, Any]) -> Shape:
        """The shape that `to_json()` told."""
        return Shape(**found)


UNSHAPED = Shape()
SHAPED = Shape(latency=0.02, bytes_per_second=100e6)


@dataclass(slots=True)
class TokenBucket:
    """Says how long bytes have to wait, so that in any t seconds at most `rate * t + burst` of them pass."""

    rate: float
    burst: float
    _paid_until: float = -math.inf

    @staticmethod
    def of(shape: Shape) -> TokenBucket:
        """The bucket of a shape."""
        return TokenBucket(shape.bytes_per_second, shape.bytes_per_second * _BURST_SECONDS)

    def delay(self, size: int, now: float) -> float:
        """Seconds from `now` until `size` more bytes may pass, behind all that were asked for before.

        >>> bucket = TokenBucket(rate=100.0, burst=50.0)
        >>> bucket.delay(50, now=0.0), bucket.delay(100, now=0.0), bucket.delay(100, now=1.0), bucket.delay(1, now=9.0)
        (0.0, 1.0, 1.0, 0.0)
        """
        if math.isinf(self.rate):
            return 0.0
        self._paid_until = max(self._paid_until, now - self.burst / self.rate) + size / self.rate
        return max(0.0, self._paid_until - now)
