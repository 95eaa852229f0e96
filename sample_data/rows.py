"""The comparison of rows in tests and benchmarks, from any engine or Arrow table.

`Rows` are equal as multisets: order does not matter, duplicates count. `ordered()` compares order, too. Values are
compared by a *form*, a function that gives equal results for equal values. The default is `exact`:

| value | is equal to |
|---|---|
| NULL | NULL |
| NaN | NaN |
| -0.0 | -0.0, not 0.0 |
| float | the same bits; a single-precision number is the double of its value |
| `1`, `1.0`, `Decimal(1)`, `True` | equal numbers of the same type: these are four different values |
| `Decimal("1.50")` | the same digits and scale, not `Decimal("1.5")` |
| timestamp with a zone | the same microsecond of UTC |
| timestamp without a zone | the same reading of a clock, never a timestamp with a zone |
| string, bytes | the same characters, the same bytes; trailing spaces count |
| array, map, struct | the same values in the same order; structs of Spark must also agree in the names of fields |

`by_value` is for engines whose types differ: numbers of different types and scales are equal if their values are, both
zeros are equal, and a timestamp with a zone equals the reading of a clock in UTC.

A column may instead be compared by a function of two values (`near`), for example sums of doubles, which depend on the
order of rows. Rows that a LIMIT chooses among ties are compared by `unmatched()` with the rows before the LIMIT.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property
from types import MappingProxyType
from typing import Any

import pyarrow as pa

Row = tuple[Any, ...]
Form = Callable[[Any], Hashable]
# Functions by the position of a column; each returns True for two values that are close enough.
Near = Mapping[int, Callable[[Any, Any], bool]]
Key = tuple[Hashable, ...]
_Keyed = tuple[Key, Row]
_EXACTLY: Near = MappingProxyType({})
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NAN = ("NaN",)
_FEW, _LONGEST = 3, 300


@dataclass(frozen=True, slots=True)
class Moment:
    """A timestamp: microseconds since 1970, in UTC if it has a zone, else as a clock without a zone shows them."""

    microseconds: int
    has_zone: bool
    fold: int = 0

    @staticmethod
    def of(value: datetime) -> Moment:
        """The moment of a `datetime`; `fold` is 1 for the second of two equal readings when clocks are set back."""
        has_zone = value.tzinfo is not None
        since = (value if has_zone else value.replace(tzinfo=timezone.utc)) - _EPOCH
        return Moment(since // _MICROSECOND, has_zone, 0 if has_zone else value.fold)


def exact(value: Any) -> str:
    """The form by which values are equal only if they have the same type and representation.

    >>> exact(0.0) == exact(-0.0), exact(float("nan")) == exact(float("nan")), exact(1) == exact(True)
    (False, True, False)
    """
    match value:
        case None | int() | float() | str():
            return repr(value)
        case datetime():
            return repr(Moment.of(value))
        case bytearray() | memoryview():
            return repr(bytes(value))
        case tuple() | list():
            names = getattr(value, "__fields__", "")
            return f"{type(value).__name__}{names}({', '.join(map(exact, value))})"
        case dict():
            return f"{{{', '.join(f'{exact(name)}: {exact(each)}' for name, each in value.items())}}}"
        case _:
            return repr(value)


def by_value(value: Any) -> Hashable:
    """The form by which values are equal if SQL's `=` says so, or if both are NULL.

    >>> by_value(0.0) == by_value(-0.0), by_value(1) == by_value(1.0), by_value(None) == by_value(0)
    (True, True, False)
    """
    match value:
        case bool():
            return bool, value
        case float() if math.isnan(value):
            return _NAN
        case datetime():
            return Moment, Moment.of(value).microseconds
        case Moment():
            return Moment, value.microseconds
        case tuple() | list():
            return tuple(map(by_value, value))
        case dict():
            return tuple((by_value(name), by_value(each)) for name, each in value.items())
        case bytearray() | memoryview():
            return bytes(value)
        case _:
            found: Hashable = value
            return found


def ordered(rows: Iterable[Iterable[Any]], form: Form = exact) -> list[Key]:
    """The forms of rows in their original order."""
    return [tuple(map(form, row)) for row in rows]


def arrow_rows(table: pa.Table) -> list[Row]:
    """The rows of an Arrow table; timestamps become `Moment`, because `datetime` covers fewer years."""
    return list(zip(*map(_values, table.columns), strict=True))


def _values(column: pa.ChunkedArray) -> list[Any]:
    if not pa.types.is_timestamp(column.type):
        found: list[Any] = column.to_pylist()
        return found
    has_zone = column.type.tz is not None
    microseconds = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_pylist()
    return [None if each is None else Moment(each, has_zone) for each in microseconds]


class Rows(Sequence[Row]):
    """Rows of a query as plain tuples, in an order that depends only on their values.

    `==` compares with other rows, or with a list of tuples, as multisets by `form`. `a - b` is the multiset difference.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, rows: Iterable[Iterable[Any]], form: Form = exact) -> None:
        self._rows = list(map(tuple, rows))
        self.form = form

    @cached_property
    def _sorted(self) -> list[Row]:
        return sorted(self._rows, key=exact)

    @cached_property
    def keyed(self) -> list[_Keyed]:
        """Pairs of the forms of a row's values and the row."""
        return _keyed(self._rows, self.form, _EXACTLY)

    def __getitem__(self, at: Any) -> Any:
        return self._sorted[at]

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rows | list | tuple):
            return NotImplemented
        return len(self) == len(other) and not unmatched(self, other, self._shared(other))[0]

    def __sub__(self, other: Iterable[Row]) -> Rows:
        return Rows(unmatched(self, other, self._shared(other))[0], self.form)

    def __repr__(self) -> str:
        return f"{len(self)} rows: {few(self)}"

    def _shared(self, other: object) -> Form:
        if isinstance(other, Rows) and other.form is not self.form:
            raise ValueError(f"Cannot compare rows by {self.form.__name__} with rows by {other.form.__name__}")
        return self.form


