"""Types of the keys of random MERGE statements, with values in order and the bounds that Delta stores of them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

_DAY, _MOMENT = dt.date(1600, 1, 1), dt.datetime(1901, 2, 3)  # noqa: DTZ001 - a clock in UTC
_MILLISECOND = dt.timedelta(milliseconds=1)
# Delta cuts the bounds of text after 32 units of UTF-16.
_CUT = 31

Value = Callable[[int], Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of a key; `value` of a place rises with the place.

    - `others`: types that the source may have instead, with their values of places
    - `extremes`: values out of this order
    - `has_bounds`: Delta stores a minimum and a maximum
    """

    type: str
    value: Value
    others: Mapping[str, Value] = field(default_factory=dict)
    extremes: Sequence[Any] = ()
    has_bounds: bool = True

    def values_as(self, type_: str) -> Value:
        """The values of places in this type or another one."""
        return self.value if type_ == self.type else self.others[type_]


def _moment(at: int) -> dt.datetime:
    return _MOMENT + dt.timedelta(hours=at * 31, microseconds=at * 7)


KINDS: Mapping[str, Kind] = {
    # Some values of wider types would be others if their upper bits were cut off.
    "int": Kind("int", lambda at: at, {"bigint": lambda at: at + (at % 40 == 7) * 2**32, "decimal(14,2)": Decimal}),
    "bigint": Kind(
        "bigint", lambda at: (at - 500) * 10**15, {"decimal(20,0)": lambda at: Decimal((at - 500) * 10**15)}
    ),
    "string": Kind("string", lambda at: f"ключ {at:05}"),
    "date": Kind(
        "date",
        lambda at: _DAY + dt.timedelta(days=at * 97),
        {"timestamp_ntz": lambda at: dt.datetime.combine(_DAY + dt.timedelta(days=at * 97), dt.time())},
    ),
    "decimal(12,2)": Kind(
        "decimal(12,2)",
        lambda at: Decimal(at * 5 - 700) / 4,
        # Some values lie between those that the target can have.
        {
            "decimal(20,4)": lambda at: Decimal(at * 5 - 700) / 4 + Decimal(int(at % 5 == 2)) / 1000,
            "int": lambda at: (at * 5 - 700) // 4,
        },
    ),
    "smallint": Kind(
        "smallint",
        lambda at: at - 500,
        {"int": lambda at: at - 500, "bigint": lambda at: at - 500 + (at % 40 == 7) * 2**16},
    ),
    "double": Kind(
        "double",
        lambda at: (at - 500) / 2,
        {"float": lambda at: (at - 500) / 2, "int": lambda at: at - 500},
        (math.nan, -0.0, 0.0, math.inf),
    ),
    "timestamp": Kind("timestamp", lambda at: _moment(at).replace(tzinfo=dt.timezone.utc)),
    "timestamp_ntz": Kind("timestamp_ntz", _moment),
    # A character of two units lies where Delta cuts bounds.
    "long text": Kind("string", lambda at: f"{at:05}{'x' * 26}\U0001f600{'y' * (at % 3)}\U0001f600"),
    "binary": Kind("binary", lambda at: f"{at:05}".encode(), has_bounds=False),
}


def order_of(value: Any) -> tuple[bool, Any]:
    """A sort key of values of one type, or of two types that a join compares; NaN comes last."""
    if isinstance(value, dt.datetime):
        return False, value.replace(tzinfo=None)
    if isinstance(value, dt.date):
        return False, dt.datetime.combine(value, dt.time())
    # Spark compares bytes of UTF-8.
    is_nan = isinstance(value, float) and math.isnan(value)
    return is_nan, 0 if is_nan else value.encode() if isinstance(value, str) else value


def may_hold(values: Sequence[Any], keys: Sequence[Any]) -> bool:
    """True if the bounds that Delta stores of a file with these values have room for one of the keys."""
    known = sorted((each for each in values if each is not None), key=order_of)
    if not known:
        return False
    low, high = known[0], known[-1]
    if order_of(high)[0]:
        # NaN is the greatest value, and no bound tells of the others below it.
        return True
    if isinstance(low, str):
        low, high = low[:_CUT], high[:_CUT] + "\U0010ffff"
    elif isinstance(low, dt.datetime):
        low, high = low.replace(microsecond=low.microsecond // 1000 * 1000), high + _MILLISECOND
    return any(order_of(low) <= order_of(each) <= order_of(high) for each in keys)
