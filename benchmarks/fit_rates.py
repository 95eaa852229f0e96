"""The rates of the cost model that fit the seconds of a whole workload, as `python -m benchmarks model` records them.

The expected seconds of a query without filters are linear in the rates, so a query is described by its *features*: its
seconds for each nanosecond of each rate. Fitted rates minimise the sum of |planned - actual| / sqrt(planned * actual)
over all queries: each query counts alike, and twice as much as half as much. They stay within a factor of the
defaults, to which they are drawn a little, so that rates that no query tells apart keep their ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pruning.cost.rates import CostRates

Floats = NDArray[np.float64]
Features = Mapping[str, float]
Row = Mapping[str, Any]
# Fitted rates lie within this factor of the defaults.
_FACTOR = 10.0
# Seconds that each query may take beside those that rates explain.
_MOST_FIXED = 2.0
# The weight of the distance to the defaults, beside the mean of squared relative errors.
_DRAWN = 1e-3
# Relative errors below this one count by their squares, so that few exact queries do not decide.
_SMALL = 0.1
_ROUNDS, _STEPS_PER_COLUMN = 30, 10
_NO_SLOPE = 1e-9
_NOTHING = CostRates(**{each.name: 0.0 for each in fields(CostRates)})


@dataclass(frozen=True, slots=True)
class Fit:
    """Fitted `rates` by `queries` queries, and the `fixed` seconds that each takes beside those that rates explain.

    `before` and `after` are medians of |planned - actual| / actual: by the rates that the fit began with, and by those
    that it found.
    """

    rates: CostRates
    fixed: float
    queries: int
    before: float
    after: float
    names: tuple[str, ...]


def features(seconds: Callable[[CostRates], float | None]) -> dict[str, float]:
    """The features of a query, without those that are 0, from its expected seconds by any rates."""
    found = {each.name: seconds(replace(_NOTHING, **{each.name: 1.0})) for each in fields(CostRates)}
    return {name: each for name, each in found.items() if each}


def expected(known: Features, rates: CostRates) -> float:
    """The expected seconds of a query by its features.

    >>> expected({"byte": 0.25, "row": 0.5}, CostRates(byte=2.0, row=3.0))
    2.0
    """
    return float(sum(each * getattr(rates, name) for name, each in known.items()))


def fit(rows: Sequence[Row], start: CostRates | None = None) -> Fit:
    """The rates that fit the seconds of stock queries; `ValueError` if no row has both seconds and features."""
    begun = start or CostRates()
    known = [row for row in rows if row.get("features") and row.get("seconds_stock")]
    if not known:
        raise ValueError("Cannot fit rates: no recorded query has features and seconds; measure some without --fit")
    found: list[Features] = [row["features"] for row in known]
    actual = np.array([row["seconds_stock"] for row in known])
    # A rate of 0 has no factor, and stays 0.
    seen = [each.name for each in fields(CostRates) if any(each.name in features for features in found)]
    names = tuple(name for name in seen if getattr(begun, name))
    by_start = [[each.get(name, 0.0) * getattr(begun, name) for name in names] for each in found]
    planned = np.column_stack((np.array(by_start).reshape(len(found), len(names)), np.ones(len(found))))
    whole = np.array([expected(each, begun) for each in found])
    factors = _factors(planned, actual)
    changed = {name: getattr(begun, name) * float(by) for name, by in zip(names, factors[:-1], strict=True)}
    return Fit(
        replace(begun, **changed),
        float(factors[-1]),
        len(known),
        _median_error(whole, actual),
        _median_error(planned @ factors, actual),
        names,
    )


def fit_text(fitted: Fit, start: CostRates | None = None) -> str:
    """The fitted rates beside those that the fit began with, and the error by each."""
    begun = start or CostRates()
    lines = [f"Rates fitted to {fitted.queries} stock queries, in nanoseconds"]
    for name in fitted.names:
        before, after = getattr(begun, name), getattr(fitted.rates, name)
        is_at_bound = not before * 1.001 / _FACTOR < after < before * 0.999 * _FACTOR
        lines.append(f"  {name:<16} {before:>10.4g} -> {after:.4g}{', at its bound' if is_at_bound else ''}")
    lines += [
        f"  seconds of each query beside these: {fitted.fixed:.2f}",
        f"  median relative error: {fitted.before:.0%} -> {fitted.after:.0%}",
        f"  {fitted.rates}",
    ]
    return "\n".join(lines)


def _factors(planned: Floats, actual: Floats) -> Floats:
    """The factors of the columns of `planned`, and the seconds of its last column, which is 1 in each row.

    Least squares, with weights by the errors of the round before: so sums of squares become those of absolute errors.
    """
    count = planned.shape[1]
    low, high = np.full(count, 1 / _FACTOR), np.full(count, _FACTOR)
    low[-1], high[-1] = 0.0, _MOST_FIXED
    start = np.ones(count)
    start[-1] = 0.0
    factors = start
    for _ in range(_ROUNDS):
        told = np.maximum(planned @ factors, actual / 100)
        scale = 1 / np.sqrt(told * actual)
        weights = scale / np.sqrt(np.maximum(np.abs(told - actual) * scale, _SMALL))
        factors = bounded_least_squares(planned * weights[:, None], actual * weights, start, low, high)
    return factors


def bounded_least_squares(matrix: Floats, wanted: Floats, start: Floats, low: Floats, high: Floats) -> Floats:
    """The x between `low` and `high` with the least mean of (matrix x - wanted)^2, drawn a little to `start`.

    Values at a bound are held there while the others are solved for, until no held one would rather leave its bound.
    A column draws as much as it weighs, so that columns that are multiples of each other move by one factor.
    """
    count, found = len(wanted), start.copy()
    drawn = _DRAWN * np.maximum(np.sqrt((matrix**2).mean(axis=0)), _DRAWN)
    products = matrix.T @ matrix / count + np.diag(drawn)
    aims = matrix.T @ wanted / count + drawn * start
    free = np.ones(len(start), bool)
    for _ in range(_STEPS_PER_COLUMN * len(start)):
        held = aims[free] - products[np.ix_(free, ~free)] @ found[~free]
        found[free] = np.linalg.solve(products[np.ix_(free, free)], held)
        outside = (found < low) | (found > high)
        found = np.clip(found, low, high)
        if outside.any():
            free &= ~outside
            continue
        slope = products @ found - aims
        inward = np.where(found <= low, -slope, slope) * ~free
        if inward.max(initial=0.0) <= _NO_SLOPE:
            break
        free[inward.argmax()] = True
    return found


def _median_error(planned: Floats, actual: Floats) -> float:
    return float(np.median(np.abs(planned - actual) / actual))