def unmatched(
    rows: Iterable[Row], others: Iterable[Row], form: Form = exact, near: Near = _EXACTLY
) -> tuple[list[Row], list[Row]]:
    """The rows on each side that have no partner of their own on the other side.

    Partners are equal by `form` in all columns except those of `near`, in which they are close enough.
    """
    waiting: defaultdict[Key, list[Row]] = defaultdict(list)
    for key, other in _keyed(others, form, near):
        waiting[key].append(other)
    left = []
    for key, row in _keyed(rows, form, near):
        candidates = waiting[key]
        partner = next((at for at, each in enumerate(candidates) if _are_near(row, each, near)), None)
        if partner is None:
            left.append(row)
        else:
            candidates.pop(partner)
    return left, [row for each in waiting.values() for row in each]


def difference(sides: Mapping[str, Iterable[Row]], form: Form = exact, near: Near = _EXACTLY) -> str:
    """A sentence with the rows that only one of two named sides has; empty if the sides are equal."""
    (name, rows), (other_name, others) = sides.items()
    left, right = unmatched(rows, others, form, near)
    if not left and not right:
        return ""
    return f"{len(left)} rows of {name} alone: {few(left)}; {len(right)} of {other_name} alone: {few(right)}"


def few(rows: Sequence[Row]) -> str:
    """The first rows as text for a message."""
    return ", ".join(repr(each)[:_LONGEST] for each in rows[:_FEW])


def _keyed(rows: Iterable[Row], form: Form, near: Near) -> list[_Keyed]:
    """Pairs of the forms of a row's values outside of `near` and the row, sorted by the values of `near`.

    The order ensures that rows that are near to several others are matched with their partners.
    """
    if not near:
        if isinstance(rows, Rows) and rows.form is form:
            return rows.keyed
        return [(tuple(map(form, row)), row) for row in rows]
    ordered_rows = sorted(rows, key=lambda row: [(row[at] is not None, row[at] or 0) for at in near])
    return [(tuple(form(value) for at, value in enumerate(row) if at not in near), row) for row in ordered_rows]


def _are_near(row: Row, other: Row, near: Near) -> bool:
    return all(same(row[at], other[at]) for at, same in near.items())
