"""`Trials`: how steps are timed in a calibration, as medians of differences between steps that alternate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

from pruning.cost.rates import CostRates

Step = Callable[[], object]
# The name of a rate, and what measures it in seconds.
Measure = tuple[str, Callable[[], float]]

_DEFAULTS = CostRates()
# No core is so many times faster or slower than that of the defaults.
_APART = 10.0


@dataclass(frozen=True, slots=True)
class Trials:
    """The sizes of what is read, and the number of runs.

    - `rows`: rows of the only row group, which one core reads; `nulls`: the share of NULL
    - `values`: distinct values of a column, dictionary-encoded; `keys`: how many of them are looked up
    - `kept`: rows of the larger build; `store_bytes`: bytes of the larger file in a store
    - `warm`: first runs of a step, while Java compiles its plan; `runs`: later runs, of which the median counts
    - `seconds`: a step that takes longer gets fewer runs, at least one of each kind
    """

    rows: int = 2_000_000
    nulls: float = 0.04
    values: int = 20_000
    keys: int = 500
    kept: int = 80_000
    store_bytes: int = 32 << 20
    warm: int = 2
    runs: int = 5
    seconds: float = 1.5

    def wanted(self) -> list[int]:
        """The keys that are looked up."""
        return list(range(0, self.values, self.values // self.keys))

    def took(self, run: Step) -> float:
        """Seconds of one step."""
        return median(one for (one,) in self._runs(run))

    def more(self, run: Step, other: Step) -> float:
        """Seconds of `run` minus seconds of `other`; the steps alternate, so that load and compiled code are shared."""
        return median(one - two for one, two in self._runs(run, other))

    def growth(self, of: Callable[[int], Step], rows: int, without: Callable[[int], Step] | None = None) -> float:
        """Seconds of each further row of a step, beyond those of the same step `without` something."""
        few = max(1, rows // 4)
        if without is None:
            return self.more(of(rows), of(few)) / (rows - few)
        steps = of(rows), of(few), without(rows), without(few)
        return median((one - two) - (three - four) for one, two, three, four in self._runs(*steps)) / (rows - few)

    def _runs(self, *steps: Step) -> Iterator[list[float]]:
        """Seconds of all steps, once in turn for each run."""
        until = time.perf_counter() + self.seconds / 2
        for _ in range(self.warm):
            for step in steps:
                step()
            if time.perf_counter() > until:
                break
        until = time.perf_counter() + self.seconds / 2
        for _ in range(self.runs):
            yield [timed(step) for step in steps]
            if time.perf_counter() > until:
                break


def timed(run: Step) -> float:
    """Seconds of one run."""
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def credible(name: str, nanoseconds: float) -> float:
    """A measured rate, no further from its default than machines differ; the default where load hid the difference."""
    default: float = getattr(_DEFAULTS, name)
    if nanoseconds <= 0.0:
        return default
    return min(max(nanoseconds, default / _APART), default * _APART)
