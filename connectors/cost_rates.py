"""The rates of a query: measured ones of this machine and its stores, those corrected by what the session saw."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import isclose
from typing import TYPE_CHECKING

from connectors.rate_files import LOCAL, machine_rates, store_name
from connectors.spark.session_state import state_of
from pruning.cost.corrections import CorrectionLimits, RateCorrections
from pruning.cost.rates import CostRates
from pruning.limits import Limits
from pruning.options import GIVEN, SESSION, PruningOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEFAULTS = CostRates()


@dataclass(slots=True)
class SessionRates:
    """The corrections of one session, each of the rates of one store; thread-safe.

    A store whose rates change, as after a calibration, begins anew.
    """

    _base: dict[str, CostRates] = field(default_factory=dict)
    _corrections: RateCorrections = field(default_factory=RateCorrections)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def corrected(self, base: CostRates, store: str, limits: CorrectionLimits) -> CostRates:
        """Rates of a store with the correction that was seen for it."""
        with self._lock:
            if self._base.get(store) != base:
                self._base[store] = base
                self._corrections = self._corrections.without(store)
            return self._corrections.corrected(base, store, limits)

    def observe(self, store: str, planned: float, actual: float, used: CostRates, limits: CorrectionLimits) -> None:
        """Adds the seconds of reading from a store, which was planned by the rates `used`."""
        with self._lock:
            base = self._base.get(store, used)
            # The builds of one query were planned before the first of them was seen.
            pairs = ((used.remote_byte, base.remote_byte), (used.remote_request, base.remote_request))
            ratios = [then / first for then, first in pairs if first]
            applied = ratios[0] if ratios else 1.0
            if not all(isclose(each, applied) for each in ratios):
                # The query read other stores as well, by whose rates it was planned.
                return
            self._corrections = self._corrections.observed(
                store, planned=planned, actual=actual, limits=limits, applied=applied
            )


def rates_of(spark: SparkSession, options: PruningOptions, stores: Sequence[str] = ()) -> CostRates:
    """The rates by which a query is planned, as the option `cost_rates` says; `stores` are names of its stores."""
    given = options.limits.costs
    if options.cost_rates == GIVEN:
        return given
    base = machine_rates(stores) if given == _DEFAULTS else given
    if options.cost_rates != SESSION or len(stores) != 1:
        return base
    return _rates(spark).corrected(base, stores[0], _limits(options.limits))


def remote_stores(uris: Iterable[str]) -> tuple[str, ...]:
    """The names of the stores of URIs that are not on this machine, each once."""
    names = dict.fromkeys(map(store_name, uris))
    return tuple(each for each in names if each != LOCAL)


def observe_build(
    spark: SparkSession, options: PruningOptions, planned: float, actual: float, read_from: Sequence[str]
) -> None:
    """Adds the seconds of a build that mostly reads to what corrects the rates of its store, if all is in one.

    - `options`: those of the query, with the rates by which it was planned
    - `planned`: seconds by these rates
    - `read_from`: the URIs of the tables that it reads
    """
    stores = {store_name(each) for each in read_from}
    if options.cost_rates == SESSION and len(stores) == 1 and LOCAL not in stores:
        _rates(spark).observe(stores.pop(), planned, actual, options.limits.costs, _limits(options.limits))


def _rates(spark: SparkSession) -> SessionRates:
    return state_of(spark).slot(SessionRates)


def _limits(limits: Limits) -> CorrectionLimits:
    return CorrectionLimits(limits.most_correction, limits.least_observations, limits.correction_weight)
