"""`RateCorrections`: factors by which a session corrects rates, from the seconds that it planned and those that passed.

A factor is the exponentially weighted mean of the logarithms of actual by planned seconds, so that twice and half
cancel. It is bounded, and 1 until there are enough observations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import exp, isfinite, log
from types import MappingProxyType

from pruning.cost.rates import CostRates

# Kinds of work, and the rates that the factor of each corrects.
BUILDS, DRIVER_BUILDS, LOCAL_READS, REMOTE_READS = "builds", "builds on the driver", "local reads", "remote reads"
_CORRECTED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        BUILDS: ("build_job", "kept_row"),
        DRIVER_BUILDS: ("driver_build", "driver_row"),
        LOCAL_READS: ("byte", "decoded_byte"),
        REMOTE_READS: ("remote_byte", "remote_request"),
    }
)


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
    """The observations of one session, by kind and store, as ratios to the seconds that uncorrected rates give.

    >>> slow, limits = RateCorrections(), CorrectionLimits(most=4.0, least_count=3, weight=0.25)
    >>> for _ in range(3):
    ...     slow = slow.observed(BUILDS, planned=0.1, actual=0.2, limits=limits)
    >>> round(slow.corrected(CostRates(build_job=100e6), limits).build_job)
    200000000
    """

    _seen: Mapping[tuple[str, str], Observed] = field(default_factory=dict)

    def observed(  # noqa: PLR0913 - keywords
        self,
        kind: str,
        *,
        planned: float,
        actual: float,
        limits: CorrectionLimits,
        store: str = "",
        applied: float = 1.0,
    ) -> RateCorrections:
        """With the seconds that work was planned to take and took; seconds that are not positive say nothing.

        `applied` is the factor in the planned seconds: without it a factor would bring itself back to 1.
        """
        known = all(isfinite(each) and each > 0.0 for each in (planned, actual, applied))
        if kind not in _CORRECTED or not known:
            return self
        before = self._seen.get((kind, store), _NOTHING)
        ratio = log(actual) - log(planned) + log(applied)
        return replace(self, _seen={**self._seen, (kind, store): before.with_logarithm(ratio, limits)})

    def factor(self, kind: str, limits: CorrectionLimits, store: str = "") -> float:
        """The factor of a kind of work, in a store where it has one."""
        return self._seen.get((kind, store), _NOTHING).factor(limits)

    def corrected(self, rates: CostRates, limits: CorrectionLimits, store: str = "") -> CostRates:
        """Rates times the factors; `store` is the one whose bytes and requests are meant."""
        changed = {
            name: getattr(rates, name) * factor
            for kind, names in _CORRECTED.items()
            if (factor := self.factor(kind, limits, store if kind == REMOTE_READS else "")) != 1.0
            for name in names
        }
        return replace(rates, **changed) if changed else rates


def applied_factor(kind: str, used: CostRates, base: CostRates) -> float | None:
    """The factor by which `used` differ from `base` in a kind of work; None if no rate of the kind tells it."""
    ratios = (getattr(used, name) / getattr(base, name) for name in _CORRECTED[kind] if getattr(base, name))
    return next((each for each in ratios if each > 0.0), None)


def _clipped(value: float, most: float) -> float:
    return max(-most, min(most, value))
