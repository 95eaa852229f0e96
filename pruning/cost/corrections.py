"""`RateCorrections`: factors by which a session corrects the rates of stores, from planned and actual seconds.

A factor is the exponentially weighted mean of the logarithms of actual by planned seconds, so that twice and half
cancel. It is bounded, and 1 until there are enough observations.

Rates of the machine itself are not corrected: a filter is chosen by what it costs beside what it saves, and a slower
machine is slower in both. A session that corrected those of builds alone refused filters that paid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import exp, isfinite, log

from pruning.cost.rates import CostRates


@dataclass(frozen=True, slots=True)
class CorrectionLimits:
    """Bounds of corrections: factors lie between 1/`most` and `most`, and are 1 before `least_count` observations.

    `weight`: the share of the latest observation in a factor, as soon as its share of all observations is less.
    """

    most: float
    least_count: int
    weight: float


@dataclass(frozen=True, slots=True)
class Observed:
    """The mean of the logarithms of `count` ratios of actual to planned seconds, the later ones with more weight."""

    count: int = 0
    mean: float = 0.0

    def with_logarithm(self, ratio: float, limits: CorrectionLimits) -> Observed:
        """With the logarithm of one more ratio, which counts as no more than the greatest factor."""
        seen = _clipped(ratio, log(limits.most))
        share = max(1.0 / (self.count + 1), limits.weight)
        return Observed(self.count + 1, self.mean + share * (seen - self.mean))

    def factor(self, limits: CorrectionLimits) -> float:
        """The factor by which seconds should have been planned; 1 after too few observations."""
        return 1.0 if self.count < limits.least_count else exp(_clipped(self.mean, log(limits.most)))


_NOTHING = Observed()


@dataclass(frozen=True, slots=True)
class RateCorrections:
    """The observations of one session, by store, as ratios to the seconds that uncorrected rates give.

    >>> slow, limits = RateCorrections(), CorrectionLimits(most=4.0, least_count=3, weight=0.25)
    >>> for _ in range(3):
    ...     slow = slow.observed("s3a-lake", planned=0.1, actual=0.2, limits=limits)
    >>> round(slow.corrected(CostRates(remote_byte=10.0), "s3a-lake", limits).remote_byte)
    20
    """

    _seen: Mapping[str, Observed] = field(default_factory=dict)

    def observed(
        self, store: str, *, planned: float, actual: float, limits: CorrectionLimits, applied: float = 1.0
    ) -> RateCorrections:
        """With the seconds that reading from a store was planned to take and took; others than positive say nothing.

        `applied` is the factor in the planned seconds: without it a factor would bring itself back to 1.
        """
        if not all(isfinite(each) and each > 0.0 for each in (planned, actual, applied)):
            return self
        ratio = log(actual) - log(planned) + log(applied)
        before = self._seen.get(store, _NOTHING)
        return replace(self, _seen={**self._seen, store: before.with_logarithm(ratio, limits)})

    def without(self, store: str) -> RateCorrections:
        """Without the observations of a store."""
        return RateCorrections({name: seen for name, seen in self._seen.items() if name != store})

    def factor(self, store: str, limits: CorrectionLimits) -> float:
        """The factor of a store."""
        return self._seen.get(store, _NOTHING).factor(limits)

    def corrected(self, rates: CostRates, store: str, limits: CorrectionLimits) -> CostRates:
        """Rates whose bytes and requests are those of a store, times its factor."""
        factor = self.factor(store, limits)
        return replace(rates, remote_byte=rates.remote_byte * factor, remote_request=rates.remote_request * factor)


def _clipped(value: float, most: float) -> float:
    return max(-most, min(most, value))
