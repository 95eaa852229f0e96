"""The rates of a query: measured ones of this machine, corrected by what the session saw of its own seconds."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from connectors.rate_files import LOCAL, machine_rates, store_name
from connectors.spark.session_state import state_of
from pruning.cost.corrections import (
    BUILDS,
    DRIVER_BUILDS,
    LOCAL_READS,
    REMOTE_READS,
    CorrectionLimits,
    RateCorrections,
    applied_factor,
)
from pruning.cost.rates import CostRates
from pruning.limits import Limits
from pruning.options import GIVEN, SESSION, PruningOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEFAULTS = CostRates()


@dataclass(slots=True)
class SessionRates:
    """The corrections of one session, which are of one set of rates: others begin anew; thread-safe.

    Rates of stores do not count, since each query has those of its own stores, and each store its own factors.
    """

    _base: CostRates = _DEFAULTS
    _corrections: RateCorrections = field(default_factory=RateCorrections)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def corrected(self, base: CostRates, limits: CorrectionLimits, store: str) -> CostRates:
        """Rates with the corrections that were seen for them."""
        with self._lock:
            if _without_stores(base) != self._base:
                self._base, self._corrections = _without_stores(base), RateCorrections()
            return self._corrections.corrected(base, limits, store)

    def observe(  # noqa: PLR0913, PLR0917 - what was planned, by which rates, and what was seen
        self, kind: str, planned: float, actual: float, limits: CorrectionLimits, used: CostRates, store: str = ""
    ) -> None:
        """Adds the seconds of work that was planned by the rates `used`."""
        with self._lock:
            known = applied_factor(kind, used, self._base)
            applied = self._corrections.factor(kind, limits, store) if known is None or store else known
            self._corrections = self._corrections.observed(
                kind, planned=planned, actual=actual, limits=limits, store=store, applied=applied
            )


def _without_stores(rates: CostRates) -> CostRates:
    return replace(rates, remote_byte=_DEFAULTS.remote_byte, remote_request=_DEFAULTS.remote_request)


def rates_of(spark: SparkSession, options: PruningOptions, stores: Sequence[str] = ()) -> CostRates:
    """The rates by which a query is planned, as the option `cost_rates` says; `stores` are names of its stores."""
    given = options.limits.costs
    if options.cost_rates == GIVEN:
        return given
    base = machine_rates(stores) if given == _DEFAULTS else given
    if options.cost_rates != SESSION:
        return base
    return _rates(spark).corrected(base, _limits(options.limits), stores[0] if len(stores) == 1 else "")


def remote_stores(uris: Iterable[str]) -> tuple[str, ...]:
    """The names of the stores of URIs that are not on this machine, each once."""
    names = dict.fromkeys(map(store_name, uris))
    return tuple(each for each in names if each != LOCAL)


def observe_build(  # noqa: PLR0913 - what was planned of a build, and how it ran
    spark: SparkSession,
    options: PruningOptions,
    planned: float,
    actual: float,
    *,
    on_driver: bool = False,
    read_from: Sequence[str] = (),
) -> None:
    """Adds the seconds of a build to what corrects the session's rates.

    - `options`: those of the query, with the rates by which it was planned
    - `planned`: seconds by these rates
    - `on_driver`: the build took no job, so the rates of such builds are corrected
    - `read_from`: the URIs of the tables of a build that mostly reads: the rates of their store are corrected, if all
      are in one, and otherwise those of builds
    """
    if options.cost_rates != SESSION:
        return
    kind, store = DRIVER_BUILDS if on_driver else BUILDS, ""
    names = {store_name(each) for each in read_from}
    if len(names) == 1:
        (name,) = names
        kind, store = (LOCAL_READS, "") if name == LOCAL else (REMOTE_READS, name)
    _rates(spark).observe(kind, planned, actual, _limits(options.limits), options.limits.costs, store)


def _rates(spark: SparkSession) -> SessionRates:
    return state_of(spark).slot(SessionRates)


def _limits(limits: Limits) -> CorrectionLimits:
    return CorrectionLimits(limits.most_correction, limits.least_observations, limits.correction_weight)
