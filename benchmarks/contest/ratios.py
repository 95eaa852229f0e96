"""Ratios between the contenders' numbers, their geometric mean, and shares that are saved."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
# The name of the ratio, its field, and the contender whose number is the denominator.
_RATIOS = (
    ("seconds_to_stock", "seconds", "stock"),
    ("read_to_stock", "bytes", "stock"),
    ("read_to_duckdb", "bytes", "duckdb"),
    ("read_to_datafusion", "bytes", "datafusion"),
    ("read_to_limit", "bytes", "limit"),
)


def with_ratios(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows, each with its ratios to other contenders for the same layout and query; below 1 is better."""
    of = {(row["layout"], row["query"], row["contender"]): row for row in rows}
    return [
        {
            **row,
            **{name: _ratio(row, of.get((row["layout"], row["query"], to), {}), field) for name, field, to in _RATIOS},
        }
        for row in rows
    ]


def _ratio(row: Row, other: Row, field: str) -> float | None:
    return row[field] / other[field] if row.get(field) and other.get(field) else None


def geometric_mean(values: Iterable[float | None]) -> float | None:
    """The geometric mean of the values that are not None; None if all are.

    >>> geometric_mean([1.0, 4.0, None])
    2.0
    """
    known = [math.log(value) for value in values if value]
    return math.exp(sum(known) / len(known)) if known else None


def saved(rows: Iterable[Row], field: str, by: str = "pruned") -> float | None:
    """The share of stock Spark's sum that a contender saves, at most 1, over queries that both answered.

    None if there is no such query.
    """
    of = {(row["query"], row["contender"]): row[field] for row in rows if row.get(field) is not None}
    both = [name for name, contender in of if contender == by and (name, "stock") in of]
    before = sum(of[name, "stock"] for name in both)
    return 1 - sum(of[name, by] for name in both) / before if before else None
