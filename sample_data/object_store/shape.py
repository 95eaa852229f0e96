"""Latency and bandwidth of an object store, to simulate a distant store."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

# The size of a burst in seconds of the rate, so that a timer that fires late by less does not lower the bandwidth.
_BURST_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Shape:
    """The latency of each request in seconds, and a limit on the bandwidth of all responses together."""

    latency: float = 0.0
    bytes_per_second: float = math.inf

    def to_json(self) -> dict[str, Any]:
        """The JSON object that `of_json()` reads; infinity is left out, because JSON does not have it."""
        return {name: value for name, value in asdict(self).items() if value != math.inf}

    @staticmethod
    def of_json(found: Mapping[str, Any]) -> Shape:
        """The shape of a JSON object of `to_json()`."""
        return Shape(**found)


UNSHAPED = Shape()
SHAPED = Shape(latency=0.02, bytes_per_second=100e6)


@dataclass(slots=True)
class TokenBucket:
    """A token bucket, which delays bytes so that in any t seconds at most `rate * t + burst` bytes pass."""

    rate: float
    burst: float
    _paid_until: float = -math.inf

    @staticmethod
    def of(shape: Shape) -> TokenBucket:
        """The bucket of a shape."""
        return TokenBucket(shape.bytes_per_second, shape.bytes_per_second * _BURST_SECONDS)

    def delay(self, size: int, now: float) -> float:
        """Seconds from `now` until `size` more bytes may pass, after all bytes of earlier calls.

        >>> bucket = TokenBucket(rate=100.0, burst=50.0)
        >>> bucket.delay(50, now=0.0), bucket.delay(100, now=0.0), bucket.delay(100, now=1.0), bucket.delay(1, now=9.0)
        (0.0, 1.0, 1.0, 0.0)
        """
        if math.isinf(self.rate):
            return 0.0
        self._paid_until = max(self._paid_until, now - self.burst / self.rate) + size / self.rate
        return max(0.0, self._paid_until - now)
