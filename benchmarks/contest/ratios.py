"""What a contest's numbers are beside each other's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
# The ratio's name, its numerator, and whose number is the denominator.
_RATIOS = (
    ("seconds_to_stock", "seconds", "stock"),
    ("read_to_stock", "bytes", "stock"),
    ("read_to_duckdb", "bytes", "duckdb"),
    ("read_to_datafusion", "bytes", "datafusion"),
    ("read_to_limit", "bytes", "limit"),
)


def with_ratios(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows, each with its ratios to others of its layout and query: below 1 is less than these."""
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
    """Of the values that are known; None if none is.

    >>> geometric_mean([1.0, 4.0, None])
    2.0
    """
    known = [math.log(value) for value in values if value]
    return math.exp(sum(known) / len(known)) if known else None
