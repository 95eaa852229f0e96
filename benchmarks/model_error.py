"""The error of the cost model over recorded queries: seconds of builds and of queries, and the seconds saved.

A row is that of one query, see `model_run.py`. Rows of queries that failed do not count, nor do builds and savings of
which nothing was planned, as with the option `always`.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

Row = Mapping[str, Any]
# Planned and actual seconds.
Pair = tuple[float, float]
# Savings are compared with no fewer seconds than these, and their signs where more than these are at stake.
LEAST_SAVING, AT_STAKE = 0.1, 0.3
# Places of builds, in words.
PLACES: Mapping[str, str] = MappingProxyType({"driver": "on the driver", "job": "as a job"})


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of the model: a median of relative errors, and how many numbers it is of, for each kind of seconds.

    - `wrong`: queries that gained where a loss was planned or the other way round, with more than `AT_STAKE` at stake
    - `unplanned`: queries without a planned filter whose seconds differed by more than that
    - `within`: the share of savings between their planned bounds
    - `differing`: queries whose rows differ; `failed`: those without an answer
    """

    builds: tuple[float | None, int]
    queries: tuple[float | None, int]
    savings: tuple[float | None, int]
    within: float | None
    wrong: tuple[str, ...]
    unplanned: tuple[str, ...]
    differing: tuple[str, ...]
    failed: tuple[str, ...]


def relative(pair: Pair, least: float = 0.0) -> float:
    """The relative error of planned seconds; `least` are the fewest seconds that it is relative to.

    >>> relative((3.0, 2.0)), round(relative((0.02, 0.01), least=0.1), 3), relative((1.0, -2.0))
    (0.5, 0.1, 1.5)
    """
    planned, actual = pair
    return abs(planned - actual) / max(abs(actual), least)


def queries(rows: Sequence[Row]) -> dict[str, Pair]:
    """Planned and actual seconds of stock queries, by name."""
    known = (row for row in _answered(rows) if row["planned_stock"] is not None and row["seconds_stock"])
    return {row["query"]: (row["planned_stock"], row["seconds_stock"]) for row in known}


def savings(rows: Sequence[Row]) -> dict[str, Pair]:
    """Planned and actual seconds saved by queries with a build that was weighed, by name."""
    known = (row for row in _answered(rows) if row["builds"] and row["planned_saving"] is not None)
    return {row["query"]: (row["planned_saving"], row["saving"]) for row in known}


def builds(rows: Sequence[Row], where: str = "") -> list[Pair]:
    """Planned and actual seconds of builds that ran, those at one place or all."""
    return [
        (each["planned"], each["seconds"])
        for row in _answered(rows)
        for each in row["builds"]
        if each["planned"] is not None and each["seconds"] and where in {"", each["where"]}
    ]


def errors(rows: Sequence[Row]) -> Errors:
    """The errors over all rows."""
    saved, told = savings(rows), list(_answered(rows))
    between = [row["planned_saving_low"] <= row["saving"] <= row["planned_saving_high"] for row in _weighed(told)]
    wrong = [name for name, (planned, actual) in saved.items() if planned * actual < 0 and abs(actual) > AT_STAKE]
    return Errors(
        _median(relative(each) for each in builds(rows)),
        _median(relative(each) for each in queries(rows).values()),
        _median(relative(each, LEAST_SAVING) for each in saved.values()),
        statistics.fmean(between) if between else None,
        tuple(wrong),
        tuple(row["query"] for row in told if not row["builds"] and abs(row["saving"]) > AT_STAKE),
        tuple(row["query"] for row in told if not row["rows_equal"]),
        tuple(row["query"] for row in rows if row.get("failed")),
    )


def errors_text(rows: Sequence[Row]) -> str:
    """A short table of the errors, and the names of queries that they are about."""
    found = errors(rows)
    lines = [f"{'seconds of':<34}{'median error':>14}{'of':>6}"]
    kinds = (
        ("builds", found.builds),
        *((f"  {told}", _median(map(relative, builds(rows, where)))) for where, told in PLACES.items()),
        ("stock queries", found.queries),
        (f"savings, at least {LEAST_SAVING:g} s", found.savings),
    )
    lines += [f"{name:<34}{'-' if error is None else f'{error:.0%}':>14}{count:>6}" for name, (error, count) in kinds]
    if found.within is not None:
        lines.append(f"savings between their planned bounds: {found.within:.0%}")
    told = (
        (f"sign of the gain wrong with more than {AT_STAKE:g} s at stake", found.wrong),
        (f"more than {AT_STAKE:g} s apart without a build", found.unplanned),
        ("rows differ", found.differing),
        ("failed", found.failed),
    )
    lines += [f"{what}: {len(names)}" + (f" ({', '.join(names)})" if names else "") for what, names in told]
    return "\n".join(lines)


def _answered(rows: Sequence[Row]) -> Iterator[Row]:
    return (row for row in rows if not row.get("failed"))


def _weighed(rows: Sequence[Row]) -> Iterator[Row]:
    return (row for row in rows if row["builds"] and row["planned_saving"] is not None)


def _median(values: Iterator[float]) -> tuple[float | None, int]:
    found = list(values)
    return (statistics.median(found) if found else None), len(found)
